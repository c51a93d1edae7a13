"""Policies side by side: one metric under each, on the runs that all of them have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.analyze.endings import COMPLETED, endings
from harness_lab.analyze.figures import METRICS, metric_values
from harness_lab.analyze.frames import display, row_codes, text
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.runs import run_table
from harness_lab.errors import InputError
from harness_lab.stats.means import AMOUNT, mean
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from harness_lab.analyze.frames import Data, Floats
    from harness_lab.analyze.grouping import Labels
    from harness_lab.stats.estimates import Estimate

LARGER: Final = frozenset(("completed",))
"""Metrics of which more is better; of the others less is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wide:
    """Metrics of policies on the runs that all of them have.

    Parameters
    ----------
    policies : tuple of str
        In order of appearance.
    table : dict of str to ndarray of float64, shape (policies, runs)
        Each metric in its display unit (share, dollars, seconds).
    left_out : int
        Runs that a policy lacks, or of which a metric is unknown under one.
    labels : ndarray or None
        Cluster of each run; None: taken as independent.
    cluster : str or None
        The column they come from.
    """

    policies: tuple[str, ...]
    table: dict[str, Floats]
    left_out: int
    labels: Labels | None
    cluster: str | None

    @property
    def n(self) -> int:
        """Runs."""
        return int(next(iter(self.table.values())).shape[1])

    def better(self, metric: str) -> Floats:
        """Return a metric so that larger is better."""
        return self.table[metric] if metric in LARGER else -self.table[metric]


def wide(data: Data, metrics: Sequence[str], *, cluster: str | None = AUTO) -> Wide:
    """Lay the policies side by side.

    Raises
    ------
    InputError
        If a metric is none of ``completed, cost_nusd, wasted_nusd, duration_ns``; if fewer than two policies are named;
        if no run is known under all of them.
    """
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise InputError("metric", expected=f"some of {', '.join(METRICS)}", got=unknown)
    runs = measured(run_table(data))
    names = tuple(str(name) for name in runs["policy"].dropna().unique())
    if len(names) < 2:
        raise InputError("policy", expected="rows of at least two policies", got=list(names))
    key = runs["_key"].to_numpy()
    place = runs["policy"].map({name: k for k, name in enumerate(names)}).fillna(-1).to_numpy(dtype=np.int64)
    runs, key, place = runs[place >= 0], key[place >= 0], place[place >= 0]
    count = int(key.max()) + 1
    table = {name: np.full((len(names), count), np.nan) for name in metrics}
    for name in metrics:
        table[name][place, key] = metric_values(runs, name)
    known = ~np.any([np.isnan(part).any(axis=0) for part in table.values()], axis=0)
    if not known.any():
        raise InputError("runs", expected="runs that every policy has, with known metrics", got="none")
    first = runs.drop_duplicates("_key").sort_values("_key").reset_index(drop=True)[known]
    chosen, labels = choose_cluster(first, table[metrics[0]][0, known], cluster)
    return Wide(
        policies=names, table={name: part[:, known] for name, part in table.items()}, left_out=int((~known).sum()),
        labels=labels, cluster=chosen,
    )  # fmt: skip


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Add ``completed`` as 0/1 (NaN: unknown outcome; a paused run is not) and the key of a run over policies."""
    outcome = text(runs, "outcome")
    done = np.where(outcome == "unknown", np.nan, endings(runs) == COMPLETED)
    return runs.assign(completed=done, _key=row_codes(runs, ["scenario", "run"]))


def figures_of(found: Wide, metric: str, *, confidence: float) -> tuple[Estimate, ...]:
    """Return each policy's own figure: a share for completion, a mean for the rest."""
    rows = found.table[metric]
    if metric == "completed":
        return tuple(
            share(row == 1, confidence=confidence, clusters=found.labels, method="share completed") for row in rows
        )
    unit = display(metric)[0]
    return tuple(mean(row, confidence=confidence, clusters=found.labels, unit=unit, within=AMOUNT) for row in rows)


def unit_of(metric: str) -> str:
    """Return the unit in which a metric is shown."""
    return display(metric)[0]
