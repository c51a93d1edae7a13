"""The Pareto front of several policies, with what is sure about it and what is not.

References
----------
.. [1] Berger, R. L., Hsu, J. C. (1996). Bioequivalence trials, intersection-union tests and equivalence confidence
   sets. Statistical Science 11(4), 283-319. https://doi.org/10.1214/ss/1032280304
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.figures import METRICS
from harness_lab.analyze.frames import display
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.wide import Wide, figures_of, wide
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, check_confidence, percent
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import paired_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Data, Floats

Place = Literal["on the front", "dominated", "cannot be told"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Front:
    """Policies in several objectives at once.

    Parameters
    ----------
    objectives : tuple of str
        The metrics.
    policies : tuple of str
        All policies.
    figures : dict of str to tuple of Estimate
        Mean of each policy in each objective, in the display unit.
    places : tuple of str
        For each policy: ``on the front`` (against each other one it is surely better in some objective), ``dominated``
        (another one is surely no worse in all and better in one), or ``cannot be told``.
    by_means : tuple of bool
        Whether the means alone put it on the front.
    dominated_by : tuple of tuple of str
        Who surely dominates it.
    confidence : float
        Of all places together, and of each interval alone.
    margins : mapping of str to float
        How much worse still counts as no worse, in the display unit.
    n, left_out : int
        Runs that all policies have; runs that were left out.
    parts : Parts or None
        The same for each group of `by`, and which groups cannot be answered.
    """

    objectives: tuple[str, ...]
    policies: tuple[str, ...]
    figures: dict[str, tuple[Estimate, ...]]
    places: tuple[Place, ...]
    by_means: tuple[bool, ...]
    dominated_by: tuple[tuple[str, ...], ...]
    confidence: float
    margins: Mapping[str, float]
    n: int
    left_out: int
    parts: Parts[Front] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per policy: each objective with ``_low`` and ``_high``, ``place, by_means, dominated_by``."""
        if self.parts is not None:
            return self.parts.to_frame()
        rows = []
        for k, name in enumerate(self.policies):
            row: dict[str, object] = {"policy": name}
            for metric in self.objectives:
                one = self.figures[metric][k]
                row |= {metric: one.value, f"{metric}_low": one.low, f"{metric}_high": one.high}
            row |= {"n": self.n, "place": self.places[k], "by_means": self.by_means[k]}
            rows.append(row | {"dominated_by": ", ".join(self.dominated_by[k])})
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first two objectives with intervals and places; return the axes."""
        from harness_lab.plots.choice import plot_front

        words = tuple(_axis(metric) for metric in self.objectives[:2])
        return plot_front(self.to_frame(), self.objectives[:2], ax=ax, labels=words)

    def pick(self, weights: Mapping[str, float]) -> str:
        """Pick a policy from the front: the best weighted sum, weights in value per unit of each objective.

        Parameters
        ----------
        weights : mapping of str to float
            What a unit is worth, in any one currency: ``{"completed": 2.0, "cost_nusd": 1.0}`` says that a completed
            run is worth two dollars and a dollar one. Weights are positive; less of spend and time is better.
        """
        unknown = set(weights) - set(self.objectives)
        if unknown or not weights or any(value < 0 for value in weights.values()):
            raise InputError("weights", expected=f"weights >= 0 for some of {', '.join(self.objectives)}", got=weights)
        worth = np.zeros(len(self.policies))
        for metric, weight in weights.items():
            sign = 1.0 if metric == "completed" else -1.0
            worth += weight * sign * np.asarray([one.value or 0.0 for one in self.figures[metric]])
        allowed = [k for k, place in enumerate(self.places) if place != "dominated"]
        return self.policies[max(allowed, key=lambda k: worth[k])]

    def summary(self) -> str:
        """Return the places in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        words = ", ".join(METRICS[metric][0] for metric in self.objectives)
        left = f"; {self.left_out:,} run(s) left out" if self.left_out else ""
        lines = [f"{len(self.policies)} policies in {words}, {self.n:,} runs that all have{left}:"]
        for k, name in enumerate(self.policies):
            why = f" by {', '.join(self.dominated_by[k])}" if self.dominated_by[k] else ""
            figures = ", ".join(f"{METRICS[m][0]} {self.figures[m][k]}" for m in self.objectives)
            lines.append(f"- {name}: {self.places[k]}{why}; {figures}")
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the places mean and what to do next."""
        return (
            f"The places hold together at {percent(self.confidence)}. 'Dominated' asks that another policy is shown to "
            "be no worse in every objective (or identical in all runs) and better in one; 'on the front' that against "
            "each other policy it is shown better in one. The means alone always draw a front, some of it by luck.\n"
            "Next: pick(weights) with what a completed run is worth, then confirm on fresh draws."
        )

    def __repr__(self) -> str:
        return f"Front({sum(p == 'on the front' for p in self.places)} of {len(self.policies)} surely on the front)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def pareto(
    settlements: Data, objectives: Sequence[str] = ("completed", "cost_nusd"), *, confidence: float = 0.95,
    margins: Mapping[str, float] | None = None, by: str | Sequence[str] | None = None, cluster: str | None = AUTO,
) -> Front:  # fmt: skip
    """Find the Pareto front of the policies and say what is sure about it.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes of all policies, on the same runs.
    objectives : sequence of str
        Metrics (``completed, cost_nusd, wasted_nusd, duration_ns``), at least two.
    confidence : float, default 0.95
        Of all places together (Bonferroni over pairs), and of each interval alone.
    margins : mapping of str to float, optional
        How much worse still counts as no worse, per objective, in the display unit. Default: none.
    by : str or sequence of str, optional
        Columns whose groups are answered by themselves, in ``parts``; a run belongs to the group of its root.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    Front

    Notes
    -----
    "No worse in all" is an intersection-union test [1]_, which needs no correction over objectives; "better in one" is
    corrected over objectives.
    """
    check_confidence(confidence)
    names = tuple(objectives)
    if len(set(names)) < 2:
        raise InputError("objectives", expected="at least two", got=names)
    found, allowed = wide(settlements, names, cluster=cluster), dict(margins or {})
    sure = _sure(found, names, confidence, allowed)
    figures = {name: figures_of(found, name, confidence=confidence) for name in names}
    dominated = tuple(tuple(found.policies[j] for j in np.flatnonzero(sure[0][:, k])) for k in range(len(sure[0])))
    k = len(found.policies)
    places: tuple[Place, ...] = tuple(
        "dominated" if dominated[i] else "on the front" if sure[1][i, np.arange(k) != i].all() else "cannot be told"
        for i in range(k)
    )
    return Front(
        objectives=names, policies=found.policies, figures=figures, places=places, dominated_by=dominated,
        by_means=non_dominated(np.stack([found.better(name).mean(axis=1) for name in names])), confidence=confidence,
        margins=allowed, n=found.n, left_out=found.left_out,
        parts=ask_by(settlements, by, lambda rows: pareto(
            rows, names, confidence=confidence, margins=margins, cluster=cluster)),
    )  # fmt: skip


def non_dominated(means: Floats) -> tuple[bool, ...]:
    """Return, for each column, whether no other is as good in all rows and better in one; larger is better."""
    no_worse = np.all(means[:, :, None] >= means[:, None, :], axis=0)
    better = np.any(means[:, :, None] > means[:, None, :], axis=0)
    dominated = np.asarray(no_worse & better).any(axis=0)
    return tuple(not one for one in np.atleast_1d(dominated).tolist())


def _sure(
    found: Wide, names: tuple[str, ...], confidence: float, margins: Mapping[str, float]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return who surely dominates whom, and who is surely better than whom in some objective: [j, i] is j over i."""
    k = len(found.policies)
    level = (1 - confidence) / max(k * (k - 1), 1)
    dominates, better = np.zeros((k, k), dtype=np.bool_), np.zeros((k, k), dtype=np.bool_)
    for j in range(k):
        for i in range(k):
            if i == j:
                continue
            sides = [_side(found, name, i, j, level, margins.get(name, 0.0), len(names)) for name in names]
            dominates[j, i] = all(one[0] for one in sides) and any(one[1] for one in sides)
            better[j, i] = any(one[1] for one in sides)
    return dominates, better


def _side(found: Wide, name: str, i: int, j: int, level: float, margin: float, objectives: int) -> tuple[bool, bool]:
    """Whether j is surely no worse than i, and whether it is surely better (corrected over objectives)."""
    rows = found.better(name)
    one = paired_difference(rows[i] - margin, rows[j], clusters=found.labels) if margin else None
    plain = paired_difference(rows[i], rows[j], clusters=found.labels)
    lead = plain.difference.value or 0.0
    surely = plain.p_value is not None and lead > 0 and plain.p_value / 2 <= level / objectives
    no_worse = surely or bool((rows[j] >= rows[i]).all())
    if one is not None and one.p_value is not None and (one.difference.value or 0.0) > 0:
        no_worse = no_worse or one.p_value / 2 <= level
    elif plain.p_value is not None and lead > 0:
        no_worse = no_worse or plain.p_value / 2 <= level
    return no_worse, surely


def _axis(metric: str) -> str:
    unit = display(metric)[0]
    return METRICS[metric][0] + (f", {unit}" if unit else ", share of runs")
