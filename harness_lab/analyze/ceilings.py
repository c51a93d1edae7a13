"""Ceilings: the smallest limit that lets a stated share of runs complete, with stated confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.ceiling_effect import effect_fields, effect_text
from harness_lab.analyze.curve import curve_rows
from harness_lab.analyze.frames import amount, as_names, display, label, nodes_of, parts_by, stored_unit
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.sample import Sample, take
from harness_lab.analyze.tree_shape import SHAPES, with_shape
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, NotEstimable, check_confidence, percent
from harness_lab.stats.incidence import IncidenceQuantiles
from harness_lab.stats.shares import wilson

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Bools, Data

CeilingChannel = Literal["cost", "calls", "input", "tokens", "time"]
TreeChannel = Literal["depth", "starts", "concurrency"]

COLUMNS: Final[Mapping[CeilingChannel, str]] = {
    "cost": "cost_nusd", "calls": "calls", "input": "input_total", "tokens": "tokens", "time": "duration_ns",
}  # fmt: skip
"""The run table's column that each channel limits."""
COLUMN_OF: Final[Mapping[str, str]] = {str(name): column for name, column in (*COLUMNS.items(), *SHAPES.items())}
"""The same, with what bounds a tree."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CeilingChoice:
    """The smallest ceiling that keeps a completion target, or why there is none.

    Parameters
    ----------
    channel : str
        What is limited.
    target, confidence : float
        Share of all runs that shall complete, and the confidence of that statement.
    bound : Estimate
        The amount within which the target share completes: its upper confidence end is the ceiling.
    largest_target : float
        The largest completion target that the data support at this confidence; 0 if they support none.
    sample : Sample
        The rows it rests on.
    runaway : ndarray of bool or None
        Which of these runs a person has labelled as runaways; None: no labels were given.
    parts : mapping of tuple to CeilingChoice
        The same for each group. Empty without `by`.
    """

    channel: CeilingChannel | TreeChannel
    target: float
    confidence: float
    bound: Estimate
    largest_target: float
    sample: Sample
    runaway: Bools | None = None
    parts: Mapping[tuple[Any, ...], CeilingChoice] = field(default_factory=dict)

    @property
    def ceiling(self) -> int | None:
        """The ceiling, in the channel's unit (nano-dollars, tokens, calls, nanoseconds); None where it is declined."""
        return None if self.bound.high is None else math.ceil(self.bound.high)

    @property
    def confidence_of_maximum(self) -> float | None:
        """Confidence that the largest run keeps the target; None unless all runs completed and are independent.

        ``1 - target ** n``: what n independent runs do support where they are too few for the confidence asked for.
        """
        if not self.sample.n or self.sample.labels is not None or not self.sample.completed.all():
            return None
        return float(1 - self.target**self.sample.n)

    @property
    def declined(self) -> NotEstimable | None:
        """Why there is no ceiling; None if there is one."""
        return self.bound.interval if isinstance(self.bound.interval, NotEstimable) else None

    def curve(self, candidates: npt.ArrayLike | None = None) -> pd.DataFrame:
        """Return what other ceilings would have done; see :func:`ceiling_curve`."""
        return _curve(self.sample, self.channel, candidates, 0.95, self.runaway)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the delivered runs that each ceiling cuts against the spend that it avoids; return the axes.

        See :func:`harness_lab.plots.plot_ceiling_tradeoff`.
        """
        from harness_lab.plots import plot_ceiling_tradeoff

        curve = self.curve()
        if self.ceiling is not None and len(curve):
            mine = np.append(curve["ceiling"].to_numpy(dtype=np.float64), float(self.ceiling))
            curve = self.curve(np.unique(mine))
        return plot_ceiling_tradeoff(curve, ax=ax, channel=self.channel, chosen=self.ceiling)

    @property
    def column(self) -> str:
        """The run table's column."""
        return COLUMN_OF[self.channel]

    def to_frame(self) -> pd.DataFrame:
        """Return one row (or one for each group): the ceiling in `unit`, what it rests on, and what it would have done.

        The last are the columns of :func:`ceiling_curve` at the ceiling, NA where it is declined.
        """
        rows = {label(key): part for key, part in self.parts.items()} or {"all": self}
        return pd.DataFrame([{"group": name, **choice._record()} for name, choice in rows.items()])

    def summary(self) -> str:
        """Return the choice in plain text, and what the ceiling would have cut."""
        lines = []
        for key, part in (self.parts or {(): self}).items():
            lines.append(f"{label(key)}: {part._line()}" if self.parts else part._line())
            row = part._effect()
            lines += [] if row is None else [f"{effect_text(row)}{part._caught(row)}"]
        return "\n".join([*lines, f"Rests on {self.sample.tally} ({self.sample.size})."])

    def explain(self) -> str:
        """Return what the ceiling means, what it does not, and what to do next."""
        promise = (
            f"With {percent(self.confidence)} confidence at least {percent(self.target)} of further runs like these "
            "complete within the ceiling."
            if self.ceiling is not None
            else f"No ceiling is given: these runs cannot promise {percent(self.target)} with that confidence."
        )
        return (
            f"{promise} Failed runs count as not completing, so a target above the share that "
            "completes at all cannot be met by any ceiling. Runs that a limit stopped are allowed for: they would have "
            "used more. The largest target supported is what so many runs, or so many clusters of them, can promise at "
            "this confidence: more runs raise it, a higher ceiling does not. "
            "It is assumed that runs do not adapt to the limit, and that further runs are like these. Runs of one "
            "user, repository or session resemble each other and are counted as clusters; a team is a group to be "
            "told apart (by=) and no cluster, unless cluster= names it.\n"
            "A ceiling avoids what the runs that it cuts would still have spent, and sinks what they had spent before: "
            "that bought nothing. Intervals of shares are at 95 %.\n"
            f"{self._no_cost()}Next: {self._next()}"
        )

    def _no_cost(self) -> str:
        if self.channel != "cost" or self.sample.n:
            return ""
        return (
            "No run has a known cost. A ceiling on prompt tokens (channel input) needs none; recompute(), or "
            "harness-lab read --recompute, makes costs of tokens by list prices.\n"
        )

    def _next(self) -> str:
        if self.channel == "cost" and not self.sample.n:
            return f'ceiling(settlements, "input", target={self.target:g}).'
        if self.ceiling is None and self.largest_target:
            return f"ask for {percent(self.largest_target)} or less, or read more runs."
        if self.ceiling is None:
            return "read more runs, of more users, repositories or sessions where these are the clusters."
        return "check the choice on runs that it was not made from (by cluster, and earlier against later)."

    def _line(self) -> str:
        goal = f"{percent(self.target)} of runs with {percent(self.confidence)} confidence"
        if self.ceiling is not None:
            return f"{self.channel} ceiling for {goal}: {amount(self.column, self.ceiling)}{self._without_margin()}"
        unit, factor = display(self.column)
        why = "" if self.declined is None else f"{self.declined.scaled(factor, unit=unit)}; "
        best = percent(self.largest_target) if self.largest_target else "none"
        most = ""
        if self.confidence_of_maximum is not None:
            top = amount(self.column, float(self.sample.amounts.max()))
            most = (
                f"; the largest run, {top}, keeps the target with {percent(self.confidence_of_maximum)} confidence only"
            )
        return f"{self.channel} ceiling for {goal}: declined; {why}largest target supported: {best}{most}"

    def _without_margin(self) -> str:
        """Say what sufficed in these runs alone: the rest of the ceiling is the margin for confidence."""
        if self.bound.value is None:
            return ""
        return f" (in these runs {amount(self.column, self.bound.value)} was enough; the rest is for confidence)"

    def _effect(self) -> Mapping[Any, Any] | None:
        """Return the curve's row at the ceiling; None where there is none."""
        if self.ceiling is None or not self.sample.n:
            return None
        return self.curve(np.asarray([self.ceiling], dtype=np.float64)).to_dict("records")[0]

    def _caught(self, row: Mapping[Any, Any]) -> str:
        if self.runaway is None:
            return ""
        return f" Labelled runaways caught: {row['runaways_caught']:.0f} of {row['runaways']:.0f}."

    def _record(self) -> dict[str, object]:
        return {
            "channel": self.channel, "target": self.target, "confidence": self.confidence, "ceiling": self.ceiling,
            "unit": stored_unit(self.column), "sample_quantile": self.bound.value,
            "largest_target": self.largest_target, "n": self.bound.n, "clusters": self.bound.clusters,
            "method": self.bound.record()["method"], "note": str(self.declined) if self.declined else "",
            **effect_fields(self._effect()),
        }  # fmt: skip

    def __repr__(self) -> str:
        value = "declined" if self.ceiling is None else amount(self.column, self.ceiling)
        return f"CeilingChoice({self.channel}, {percent(self.target)}: {value})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def ceiling(
    settlements: Data,
    channel: CeilingChannel | TreeChannel = "cost",
    *,
    target: float = 0.95,
    confidence: float = 0.95,
    runaways: Collection[str] | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | None = AUTO,
) -> CeilingChoice:
    """Choose the smallest ceiling within which a target share of runs completes.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    channel : {"cost", "calls", "input", "tokens", "time", "depth", "starts", "concurrency"}
        What is limited, for the whole run. The last three bound the tree: a run that needs more is touched by such a
        limit rather than stopped, so its spend avoided and sunk is unknown; simulate it.
    target : float, default 0.95
        Share of all runs that shall complete.
    confidence : float, default 0.95
        Confidence of the statement; one-sided.
    runaways : collection of str, optional
        Runs that a person has labelled as runaways: how many of them a ceiling catches is said then.
    by : str or sequence of str, optional
        Columns whose groups get ceilings of their own.
    cluster : str or None, default "auto"
        Column whose rows resemble each other; see :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    CeilingChoice
        Declined, with the largest target supported, where failures alone or too few or stopped runs do not allow it.

    Notes
    -----
    Without stopped runs the ceiling is an order statistic (59 completed runs give 95 % at 95 % confidence, as Wilks
    computed); with them it is where the lower band of the cumulative incidence of completion reaches the target.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(59), "outcome": "completed", "cost_nusd": range(59)})
    >>> ceiling(runs).ceiling, ceiling(runs.head(50)).ceiling
    (58, None)
    """
    check_confidence(target, what="target")
    runs, names = _runs(settlements, channel), as_names(by)

    def choose(rows: pd.DataFrame, parts: Mapping[tuple[Any, ...], CeilingChoice] | None = None) -> CeilingChoice:
        sample = take(rows, COLUMN_OF[channel], cluster=cluster)
        chosen = _choose(sample, channel, target, confidence, parts)
        return chosen if runaways is None else replace(chosen, runaway=_labelled(rows, sample, runaways))

    return choose(runs, {key: choose(rows) for key, rows in (parts_by(runs, names) if names else ())})


def ceiling_curve(
    settlements: Data,
    channel: CeilingChannel | TreeChannel = "cost",
    *,
    candidates: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    runaways: Collection[str] | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | None = AUTO,
) -> pd.DataFrame:
    """Return what each ceiling would have done to the recorded runs.

    Parameters
    ----------
    settlements, channel, runaways, by, cluster
        As for :func:`ceiling`.
    candidates : array_like of float, optional
        Ceilings in the channel's unit. Default: up to 200 of the amounts that runs used.
    confidence : float, default 0.95
        Confidence of each interval; each column ``x`` with an interval has ``x_low`` and ``x_high`` beside it.

    Returns
    -------
    DataFrame
        One row per candidate (and group):

        - ``ceiling``; ``n`` (runs), ``clusters`` (NA: taken as independent), ``unknown_spend`` (runs left out of the
          money columns);
        - ``runs_cut``, ``delivered_cut``, ``delivered_unknown_cut``: runs that used more, and those among them that
          are known to have delivered or of which it is unknown; ``cut_share`` (interval);
        - ``avoided_nusd`` and ``sunk_nusd``: what the runs that are cut would not have spent, and what they had spent
          before; ``avoided_share`` and ``sunk_share`` of all spend (intervals). For other channels than cost the spend
          of a run is taken as even along the channel; NaN for depth, starts and concurrency;
        - ``runaways``, ``runaways_caught``, ``caught_share`` (interval), where runs are labelled: those with a label,
          and those among them that used more;
        - ``completed_share``: share of all runs that complete within the ceiling (interval), stopped runs allowed for.

    Notes
    -----
    Assumes that runs do not adapt to the ceiling. Where there are too few clusters the intervals are NA, and those
    of shares of money also where fewer than ten runs are cut.
    """
    check_confidence(confidence)
    runs, names = _runs(settlements, channel), as_names(by)
    frames = []
    for key, rows in parts_by(runs, names) if names else iter([((), runs)]):
        sample = take(rows, COLUMN_OF[channel], cluster=cluster)
        label_of = None if runaways is None else _labelled(rows, sample, runaways)
        part = _curve(sample, channel, candidates, confidence, label_of)
        for place, (name, value) in enumerate(zip(names, key, strict=True)):
            part.insert(place, name, value)
        frames.append(part)
    return pd.concat(frames, ignore_index=True)


def _runs(settlements: Data, channel: str) -> pd.DataFrame:
    """Return the run table with the channel's column."""
    if channel not in COLUMN_OF:
        raise InputError("channel", expected=f"one of {', '.join(COLUMN_OF)}", got=channel)
    runs = run_table(settlements)
    return with_shape(runs, nodes_of(settlements), channel) if channel in SHAPES else runs


def _labelled(rows: pd.DataFrame, sample: Sample, runaways: Collection[str]) -> Bools:
    """Return which rows of the sample are labelled."""
    names = {str(name) for name in runaways}
    return rows["run"].astype("string").isin(names).to_numpy(dtype=bool)[sample.kept]


def _curve(
    sample: Sample, channel: str, candidates: npt.ArrayLike | None, confidence: float, runaway: Bools | None
) -> pd.DataFrame:
    frame = curve_rows(sample, COLUMN_OF[channel], candidates, confidence=confidence)
    if channel in SHAPES:
        money = [name for name in frame.columns if name.startswith(("avoided", "sunk"))]
        frame[money] = np.nan
    if runaway is None:
        return frame
    at, mine = frame["ceiling"].to_numpy(dtype=np.float64), np.sort(sample.amounts[runaway])
    caught = mine.size - np.searchsorted(mine, at, side="right")
    low, high = wilson(caught, max(mine.size, 1), confidence=confidence)
    share = caught / mine.size if mine.size else np.full(at.size, np.nan)
    frame = frame.assign(runaways=mine.size, runaways_caught=caught, caught_share=share)
    known = bool(mine.size)
    return frame.assign(caught_share_low=low if known else np.nan, caught_share_high=high if known else np.nan)


def _choose(
    sample: Sample, channel: CeilingChannel | TreeChannel, target: float, confidence: float,
    parts: Mapping[tuple[Any, ...], CeilingChoice] | None = None,
) -> CeilingChoice:  # fmt: skip
    quantiles = IncidenceQuantiles(
        sample.amounts, sample.kinds, confidence=confidence, side="upper", clusters=sample.labels
    )
    bound = quantiles.at(target)
    if isinstance(bound.interval, NotEstimable):
        bound = replace(bound, interval=replace(bound.interval, supported=None))
    largest = target if bound.estimable else quantiles.largest(target)
    return CeilingChoice(
        channel=channel, target=target, confidence=confidence, bound=_with_reason(bound, sample, target),
        largest_target=largest, sample=sample, parts=parts or {},
    )  # fmt: skip


def _with_reason(bound: Estimate, sample: Sample, target: float) -> Estimate:
    """Say so where failures alone put the target out of reach."""
    failed = sample.n - int(sample.completed.sum()) - int(sample.stopped.sum())
    if not isinstance(bound.interval, NotEstimable) or not failed or 1 - failed / sample.n >= target:
        return bound
    reason = f"{failed} of {sample.n} runs failed or were cancelled, which no ceiling cures"
    return replace(bound, interval=replace(bound.interval, reason=reason, needs_n=None, above=None))
