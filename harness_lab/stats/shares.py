"""Shares: how many of n, with an interval.

References
----------
.. [1] Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal of the
   American Statistical Association 22(158), 209-212. https://doi.org/10.1080/01621459.1927.10502953
.. [2] Korn, E. L., Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of
   positive counts estimated from survey data. Survey Methodology 24(2), 193-201.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, stdtrit

from harness_lab.stats.arrays import Floats, codes, flags
from harness_lab.stats.clusters import ClusterEffect, cluster_effect, variance_of_mean
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence


def share(
    hits: npt.ArrayLike, *, confidence: float = 0.95, clusters: npt.ArrayLike | None = None, method: str = "share"
) -> Estimate:
    """Estimate the share of runs for which something holds.

    Parameters
    ----------
    hits : array_like of bool, shape (n,)
        Whether it holds.
    confidence : float, default 0.95
        Confidence of the interval.
    clusters : array_like, shape (n,), optional
        The cluster of each run.
    method : str
        What the share is of, kept in the estimate.

    Returns
    -------
    Estimate
        Wilson's interval [1]_; with clusters the exact binomial interval at the effective number of runs that the
        variance between clusters leaves [2]_.

    Examples
    --------
    >>> print(share([True] * 3 + [False] * 7))
    0.3 [0.1078, 0.6032] (95 %, n = 10, Wilson)
    """
    held = flags(hits, n=np.asarray(hits).size, what="hits")
    check_confidence(confidence)
    n, k = held.size, int(held.sum())
    if n == 0:
        none = NotEstimable(reason="no runs", needs_n=1)
        return Estimate(value=None, interval=none, n=0, method=method)
    if clusters is not None:
        return _clustered(held.astype(np.float64), clusters, confidence=confidence, method=method)
    low, high = wilson(np.asarray([k]), n, confidence=confidence)
    interval = Interval(low=float(low[0]), high=float(high[0]), confidence=confidence, method="Wilson")
    return Estimate(value=k / n, interval=interval, n=n, method=method)


def wilson(hits: npt.ArrayLike, n: npt.ArrayLike, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval [1]_ for many shares at once.

    Parameters
    ----------
    hits, n : array_like of int
        Hits and trials (at least 1), shapes that broadcast.

    Returns
    -------
    low, high : ndarray of float64
        Ends; exactly 0 where there is no hit and exactly 1 where there is no miss.
    """
    k, size = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64))
    z = float(ndtri(0.5 + confidence / 2))
    centre = (k + z * z / 2) / (size + z * z)
    half = z / (size + z * z) * np.sqrt(k * (size - k) / size + z * z / 4)
    return np.where(k == 0, 0.0, centre - half), np.where(k == size, 1.0, centre + half)


def discounted_n(q: float, variance: float, *, effect: ClusterEffect, error: float) -> float:
    """Return how many independent runs a clustered sample is worth for an interval of a share [2]_.

    Parameters
    ----------
    q : float
        The share.
    variance : float
        Variance of the share between clusters; 0 where all clusters agree.
    effect : ClusterEffect
        Sizes of the clusters.
    error : float
        Error probability at each end.
    """
    worth = q * (1 - q) / variance if variance > 0 else effect.effective_clusters
    t = float(stdtrit(effect.effective_clusters - 1, 1 - error))
    return min(worth, float(effect.n)) * (float(ndtri(1 - error)) / t) ** 2


def _clustered(held: Floats, clusters: npt.ArrayLike, *, confidence: float, method: str) -> Estimate:
    group = codes(clusters, n=held.size)
    effect = cluster_effect(held, group)
    value = float(held.mean())
    interval: Interval | NotEstimable | None = effect.too_few()
    if interval is None:
        error = (1 - confidence) / 2
        worth = discounted_n(value, variance_of_mean(held, group), effect=effect, error=error)
        low = float(betaincinv(worth * value, worth * (1 - value) + 1, error)) if value > 0 else 0.0
        high = float(betaincinv(worth * value + 1, worth * (1 - value), 1 - error)) if value < 1 else 1.0
        interval = Interval(low=low, high=high, confidence=confidence, method="Korn-Graubard, whole clusters")
    return Estimate(
        value=value, interval=interval, n=held.size, method=method, clusters=effect.clusters,
        effective_n=effect.effective_n,
    )  # fmt: skip
