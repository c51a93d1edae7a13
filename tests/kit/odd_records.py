"""Settlements that somebody may have and nobody thinks of: few, failed, unknown, constant, free, huge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_START: Final = 1_700_000_000_000_000_000


def runs(n: int = 60, **columns: object) -> pd.DataFrame:
    """Make runs of two agents with usage and lognormal cost; columns given replace those."""
    rng = np.random.default_rng(0)
    agents = ["a", "b"] * n
    made: dict[str, object] = {
        "run": [f"r{k}" for k in range(n)], "node": "0", "agent": agents[:n], "backend": "x", "model": "m",
        "input_total": 4000, "input_fresh": 4000, "cache_read": 0, "cache_write": 0, "output": 40,
        "calls": rng.integers(3, 9, n), "cost_nusd": (rng.lognormal(0, 0.5, n) * 1e9).astype(np.int64),
        "cost_source": "recorded", "duration_ns": 10**9, "outcome": "completed", "delivered": True,
    }  # fmt: skip
    return pd.DataFrame(made | columns)


def unknown(n: int = 60, dtype: str = "Int64") -> object:
    """Return a column of unknown values."""
    return pd.array([None] * n, dtype=dtype)


_TOKENS: Final = ("input_total", "input_fresh", "cache_read", "cache_write", "output")
ODD: Final[Mapping[str, Callable[[], pd.DataFrame]]] = {
    "usual": lambda: runs(),
    "one run": lambda: runs(1),
    "two runs": lambda: runs(2),
    "all failed": lambda: runs(outcome="failed"),
    "all cancelled": lambda: runs(outcome="cancelled"),
    "all denied": lambda: runs(outcome="denied"),
    "outcomes unknown": lambda: runs(outcome="unknown"),
    "costs unknown": lambda: runs(cost_nusd=unknown()),
    "all unknown": lambda: runs(
        **{name: unknown() for name in (*_TOKENS, "cost_nusd", "calls", "duration_ns")},
        delivered=unknown(60, "boolean"),
    ),
    "constant": lambda: runs(cost_nusd=10**9, calls=5),
    "free": lambda: runs(cost_nusd=0),
    "nothing used": lambda: runs(**dict.fromkeys((*_TOKENS, "cost_nusd", "calls", "duration_ns"), 0)),
    "one cluster": lambda: runs(user="u"),
    "two clusters": lambda: runs(user=["u", "v"] * 30),
    "many clusters": lambda: runs(120, user=[f"u{k % 30}" for k in range(120)]),
    "no times": lambda: runs(duration_ns=unknown()),
    "with times": lambda: runs(start_ns=[_START + k * 10**9 for k in range(60)]),
    "all capped": lambda: runs(outcome="exhausted", stopped_by="cost-exhausted", ceiling_cost=10**9),
    "caps differ": lambda: runs(outcome=["exhausted", "completed"] * 30, ceiling_cost=[10**9, 3 * 10**9] * 30),
    "nothing delivered": lambda: runs(delivered=False),
    "huge": lambda: runs(
        cost_nusd=9 * 10**17, input_total=10**9, input_fresh=10**9, output=10**9, calls=10**9, duration_ns=9 * 10**17
    ),
    "no names": lambda: runs(**{name: unknown(60, "string") for name in ("model", "agent", "backend")}),
    "one outlier": lambda: runs(cost_nusd=[10**6] * 59 + [10**15]),
}
"""By name; each is made anew."""
