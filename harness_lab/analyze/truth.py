"""Estimates held against what is known to be true: for simulated data, whose parameters are no secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.distribution import distribution
from harness_lab.analyze.endings import COMPETING, COMPLETED, STOPPED
from harness_lab.analyze.floors import first_prompts
from harness_lab.analyze.frames import amount, calls_of, label, nodes_of
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.sample import Level, Sample, table, take
from harness_lab.errors import InputError
from harness_lab.stats.clusters import cluster_effect
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable
from harness_lab.stats.extremes import lower_end
from harness_lab.stats.incidence import IncidenceCurve, clustered_band, cumulative_incidence
from harness_lab.stats.notes import notes_below
from harness_lab.stats.shares import share
from harness_lab.stats.survival import mean_to_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Data

Record = Mapping[str, Any]

_PLACE: Final = ("policy", "scenario", "agent", "backend", "model", "context", "task_kind", "user", "team", "repo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One truth and the estimate of it.

    Parameters
    ----------
    truth : mapping
        The truth record.
    what : str
        The quantity in words.
    estimate : Estimate
        What the data say.
    """

    truth: Record
    what: str
    estimate: Estimate

    @property
    def holds(self) -> bool | None:
        """Whether the interval contains the truth; None if there is no interval."""
        return self.estimate.holds(float(self.truth["value"]))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TruthCheck:
    """All truths and their estimates.

    Parameters
    ----------
    checked : tuple of Checked
        In the order of the records.
    confidence : float
        Confidence of each interval.
    """

    checked: tuple[Checked, ...]
    confidence: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row per truth: its place, ``what``, ``truth``, ``holds``, ``error`` and the estimate's fields.

        ``error`` is (value - truth) / truth; NA where there is no value.
        """
        rows = []
        for one in self.checked:
            truth, value = float(one.truth["value"]), one.estimate.value
            error = None if value is None or truth == 0 else (value - truth) / truth
            place = {name: one.truth[name] for name in _PLACE if name in one.truth}
            rows.append(
                {**place, "what": one.what, "truth": truth, "holds": one.holds, "error": error, **one.estimate.record()}
            )
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far each estimate and its interval lie from the truth, as a share of it; return the axes.

        A truth of 0 has no such share and is left out.
        """
        from harness_lab.plots import plot_estimates
        from harness_lab.plots.quantities import Quantity

        frame = self.to_frame()
        frame = frame[frame["truth"] != 0] if len(frame) else pd.DataFrame(columns=["what", "value", "low", "high"])
        if len(frame):
            ends = {name: frame[name].astype("float64") / frame["truth"] - 1 for name in ("value", "low", "high")}
            frame = frame.assign(**ends)
        shown = Quantity(name="estimate less truth, share of the truth", unit="%")
        title = "How far from the truth? Filled: the interval misses it"
        return plot_estimates(frame, "what", ax=ax, shown=shown, around_zero=True, title=title)

    def summary(self) -> str:
        """Return how many intervals hold the truth, and each one that does not."""
        answered = [one for one in self.checked if one.holds is not None]
        held = sum(bool(one.holds) for one in answered)
        lines = [
            f"{held} of {len(answered)} intervals ({self.confidence:.0%}) hold the truth; "
            f"{len(self.checked) - len(answered)} question(s) declined."
        ]
        for one in self.checked:
            if not one.holds:
                word = "declined" if one.holds is None else "missed"
                lines.append(f"- {word}: {one.what}: truth {_shown(one, float(one.truth['value']))}, {one.estimate}")
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the check means and what it does not."""
        misses = f"about one in {1 / (1 - self.confidence):.0f} may miss"
        return (
            f"Each interval is stated to hold at {self.confidence:.0%}, so {misses}; the questions share rows, so "
            "misses come together. A declined question is no miss: the data could not support an answer.\n"
            "Next: repeat on other seeds before calling an estimator biased."
        )

    def __repr__(self) -> str:
        return f"TruthCheck({len(self.checked)} truths)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def against_truth(
    settlements: Data,
    truth: Iterable[Record],
    *,
    level: Level = "node",
    confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> TruthCheck:
    """Estimate each true quantity from settlements and see whether its interval holds the truth.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The data, limits and all.
    truth : iterable of mapping
        Records with ``value`` and ``quantity``:

        - ``"quantile"`` with ``column``, ``q`` and ``among`` (``"all"``, default, or ``"completed"``);
        - ``"share"`` with ``outcome`` (``"completed"`` or another ending, which is then the share of all failures);
        - ``"startup_cost"``: the smallest first prompt possible, tokens;
        - ``"mean_<column>"``: mean over all rows, had none been stopped.

        Any of ``agent, backend, model, context ...`` says of which rows.
    level : {"node", "run"}
        What a row is.
    confidence, cluster
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    TruthCheck

    Raises
    ------
    InputError
        If a record is not of this form, or names rows that do not exist.

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": range(100), "outcome": "completed", "calls": range(100)})
    >>> truth = [{"quantity": "quantile", "column": "calls", "q": 0.5, "value": 50}]
    >>> print(against_truth(nodes, truth).summary())
    1 of 1 intervals (95%) hold the truth; 0 question(s) declined.
    """
    nodes = nodes_of(settlements)
    nodes = nodes.assign(first_prompt=first_prompts(nodes, calls_of(settlements)))
    rows = nodes if level == "node" else table(nodes, level)
    checked = tuple(_check(rows, nodes, record, confidence=confidence, cluster=cluster) for record in truth)
    return TruthCheck(checked=checked, confidence=confidence)


def _check(
    rows: pd.DataFrame, nodes: pd.DataFrame, record: Record, *, confidence: float, cluster: str | None
) -> Checked:
    quantity = str(record.get("quantity"))
    place = {name: record[name] for name in _PLACE if name in record}
    mine = _where(nodes if quantity == "startup_cost" else rows, place)
    where = label(tuple(value for name, value in place.items() if name != "context"))
    if quantity == "quantile":
        what = f"{record['column']} quantile {record['q']:g}"
        sample = distribution(mine, str(record["column"]), level="node", confidence=confidence, cluster=cluster)
        estimate = sample.quantile(float(record["q"]), among=record.get("among", "all"))
    elif quantity == "share":
        what = f"share {record['outcome']}"
        estimate = _share(take(mine, "calls", cluster=cluster), str(record["outcome"]), confidence)
    elif quantity == "startup_cost":
        what = "start-up cost"
        estimate = lower_end(mine["first_prompt"].dropna().to_numpy(dtype=np.float64), confidence=confidence)
    elif quantity.startswith("mean_"):
        what = f"mean {quantity.removeprefix('mean_')}"
        estimate = _mean(take(mine, quantity.removeprefix("mean_"), cluster=cluster), confidence)
    else:
        raise InputError("quantity", expected="quantile, share, startup_cost or mean_<column>", got=quantity)
    return Checked(truth=record, what=f"{what} ({where})" if place else what, estimate=estimate)


def _where(rows: pd.DataFrame, place: Mapping[str, Any]) -> pd.DataFrame:
    keep = np.ones(len(rows), dtype=np.bool_)
    for name, value in place.items():
        if name not in rows.columns:
            raise InputError(name, expected="a column of the table", got=name)
        column = rows[name]
        keep &= (column.isna() if value is None else (column == value).fillna(value=False)).to_numpy(dtype=bool)
    if not keep.any():
        raise InputError("truth", expected="a record of rows that exist", got=dict(place))
    return rows[keep].reset_index(drop=True)


def _share(sample: Sample, outcome: str, confidence: float) -> Estimate:
    """Share of rows that end so had none been stopped; what went on beyond the stops may have ended either way."""
    of = COMPLETED if outcome == "completed" else COMPETING
    plain = share(sample.kinds == of, confidence=confidence, clusters=sample.labels, method="share of endings")
    if not (sample.kinds == STOPPED).any() or isinstance(plain.interval, NotEstimable):
        return plain
    mine, other = (_band(sample, kind, confidence) for kind in (of, COMPLETED + COMPETING - of))
    ends = float(mine.incidence[-1] + other.incidence[-1])
    low, high = float(mine.low[-1]), max(1 - float(other.low[-1]), float(mine.high[-1]))
    if ends >= 1 - 1e-9:  # every run's end was seen: the band of its own curve is the shorter answer
        high = float(mine.high[-1])
    interval = Interval(
        low=low, high=high, confidence=confidence, method="cumulative incidence, worst case beyond stops"
    )
    return replace(plain, value=float(mine.incidence[-1]), interval=interval)


def _band(sample: Sample, of: int, confidence: float) -> IncidenceCurve:
    curve = cumulative_incidence(sample.amounts, sample.kinds, of=of, confidence=confidence)
    if sample.labels is None:
        return curve
    return clustered_band(curve, sample.amounts, sample.kinds, sample.labels, of=of)[0]


def _mean(sample: Sample, confidence: float) -> Estimate:
    found = mean_to_end(sample.amounts, ~sample.stopped, confidence=confidence)
    if sample.labels is None or not isinstance(found.interval, Interval) or found.value is None:
        return found
    effect = cluster_effect(sample.amounts, sample.labels)
    wider = float(np.sqrt(effect.design_effect))
    low, high = (found.value + wider * (end - found.value) for end in (found.interval.low, found.interval.high))
    interval = effect.too_few() or replace(found.interval, low=low, high=high)
    return replace(found, interval=interval, clusters=effect.clusters, effective_n=effect.effective_n)


def _shown(one: Checked, value: float) -> str:
    return amount(str(one.truth.get("column", "")), value) if "column" in one.truth else f"{value:,.4g}"
