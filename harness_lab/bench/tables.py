"""The settlements that questions are timed on: runs of one node, runs that are trees, runs in uneven clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.settlements import Settlements

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TREE: Final = (("0", None, 0, "root"), ("0.1", "0", 1, "child"), ("0.2", "0", 1, "child"), ("0.2.1", "0.2", 2, "leaf"))
"""Node, parent, depth and agent of each node of a tree."""


def records(size: int, *, seed: int = 0) -> Settlements:
    """Make settlements of single-node runs of some users, a tenth of them stopped by a limit."""
    rng = np.random.default_rng(seed)
    used = _used(size, rng)
    return Settlements.from_columns({
        "run": np.arange(size).astype(str), "node": "0", "agent": "a", **used,
        "user": rng.integers(0, 300, size).astype(str),
    })  # fmt: skip


def trees(size: int, *, seed: int = 0) -> Settlements:
    """Make settlements of trees of four nodes, three agents and three levels, with their times."""
    rng = np.random.default_rng(seed)
    runs = size // len(_TREE)
    node, parent, depth, agent = (np.tile(np.array(part, dtype=object), runs) for part in zip(*_TREE, strict=True))
    return Settlements.from_columns({
        "run": np.repeat(np.arange(runs).astype(str), len(_TREE)), "node": node, "parent": parent,
        "depth": depth.astype(np.int64), "agent": agent, **_used(node.size, rng),
        "start_ns": rng.integers(0, 10**9, node.size), "duration_ns": rng.integers(1, 10**9, node.size),
        "user": np.repeat(rng.integers(0, 300, runs).astype(str), len(_TREE)),
    })  # fmt: skip


def clustered(size: int, *, seed: int = 0) -> Settlements:
    """Make settlements of runs of uneven users (few of them have most runs), in repositories and sessions."""
    rng = np.random.default_rng(seed)
    used = _used(size, rng)
    return Settlements.from_columns({
        "run": np.arange(size).astype(str), "node": "0", "agent": "a", **used,
        "user": np.minimum(rng.zipf(1.3, size), 3000).astype(str), "repo": rng.integers(0, 50, size).astype(str),
        "session": rng.integers(0, max(size // 3, 1), size).astype(str),
    })  # fmt: skip


TABLES: Final[Mapping[str, Callable[[int], Settlements]]] = {
    "single nodes": records,
    "trees": trees,
    "clusters": clustered,
}
"""What makes settlements of so many nodes, by name."""


def _used(size: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return what nodes used: each is stopped at the highest tenth of the costs."""
    cost = rng.lognormal(-1, 0.8, size)
    cap = np.quantile(cost, 0.9)
    tokens = rng.lognormal(10, 0.6, size).astype(np.int64)
    return {
        "backend": "b", "model": "m", "outcome": np.where(cost > cap, "exhausted", "completed"),
        "calls": rng.integers(1, 60, size), "stopped_by": ["cost-exhausted" if over else None for over in cost > cap],
        "input_fresh": tokens, "cache_read": 0, "cache_write": 0, "input_total": tokens,
        "output": rng.integers(10, 4000, size), "cost_nusd": (np.minimum(cost, cap) * 1e9).astype(np.int64),
    }  # fmt: skip
