"""How large each run's tree grew: how deep, how many started, how many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.analyze.frames import column, numbers, text
from harness_lab.analyze.runs import tree_of

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.analyze.frames import Bools, Floats, Ints

SHAPES: Final = {"depth": "max_depth", "starts": "starts", "concurrency": "at_once"}
"""Channel → column."""


def with_shape(runs: pd.DataFrame, nodes: pd.DataFrame, channel: str) -> pd.DataFrame:
    """Return the run table with the column of a channel that bounds a tree's size.

    Parameters
    ----------
    runs : DataFrame
        As :func:`harness_lab.analyze.run_table` gives it for `nodes`.
    nodes : DataFrame
        The nodes.
    channel : {"depth", "starts", "concurrency"}
        ``max_depth`` (the root is 0), ``starts`` (nodes below the root that started) or ``at_once`` (most of those
        that ran at the same time; NaN where a start or duration is unknown).
    """
    trees = tree_of(nodes)
    started = text(nodes, "outcome") != "denied"
    below = started.copy()
    below[trees.root] = False
    if channel == "depth":
        depth = np.where(started, numbers(nodes, "depth"), -1.0)
        deepest = np.full(trees.count, -np.inf)
        np.maximum.at(deepest, trees.codes, np.where(np.isnan(depth), np.inf, depth))
        found = np.where(np.isfinite(deepest) & (deepest >= 0), deepest, np.nan)
    elif channel == "starts":
        found = np.bincount(trees.codes[below], minlength=trees.count).astype(np.float64)
    else:
        found = _most_at_once(nodes, trees.codes, below, trees.count)
    return runs.assign(**{SHAPES[channel]: found})


def _most_at_once(nodes: pd.DataFrame, codes: Ints, below: Bools, count: int) -> Floats:
    """Return the most nodes below the root that ran at the same time; one that ends as another starts is not in it."""
    start, took = (
        column(nodes, name).to_numpy(dtype=np.float64, na_value=np.nan) for name in ("start_ns", "duration_ns")
    )
    unknown = np.bincount(codes[below & np.isnan(start + took)], minlength=count) > 0
    mine = below & ~np.isnan(start + took)
    at = np.concatenate([start[mine], (start + took)[mine]])
    run, step = np.tile(codes[mine], 2), np.repeat([1, -1], int(mine.sum()))
    order = np.lexsort((step, at, run))  # ends before starts
    running = np.cumsum(step[order])  # every run's steps sum to 0, so the next one begins at 0
    most = np.zeros(count)
    np.maximum.at(most, run[order], running)
    return np.where(unknown, np.nan, most)
