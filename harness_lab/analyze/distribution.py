"""What runs use until they complete: quantiles and curves that know stops, failures and clusters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.beside import fifths, fifths_text
from harness_lab.analyze.frames import Data, Floats, amount, as_names, display, label, nodes_of, parts_by
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.sample import Level, Sample, table, take
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence, percent
from harness_lab.stats.fits import Fit, fit
from harness_lab.stats.incidence import clustered_band, cumulative_incidence, incidence_quantile
from harness_lab.stats.notes import notes_below
from harness_lab.stats.quantiles import quantile
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

Among = Literal["all", "completed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SettlementDistribution:
    """The distribution of one quantity at completion.

    Parameters
    ----------
    column : str
        The quantity, in its column's unit (nano-dollars, tokens, calls, nanoseconds).
    level : {"run", "node"}
        What a row is.
    sample : Sample
        The rows it rests on, and the count of those that were kept apart.
    confidence : float
        Confidence of every interval.
    caps : int
        Different limits of this quantity that runs were recorded under, "none" counted as one.
    parts : mapping of tuple to SettlementDistribution
        The same for each group, keyed by the values of the `by` columns (None: unknown). Empty without `by`.
    """

    column: str
    level: Level
    sample: Sample
    confidence: float
    by: tuple[str, ...] = ()
    caps: int = 0
    parts: Mapping[tuple[Any, ...], SettlementDistribution] = field(default_factory=dict)

    def quantile(self, q: float, *, among: Among = "all") -> Estimate:
        """Estimate the amount within which a share `q` has completed.

        Parameters
        ----------
        q : float
            The share, in (0, 1).
        among : {"all", "completed"}
            A share of all runs, failed ones included (cumulative incidence); or of those that complete, which no data
            with stopped runs can tell.

        Returns
        -------
        Estimate
            In the column's unit. Where the data do not reach, its interval is a ``NotEstimable`` that names the largest
            quantile they support.
        """
        found = self.sample
        if among == "all":
            return incidence_quantile(
                found.amounts, found.kinds, q, confidence=self.confidence, clusters=found.labels
            )  # fmt: skip
        if among != "completed":
            raise InputError("among", expected='"all" or "completed"', got=among)
        if found.stopped.any():
            reason = f"{int(found.stopped.sum())} stopped run(s) might have completed, nobody knows at what"
            return Estimate(value=None, interval=NotEstimable(reason=reason), n=found.n, method="sample quantile")
        labels = None if found.labels is None else found.labels[found.completed]
        return quantile(found.amounts[found.completed], q, confidence=self.confidence, clusters=labels)

    def completion(self) -> Estimate:
        """Estimate the share of all runs that complete within what was tried, stopped runs allowed for."""
        found = self.sample
        plain = share(found.completed, confidence=self.confidence, clusters=found.labels, method="share completed")
        if not found.stopped.any() or not found.completed.any():
            return plain
        last = self.curve().iloc[-1]
        band = Interval(low=last["low"], high=last["high"], confidence=self.confidence, method="cumulative incidence")
        few = plain.interval if isinstance(plain.interval, NotEstimable) else None
        where = f"within {amount(self.column, float(found.amounts.max()))}, the most that was tried"
        return replace(plain, value=last["completed"], interval=few or band, note=where)

    def curve(self) -> pd.DataFrame:
        """Return the share of all runs completed by each amount.

        Returns
        -------
        DataFrame
            ``value`` (column's unit), ``completed``, ``low``, ``high`` (pointwise band), ``at_risk`` (runs).
        """
        found = self.sample
        line = cumulative_incidence(found.amounts, found.kinds, confidence=self.confidence)
        if found.labels is not None:
            line, _ = clustered_band(line, found.amounts, found.kinds, found.labels)
        columns = {"completed": line.incidence, "low": line.low, "high": line.high, "at_risk": line.at_risk}
        return pd.DataFrame({"value": line.time, **columns})

    def naive(self, q: float = 0.5) -> dict[str, float | None]:
        """Return what naive readings would give for a quantile; for comparison only, none of them is an answer.

        Returns
        -------
        dict of str to float or None
            Readings in the column's unit; None where there is no run to read.
        """
        found = self.sample
        readings = {
            "runs that were not stopped": found.amounts[~found.stopped],
            "stopped runs taken as completed": found.amounts,
            "completed runs alone": found.amounts[found.completed],
        }
        plain = {name: _sample_quantile(values, q) for name, values in readings.items()}
        curve = cumulative_incidence(found.amounts, found.completed.astype(np.int64), confidence=self.confidence)
        reached = curve.incidence >= q * (1 - 1e-12)
        plain["failures taken as stopped"] = float(curve.time[np.argmax(reached)]) if reached.any() else None
        return plain

    def fit(self, *, seed: int = 0, resamples: int = 99) -> Fit:
        """Choose a parametric family for what is used until the end, or name the mixture it is made of.

        Parameters
        ----------
        seed, resamples : int
            Of folds and of the goodness-of-fit test; see :func:`harness_lab.stats.fit`.

        Returns
        -------
        Fit
            In dollars, seconds, calls or tokens. Rows of every ending count; those that a limit stopped are lower
            bounds. Rows are taken as independent: with clusters, families are rejected too easily.
        """
        unit, factor = display(self.column)
        found = fit(self.sample.amounts * factor, censored=self.sample.stopped, seed=seed, resamples=resamples)
        return replace(found, unit=unit)

    def plot_fit(self, ax: Axes | None = None, *, found: Fit | None = None) -> Axes:
        """Draw the sample beside the best family, and the mixture if one is named; return the axes.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure if None.
        found : Fit, optional
            What :meth:`fit` found; fitted anew if None.
        """
        from harness_lab.plots.fits import plot_fit

        fitted = self.fit() if found is None else found
        return plot_fit(fitted.curves(), ax=ax, unit=fitted.unit, censored=fitted.censored)

    def by_ending(self, quantiles: Sequence[float] = (0.5, 0.9)) -> pd.DataFrame:
        """Return what rows of each ending had used by then: what failing, or being stopped, costs.

        Returns
        -------
        DataFrame
            ``ending``, ``n_ending`` (rows), ``q`` and the fields of each estimate, in the column's unit. Stopped rows
            would have used more: theirs is what they had used when they were stopped.
        """
        found, rows = self.sample, []
        for name, mine in (
            ("completed", found.completed), ("stopped by a limit", found.stopped),
            ("failed or cancelled", ~(found.completed | found.stopped)),
        ):  # fmt: skip
            labels = None if found.labels is None else found.labels[mine]
            for q in quantiles if mine.any() else ():
                one = quantile(found.amounts[mine], q, confidence=self.confidence, clusters=labels)
                rows.append({"ending": name, "n_ending": int(mine.sum()), "q": q, **one.record()})
        return pd.DataFrame(rows)

    def fifths(self) -> pd.DataFrame:
        """Return how many completed and delivered in each fifth of the amount; see :func:`analyze.beside.fifths`."""
        return fifths(self.sample)

    def to_frame(self, quantiles: Sequence[float] = QUANTILES) -> pd.DataFrame:
        """Return quantiles as rows: the group (if any), ``q`` and the fields of each estimate, in the column's unit."""
        rows = [self._record(q) for q in quantiles] if not self.parts else []
        for key, part in self.parts.items():
            group = dict(zip(self.by, key, strict=True))
            rows += [{**group, **part._record(q)} for q in quantiles]
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw :meth:`curve` with its band, the stops as ticks, and where the data end; return the axes.

        See :func:`harness_lab.plots.plot_incidence`.
        """
        from harness_lab.plots import plot_incidence

        found = self.sample
        return plot_incidence(
            self.curve(), ax=ax, column=self.column, stopped=found.amounts[found.stopped], noun=f"{self.level}s",
            end=float(found.amounts.max()) if found.n else None,
        )  # fmt: skip

    def summary(self) -> str:
        """Return the distribution in a few lines of plain text."""
        lines = [f"{self.column} per {self.level}: {self.sample.tally} ({self.sample.size})"]
        if self.parts:
            lines += [f"{label(key)}: {part._line(0.5)}" for key, part in self.parts.items()]
        else:
            lines += [f"completed: {self.completion()}"] if self.sample.n else []
            lines += [self._line(q) for q in (0.5, 0.9, 0.95)]
            lines += filter(None, [fifths_text(self.fifths()), self._caps()])
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the figures mean, what a naive reading would say instead, and what to do next."""
        return (
            f"A quantile q is the amount within which a share q of all {self.level}s has completed. A failed or "
            "cancelled one never completes; one that a limit stopped would have used more, how much is not known; so "
            "nothing is said beyond what was reached. It is assumed that limits did not depend on how hard the task "
            "was, and that runs do not adapt to them.\n"
            f"{self._naive()}"
            "Clusters: rows of one user, repository or session are not independent; with too few of them there is no "
            "interval (cluster=None gives one that speaks only of these very groups). Effective n is how many "
            "independent rows would tell as much.\n"
            "Next: ceiling(...) for the smallest limit that lets a stated share complete."
        )

    def _naive(self) -> str:
        """Set the median beside naive readings of it, where those differ."""
        readings = self.naive()
        if len(set(readings.values())) < 2:
            return ""
        naive = ", ".join(
            f"{name}: {'none' if value is None else amount(self.column, value)}" for name, value in readings.items()
        )
        return f"Here the median is: {self._line(0.5)}\nNaive readings of it, each wrong in its way: {naive}.\n"

    def _caps(self) -> str:
        if self.caps < 2 or not self.sample.stopped.any():
            return ""
        return (
            f"Limits differed ({self.caps:,} of them): cap_check(...) tests whether harder tasks got larger ones, "
            "which makes these quantiles too high, and bounds them however limits were set."
        )

    def _record(self, q: float) -> dict[str, object]:
        return {"q": q, **self.quantile(q).record()}

    def _line(self, q: float) -> str:
        unit, factor = display(self.column)
        return f"{percent(q)} of all {self.level}s complete within: {self.quantile(q).scaled(factor, unit=unit)}"

    def __repr__(self) -> str:
        groups = f", {len(self.parts)} groups by {', '.join(self.by)}" if self.by else ""
        return f"SettlementDistribution({self.column} per {self.level}, n = {self.sample.n:,}{groups})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def distribution(
    settlements: Data,
    column: str = "cost_nusd",
    *,
    by: str | Sequence[str] | None = None,
    level: Level = "run",
    confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> SettlementDistribution:
    """Estimate what runs (or nodes) use until they complete.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes, in the columns of the settlement table.
    column : str, default "cost_nusd"
        The quantity: ``cost_nusd``, ``calls``, ``tokens``, ``input_total``, ``duration_ns`` ...
    by : str or sequence of str, optional
        Columns whose groups are estimated apart.
    level : {"run", "node"}
        What a row is: a whole tree, or one node of it.
    confidence : float, default 0.95
        Confidence of every interval.
    cluster : str or None, default "auto"
        Column whose rows resemble each other (``user``, ``repo``, ``session``, ``run``); ``"auto"`` takes the one that
        leaves the smallest effective n; None takes rows as independent.

    Returns
    -------
    SettlementDistribution

    Notes
    -----
    Only a stop by a limit censors. Failure and cancellation compete with completion, so the estimate is the cumulative
    incidence of completion; it is 1 - Kaplan-Meier where nothing competes. Rows of unknown outcome or unknown usage are
    counted and kept apart.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(100), "outcome": "completed", "cost_nusd": range(10**9, 101 * 10**9, 10**9)})
    >>> print(distribution(runs).quantile(0.5).scaled(1e-9, unit="$"))
    $50 [$40, $61] (95 %, n = 100, order statistics)
    """
    check_confidence(confidence)
    rows, names = table(settlements, level), as_names(by)
    whole = take(rows, column, cluster=cluster)
    parts = {
        key: SettlementDistribution(
            column=column, level=level, sample=take(part, column, cluster=cluster), confidence=confidence
        )
        for key, part in (parts_by(rows, names) if names else ())
    }
    return SettlementDistribution(
        column=column, level=level, sample=whole, confidence=confidence, by=names, parts=parts,
        caps=_caps(settlements, column) if whole.stopped.any() else 0,
    )  # fmt: skip


def _caps(settlements: Data, column: str) -> int:
    """Return how many different limits of a quantity the roots are recorded under."""
    name = {"cost_nusd": "ceiling_cost", "input_total": "ceiling_input", "duration_ns": "ceiling_time_ns"}.get(
        column, f"ceiling_{column}"
    )
    nodes = nodes_of(settlements)
    if name not in nodes.columns:
        return 0
    roots = nodes if "parent" not in nodes.columns else nodes[nodes["parent"].isna()]
    return int(roots[name].nunique(dropna=False))


def _sample_quantile(values: Floats, q: float) -> float | None:
    return float(np.quantile(values, q, method="inverted_cdf")) if values.size else None
