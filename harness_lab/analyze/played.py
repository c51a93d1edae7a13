"""Runs of several policies laid side by side: which rows are whose, which are the same run, and what resembles what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab.analyze.figures import METRICS
from harness_lab.analyze.frames import column, display, numbers, text_codes
from harness_lab.analyze.grouping import AUTO, Clusters
from harness_lab.analyze.wide import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from harness_lab.analyze.frames import Bools, Floats, Ints

_ALIKE = ("cost_nusd", "calls", "duration_ns")
"""Runs of the same outcome that agree in these are identical."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """A run table of several policies, read column by column.

    Parameters
    ----------
    runs : DataFrame
        The table, with ``completed`` as 0, 1 or NaN.
    names : tuple of str
        Policies in order of appearance.
    rows : mapping of str to ndarray of int
        Rows of each policy, in order.
    at : mapping of str to ndarray of int
        The row of each run (by its number over all policies) under each policy; -1: it has none.
    metrics : mapping of str to ndarray of float64
        Each metric in its display unit, NaN: unknown.
    clusters : Clusters
        Columns by which runs of one policy may resemble each other.
    mine : mapping of str to Clusters
        The same in the rows of each policy.
    """

    runs: pd.DataFrame
    names: tuple[str, ...]
    rows: Mapping[str, Ints]
    at: Mapping[str, Ints]
    metrics: Mapping[str, Floats]
    clusters: Clusters
    mine: Mapping[str, Clusters]

    @classmethod
    def of(cls, runs: pd.DataFrame, cluster: str | None) -> Played:
        """Lay a run table out; `cluster` as for :func:`harness_lab.analyze.grouping.choose_cluster`."""
        runs = measured(runs)
        policy, words = text_codes(runs, "policy")
        key = runs["_key"].to_numpy()
        rows = {name: np.flatnonzero(policy == place) for place, name in enumerate(words) if name}
        at = {name: np.full(int(key.max(initial=-1)) + 1, -1) for name in rows}
        for name, mine in rows.items():
            at[name][key[mine]] = mine
        once = cluster == AUTO and len(column(runs, "scenario").unique()) < 2  # a policy has each run once
        clusters = Clusters.of(runs.drop(columns="run") if once else runs, cluster)
        return cls(
            runs=runs, names=tuple(rows), rows=rows, at=at,
            metrics={name: numbers(runs, name) * display(name)[1] for name in METRICS},
            clusters=clusters, mine={name: clusters.within(part) for name, part in rows.items()},
        )  # fmt: skip

    def known(self, name: str, values: Floats) -> tuple[Floats, npt.NDArray[Any] | None]:
        """Return a quantity in the runs of a policy where it is known, and the cluster of each."""
        found = values[self.rows[name]]
        seen = ~np.isnan(found)
        if seen.all():
            return found, self.mine[name].choose(found)[1]
        return found[seen], self.mine[name].choose(found[seen], seen)[1]

    def shared(self, names: Sequence[str]) -> list[Ints]:
        """Return the rows of the runs that all these policies have, for each, in the first one's order."""
        key = self.runs["_key"].to_numpy()[self.rows[names[0]]]
        found = [self.at[name][key] for name in names]
        everywhere = np.min(found, axis=0) >= 0
        return [part[everywhere] for part in found]

    def identical(self) -> tuple[int, int]:
        """Count the runs that are the same under all policies, and those that all have."""
        rows = self.shared(self.names)
        columns = [text_codes(self.runs, "outcome")[0], *(_comparable(self.runs[name]) for name in _ALIKE)]
        same: Bools = np.ones(rows[0].size, dtype=np.bool_)
        for other in rows[1:]:
            for values in columns:
                same &= values[rows[0]] == values[other]
        return int(same.sum()), rows[0].size


def _comparable(series: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return numbers of which equal ones, and unknown ones, are the same."""
    if series.dtype.kind in "iu":
        return np.asarray(series.to_numpy(dtype=np.int64, na_value=np.iinfo(np.int64).min))
    return np.asarray(np.nan_to_num(series.to_numpy(dtype=np.float64, na_value=np.nan), nan=np.inf))
