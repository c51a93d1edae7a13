"""What it costs that runs of one user, repository or session resemble each other.

References
----------
.. [1] Kish, L. (1965). Survey Sampling. Wiley. Design effect.
.. [2] Donner, A., Koval, J. J. (1980). The estimation of intraclass correlation in the analysis of family data.
   Biometrics 36(1), 19-25. https://doi.org/10.2307/2530491
.. [3] Carter, A. V., Schnepel, K. T., Steigerwald, D. G. (2017). Asymptotic behavior of a t-test robust to cluster
   heterogeneity. Review of Economics and Statistics 99(4), 698-709. https://doi.org/10.1162/REST_a_00639
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness_lab.stats.arrays import Floats, Ints, codes, dot, sample
from harness_lab.stats.estimates import NotEstimable

MIN_EFFECTIVE_CLUSTERS = 5.0
"""With fewer (counted as clusters of equal size) the variance between clusters is not known well enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEffect:
    """How alike the values of one cluster are, and what that leaves of n.

    Parameters
    ----------
    n : int
        Values.
    clusters : int
        Clusters among them.
    effective_clusters : float
        Clusters of equal size that would count as much, ``n ** 2 / sum(size ** 2)``.
    icc : float
        Correlation within a cluster, 0 (independent) to 1 (all alike); negative estimates are set to 0.
    design_effect : float
        Factor by which the variance of a mean is larger than for independent values, at least 1.
    effective_n : float
        ``n / design_effect``.
    """

    n: int
    clusters: int
    effective_clusters: float
    icc: float
    design_effect: float
    effective_n: float

    def too_few(self) -> NotEstimable | None:
        """Return why no interval can be given, or None if there are enough clusters."""
        return too_few_clusters(self.clusters, self.effective_clusters)


def cluster_effect(values: npt.ArrayLike, clusters: npt.ArrayLike) -> ClusterEffect:
    """Measure the correlation within clusters and the effective number of values.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The quantity.
    clusters : array_like, shape (n,)
        The cluster of each value.

    Returns
    -------
    ClusterEffect

    Notes
    -----
    The correlation is the analysis-of-variance estimate [2]_; the design effect is ``1 + (m - 1) icc`` with `m` the
    size of the cluster in which a value lies on average, ``sum(size ** 2) / n`` [1]_.

    Examples
    --------
    >>> cluster_effect([1, 1, 5, 5, 9, 9], ["a", "a", "b", "b", "c", "c"]).effective_n
    3.0
    """
    x = sample(values, what="values")
    group = codes(clusters, n=x.size)
    sizes = np.bincount(group).astype(np.float64) if x.size else np.zeros(0)
    n, k = x.size, sizes.size
    if k < 2 or n <= k:
        return _effect(sizes, 0.0)
    means = np.bincount(group, weights=x) / sizes
    return _effect(sizes, _icc(means, sizes, within=float(np.sum((x - means[group]) ** 2))))


def share_effect(hits: Floats, sizes: Floats) -> ClusterEffect:
    """Return :func:`cluster_effect` of values that are 0 or 1.

    Parameters
    ----------
    hits, sizes : ndarray of float64, shape (clusters,)
        Ones, and values, of each cluster.

    Examples
    --------
    >>> share_effect(np.array([2.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0])) == cluster_effect(
    ...     [1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 2, 2])
    True
    """
    if sizes.size < 2 or sizes.sum() <= sizes.size:
        return _effect(sizes, 0.0)
    return _effect(sizes, _icc(hits / sizes, sizes, within=float(np.sum(hits * (1 - hits / sizes)))))


def _effect(sizes: Floats, icc: float) -> ClusterEffect:
    n = int(sizes.sum())
    mean_size = dot(sizes, sizes) / n if n else 1.0
    design = 1 + (mean_size - 1) * icc
    return ClusterEffect(
        n=n, clusters=sizes.size, effective_clusters=effective_clusters(sizes), icc=icc, design_effect=design,
        effective_n=n / design,
    )  # fmt: skip


def effective_clusters(sizes: Floats) -> float:
    """Return how many clusters of equal size count as much as clusters of these `sizes`."""
    return float(sizes.sum() ** 2 / dot(sizes, sizes)) if sizes.size else 0.0


def too_few_clusters(clusters: int, effective: float, *, tail: float = 1.0) -> NotEstimable | None:
    """Return why `clusters` are too few for an interval, or None if they are enough.

    Parameters
    ----------
    clusters : int
        Clusters there are.
    effective : float
        Clusters of equal size that they count as.
    tail : float
        The smaller share that a quantile cuts off; at least two effective clusters have to lie in it.
    """
    needed = max(MIN_EFFECTIVE_CLUSTERS, 2 / tail)
    if effective >= needed * (1 - 1e-9):
        return None
    uneven = f" of uneven size, which count as {effective:.1f} equal ones" if effective < 0.95 * clusters else ""
    return NotEstimable(reason=f"{clusters} cluster(s){uneven}", needs_n=math.ceil(needed - 1e-9), of="clusters")


def variance_of_mean(values: Floats, group: Ints) -> float:
    """Return the variance of the mean of `values` when whole clusters were drawn (linearised, C/(C-1) corrected).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        The quantity.
    group : ndarray of int64, shape (n,)
        Codes of the clusters from 0, at least two of them.
    """
    residual = np.bincount(group, weights=values - values.mean()) / values.size
    k = residual.size
    return dot(residual, residual) * k / (k - 1)


def variance_of_share(hits: Floats, sizes: Floats) -> float:
    """Return :func:`variance_of_mean` of values that are 0 or 1; arguments as for :func:`share_effect`."""
    n, k = float(sizes.sum()), sizes.size
    residual = (hits - hits.sum() / n * sizes) / n
    return dot(residual, residual) * k / (k - 1)


def _icc(means: Floats, sizes: Floats, *, within: float) -> float:
    """Correlation within clusters, from their means and the sum of squares within."""
    n, k = float(sizes.sum()), sizes.size
    between = dot(sizes, (means - dot(sizes, means) / n) ** 2) / (k - 1)
    within /= n - k
    typical = (n - dot(sizes, sizes) / n) / (k - 1)
    whole = between + (typical - 1) * within
    return min(max((between - within) / whole, 0.0), 1.0) if whole > 0 else 0.0
