"""The ceiling that costs least when a run that does not complete has a price.

References
----------
.. [1] Wolter, K. M. (2007). Introduction to Variance Estimation, 2nd ed., chapter 2 (random groups). Springer.
   https://doi.org/10.1007/978-0-387-35099-8
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.attempts import Attempts
from harness_lab.analyze.ceilings import COLUMNS, CeilingChannel
from harness_lab.analyze.frames import (
    Bools,
    Data,
    Floats,
    Ints,
    amount,
    as_names,
    label,
    parts_by,
    stored_unit,
    text_codes,
)
from harness_lab.analyze.grouping import AUTO, gapless
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.sample import Sample, take
from harness_lab.errors import InputError
from harness_lab.stats.clusters import effective_clusters
from harness_lab.stats.estimates import Estimate, NotEstimable, check_confidence
from harness_lab.stats.means import mean
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import paired_difference
from harness_lab.stats.skewed import skewed_p, skewness
from harness_lab.writing import dollars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

MAX_CANDIDATES: Final = 60
FOLDS: Final = 5
MIN_RUNS: Final = 50
MAX_UNITS: Final = 10_000
GROUPS_OF_RUNS: Final = 1000

_OWN: Final[dict[CeilingChannel, tuple[str, ...]]] = {
    "cost": ("cost", "spend"), "calls": ("step", "iteration", "turn"), "input": ("input", "token"),
    "tokens": ("token",), "time": ("time", "second", "deadline"),
}  # fmt: skip
"""What the reason codes of each channel's own limits contain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CheapestCeiling:
    """The ceiling of least expected cost.

    Parameters
    ----------
    channel : str
        What is limited.
    failure_usd : float
        Price of a run that does not complete, dollars.
    retries : int
        How often a run that did not complete is started again.
    ceiling : float or None
        The ceiling, in the channel's unit; None where no ceiling is cheapest, or where nothing can be said.
    cost, without : Estimate
        Expected cost of a task at the ceiling and without any, dollars; the first looks better than it is, since the
        ceiling was chosen on the same runs.
    saving : Estimate
        Expected saving against no ceiling, on runs that the ceiling was not chosen from (five folds of whole clusters).
    alike : tuple of float or None
        Smallest and largest ceiling that cannot be told from the chosen one.
    curve : DataFrame
        ``ceiling, cost_usd, completed_share, spend_usd`` (an attempt's), ``alike``.
    beyond : float or None
        Above this amount runs were stopped by a limit of this channel, and nothing is said; None: no such stop.
    n : int
        Runs.
    parts : mapping of tuple to CheapestCeiling
        The same for each group.
    """

    channel: CeilingChannel
    failure_usd: float
    retries: int
    ceiling: float | None
    cost: Estimate
    without: Estimate
    saving: Estimate
    alike: tuple[float, float] | None
    curve: pd.DataFrame
    beyond: float | None
    n: int
    parts: Mapping[tuple[Any, ...], CheapestCeiling] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return one row (or one for each group): the ceiling, what cannot be told from it, and what it saves."""
        rows = {label(key): part for key, part in self.parts.items()} or {"all": self}
        return pd.DataFrame([
            {
                "group": name, "channel": one.channel, "failure_usd": one.failure_usd, "retries": one.retries,
                "ceiling": one.ceiling, "unit": stored_unit(one.column),
                "alike_low": None if one.alike is None else one.alike[0],
                "alike_high": None if one.alike is None else one.alike[1], "cost_usd": one.cost.value,
                "cost_usd_low": one.cost.low, "cost_usd_high": one.cost.high,
                "without_usd": one.without.value, **{f"saving_{k}": v for k, v in one.saving.record().items()},
            }
            for name, one in rows.items()
        ])  # fmt: skip

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the expected cost of each ceiling; return the axes."""
        from harness_lab.plots.tradeoff import plot_lines

        return plot_lines(
            self.curve, "ceiling", ("cost_usd", "spend_usd"), ax=ax, mark=self.ceiling,
            xlabel=f"ceiling of {self.channel}, {self.column}", ylabel="dollars a task",
        )  # fmt: skip

    @property
    def column(self) -> str:
        """The run table's column."""
        return COLUMNS[self.channel]

    def summary(self) -> str:
        """Return the choice in plain text."""
        return notes_below(
            "\n".join([f"{label(key)}: {one._line()}" for key, one in self.parts.items()] or [self._line()])
        )

    def explain(self) -> str:
        """Return what the choice means, what it does not, and what to do next."""
        again = (
            f"A run that does not complete is started again up to {self.retries} time(s), and attempts are taken as "
            "independent: where the same tasks fail again and again, retries help less than this says. "
            if self.retries
            else ""
        )
        return (
            "Cost of a task = what its attempts spend under the ceiling, and "
            f"{dollars(self.failure_usd)} more if none completes. {again}"
            "Runs that another limit stopped count as not completing, as they would again; those that a limit of this "
            "channel stopped are made up for by weight, up to where a tenth would not have been stopped. "
            "Agents are taken not to change what they do because of a limit.\n"
            "Of the ceilings that cannot be told apart, each is as good a choice.\n"
            "Next: ceiling_curve(...) for the delivered runs that the choice cuts."
        )

    def _line(self) -> str:
        if isinstance(self.saving.interval, NotEstimable) and self.ceiling is None and self.cost.value is None:
            return f"{self.channel}: no choice; {self.saving.interval}"
        alike = ""
        if self.alike is not None and self.alike[0] < self.alike[1]:
            ends = " to ".join(amount(self.column, end) for end in self.alike)
            alike = f" (any from {ends} cannot be told from it)"
        chosen = "no ceiling" if self.ceiling is None else f"a ceiling of {amount(self.column, self.ceiling)}"
        if self.ceiling is not None and self.ceiling == float(self.curve["ceiling"].max()):
            chosen = (
                f"the largest ceiling that can be judged, {amount(self.column, self.ceiling)}, and so none below it,"
            )
        tried = "" if self.beyond is None else f" Above {amount(self.column, self.beyond)} nothing is known."
        idle = ""
        if len(self.curve) and self.curve["completed_share"].iloc[int(self.curve["cost_usd"].argmin())] < 0.05:
            idle = " Hardly a run completes within it: at this price of a failure, running costs more than it is worth."
        return (
            f"{self.channel}: {chosen} costs least when a failed run costs ${self.failure_usd:,.2f}{alike}. A "
            f"task costs {self.cost}; saving against no ceiling, on other runs than it was chosen from: {self.saving}."
            f"{tried}{idle}"
        )

    def __repr__(self) -> str:
        return f"CheapestCeiling({self.channel}: {self.ceiling}, n = {self.n:,})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def cheapest_ceiling(
    settlements: Data, channel: CeilingChannel = "cost", *, failure_usd: float, retries: int = 0,
    confidence: float = 0.95, by: str | Sequence[str] | None = None, cluster: str | None = AUTO,
) -> CheapestCeiling:  # fmt: skip
    """Choose the ceiling of least expected cost.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    channel : {"cost", "calls", "input", "tokens", "time"}
        What is limited, for the whole run.
    failure_usd : float
        Price of a task that does not complete, dollars, at least 0.
    retries : int, default 0
        How often a run that did not complete is started again.
    confidence, by, cluster
        As for :func:`harness_lab.analyze.ceilings.ceiling`.

    Returns
    -------
    CheapestCeiling
        Declined below 50 runs.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(100), "outcome": ["completed"] * 90 + ["failed"] * 10,
    ...     "cost_nusd": [10**9] * 90 + [50 * 10**9] * 10})
    >>> cheapest_ceiling(runs, failure_usd=5).ceiling
    1000000000.0
    """
    if channel not in COLUMNS:
        raise InputError("channel", expected=f"one of {', '.join(COLUMNS)}", got=channel)
    if not 0 <= failure_usd < 1e9:
        raise InputError("failure_usd", expected="dollars >= 0", got=failure_usd)
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= 100:
        raise InputError("retries", expected="a whole number from 0 to 100", got=retries)
    check_confidence(confidence)
    runs, names = run_table(settlements), as_names(by)
    task = _Task(channel=channel, failure=failure_usd, retries=retries, confidence=confidence)
    parts = {key: task.choose(rows, cluster) for key, rows in (parts_by(runs, names) if names else ())}
    return task.choose(runs, cluster, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    channel: CeilingChannel
    failure: float
    retries: int
    confidence: float

    def choose(
        self, runs: pd.DataFrame, cluster: str | None, parts: Mapping[tuple[Any, ...], CheapestCeiling] | None = None
    ) -> CheapestCeiling:
        """Choose for one set of runs."""
        sample = take(runs, COLUMNS[self.channel], cluster=cluster)
        keep = ~np.isnan(sample.spend)
        n = int(keep.sum())
        if n < MIN_RUNS:
            return self._declined(n, parts)
        own = self._own_stops(runs, sample)[keep]
        labels = None if sample.labels is None else gapless(sample.labels[keep])
        tried = Attempts.of(
            sample.amounts[keep], sample.spend[keep] * 1e-9, sample.completed[keep], own, most=MAX_CANDIDATES
        )
        return self._result(tried, labels, parts or {})

    def _own_stops(self, runs: pd.DataFrame, sample: Sample) -> Bools:
        """Return which rows of the sample a limit of the channel stopped; a stop of unknown reason counts as one."""
        words = _OWN[self.channel]
        place, codes = text_codes(runs, "stopped_by")
        mine = np.asarray([not c or any(word in c for word in words) for c in codes], dtype=np.bool_)
        return np.asarray(sample.stopped & mine[place][sample.kept])

    def _cost(self, spend: Floats, done: Floats, rates: tuple[Any, Any], runs: Floats | float = 1.0) -> Floats:
        """Return what runs, or sums over `runs` of them, contribute to the expected cost of a task.

        With retries that is linearised about an attempt's mean spend and chance to complete, `rates`.
        """
        if not self.retries:
            return np.asarray(spend + self.failure * (runs - done))
        a, p = rates
        tries, last = self._attempts(p), (1 - p) ** (self.retries + 1)
        step = 1e-6
        slope = a * (self._attempts(p + step) - self._attempts(p)) / step
        slope = slope - self.failure * (self.retries + 1) * (1 - p) ** self.retries
        return np.asarray((self.failure * last - slope * p) * runs + tries * spend + slope * done)

    def _attempts(self, p: Any) -> Any:
        """Return the expected number of attempts."""
        return sum((1 - p) ** k for k in range(self.retries + 1))

    def _expected(self, spend: Floats, done: Floats) -> Floats:
        """Return the expected cost of a task from an attempt's mean spend and chance to complete."""
        return np.asarray(spend * self._attempts(done) + self.failure * (1 - done) ** (self.retries + 1))

    def _result(
        self, tried: Attempts, labels: Ints | None, parts: Mapping[tuple[Any, ...], CheapestCeiling]
    ) -> CheapestCeiling:
        at, beyond, n = tried.at, tried.beyond, tried.n
        spend, done = (part / n for part in tried.totals())
        means = self._expected(spend, done)
        best = int(_least(means))
        alike = self._alike(tried, (spend, done), best, labels)
        curve = pd.DataFrame(
            {"ceiling": at, "cost_usd": means, "completed_share": done, "spend_usd": spend, "alike": alike}
        )
        top = beyond is None and best == at.size - 1
        at_best, at_most = (self._cost(*tried.runs(k), (spend[k], done[k])) for k in (best, at.size - 1))
        return CheapestCeiling(
            channel=self.channel, failure_usd=self.failure, retries=self.retries,
            ceiling=None if top else float(at[best]), cost=self._mean(at_best, labels),
            without=self._mean(at_most, labels), n=n, beyond=beyond, saving=self._saving(tried, labels),
            alike=(float(at[alike].min()), float(at[alike].max())), curve=curve, parts=parts,
        )  # fmt: skip

    def _mean(self, values: Floats, labels: Ints | None) -> Estimate:
        return mean(values, confidence=self.confidence, clusters=labels, unit="$")

    def _saving(self, tried: Attempts, labels: Ints | None) -> Estimate:
        """Choose on four fifths, hold the choice against no ceiling on the rest; every run is held once."""
        n = tried.n
        group = np.arange(n) if labels is None else labels
        fold = np.random.default_rng(0).permutation(int(group.max()) + 1)[group] % FOLDS
        count = np.bincount(fold, minlength=FOLDS).astype(np.float64)
        rest = [(part.sum(axis=0) - part) / np.maximum(n - count, 1)[:, None] for part in tried.sums(fold, FOLDS)]
        chosen = _least(self._expected(rest[0], rest[1]))
        most = tried.runs(tried.at.size - 1)
        saved = np.zeros(n)
        for number in np.flatnonzero((count > 0) & (count < n)):
            out = fold == number
            held = [
                self._cost(spend, done, (spend.mean(), done.mean()))
                for spend, done in ((part[out] for part in two) for two in (tried.runs(int(chosen[number])), most))
            ]
            saved[out] = _difference(held[1], held[0])
        found = paired_difference(np.zeros(n), saved, confidence=self.confidence, clusters=labels, unit="$")
        return found.difference

    def _alike(
        self, tried: Attempts, rates: tuple[Floats, Floats], best: int, labels: Ints | None
    ) -> Bools:  # fmt: skip
        """Return which candidates cannot be told from the best: a paired skew-corrected t, over whole clusters."""
        n, means, group = tried.n, self._expected(*rates), _units(tried.n, labels)
        sizes = np.bincount(group).astype(np.float64)
        units, df = sizes.size, max((sizes.size if labels is None else effective_clusters(sizes)) - 1.0, 1.0)
        cost = self._cost(*tried.sums(group, units), rates, sizes[:, None])
        gaps = _difference(cost, cost[:, best : best + 1] + sizes[:, None] * (means - means[best])).T * (units / n)
        alike: Bools = np.ones(means.size, dtype=np.bool_)
        for k, gap in enumerate(gaps):
            se = float(np.sqrt((gap @ gap) / max(units - 1, 1) / units))
            p = skewed_p(float(_difference(means[k], means[best])), se, skewness(gap), units=units, df=df)
            alike[k] = k == best or p > 1 - self.confidence
        return alike

    def _declined(self, n: int, parts: Mapping[tuple[Any, ...], CheapestCeiling] | None) -> CheapestCeiling:
        few = NotEstimable(reason=f"{n} run(s) of known spend", needs_n=MIN_RUNS)
        none = Estimate(value=None, interval=few, n=n, method="expected cost", unit="$")
        return CheapestCeiling(
            channel=self.channel, failure_usd=self.failure, retries=self.retries, ceiling=None, cost=none, without=none,
            saving=none, alike=None, curve=pd.DataFrame(), beyond=None, n=n, parts=parts or {},
        )  # fmt: skip


def _units(n: int, labels: Ints | None) -> Ints:
    """Return what is drawn independently: clusters, runs, or, of many runs, a thousand random groups of them [1]_."""
    if labels is not None:
        return labels
    return np.arange(n) if n <= MAX_UNITS else np.random.default_rng(0).permutation(n) % GROUPS_OF_RUNS


def _least(cost: Floats) -> Any:
    """Return the place of the smallest along the last axis; of ties, up to rounding, the last, else the first.

    Of four fifths of the runs, the ceilings above all of them tie with none.
    """
    tied = cost <= cost.min(axis=-1, keepdims=True) * (1 + 1e-12)
    return np.where(tied[..., -1], cost.shape[-1] - 1, np.argmax(tied, axis=-1))


def _difference(a: Floats, b: Floats) -> Floats:
    """Return ``a - b``, exactly 0 where rounding alone tells them apart."""
    gap = a - b
    return np.asarray(np.where(np.abs(gap) <= 1e-12 * (np.abs(a) + np.abs(b)), 0.0, gap))
