"""One policy's own figures: completion, spend, waste and time, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.analyze.frames import display, is_true, numbers
from harness_lab.analyze.grouping import choose_cluster
from harness_lab.stats.means import mean, ratio
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.analyze.frames import Floats
    from harness_lab.stats.estimates import Estimate

METRICS: Final = {
    "completed": ("completion", "completes more often", "completes less often"),
    "cost_nusd": ("spend", "spends more", "spends less"),
    "wasted_nusd": ("wasted spend", "wastes more", "wastes less"),
    "duration_ns": ("time", "takes longer", "is faster"),
}
"""Metrics that are compared: word, and what a positive and a negative difference is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """One policy's own figures, in dollars, seconds and shares.

    Parameters
    ----------
    policy : str
        Its name.
    runs : int
        Its runs.
    completed : Estimate
        Share of runs that completed, among those of known outcome.
    spend, wasted, time : Estimate
        Mean per run: dollars, dollars, seconds; over the runs in which it is known.
    wasted_share : Estimate
        Share of the spend that was wasted.
    unknown_cost : int
        Runs whose spend is unknown; they are in no mean.
    overspent : int
        Runs in which a node used more than its ceiling.
    """

    policy: str
    runs: int
    completed: Estimate
    spend: Estimate
    wasted: Estimate
    time: Estimate
    wasted_share: Estimate
    unknown_cost: int
    overspent: int

    def __str__(self) -> str:
        unknown = f"; spend unknown in {self.unknown_cost:,} run(s), left out" if self.unknown_cost else ""
        over = f"; {self.overspent:,} run(s) overspent" if self.overspent else ""
        return f"{self.policy} ({self.runs:,} runs): completed {self.completed}; spend {self.spend}{unknown}{over}"


def metric_values(runs: pd.DataFrame, metric: str) -> Floats:
    """Return a metric in its display unit."""
    return numbers(runs, metric) * display(metric)[1]


def policy_figures(name: str, runs: pd.DataFrame, confidence: float, cluster: str | None) -> PolicyFigures:
    """Return the figures of one policy from its rows of the run table (with ``completed`` as 0, 1 or NaN)."""

    def average(metric: str) -> Estimate:
        values = metric_values(runs, metric)
        known = ~np.isnan(values)
        labels = choose_cluster(runs.loc[known], values[known], cluster)[1]
        return mean(values[known], confidence=confidence, clusters=labels, unit=display(metric)[0])

    done = numbers(runs, "completed")
    judged = ~np.isnan(done)
    labels = choose_cluster(runs.loc[judged], done[judged], cluster)[1]
    both = numbers(runs, "wasted_nusd") + 0 * numbers(runs, "cost_nusd")
    known = ~np.isnan(both)
    return PolicyFigures(
        policy=name, runs=len(runs), spend=average("cost_nusd"), wasted=average("wasted_nusd"),
        time=average("duration_ns"), unknown_cost=int(runs["cost_nusd"].isna().sum()),
        completed=share(done[judged] == 1, confidence=confidence, clusters=labels, method="share completed"),
        wasted_share=ratio(
            both[known], numbers(runs, "cost_nusd")[known], confidence=confidence,
            clusters=choose_cluster(runs.loc[known], both[known], cluster)[1],
        ),
        overspent=int(is_true(runs, "overspent").sum()),
    )  # fmt: skip
