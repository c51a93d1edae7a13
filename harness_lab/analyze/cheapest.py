"""The ceiling that costs least when a run that does not complete has a price.

References
----------
.. [1] Bang, H., Tsiatis, A. A. (2000). Estimating medical costs with censored data. Biometrika 87(2), 329-343.
   https://doi.org/10.1093/biomet/87.2.329
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.ceilings import COLUMNS, CeilingChannel
from harness_lab.analyze.frames import Bools, Data, Floats, Ints, amount, as_names, label, parts_by, text
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.sample import Sample, take
from harness_lab.errors import InputError
from harness_lab.stats.clusters import effective_clusters
from harness_lab.stats.estimates import Estimate, NotEstimable, check_confidence
from harness_lab.stats.means import mean
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import paired_difference
from harness_lab.stats.skewed import skewed_p, skewness
from harness_lab.stats.survival import kaplan_meier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

MAX_CANDIDATES: Final = 60
FOLDS: Final = 5
MIN_UNSTOPPED: Final = 0.1
MIN_RUNS: Final = 50

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
                "ceiling": one.ceiling, "alike_low": None if one.alike is None else one.alike[0],
                "alike_high": None if one.alike is None else one.alike[1], "cost_usd": one.cost.value,
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
            f"Cost of a task = what its attempts spend under the ceiling + {self.failure_usd:g} $ if none completes. "
            f"{again}"
            "Runs that another limit stopped count as not completing, as they would again; those that a limit of this "
            "channel stopped are made up for by weight, up to where a tenth would not have been stopped. "
            "Agents are taken as oblivious.\n"
            "The minimum is flat: every ceiling in the range that cannot be told apart is as good a choice.\n"
            "Next: ceiling_curve(...) for the delivered runs that the choice cuts."
        )

    def _line(self) -> str:
        if isinstance(self.saving.interval, NotEstimable) and self.ceiling is None and self.cost.value is None:
            return f"{self.channel}: no choice; {self.saving.interval}"
        alike = ""
        if self.alike is not None:
            alike = f", not to be told from {' to '.join(amount(self.column, end) for end in self.alike)}"
        chosen = "no ceiling" if self.ceiling is None else f"ceiling {amount(self.column, self.ceiling)}"
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
        known = ~np.isnan(sample.spend)
        own = self._own_stops(text(runs, "stopped_by")[sample.kept], sample)
        keep = known & ~np.isnan(sample.amounts)
        if int(keep.sum()) < MIN_RUNS:
            return self._declined(int(keep.sum()), parts)
        x, spend, done = sample.amounts[keep], sample.spend[keep] * 1e-9, sample.completed[keep]
        beyond = _reach(x, own[keep]) if own[keep].any() else None
        at = _candidates(x, beyond)
        labels = None if sample.labels is None else np.unique(sample.labels[keep], return_inverse=True)[1]
        weight = _weights(x, own[keep], at)
        cost_part, done_part = self._table(x, spend, done, at)
        table = (weight * cost_part, weight * done_part)
        return self._result(table, at, labels, beyond, parts or {}, x.size)

    def _own_stops(self, code: Any, sample: Sample) -> Bools:
        words = _OWN[self.channel]
        place, names = pd.factorize(code)
        mine = np.asarray([not c or any(word in c for word in words) for c in names], dtype=np.bool_)
        return np.asarray(sample.stopped & mine[place])

    def _table(self, x: Floats, spend: Floats, done: Bools, at: Floats) -> tuple[Floats, Floats]:
        """Return each run's spend and whether it completes, under each candidate; shapes (candidates, runs)."""
        inside = x <= at[:, None]
        rate = np.divide(spend, x, out=np.zeros_like(spend), where=x > 0)
        return np.where(inside, spend, rate * at[:, None]), (done & inside).astype(np.float64)

    def _costs(self, spend: Floats, done: Floats) -> Floats:
        """Return each run's contribution to the expected cost of a task, linearised where there are retries."""
        if not self.retries:
            return np.asarray(spend + self.failure * (1 - done))
        a, p = spend.mean(axis=-1, keepdims=True), done.mean(axis=-1, keepdims=True)
        tries, last = self._attempts(p), (1 - p) ** (self.retries + 1)
        step = 1e-6
        slope = a * (self._attempts(p + step) - self._attempts(p)) / step
        slope = slope - self.failure * (self.retries + 1) * (1 - p) ** self.retries
        return np.asarray(a * tries + self.failure * last + tries * (spend - a) + slope * (done - p))

    def _attempts(self, p: Floats) -> Floats:
        """Return the expected number of attempts."""
        return np.asarray(sum((1 - p) ** k for k in range(self.retries + 1)))

    def _result(
        self, table: tuple[Floats, Floats], at: Floats, labels: Ints | None, beyond: float | None,
        parts: Mapping[tuple[Any, ...], CheapestCeiling], n: int,
    ) -> CheapestCeiling:  # fmt: skip
        costs = self._costs(*table)
        means = costs.mean(axis=1)
        best = int(np.argmin(means))
        alike = _alike(costs, best, labels, self.confidence)
        curve = pd.DataFrame({
            "ceiling": at, "cost_usd": means, "completed_share": table[1].mean(axis=1),
            "spend_usd": table[0].mean(axis=1), "alike": alike,
        })  # fmt: skip
        top = beyond is None and best == at.size - 1
        return CheapestCeiling(
            channel=self.channel, failure_usd=self.failure, retries=self.retries,
            ceiling=None if top else float(at[best]), cost=self._mean(costs[best], labels),
            without=self._mean(costs[-1], labels), n=n, beyond=beyond,
            saving=self._saving(table, labels), alike=(float(at[alike].min()), float(at[alike].max())),
            curve=curve, parts=parts,
        )  # fmt: skip

    def _mean(self, values: Floats, labels: Ints | None) -> Estimate:
        return mean(values, confidence=self.confidence, clusters=labels, unit="$")

    def _saving(self, table: tuple[Floats, Floats], labels: Ints | None) -> Estimate:
        """Choose on four fifths, hold the choice against no ceiling on the rest; every run is held once."""
        spend, done = table
        group = np.arange(spend.shape[1]) if labels is None else labels
        fold = np.random.default_rng(0).permutation(int(group.max()) + 1)[group] % FOLDS
        inside = np.eye(FOLDS)[fold]
        count = inside.sum(axis=0)
        rest = [(part.sum(axis=1, keepdims=True) - part @ inside) / np.maximum(fold.size - count, 1) for part in table]
        chosen = np.argmin(self._expected(rest[0], rest[1]), axis=0)
        saved = np.zeros(spend.shape[1])
        for number in np.flatnonzero((count > 0) & (count < fold.size)):
            out = fold == number
            both = [chosen[number], -1]
            held = self._costs(spend[both][:, out], done[both][:, out])
            saved[out] = held[1] - held[0]
        found = paired_difference(np.zeros(saved.size), saved, confidence=self.confidence, clusters=labels, unit="$")
        return found.difference

    def _expected(self, spend: Floats, done: Floats) -> Floats:
        """Return the expected cost of a task from an attempt's mean spend and chance to complete."""
        return np.asarray(spend * self._attempts(done) + self.failure * (1 - done) ** (self.retries + 1))

    def _declined(self, n: int, parts: Mapping[tuple[Any, ...], CheapestCeiling] | None) -> CheapestCeiling:
        few = NotEstimable(reason=f"{n} run(s) of known spend", needs_n=MIN_RUNS)
        none = Estimate(value=None, interval=few, n=n, method="expected cost", unit="$")
        return CheapestCeiling(
            channel=self.channel, failure_usd=self.failure, retries=self.retries, ceiling=None, cost=none, without=none,
            saving=none, alike=None, curve=pd.DataFrame(), beyond=None, n=n, parts=parts or {},
        )  # fmt: skip


def _unstopped(x: Floats, own: Bools, at: Floats) -> Floats:
    """Return the chance that no limit of the channel had stopped a run below an amount (Kaplan-Meier of the stops)."""
    if not own.any():
        return np.ones_like(at)
    curve = kaplan_meier(x, own)
    place = np.searchsorted(curve.time, at, side="left")
    return np.asarray(np.concatenate([[1.0], curve.survival])[place])


def _reach(x: Floats, own: Bools) -> float:
    """Return the largest amount up to which at least a tenth of the runs would not have been stopped."""
    at = np.unique(x)
    return float(at[_unstopped(x, own, at) >= MIN_UNSTOPPED][-1])


def _weights(x: Floats, own: Bools, at: Floats) -> Floats:
    """Return weights by the inverse chance of not having been stopped [1]_, mean 1 for each candidate."""
    if not own.any():
        return np.ones((at.size, 1))
    least = MIN_UNSTOPPED / 2
    ended, open_ = (1 / np.maximum(_unstopped(x, own, part), least) for part in (x, at))
    within = x < at[:, None]
    weight = np.where(within, np.where(own, 0.0, ended), open_[:, None])
    return np.asarray(weight / weight.mean(axis=1, keepdims=True))


def _candidates(x: Floats, beyond: float | None) -> Floats:
    """Return amounts that runs used, up to where they were stopped; the largest stands for no ceiling."""
    top = float(x.max()) if beyond is None else beyond
    at = np.unique(x[x <= top])
    if at.size > MAX_CANDIDATES:
        at = np.unique(np.quantile(at, np.linspace(0, 1, MAX_CANDIDATES), method="inverted_cdf"))
    return np.unique(np.append(at, top))


def _alike(costs: Floats, best: int, labels: Ints | None, confidence: float) -> Bools:
    """Return which candidates cannot be told from the best: a paired skew-corrected t, over whole clusters."""
    means, n = costs.mean(axis=1), costs.shape[1]
    if labels is None:
        units, gap = n, costs - costs[best] - (means - means[best])[:, None]
        df = n - 1.0
    else:
        sizes = np.bincount(labels).astype(np.float64)
        units, df = sizes.size, max(effective_clusters(sizes) - 1, 1.0)
        sums = np.stack([np.bincount(labels, weights=row) for row in costs])
        gap = (sums - sums[best] - (means - means[best])[:, None] * sizes) * units / n
    se = np.sqrt((gap**2).sum(axis=1) / max(units - 1, 1) / units)
    found = [
        skewed_p(float(means[k] - means[best]), float(se[k]), skewness(gap[k]), units=units, df=df) > 1 - confidence
        for k in range(means.size)
    ]
    alike: Bools = np.asarray(found, dtype=np.bool_)
    alike[best] = True
    return alike
