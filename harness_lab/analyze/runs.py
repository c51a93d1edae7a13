"""One row per run: what came of it, what it used, what was wasted."""

from __future__ import annotations

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
    codes, first = _runs(nodes)
    count = first.size
    outcome = text(nodes, "outcome")
    denied = outcome == "denied"
    runs = pd.DataFrame({name: column(nodes, name).iloc[first].array for name in ("policy", "scenario", "run")})
    root = _roots(nodes, codes, count)
    for name in _ROOT:
        runs[name] = column(nodes, name).iloc[root].array
    runs["nodes"] = np.bincount(codes, minlength=count)
    for name in _SUMS:
        unsure = _incomplete(nodes, name)
        runs[name], known, unknown = _sum(nodes, name, codes, count, denied=denied, unsure=unsure)
    runs["tokens"] = runs["input_total"] + runs["output"]
    runs["cost_known"], runs["known_cost_nusd"], runs["unknown_nodes"] = unknown == 0, known, unknown
    runs["wasted_nusd"] = _wasted(nodes, codes, count, outcome)
    runs["overspent"] = _any(nodes, "overspent", codes, count)
    return runs


def root_rows(nodes: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the row number of each run's root, runs in order of appearance."""
    codes, first = _runs(nodes)
    return _roots(nodes, codes, first.size)


def run_codes(nodes: pd.DataFrame) -> tuple[Ints, npt.NDArray[np.intp]]:
    """Return the number of each node's run, in order of appearance, and the row of each run's root."""
    codes, first = _runs(nodes)
    return codes, _roots(nodes, codes, first.size)


def _runs(nodes: pd.DataFrame) -> tuple[Ints, npt.NDArray[np.intp]]:
    """Return the run of each node, numbered in order of appearance, and the first row of each."""
    keys = [pd.factorize(column(nodes, name), use_na_sentinel=False)[0] for name in ("policy", "scenario", "run")]
    keys = [key for key in keys[:-1] if key.any()] + keys[-1:]  # one policy, one scenario: they tell nothing apart
    mixed = np.zeros(len(nodes), dtype=np.int64)
    for key in keys:
        mixed = mixed * (int(key.max(initial=0)) + 1) + key
    codes = np.asarray(pd.factorize(mixed)[0] if len(keys) > 1 else mixed, dtype=np.int64)
    return codes, np.unique(codes, return_index=True)[1]


def _roots(nodes: pd.DataFrame, codes: Ints, count: int) -> npt.NDArray[np.intp]:
    """Return the row of each run's root: depth 0, else no parent, else the first."""
    if count == len(nodes):  # every run is one node
        return np.arange(count, dtype=np.intp)
    depth = column(nodes, "depth").to_numpy(dtype=np.float64, na_value=np.nan)
    orphan = column(nodes, "parent").isna().to_numpy(dtype=bool)
    rank = np.where(np.isnan(depth), np.where(orphan, 0.25, 1e9), depth)
    order = np.lexsort((np.arange(len(nodes)), rank, codes))
    return order[np.searchsorted(codes[order], np.arange(count))]


def _sum(
    nodes: pd.DataFrame, name: str, codes: Ints, count: int, *, denied: Bools, unsure: Bools
) -> tuple[Any, Any, Any]:
    """Return the sum per run (NA if a part is unknown), the sum of what is known, and how many parts are unknown."""
    series = whole_numbers(nodes, name)
    missing = (series.isna().to_numpy(dtype=bool) & ~denied) | unsure
    known = _add(np.asarray(series.fillna(0), dtype=np.int64), codes, count)
    unknown = np.bincount(codes[missing], minlength=count)
    return pd.array(known, dtype="Int64").copy() if not unknown.any() else _masked(known, unknown > 0), known, unknown


def _incomplete(nodes: pd.DataFrame, name: str) -> Bools:
    """Return the nodes whose figure is only a lower bound because a call did not report its usage."""
    if name in COUNTED:
        return np.zeros(len(nodes), dtype=np.bool_)
    lower = is_false(nodes, "usage_known")
    return lower & (text(nodes, "cost_source") != "recorded") if name == "cost_nusd" else lower


def _masked(values: Ints, unknown: Bools) -> Any:
    return pd.arrays.IntegerArray(values.copy(), unknown)


def _add(values: Ints, codes: Ints, count: int) -> Ints:
    """Sum integers per run exactly."""
    if values.size and float(np.abs(values).max()) * values.size < EXACT:
        return np.bincount(codes, weights=values, minlength=count).astype(np.int64)
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, codes, values)
    return total


def _wasted(nodes: pd.DataFrame, codes: Ints, count: int, outcome: npt.NDArray[Any]) -> Any:
    """Spend of nodes that did not complete, and of all nodes below them."""
    known_end = outcome != "unknown"
    lost = (outcome != "completed") & known_end
    parent = _parents(nodes, codes)
    has_parent = parent >= 0
    while True:
        below = lost | (has_parent & lost[parent])
        if (below == lost).all():
            break
        lost = below
    cost = whole_numbers(nodes, "cost_nusd")
    unknown_cost = (cost.isna().to_numpy(dtype=bool) & (outcome != "denied")) | _incomplete(nodes, "cost_nusd")
    spent = cost.fillna(0).to_numpy(dtype=np.int64)
    unsure = (lost & unknown_cost) | (~lost & ~known_end & (unknown_cost | (spent > 0)))
    return _masked(_add(np.where(lost, spent, 0), codes, count), np.bincount(codes[unsure], minlength=count) > 0)


def _parents(nodes: pd.DataFrame, codes: Ints) -> npt.NDArray[np.intp]:
    """Return the row of each node's parent, -1 for none."""
    parent = column(nodes, "parent")
    missing = parent.isna().to_numpy(dtype=bool)
    if missing.all():
        return np.full(len(nodes), -1, dtype=np.intp)
    both = pd.concat([column(nodes, "node").astype("string"), parent.astype("string")], ignore_index=True)
    names, unique = pd.factorize(both, use_na_sentinel=False)
    own, wanted = (codes * len(unique) + part for part in np.split(names, 2))
    order = np.argsort(own, kind="stable")
    at = np.minimum(np.searchsorted(own[order], wanted), own.size - 1)
    found = order[at]
    return np.where(missing | (own[found] != wanted), -1, found)


def _any(nodes: pd.DataFrame, name: str, codes: Ints, count: int) -> Any:
    """Whether any node of a run has the flag; NA if none is known to and some are unknown."""
    yes = np.bincount(codes[is_true(nodes, name)], minlength=count) > 0
    open_ = np.bincount(codes[column(nodes, name).isna().to_numpy(dtype=bool)], minlength=count) > 0
    return pd.arrays.BooleanArray(yes, open_ & ~yes)
