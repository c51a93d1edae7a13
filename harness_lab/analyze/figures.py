"""One policy's own figures: completion, spend, waste and time, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.analyze.frames import display, is_true, numbers
from harness_lab.stats.means import AMOUNT, SHARE, mean, ratio
from harness_lab.stats.paired import PairedDifference, paired_difference, paired_shares
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from harness_lab.analyze.frames import Floats
    from harness_lab.analyze.played import Played
    from harness_lab.stats.estimates import Estimate

METRICS: Final = {
    "completed": ("completion", "completes more often", "completes less often"),
    "cost_nusd": ("spend", "spends more", "spends less"),
    "wasted_nusd": ("wasted spend", "wastes more", "wastes less"),
    "duration_ns": ("time", "takes longer", "is faster"),
}
"""Metrics that are compared: word, and what a positive and a negative difference is called."""


def difference_of(
    metric: str, first: npt.ArrayLike, second: npt.ArrayLike, *, confidence: float, clusters: npt.ArrayLike | None
) -> PairedDifference:
    """Estimate how much more of a metric the second policy has, in the metric's unit: completion is a share.

    Parameters
    ----------
    metric : str
        One of :data:`METRICS`.
    first, second, confidence, clusters
        As for :func:`harness_lab.stats.paired_difference`; completion as 0 and 1.
    """
    if metric == "completed":
        return paired_shares(first, second, confidence=confidence, clusters=clusters)
    unit = display(metric)[0]
    return paired_difference(first, second, confidence=confidence, clusters=clusters, unit=unit)


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


def policy_figures(name: str, played: Played, confidence: float) -> PolicyFigures:
    """Return the figures of one policy."""

    def average(metric: str) -> Estimate:
        values, labels = played.known(name, played.metrics[metric])
        return mean(values, confidence=confidence, clusters=labels, unit=display(metric)[0], within=AMOUNT)

    mine = played.rows[name]
    done, labels = played.known(name, played.metrics["completed"])
    cost, wasted = played.metrics["cost_nusd"], played.metrics["wasted_nusd"]
    both, alike = played.known(name, wasted + 0 * cost)
    return PolicyFigures(
        policy=name, runs=mine.size, spend=average("cost_nusd"), wasted=average("wasted_nusd"),
        time=average("duration_ns"), unknown_cost=int(np.isnan(cost[mine]).sum()),
        completed=share(done == 1, confidence=confidence, clusters=labels, method="share completed"),
        wasted_share=ratio(
            both, cost[mine][~np.isnan((wasted + cost)[mine])], confidence=confidence, clusters=alike,
            within=SHARE,
        ),
        overspent=int(is_true(played.runs, "overspent")[mine].sum()),
    )  # fmt: skip
