"""Paired differences: two policies on the same luck, what pairing gained, and several comparisons at once.

References
----------
.. [1] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics
   6(2), 65-70. https://www.jstor.org/stable/4615733
.. [2] Law, A. M. (2015). Simulation Modeling and Analysis, 5th ed., sections 10.2.1 and 11.2. McGraw-Hill.
.. [3] Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54(1),
   221-228. https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
.. [4] Bonett, D. G., Price, R. M. (2012). Adjusted Wald confidence interval for a difference of binomial proportions
   based on paired data. Journal of Educational and Behavioral Statistics 37(4), 479-488.
   https://doi.org/10.3102/1076998611411915
.. [5] McNemar, Q. (1947). Note on the sampling error of the difference between correlated proportions or percentages.
   Psychometrika 12(2), 153-157. https://doi.org/10.1007/BF02295996
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit
from scipy.stats import binomtest

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, Ints, codes, sample
from harness_lab.stats.clusters import effective_clusters, variance_of_mean
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, percent
from harness_lab.stats.means import mean
from harness_lab.stats.skewed import skewed_p, skewness

MIN_PAIRS = 10
"""With fewer pairs, or fewer pairs that differ at all, no interval of a mean keeps its promise for skewed spend."""


_SAME = "identical in all {} runs"
_SHARES = "Bonett-Price"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The mean difference of two policies over the same runs.

    Parameters
    ----------
    difference : Estimate
        Mean of second less first.
    identical : int
        Pairs without any difference.
    variance_ratio : float or None
        Variance of the paired difference over that of independent samples: 1 is no gain, 0.1 means that a tenth of
        the runs suffices. None where neither policy varies.
    correlation : float or None
        Correlation of the two policies over the pairs; None where one does not vary.
    p_value : float or None
        Two-sided p-value of "no difference" from the same statistic; 1 where all pairs are identical, None where
        there is no interval.
    """

    difference: Estimate
    identical: int
    variance_ratio: float | None
    correlation: float | None
    p_value: float | None


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    clusters: npt.ArrayLike | None = None,
    unit: str = "",
) -> PairedDifference:
    """Estimate the mean of `second` less `first` over the same runs [2]_, with Student's t corrected for skewness [3]_.

    Parameters
    ----------
    first, second : array_like of float, shape (n,)
        One quantity under two policies, run by run in the same order.
    confidence : float, default 0.95
        Confidence of the interval.
    clusters : array_like, shape (n,), optional
        The cluster of each pair.
    unit : str
        Unit, for display.

    Returns
    -------
    PairedDifference
        Where all pairs are identical the interval is [0, 0] and the note says so. Fewer than ten pairs, or fewer than
        ten that depart from a difference which all the others have, give a mean without an interval: how far further
        runs may depart from it, they do not tell (the p-value is that of the sign test then). For shares there is
        :func:`paired_shares`.

    Examples
    --------
    >>> found = paired_difference(range(10), range(10))
    >>> found.difference.interval
    Interval(low=0.0, high=0.0, confidence=0.95, method='identical')
    >>> found.difference.note
    'identical in all 10 runs (so at most 25.9 % of further runs would differ)'
    """
    a, b = sample(first, what="first"), sample(second, what="second")
    if a.shape != b.shape:
        raise InputError("second", expected=f"{a.size} values, one for each of `first`", got=f"{b.size}")
    delta = b - a
    estimate = mean(delta, confidence=confidence, clusters=clusters, unit=unit)
    p_value, differing = None, int((delta != 0).sum())
    departing = int((delta != np.median(delta)).sum()) if delta.size else 0
    if a.size >= MIN_PAIRS and not differing:
        estimate, p_value = _identical(estimate, confidence), 1.0
    elif differing < MIN_PAIRS:
        note = "" if differing else _SAME.format(a.size)
        estimate = replace(estimate, interval=_too_few(a.size, differing), note=note)
    elif departing < MIN_PAIRS:  # which way they differ, they do tell
        p_value = _sign_p(delta) if estimate.estimable else None
        estimate = replace(estimate, interval=_alike(a.size, departing))
    elif estimate.estimable:
        p_value = _p_value(delta, clusters)
    return _paired(a, b, estimate, p_value)


def paired_shares(
    first: npt.ArrayLike, second: npt.ArrayLike, *, confidence: float = 0.95, clusters: npt.ArrayLike | None = None
) -> PairedDifference:
    """Estimate the difference of two shares over the same runs: how much more often something holds under the second.

    Parameters
    ----------
    first, second : array_like of bool or of 0 and 1, shape (n,)
        Whether it holds under either policy, run by run in the same order.
    confidence : float, default 0.95
        Confidence of the interval.
    clusters : array_like, shape (n,), optional
        The cluster of each pair.

    Returns
    -------
    PairedDifference
        With the interval of Bonett and Price [4]_, which holds where few pairs differ, none or all: each kind of
        difference is counted once more than it was seen. With clusters it is taken at the effective number of pairs
        that the variance between clusters leaves, with a t quantile. Fewer than ten pairs, or too few clusters, give no
        interval. The p-value is McNemar's [5]_: exact, or with clusters from the same effective number.

    Examples
    --------
    >>> print(paired_shares([1] * 50, [0] * 49 + [1]).difference)
    -0.98 [-1, -0.8595] (95 %, n = 50, Bonett-Price)
    """
    a, b = sample(first, what="first"), sample(second, what="second")
    if a.shape != b.shape:
        raise InputError("second", expected=f"{a.size} values, one for each of `first`", got=f"{b.size}")
    delta = b - a
    estimate = mean(delta, confidence=confidence, clusters=clusters)
    if a.size < MIN_PAIRS:
        return _paired(a, b, replace(estimate, interval=_too_few(a.size, 0)), None)
    if clusters is not None and not estimate.estimable:
        return _paired(a, b, estimate, None)
    more, less, worth, df = int((delta > 0).sum()), int((delta < 0).sum()), float(a.size), math.inf
    if clusters is not None:
        worth, df = _worth(delta, codes(clusters, n=a.size))
    counts = (more * worth / a.size, less * worth / a.size)
    low, high = _bonett_price(*counts, worth, float(stdtrit(df, 0.5 + confidence / 2)))
    method = _SHARES if clusters is None else f"{_SHARES}, whole clusters"
    interval = Interval(low=low, high=high, confidence=confidence, method=method)
    note = "" if more + less else _identical(estimate, confidence).note
    if clusters is None or not more + less:
        p_value = _sign_p(delta)
    else:
        p_value = float(2 * stdtr(df, -abs(counts[0] - counts[1]) / math.sqrt(sum(counts))))
    return _paired(a, b, replace(estimate, interval=interval, note=note), p_value)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Adjust p-values for several comparisons, step down [1]_.

    Parameters
    ----------
    p_values : array_like of float, shape (m,)
        One for each comparison.

    Returns
    -------
    ndarray of float64, shape (m,)
        Adjusted p-values in the same order. Rejecting those at or below alpha keeps the chance of any false
        rejection at or below alpha, however the comparisons depend on each other.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = sample(p_values, what="p_values")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _paired(a: Floats, b: Floats, estimate: Estimate, p_value: float | None) -> PairedDifference:
    delta = b - a
    return PairedDifference(
        difference=estimate, identical=int((delta == 0).sum()), variance_ratio=_variance_ratio(a, b, delta),
        correlation=_correlation(a, b), p_value=p_value,
    )  # fmt: skip


def _bonett_price(more: float, less: float, n: float, z: float) -> tuple[float, float]:
    """Return the ends of the interval [4]_ of ``(more - less) / n``, within what is possible."""
    up, down = (more + 1) / (n + 2), (less + 1) / (n + 2)
    half = z * math.sqrt(max(up + down - (up - down) ** 2, 0.0) / (n + 2))
    return max(up - down - half, -1.0), min(up - down + half, 1.0)


def _worth(delta: Floats, group: Ints) -> tuple[float, float]:
    """Return how many independent pairs the clusters are worth, and the degrees of freedom that they leave."""
    effective = effective_clusters(np.bincount(group).astype(np.float64))
    between = variance_of_mean(delta, group)
    worth = float(delta.var()) / between if between > 0 else effective
    return min(worth, float(delta.size)), effective - 1


def _identical(estimate: Estimate, confidence: float) -> Estimate:
    interval = Interval(low=0.0, high=0.0, confidence=confidence, method="identical")
    at_most = 1 - (1 - confidence) ** (1 / estimate.n)
    note = f"{_SAME.format(estimate.n)} (so at most {percent(at_most)} of further runs would differ)"
    return replace(estimate, interval=interval, note=note)


def _too_few(n: int, differing: int) -> NotEstimable:
    if n < MIN_PAIRS or not differing:
        return NotEstimable(reason=f"{n} pair(s)", needs_n=MIN_PAIRS)
    needed = math.ceil(n * MIN_PAIRS / differing)
    return NotEstimable(reason=f"only {differing} of {n} pairs differ", needs_n=needed)


def _alike(n: int, departing: int) -> NotEstimable:
    if not departing:
        return NotEstimable(reason=f"all {n} pairs differ by the same")
    needed = math.ceil(n * MIN_PAIRS / departing)
    return NotEstimable(reason=f"only {departing} of {n} pairs differ otherwise than the rest", needs_n=needed)


def _sign_p(delta: Floats) -> float:
    """Return the exact two-sided p-value of "as many differ the one way as the other"; McNemar's for shares."""
    more, less = int((delta > 0).sum()), int((delta < 0).sum())
    return float(binomtest(more, more + less).pvalue) if more + less else 1.0


def _p_value(delta: Floats, clusters: npt.ArrayLike | None) -> float:
    residual = delta - delta.mean()
    if clusters is None:
        variance, df, parts = float(delta.var(ddof=1)) / delta.size, float(delta.size - 1), residual
    else:
        group = codes(clusters, n=delta.size)
        parts = np.bincount(group, weights=residual)
        variance = variance_of_mean(delta, group)
        df = effective_clusters(np.bincount(group).astype(np.float64)) - 1
    return skewed_p(float(delta.mean()), float(np.sqrt(variance)), skewness(parts), units=df + 1, df=df)


def _variance_ratio(a: Floats, b: Floats, delta: Floats) -> float | None:
    if a.size < 2:
        return None
    unpaired = float(a.var(ddof=1) + b.var(ddof=1))
    return float(delta.var(ddof=1)) / unpaired if unpaired > 0 else None


def _correlation(a: Floats, b: Floats) -> float | None:
    if a.size < 2 or not np.ptp(a) or not np.ptp(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])
