"""Which rows belong together: the cluster that intervals have to respect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.analyze.frames import Floats, Ints, column
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
    return Clusters.of(frame, cluster).choose(values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """The columns in which rows of a frame may resemble each other: looked up once for any number of quantities.

    Parameters
    ----------
    columns : tuple of (str, ndarray of int64)
        Name, and the label of each row as a number, -1: unknown.
    given : bool
        Whether the one column was asked for, and so is taken whatever it says.
    """

    columns: tuple[tuple[str, Ints], ...]
    given: bool

    @classmethod
    def of(cls, frame: pd.DataFrame, cluster: str | None) -> Clusters:
        """Look the columns up; arguments and errors as for :func:`choose_cluster`."""
        if cluster is None:
            return cls(columns=(), given=False)
        if cluster != AUTO and cluster not in frame.columns:
            expected = f'a column such as {", ".join(CANDIDATES)}, "{AUTO}", or None'
            raise InputError("cluster", expected=expected, got=cluster)
        names: tuple[str, ...] = CANDIDATES if cluster == AUTO else (cluster,)
        if cluster == AUTO and one_row_a_run(frame):
            names = tuple(name for name in names if name != "run")
        found = [(name, _codes(frame, name)) for name in names if name in frame.columns]
        return cls(columns=tuple(found), given=cluster != AUTO)

    def choose(self, values: Floats, rows: npt.NDArray[Any] | None = None) -> tuple[str | None, Labels | None]:
        """Return name and labels of the column that leaves the smallest effective n.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            The quantity, known in each row.
        rows : ndarray of bool or int, optional
            Which rows of the frame these are; None: all.
        """
        if rows is not None:
            return self.within(rows).choose(values)
        if self.given:
            return self.columns[0][0], _labels(self.columns[0][1], all_seen=True)
        shared = [
            (name, labels) for name, codes in self.columns if (labels := _shared(codes, all_seen=True)) is not None
        ]
        if not shared or not values.size:
            return None, None
        return (
            shared[0] if len(shared) == 1 else min(shared, key=lambda one: cluster_effect(values, one[1]).effective_n)
        )

    def within(self, rows: npt.NDArray[Any]) -> Clusters:
        """Return the same columns of some rows of the frame, ready for several quantities that are known in them."""
        parts = ((name, codes[rows]) for name, codes in self.columns)
        if self.given:
            return Clusters(columns=tuple((name, _labels(codes, all_seen=False)) for name, codes in parts), given=True)
        shared = ((name, _shared(codes, all_seen=False)) for name, codes in parts)
        return Clusters(columns=tuple((name, codes) for name, codes in shared if codes is not None), given=False)


def one_row_a_run(frame: pd.DataFrame) -> bool:
    """Whether no run can have several rows: a run table (it counts nodes) of one policy and scenario."""
    if not {"nodes", "unknown_nodes", "policy", "scenario"} <= set(frame.columns):
        return False
    return all(frame[name].isna().all() or len(frame[name].unique()) < 2 for name in ("policy", "scenario"))


def _shared(codes: Ints, *, all_seen: bool) -> Labels | None:
    """Return the labels of a column if it has several and some rows share one."""
    if codes.size < 2 or (codes < 0).all():
        return None
    labels = _labels(codes, all_seen=all_seen)
    return labels if 1 < int(labels.max()) + 1 < codes.size else None


def _codes(frame: pd.DataFrame, name: str) -> Ints:
    series = column(frame, name)
    if series.isna().all():
        return np.full(len(frame), -1, dtype=np.int64)
    return np.asarray(pd.factorize(series)[0], dtype=np.int64)


def _labels(codes: Ints, *, all_seen: bool) -> Labels:
    """Return labels without gaps, in order of appearance; a row of unknown label is a cluster of its own."""
    unknown = codes < 0
    if all_seen and not unknown.any():
        return codes
    labels = np.array(codes)
    if not all_seen:
        labels[~unknown] = pd.factorize(codes[~unknown])[0]
    labels[unknown] = labels.max(initial=-1) + 1 + np.arange(int(unknown.sum()))
    return labels


def gapless(labels: Labels) -> Ints:
    """Return labels from 0 without gaps, in their own order, for those that are left of some."""
    if not labels.size:
        return labels
    seen = np.bincount(labels) > 0
    return np.asarray((np.cumsum(seen) - 1)[labels], dtype=np.int64)
