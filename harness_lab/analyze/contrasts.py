"""One policy less the baseline, run by run, and what may be said about the difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from harness_lab.analyze.figures import METRICS, difference_of
from harness_lab.stats.estimates import p_value
from harness_lab.stats.paired import PairedDifference, holm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.analyze.frames import Ints
    from harness_lab.analyze.grouping import Clusters
    from harness_lab.analyze.played import Played


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One policy less the baseline, in one metric.

    Parameters
    ----------
    policy, metric : str
        Which.
    found : PairedDifference
        The difference in the metric's display unit (share, dollars, seconds).
    p_adjusted : float or None
        Holm-adjusted over all policies and metrics; None where there is no interval.
    left_out : int
        Runs of either policy without a partner or of unknown value.
    """

    policy: str
    metric: str
    found: PairedDifference
    p_adjusted: float | None
    left_out: int

    @property
    def word(self) -> str:
        """The metric's name for a person."""
        return METRICS[self.metric][0]

    @property
    def identical(self) -> bool:
        """Whether no pair differs."""
        return self.found.difference.n > 0 and self.found.identical == self.found.difference.n

    @property
    def supported(self) -> bool:
        """Whether anything can be said: there is an interval, or no pair differs."""
        return self.found.difference.estimable or self.identical

    def claim(self, *, confidence: float) -> str:
        """Say which way the difference goes; empty unless the corrected test supports it."""
        value, p = self.found.difference.value, self.p_adjusted
        if p is None or value is None or p > 1 - confidence:
            return ""
        _, more, less = METRICS[self.metric]
        return f"{more if value > 0 else less}: {self.found.difference} per run, Holm {p_value(p)}"

    def record(self) -> dict[str, object]:
        """Return a flat row; the columns of :meth:`harness_lab.analyze.compare.Comparison.differences`."""
        return {
            "policy": self.policy, "metric": self.metric, "unit": self.found.difference.unit,
            **self.found.difference.record(), "p_value": self.found.p_value, "p_adjusted": self.p_adjusted,
            "variance_ratio": self.found.variance_ratio, "correlation": self.found.correlation,
            "identical": self.found.identical, "left_out": self.left_out,
        }  # fmt: skip


def contrast(
    played: Played, rows: tuple[Ints, Ints], everyone: int, alike: Clusters, *, policy: str, metric: str,
    confidence: float,
) -> Contrast | None:  # fmt: skip
    """Compare two policies in one metric: their rows of the runs that both have, `everyone` runs in either."""
    values = played.metrics[metric]
    left, right = (values[part] for part in rows)
    known = ~np.isnan(right - left)
    if not known.any():
        return None
    left, right = left[known], right[known]
    _, labels = alike.choose(right - left, None if known.all() else known)
    found = difference_of(metric, left, right, confidence=confidence, clusters=labels)
    return Contrast(policy=policy, metric=metric, found=found, p_adjusted=None, left_out=everyone - left.size)


def contrasts_to(played: Played, baseline: str, confidence: float) -> list[Contrast]:
    """Compare every policy with the baseline in every metric of which a pair is known."""
    found = []
    for name in played.names:
        if name != baseline:
            first, second = played.shared((baseline, name))
            everyone = played.rows[baseline].size + played.rows[name].size - first.size
            alike = played.clusters.within(first)
            found += [
                contrast(played, (first, second), everyone, alike, policy=name, metric=metric, confidence=confidence)
                for metric in METRICS
            ]
    return [one for one in found if one is not None]


def corrected(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Add Holm-adjusted p-values over all contrasts that have one."""
    tested = [c for c in contrasts if c.found.p_value is not None]
    adjusted = iter(holm([c.found.p_value for c in tested if c.found.p_value is not None]).tolist())
    return tuple(c if c.found.p_value is None else replace(c, p_adjusted=next(adjusted)) for c in contrasts)
