"""A flat price per run: the margin it leaves, the chance and the size of a loss, for one run and for a month of them.

References
----------
.. [1] Efron, B., Tibshirani, R. J. (1993). An Introduction to the Bootstrap, chapter 13. Chapman & Hall.
   https://doi.org/10.1201/9780429246593
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from scipy.stats import pearson3

from harness_lab.analyze.beside import beside
from harness_lab.analyze.chances import chance_text, within_sight
from harness_lab.analyze.frames import Data, Floats, Ints, amounts, as_names, column, label, parts_by
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.runs import run_table
from harness_lab.errors import InputError
from harness_lab.stats.clusters import cluster_effect
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence
from harness_lab.stats.means import AMOUNT, mean
from harness_lab.stats.notes import notes_below
from harness_lab.stats.shares import share
from harness_lab.writing import dollars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

MIN_RUNS: Final = 30
MIN_CLUSTERS: Final = 40
"""With fewer clusters nothing is said about the tail of a month."""
_TAIL_SHARE: Final = 0.5
"""Each end takes half of its error rate; the rest allows for the approximate law of a month's sum."""
_DRAWS: Final = 1000
_BLOCKS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FlatPrice:
    """A flat price per run and what it risks.

    Parameters
    ----------
    price_usd : float or None
        The price: given, or the smallest that keeps the margin with confidence; None where that cannot be said.
    margin : float
        The margin that is aimed at, as a share of the price.
    expected_margin : Estimate
        (price - mean cost) / price.
    cost : Estimate
        Mean cost of a run, dollars.
    loss_run : Estimate
        Chance that one run costs more than the price.
    loss_size : Estimate
        Mean loss of a run that costs more than the price, dollars.
    loss_month : Estimate
        Chance that a month of `month_runs` runs costs more than it brings.
    month_loss : Estimate
        Size of a month's loss that is exceeded in one month of twenty, dollars; 0: such a month still earns.
    month_runs : int
        Runs of a month; whole clusters come together, as they do in the records.
    unknown : int
        Runs of unknown cost, left out.
    beside : str
        How the runs ended and whether they delivered.
    parts : mapping of tuple to FlatPrice
        The same for each group.
    """

    price_usd: float | None
    margin: float
    expected_margin: Estimate
    cost: Estimate
    loss_run: Estimate
    loss_size: Estimate
    loss_month: Estimate
    month_loss: Estimate
    month_runs: int
    unknown: int
    cluster: str | None = None
    beside: str = ""
    parts: Mapping[tuple[Any, ...], FlatPrice] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per figure (and group): ``group, price_usd, figure, unit`` and the estimate's fields."""
        rows = []
        for key, one in (self.parts or {(): self}).items():
            for name in ("cost", "expected_margin", "loss_run", "loss_size", "loss_month", "month_loss"):
                found: Estimate = getattr(one, name)
                place = {"group": label(key), "price_usd": one.price_usd, "figure": name, "unit": found.unit}
                rows.append(place | found.record())
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cost of a run beside its price, for each group; see :mod:`harness_lab.plots.money`."""
        from harness_lab.plots.money import plot_flat_price, price_text

        rows = []
        for key, one in (self.parts or {(): self}).items():
            margin, month = (np.nan if x.value is None else x.value for x in (one.expected_margin, one.loss_month))
            known = {"cost": one.cost.value, "low": one.cost.low, "high": one.cost.high, "price": one.price_usd}
            rows.append({"name": label(key), "text": price_text(margin, month)} | known)
        return plot_flat_price(pd.DataFrame(rows), ax=ax)

    def summary(self) -> str:
        """Return the price and its risks in plain text."""
        return notes_below(
            "\n".join([f"{label(key)}: {one._text()}" for key, one in self.parts.items()] or [self._text()])
        )

    def explain(self) -> str:
        """Return what the figures mean and what to do next."""
        return (
            "The price is the upper confidence end of the mean cost, divided by what the margin leaves of a dollar: "
            "with that confidence the mean margin is at least the one aimed at. A month is less even than its runs "
            "suggest: the runs of one user (or repository, or session) come together and resemble each other, "
            "so a month is taken as so many clusters, not runs. No month was seen: its sum is modelled by the mean, "
            "the spread and the skewness of what was recorded (a Pearson type III curve), which tells no chance below "
            "one in a thousand. A flat price draws heavy users, which is not in it.\n"
            "Next: ceiling(...) cuts the tail that the loss comes from; reprice(...) shows another price table."
        )

    def _text(self) -> str:
        if self.cost.value is None or self.price_usd is None:
            given = "" if self.price_usd is None else f" can be judged, {dollars(self.price_usd)} was given"
            return f"no price{given}: {self.cost.interval}.{self._left_out()}"
        lost = f", then by {self.loss_size}" if self.loss_size.n else "; none of these did"
        lines = [
            f"{dollars(self.price_usd)} a run; cost {self.cost}; margin {self.expected_margin}.",
            f"{self.beside}{self._left_out()}",
            f"One run loses with chance {self.loss_run}{lost}.",
        ]
        month = f"A month of {self.month_runs:,} runs"
        if not self.loss_month.estimable:
            return "\n".join([*lines, f"{month}: no answer, {self.loss_month.interval}."])
        worst = f"in one month of twenty it loses more than {self.month_loss}"
        return "\n".join([*lines, f"{month} loses with chance {chance_text(self.loss_month)}; {worst}."])

    def _left_out(self) -> str:
        return f" Left out: {self.unknown:,} run(s) of unknown cost." if self.unknown else ""

    def __repr__(self) -> str:
        return f"FlatPrice({self.price_usd} $ a run, n = {self.cost.n:,})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def flat_price(
    settlements: Data, *, margin: float = 0.2, price_usd: float | None = None, month_runs: int = 1000,
    by: str | Sequence[str] | None = None, confidence: float = 0.95, seed: int = 0, cluster: str | None = AUTO,
) -> FlatPrice:  # fmt: skip
    """Set a flat price per run for a margin, or judge a given one.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    margin : float, default 0.2
        Wanted margin as a share of the price, in [0, 1).
    price_usd : float, optional
        A price to judge. Default: the smallest whose mean margin reaches `margin` with confidence (one-sided).
    month_runs : int, default 1000
        Runs of a month.
    by : str or sequence of str, optional
        Columns whose groups get prices of their own.
    confidence : float, default 0.95
        Of each interval, and of the margin.
    seed : int
        Of the resampling.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    FlatPrice
        Declined below 30 runs, with too few clusters, or where the runs cost nothing and no price is given.

    Notes
    -----
    A month's profit is the sum over its clusters, with the clusters' mean, variance and skewness (Pearson type III);
    intervals are bootstrap-t over the recorded clusters [1]_.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(100), "outcome": "completed", "cost_nusd": [10**9, 2 * 10**9] * 50})
    >>> round(flat_price(runs, margin=0.25).price_usd, 2)
    2.11
    """
    check_confidence(confidence)
    if not 0 <= margin < 1:
        raise InputError("margin", expected="a share of the price in [0, 1)", got=margin)
    if price_usd is not None and not 0 < price_usd < 1e9:
        raise InputError("price_usd", expected="dollars above 0", got=price_usd)
    if month_runs < 1:
        raise InputError("month_runs", expected="at least 1", got=month_runs)
    runs, names = run_table(settlements), as_names(by)

    def judge(rows: pd.DataFrame, parts: Mapping[tuple[Any, ...], FlatPrice] | None = None) -> FlatPrice:
        return _judge(rows, margin, price_usd, month_runs, confidence, seed, cluster, parts or {})

    return judge(runs, {key: judge(rows) for key, rows in (parts_by(runs, names) if names else ())})


def break_even_runs(
    settlements: Data, *, fee_usd: float, confidence: float = 0.95, cluster: str | None = AUTO
) -> Estimate:
    """Estimate from how many runs on a fixed fee is cheaper than paying per token.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes, as paid per token.
    fee_usd : float
        The fixed fee of a period, dollars.
    confidence, cluster
        As for :func:`flat_price`.

    Returns
    -------
    Estimate
        Fee over mean cost, runs a period.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(100), "outcome": "completed", "cost_nusd": [10**9, 2 * 10**9] * 50})
    >>> round(break_even_runs(runs, fee_usd=150).value)
    100
    """
    if not 0 < fee_usd < 1e12:
        raise InputError("fee_usd", expected="dollars above 0", got=fee_usd)
    cost, _, labels = _costs(run_table(settlements), cluster)
    found = mean(cost, confidence=confidence, clusters=labels, unit="$", within=AMOUNT)
    if not found.value:
        none = NotEstimable(reason="no run of known cost above 0")
        return Estimate(value=None, interval=none, n=found.n, method="fee over mean cost", unit="runs")
    interval: Interval | NotEstimable = found.interval
    if isinstance(interval, Interval):
        low = max(interval.low, 0.0)
        interval = Interval(
            low=fee_usd / interval.high,
            high=fee_usd / low if low else np.inf,
            confidence=confidence,
            method=interval.method,
        )
    return Estimate(
        value=fee_usd / found.value, interval=interval, n=found.n, method="fee over mean cost", unit="runs",
        clusters=found.clusters, effective_n=found.effective_n,
    )  # fmt: skip


def _costs(runs: pd.DataFrame, cluster: str | None) -> tuple[Floats, str | None, Ints | None]:
    cost = amounts(runs, "cost_nusd") / 1e9  # divided, 0.3 dollars are the double that is written so
    known = ~np.isnan(cost)
    name, labels = choose_cluster(runs[known], cost[known], cluster)
    return cost[known], name, labels


def _judge(
    runs: pd.DataFrame, margin: float, given: float | None, month: int, confidence: float, seed: int,
    cluster: str | None, parts: Mapping[tuple[Any, ...], FlatPrice],
) -> FlatPrice:  # fmt: skip
    cost, name, labels = _costs(runs, cluster)
    told = beside(runs[column(runs, "cost_nusd").notna()])
    average = mean(cost, confidence=confidence, clusters=labels, unit="$", within=AMOUNT)
    bound = mean(cost, confidence=2 * confidence - 1, clusters=labels) if confidence > 0.5 else average
    few = None if cost.size >= MIN_RUNS else NotEstimable(reason=f"{cost.size} run(s) of known cost", needs_n=MIN_RUNS)
    few = few or (average.interval if isinstance(average.interval, NotEstimable) else None)
    if few is None and given is None and not average.value:
        few = NotEstimable(reason="every run of known cost cost $0, and a margin on nothing sets no price")
    price = given if given is not None else None if few or bound.high is None else bound.high / (1 - margin)
    if few is not None or price is None:
        none = Estimate(value=None, interval=few or NotEstimable(reason="no bound"), n=cost.size, method="flat price")
        return FlatPrice(
            price_usd=given, margin=margin, expected_margin=none, cost=none, loss_run=none, loss_size=none,
            loss_month=none, month_loss=none, month_runs=month, unknown=len(runs) - cost.size,
            cluster=name, parts=parts, beside=told,
        )  # fmt: skip
    over = cost > price
    left = mean(1 - cost / price, confidence=confidence, clusters=labels, within=(-math.inf, 1.0))
    chance, size = _month(cost, labels, price, month, confidence, np.random.default_rng(seed))
    return FlatPrice(
        price_usd=float(price), margin=margin, expected_margin=left, cost=average, month_runs=month,
        loss_run=share(over, confidence=confidence, clusters=labels, method="share of runs"),
        loss_size=mean(
            cost[over] - price, confidence=confidence, clusters=None if labels is None else labels[over], unit="$",
            within=AMOUNT,
        ),
        loss_month=chance, month_loss=size, unknown=len(runs) - cost.size, cluster=name, parts=parts, beside=told,
    )  # fmt: skip


def _month(
    cost: Floats, labels: Ints | None, price: float, month: int, confidence: float, rng: np.random.Generator
) -> tuple[Estimate, Estimate]:
    """Return the chance of a loss in a month and the loss exceeded in one month of twenty."""
    unit = np.arange(cost.size) if labels is None else np.unique(labels, return_inverse=True)[1]
    size = np.bincount(unit).astype(np.float64)
    profit = np.asarray(np.bincount(unit, weights=price - cost), dtype=np.float64)
    own = _moments(*(part.sum(keepdims=True) for part in _powers(profit, size)))
    clusters = month / own[3]
    drawn = _reflected(profit, size, own, rng)
    plain, other = _pearson(*own[:3], clusters), _pearson(*drawn, clusters)
    error = (1 - confidence) / 2 * _TAIL_SHARE
    few = _too_few(size.size, labels, drawn[0].size, error)
    known = None if labels is None else size.size
    effect = None if labels is None else cluster_effect(cost, unit).effective_n
    found = []
    for place, (unit_name, word) in enumerate((("", "chance of a month's loss"), ("$", "a month's loss"))):
        value = float(plain[place][0])
        low, high = (0.0, 0.0) if few else (float(end) for end in np.quantile(other[place], [error, 1 - error]))
        method = "bootstrap-t of " + ("runs" if labels is None else "whole clusters")
        interval = few or Interval(low=min(low, value), high=max(high, value), confidence=confidence, method=method)
        found.append(
            Estimate(
                value=value, interval=interval, n=cost.size, method=word, unit=unit_name, clusters=known,
                effective_n=effect,
            )
        )  # fmt: skip
    return within_sight(found[0]), found[1]


def _too_few(clusters: int, labels: Ints | None, drawn: int, error: float) -> NotEstimable | None:
    """Say why a month has no interval; None if it has one."""
    if labels is not None and clusters < MIN_CLUSTERS:
        return NotEstimable(reason=f"{clusters} cluster(s) for a sum of many", needs_n=MIN_CLUSTERS, of="clusters")
    if drawn < _DRAWS * (1 - error):
        return NotEstimable(reason="hardly any run differs from the others, so the spread of a month cannot be told")
    return None


def _moments(n: Floats, one: Floats, two: Floats, three: Floats, runs: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, variance and third moment of a cluster's profit, and runs per cluster.

    A variance that rounding alone makes is 0.
    """
    mu, square = one / n, two / n
    variance = square - mu**2
    variance = np.where(variance > 1e-12 * square, variance, 0.0)
    third = np.where(variance > 0, three / n - 3 * mu * square + 2 * mu**3, 0.0)
    return mu, variance, third, runs / n


def _reflected(
    profit: Floats, size: Floats, own: tuple[Floats, Floats, Floats, Floats], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw moments that the truth may have: bootstrap-t of the mean, and the spread turned round in the same way [1]_.

    A resample without spread says nothing of it and is left out, unless there is none in the records either.

    Percentile intervals were tried: with 25 clusters, stated at 95 %, they covered in 84 to 88 % of samples, since a
    sample that misses the tail has a mean too low and a spread too small at once.
    """
    count = min(profit.size, _BLOCKS)
    block = np.arange(profit.size) if profit.size <= _BLOCKS else rng.permutation(profit.size) % _BLOCKS
    each = np.stack([np.bincount(block, weights=part) for part in _powers(profit, size)], axis=1)
    drawn = rng.integers(0, count, size=(_DRAWS, count)) + count * np.arange(_DRAWS)[:, None]
    weight = np.bincount(drawn.ravel(), minlength=_DRAWS * count).reshape(_DRAWS, count).astype(np.float64)
    mu, variance, _, _ = _moments(*(weight @ each).T)
    if not own[1][0]:
        return np.tile(own[0], _DRAWS), np.zeros(_DRAWS), np.zeros(_DRAWS)
    mu, variance = mu[variance > 0], variance[variance > 0]
    pivot = (mu - own[0]) / np.sqrt(variance)
    spread = own[1] / variance
    return own[0] - pivot * np.sqrt(own[1]), own[1] * spread, own[2] * spread**1.5


def _powers(profit: Floats, size: Floats) -> list[Floats]:
    return [np.ones_like(profit), profit, profit**2, profit**3, size]


def _pearson(mu: Floats, variance: Floats, third: Floats, clusters: Floats) -> tuple[Floats, Floats]:
    """Return the chance that so many clusters lose, and the loss exceeded once in twenty; without spread it is sure."""
    spread = np.sqrt(variance)
    sure = spread == 0
    unit = np.where(sure, 1.0, spread)
    skew = np.clip(third / unit**3 / np.sqrt(clusters), -20, 20)
    frozen = pearson3(skew, loc=mu * clusters, scale=unit * np.sqrt(clusters))
    chance = np.where(sure, mu < 0, np.asarray(frozen.cdf(0.0)))
    loss = np.where(sure, -mu * clusters, -np.asarray(frozen.ppf(0.05)))
    return chance, np.maximum(loss, 0.0)
