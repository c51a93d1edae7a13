"""Which rows belong together: the cluster that intervals have to respect."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.analyze.frames import Floats, column
from harness_lab.errors import InputError
from harness_lab.stats.clusters import cluster_effect

AUTO: Final = "auto"
"""Look for the columns of `CANDIDATES` and take the one that leaves the smallest effective n."""

CANDIDATES: Final = ("user", "repo", "session", "run")
"""Columns whose rows resemble each other: ``run`` counts where a run has several rows (nodes, policies)."""

Labels = npt.NDArray[Any]


def choose_cluster(frame: pd.DataFrame, values: Floats, cluster: str | None) -> tuple[str | None, Labels | None]:
    """Return the name of the cluster column and the cluster of each row.

    Parameters
    ----------
    frame : DataFrame
        Nodes or runs.
    values : ndarray of float64, shape (n,)
        The quantity, known in each row.
    cluster : str or None
        A column; ``"auto"``; or None, which takes rows as independent.

    Returns
    -------
    (str or None, ndarray or None)
        None, None where rows are taken as independent: because that was asked for, or because ``"auto"`` found no
        column in which rows share a value.

    Raises
    ------
    InputError
        If the column does not exist.
    """
    if cluster is None:
        return None, None
    if cluster != AUTO:
        if cluster not in frame.columns:
            expected = f'a column such as {", ".join(CANDIDATES)}, "{AUTO}", or None'
            raise InputError("cluster", expected=expected, got=cluster)
        return cluster, _labels(frame, cluster)
    found = [(name, labels) for name in CANDIDATES if (labels := _shared(frame, name)) is not None]
    if not found or not values.size:
        return None, None
    return min(found, key=lambda pair: cluster_effect(values, pair[1]).effective_n)


def _shared(frame: pd.DataFrame, name: str) -> Labels | None:
    """Return the labels of a column if it has several and some rows share one."""
    if name not in frame.columns or len(frame) < 2 or column(frame, name).isna().all():
        return None
    labels = _labels(frame, name)
    distinct = int(labels.max()) + 1
    return labels if 1 < distinct < len(frame) else None


def _labels(frame: pd.DataFrame, name: str) -> Labels:
    """Return the label of each row as a number; a row of unknown label is a cluster of its own."""
    codes = np.asarray(pd.factorize(column(frame, name))[0], dtype=np.int64)
    unknown = codes < 0
    codes[unknown] = codes.max(initial=-1) + 1 + np.arange(int(unknown.sum()))
    return codes
