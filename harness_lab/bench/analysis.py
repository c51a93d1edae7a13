"""What an interactive question costs on 100,000 settlements, in group-bys of the same frame."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from harness_lab.analyze import ceiling, ceiling_curve, cheapest_ceiling, compare, flat_price, floors, reprice
from harness_lab.bench.timing import entry, ratios
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import Settlements

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


def question_ratios(*, quick: bool = False) -> dict[str, object]:
    """Return the slowest interactive question, in pandas group-bys of the same frame; each stands beside it."""
    size = 4_000 if quick else 100_000
    table = records(size)
    found = {name: entry(ratios(_timed(ask), _timed(lambda: group_by(table)), repeats=3 if quick else 5), name)
             for name, ask in questions(table).items()}  # fmt: skip
    slowest = max(found, key=lambda name: float(found[name]["value"]))  # type: ignore[arg-type]
    what = f"{slowest}, the slowest interactive question on {size:,} settlements, in pandas group-bys of the same frame"
    return found[slowest] | {"what": what, "each": {name: one["value"] for name, one in found.items()}}


def questions(table: Settlements) -> dict[str, Callable[[], object]]:
    """Return the interactive questions by name."""
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})
    policies = table.nodes.assign(policy=np.where(np.arange(len(table.nodes)) % 2, "a", "b"))
    policies["run"] = (np.arange(len(policies)) // 2).astype(str)
    return {
        "floor": lambda: floors(table),
        "ceiling": lambda: ceiling(table),
        "ceiling curve": lambda: ceiling_curve(table),
        "cheapest ceiling": lambda: cheapest_ceiling(table, failure_usd=1.0),
        "flat price": lambda: flat_price(table),
        "reprice": lambda: reprice(table, prices),
        "compare": lambda: compare(policies),
    }


def group_by(table: Settlements) -> pd.DataFrame:
    """Group the whole frame once, in the plainest way: the measure of the rest."""
    return table.nodes.groupby("run", sort=False)[["cost_nusd", "input_total", "output", "calls"]].sum()


def records(size: int, *, seed: int = 0) -> Settlements:
    """Make settlements of single-node runs of some users, a tenth of them stopped by a limit."""
    rng = np.random.default_rng(seed)
    cost = rng.lognormal(-1, 0.8, size)
    cap = np.quantile(cost, 0.9)
    tokens = rng.lognormal(10, 0.6, size).astype(np.int64)
    return Settlements.from_columns({
        "run": np.arange(size).astype(str), "node": "0", "agent": "a", "backend": "b", "model": "m",
        "outcome": np.where(cost > cap, "exhausted", "completed"), "calls": rng.integers(1, 60, size),
        "stopped_by": ["cost-exhausted" if over else None for over in cost > cap], "input_fresh": tokens,
        "cache_read": 0, "cache_write": 0, "input_total": tokens, "output": rng.integers(10, 4000, size),
        "cost_nusd": (np.minimum(cost, cap) * 1e9).astype(np.int64), "user": rng.integers(0, 300, size).astype(str),
    })  # fmt: skip


def _timed(ask: Callable[[], object]) -> Callable[[], float]:
    def measure() -> float:
        start = time.process_time()
        ask()
        return time.process_time() - start

    return measure
