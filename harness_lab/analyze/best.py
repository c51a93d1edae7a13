"""The best of several policies: selected with a stated probability, or the set that cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.analyze.figures import METRICS, difference_of
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.wide import Wide, figures_of, unit_of, wide
from harness_lab.stats.estimates import Estimate, check_confidence, percent, with_unit
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import PairedDifference, holm
from harness_lab.stats.selection import FIRST_STAGE, Selection, maybe_best, select_best

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Data


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BestPolicy:
    """Which policy is best in one metric.

    Parameters
    ----------
    metric : str
        The metric.
    policies : tuple of str
        All policies.
    means : tuple of Estimate
        Mean of each, in the display unit.
    maybe : tuple of str
        Policies that cannot be told from the best: with `probability` the best is among them.
    selection : Selection or None
        The sequential selection; None without indifference, or where runs are clustered.
    pairs : DataFrame
        Paired differences of all pairs: ``policy, against`` and the estimate's fields, ``p_adjusted`` (Holm).
    probability : float
        What is promised of `maybe` and of the selection.
    indifference : float or None
        Smallest difference worth telling apart, in the display unit.
    left_out : int
        Runs that a policy lacks or of which the metric is unknown.
    cluster : str or None
        Column whose runs were taken as alike.
    parts : Parts or None
        The same for each group of `by`, and which groups cannot be answered.
    """

    metric: str
    policies: tuple[str, ...]
    means: tuple[Estimate, ...]
    maybe: tuple[str, ...]
    selection: Selection | None
    pairs: pd.DataFrame
    probability: float
    indifference: float | None
    left_out: int
    cluster: str | None
    parts: Parts[BestPolicy] | None = None

    @property
    def chosen(self) -> str | None:
        """The selected policy; None where the runs do not suffice or nothing was to be selected."""
        if self.selection is None or self.selection.chosen is None:
            return None
        return self.policies[self.selection.chosen]

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The largest sets of policies of which no two can be told apart."""
        apart = {frozenset((r.policy, r.against)) for r in self.pairs.itertuples() if r.apart}
        found: list[set[str]] = []
        for name in self.policies:
            mates = {name}
            for other in self.policies:
                if other != name and all(frozenset((other, mate)) not in apart for mate in mates):
                    mates.add(other)
            if mates not in found:
                found.append(mates)
        return tuple(tuple(p for p in self.policies if p in one) for one in found)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per policy: ``policy, metric, unit``, the mean's fields, ``maybe_best, chosen``; per group."""
        if self.parts is not None:
            return self.parts.to_frame()
        rows = []
        for name, one in zip(self.policies, self.means, strict=True):
            flags = {"maybe_best": name in self.maybe, "chosen": name == self.chosen}
            rows.append({"policy": name, "metric": self.metric, "unit": one.unit, **one.record(), **flags})
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each policy's mean with its interval, those that may be best filled; return the axes."""
        from harness_lab.plots.choice import plot_best

        return plot_best(self.to_frame(), ax=ax, metric=METRICS[self.metric][0], filled="may be the best")

    def verdict(self) -> str:
        """Return what may be said, and no more."""
        word = METRICS[self.metric][0]
        kept = ", ".join(self.maybe)
        lines = [
            f"With {percent(self.probability)} confidence the best in {word} is {kept}."
            if len(self.maybe) == 1
            else f"With {percent(self.probability)} confidence the best in {word} is among: {kept}."
        ]
        if self.selection is None:
            return lines[0]
        worth = with_unit(self.indifference or 0.0, unit_of(self.metric))
        if self.chosen is not None:
            lines.append(
                f"Selected: {self.chosen} ({percent(self.probability)} to be the best where it leads by {worth} or "
                f"more; {self.selection.used:,} runs sufficed)."
            )
        else:
            still = ", ".join(self.policies[k] for k in self.selection.remaining)
            needs = f"needs n >= {self.selection.needs:,}" if self.selection.needs else "more runs are needed"
            lines.append(f"No selection at a difference of {worth}: {needs}; still in: {still}.")
        return " ".join(lines)

    def summary(self) -> str:
        """Return the figures and the verdict in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        lines = [
            f"- {name}: {METRICS[self.metric][0]} {one}" for name, one in zip(self.policies, self.means, strict=True)
        ]
        left = (
            f" {self.left_out:,} run(s) that a policy lacks or of unknown value are left out." if self.left_out else ""
        )
        return notes_below("\n".join([*lines, self.verdict() + left]))

    def explain(self) -> str:
        """Return what the promises mean and what to do next."""
        return (
            "The set 'among' drops a policy only if a paired test, corrected for the number of policies, finds another "
            "one better. The selection is Kim's and Nelson's sequential procedure on the same luck: its promise is "
            "about choosing, not about the figure of the chosen one, which looks better than it is on these draws.\n"
            "Next: confirm the chosen policy on fresh draws before quoting its figures."
        )

    def __repr__(self) -> str:
        return f"BestPolicy({self.metric}: {self.chosen or ' or '.join(self.maybe)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def best_policy(
    settlements: Data, metric: str = "cost_nusd", *, indifference: float | None = None, probability: float = 0.95,
    by: str | Sequence[str] | None = None, cluster: str | None = AUTO,
) -> BestPolicy:  # fmt: skip
    """Say which policy is best in a metric, or which cannot be told apart.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes of all policies, on the same runs.
    metric : {"completed", "cost_nusd", "wasted_nusd", "duration_ns"}
        More completion is better; less of the others.
    indifference : float, optional
        Smallest difference worth telling apart, in the display unit (share, dollars, seconds); with it one policy is
        selected where the runs suffice.
    probability : float, default 0.95
        What is promised of the set and of the selection, for each group by itself.
    by : str or sequence of str, optional
        Columns whose groups are answered by themselves, in ``parts``; a run belongs to the group of its root.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`. Clustered runs allow no sequential selection.

    Returns
    -------
    BestPolicy

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": [*range(40)] * 2, "policy": ["a"] * 40 + ["b"] * 40, "outcome": "completed",
    ...     "cost_nusd": [*range(10**9, 41 * 10**9, 10**9), *range(2 * 10**9, 42 * 10**9, 10**9)]})
    >>> best_policy(nodes).verdict()
    'With 95 % confidence the best in spend is a.'
    """
    check_confidence(probability, what="probability")
    found = wide(settlements, [metric], cluster=cluster)
    values = found.better(metric)
    kept = maybe_best(values, confidence=probability, clusters=found.labels)
    race = None
    if indifference is not None and found.labels is None:
        race = select_best(
            values, indifference=indifference, probability=probability, first_stage=min(FIRST_STAGE, max(found.n, 10))
        )
    return BestPolicy(
        metric=metric, policies=found.policies, selection=race, probability=probability, indifference=indifference,
        means=figures_of(found, metric, confidence=probability),
        maybe=tuple(found.policies[k] for k in kept), pairs=_pairs(found, metric, probability), left_out=found.left_out,
        cluster=found.cluster,
        parts=ask_by(settlements, by, lambda rows: best_policy(
            rows, metric, indifference=indifference, probability=probability, cluster=cluster)),
    )  # fmt: skip


def _pairs(found: Wide, metric: str, confidence: float) -> pd.DataFrame:
    rows, pairs = found.table[metric], list(zip(*np.triu_indices(len(found.policies), 1), strict=True))
    tested: list[PairedDifference] = [
        difference_of(metric, rows[i], rows[j], confidence=confidence, clusters=found.labels) for i, j in pairs
    ]
    adjusted = iter(holm([one.p_value for one in tested if one.p_value is not None]).tolist())
    records = []
    for (i, j), one in zip(pairs, tested, strict=True):
        p = None if one.p_value is None else next(adjusted)
        names = {"policy": found.policies[j], "against": found.policies[i]}
        apart = p is not None and p <= 1 - confidence
        records.append({**names, **one.difference.record(), "p_adjusted": p, "apart": apart})
    return pd.DataFrame(records)
