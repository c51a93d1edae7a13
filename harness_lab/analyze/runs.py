"""One row per run: what came of it, what it used, what was wasted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.analyze.frames import (
    COUNTED,
    GROUPS,
    Bools,
    Data,
    Ints,
    column,
    is_false,
    is_true,
    nodes_of,
    text,
    text_codes,
    whole_numbers,
)

EXACT: Final = 2.0**53
"""Sums of whole numbers below this are exact in float64."""

_SUMS: Final = ("calls", "starts", "input_total", "output", "cost_nusd")
_ROOT: Final = ("outcome", "stopped_by", "cause", "delivered", "duration_ns", "start_ns", *GROUPS)


def run_table(settlements: Data) -> pd.DataFrame:
    """Reduce nodes to runs.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes, with the columns of the settlement table; missing columns count as unknown.

    Returns
    -------
    DataFrame
        One row per (policy, scenario, run), in order of appearance:

        - of the root: ``outcome, stopped_by, cause, delivered, duration_ns, start_ns`` and the groups (``agent``,
          ``backend``, ``model`` ... ``client_version``);
        - summed over the tree: ``nodes, calls, starts, input_total, output, tokens, cost_nusd`` (nano-dollars). A sum
          is NA if any part is unknown; a node that was denied never started and adds nothing;
        - ``cost_known`` (bool), ``known_cost_nusd`` (the sum of what is known, a lower bound), ``unknown_nodes`` (nodes
          whose cost is unknown);
        - ``wasted_nusd``: spend of nodes that did not complete and of completed nodes below one that did not; NA if
          that cannot be known;
        - ``overspent`` (any node; NA if none is known to have and some are unknown).

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": ["r", "r"], "node": ["0", "1"], "parent": [None, "0"], "depth": [0, 1],
    ...     "outcome": ["completed", "failed"], "cost_nusd": [5, 3]})
    >>> run_table(nodes)[["outcome", "cost_nusd", "wasted_nusd"]].values.tolist()
    [['completed', 8, 3]]
    """
    nodes = nodes_of(settlements)
    return reduced(nodes, tree_of(nodes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trees:
    """Which nodes belong together.

    Parameters
    ----------
    codes : ndarray of int64, shape (nodes,)
        The run of each node, numbered in order of appearance.
    first, root : ndarray of int, shape (runs,)
        The first row of each run, and that of its root.
    """

    codes: Ints
    first: npt.NDArray[np.intp]
    root: npt.NDArray[np.intp]

    @property
    def count(self) -> int:
        """Runs."""
        return self.first.size

    @property
    def single(self) -> bool:
        """Whether every run is one node: then nothing has to be summed or taken apart."""
        return self.count == self.codes.size

    def add(self, values: Ints) -> Ints:
        """Sum integers per run exactly."""
        if self.single:
            return values
        if values.size and float(np.abs(values).max()) * values.size < EXACT:
            return np.bincount(self.codes, weights=values, minlength=self.count).astype(np.int64)
        total = np.zeros(self.count, dtype=np.int64)
        np.add.at(total, self.codes, values)
        return total

    def many(self, which: Bools) -> Ints:
        """Count the nodes of each run that are meant."""
        if self.single:
            return which.astype(np.int64)
        return np.bincount(self.codes[which], minlength=self.count)

    def at(self, series: pd.Series[Any], rows: npt.NDArray[np.intp]) -> Any:
        """Return a column's values at one row of each run."""
        return series if self.single else series.array.take(rows)


def tree_of(nodes: pd.DataFrame) -> Trees:
    """Tell the runs of a nodes frame apart and find their roots."""
    codes, first = _runs(nodes)
    return Trees(codes=codes, first=first, root=_roots(nodes, codes, first.size))


def reduced(nodes: pd.DataFrame, trees: Trees) -> pd.DataFrame:
    """Return what :func:`run_table` describes, for nodes whose runs are told apart already."""
    outcome, words = text_codes(nodes, "outcome")
    denied, completed, unknown_end = (
        np.asarray([word == wanted for word in words], dtype=np.bool_)[outcome]
        for wanted in ("denied", "completed", "unknown")
    )
    found = {name: trees.at(column(nodes, name), trees.first) for name in ("policy", "scenario", "run")}
    found |= {name: trees.at(column(nodes, name), trees.root) for name in _ROOT}
    found["nodes"] = np.bincount(trees.codes, minlength=trees.count)
    for name in _SUMS:
        found[name], known, unknown = _sum(nodes, name, trees, denied)
    found["tokens"] = found["input_total"] + found["output"]
    found |= {"cost_known": unknown == 0, "known_cost_nusd": known, "unknown_nodes": unknown}
    lost = _lost(nodes, trees, ~completed & ~unknown_end)
    found["wasted_nusd"] = _wasted(nodes, trees, lost, denied=denied, unknown_end=unknown_end)
    found["overspent"] = _any(nodes, "overspent", trees)
    return pd.DataFrame(found, copy=False)


def root_rows(nodes: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the row number of each run's root, runs in order of appearance."""
    return tree_of(nodes).root


def _runs(nodes: pd.DataFrame) -> tuple[Ints, npt.NDArray[np.intp]]:
    """Return the run of each node, numbered in order of appearance, and the first row of each."""
    keys = [pd.factorize(column(nodes, name), use_na_sentinel=False)[0] for name in ("policy", "scenario", "run")]
    keys = [key for key in keys[:-1] if key.any()] + keys[-1:]  # one policy, one scenario: they tell nothing apart
    mixed = np.zeros(len(nodes), dtype=np.int64)
    for key in keys:
        mixed = mixed * (int(key.max(initial=0)) + 1) + key
    codes = np.asarray(pd.factorize(mixed)[0] if len(keys) > 1 else mixed, dtype=np.int64)
    rows = np.arange(codes.size, dtype=np.intp)
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.intp)
    first[codes[::-1]] = rows[::-1]  # the last to be written stays, which is the first of each run
    return codes, first


def _roots(nodes: pd.DataFrame, codes: Ints, count: int) -> npt.NDArray[np.intp]:
    """Return the row of each run's root: depth 0, else no parent, else the first."""
    if count == len(nodes):  # every run is one node
        return np.arange(count, dtype=np.intp)
    depth = column(nodes, "depth").to_numpy(dtype=np.float64, na_value=np.nan)
    orphan = column(nodes, "parent").isna().to_numpy(dtype=bool)
    rank = np.where(np.isnan(depth), np.where(orphan, 0.25, 1e9), depth)
    order = np.lexsort((np.arange(len(nodes)), rank, codes))
    return order[np.searchsorted(codes[order], np.arange(count))]


def _sum(nodes: pd.DataFrame, name: str, trees: Trees, denied: Bools) -> tuple[Any, Ints, Ints]:
    """Return the sum per run (NA if a part is unknown), the sum of what is known, and how many parts are unknown."""
    values, missing = _whole(nodes, name)
    known, unknown = trees.add(values), trees.many((missing & ~denied) | _incomplete(nodes, name))
    return _masked(known, unknown > 0), known, unknown


def _whole(nodes: pd.DataFrame, name: str) -> tuple[Ints, Bools]:
    """Return a column of whole numbers, 0 where unknown, and where it is unknown."""
    series = whole_numbers(nodes, name)
    return series.to_numpy(dtype=np.int64, na_value=0), series.isna().to_numpy(dtype=bool)


def _incomplete(nodes: pd.DataFrame, name: str) -> Bools:
    """Return the nodes whose figure is only a lower bound because a call did not report its usage."""
    if name in COUNTED:
        return np.zeros(len(nodes), dtype=np.bool_)
    lower = is_false(nodes, "usage_known")
    if name == "cost_nusd" and lower.any():
        lower &= text(nodes, "cost_source") != "recorded"
    return lower


def _masked(values: Ints, unknown: Bools) -> Any:
    return pd.arrays.IntegerArray(values.copy(), unknown)


def _lost(nodes: pd.DataFrame, trees: Trees, lost: Bools) -> Bools:
    """Return the nodes that did not complete, and all nodes below them."""
    if trees.single or not lost.any():
        return lost
    rows = np.flatnonzero((trees.many(lost) > 0)[trees.codes])  # in the other runs nothing is lost
    parent = _parents(nodes, trees.codes, rows)
    mine, has_parent = lost[rows], parent >= 0
    while True:
        below: Bools = mine | (has_parent & mine[parent])
        if (below == mine).all():
            break
        mine = below
    found = lost.copy()
    found[rows] = mine
    return found


def _wasted(nodes: pd.DataFrame, trees: Trees, lost: Bools, *, denied: Bools, unknown_end: Bools) -> Any:
    """Spend of nodes that are lost."""
    spent, missing = _whole(nodes, "cost_nusd")
    unknown_cost = (missing & ~denied) | _incomplete(nodes, "cost_nusd")
    unsure = (lost & unknown_cost) | (~lost & unknown_end & (unknown_cost | (spent > 0)))
    return _masked(trees.add(np.where(lost, spent, 0)), trees.many(unsure) > 0)


def _parents(nodes: pd.DataFrame, codes: Ints, rows: npt.NDArray[np.intp] | None = None) -> npt.NDArray[np.intp]:
    """Return the place of each node's parent among these rows (None: all), which are those of whole runs; -1: none."""
    rows = np.arange(len(nodes)) if rows is None else rows
    node, parent = (column(nodes, name).iloc[rows] for name in ("node", "parent"))
    missing = parent.isna().to_numpy(dtype=bool)
    if missing.all():
        return np.full(rows.size, -1, dtype=np.intp)
    both = pd.concat([node.astype("string"), parent.astype("string")], ignore_index=True)
    names, unique = pd.factorize(both, use_na_sentinel=False)
    own, wanted = (codes[rows] * len(unique) + part for part in np.split(names, 2))
    order = np.argsort(own, kind="stable")
    at = np.minimum(np.searchsorted(own[order], wanted), own.size - 1)
    found = order[at]
    return np.where(missing | (own[found] != wanted), -1, found)


def _any(nodes: pd.DataFrame, name: str, trees: Trees) -> Any:
    """Whether any node of a run has the flag; NA if none is known to and some are unknown."""
    yes = trees.many(is_true(nodes, name)) > 0
    open_ = trees.many(column(nodes, name).isna().to_numpy(dtype=bool)) > 0
    return pd.arrays.BooleanArray(yes, open_ & ~yes)
