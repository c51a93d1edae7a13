"""Means and ratios of sums, with intervals that know clusters.

References
----------
.. [1] Cochran, W. G. (1977). Sampling Techniques, 3rd ed., chapter 6 (ratio estimators) and 9 (clusters). Wiley.
.. [2] Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54(1),
   221-228. https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, codes, sample
from harness_lab.stats.clusters import cluster_effect, variance_of_mean
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence
from harness_lab.stats.skewed import skewed_ends, skewness

AMOUNT: Final = (0.0, math.inf)
"""What the mean of an amount can be: spend, time, tokens."""
SHARE: Final = (0.0, 1.0)
"""What a share can be."""


def mean(
    values: npt.ArrayLike, *, confidence: float = 0.95, clusters: npt.ArrayLike | None = None, unit: str = "",
    within: tuple[float, float] | None = None,
) -> Estimate:  # fmt: skip
    """Estimate a mean with Student's t corrected for skewness [2]_, over clusters if there are any.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The quantity; unknown values must have been set apart.
    confidence : float, default 0.95
        Confidence of the interval.
    clusters : array_like, shape (n,), optional
        The cluster of each value.
    unit : str
        Unit, for display.
    within : (float, float), optional
        What the mean can be at all: the ends of the interval lie in there, unless it does not itself (a refund, say).

    Returns
    -------
    Estimate
        Values that are all equal have an interval of width 0 and a note that says so.

    Examples
    --------
    >>> print(mean([1.0, 2.0, 3.0]))
    2 [-0.4841, 4.484] (95 %, n = 3, skew-corrected t)
    """
    x = sample(values, what="values")
    return ratio(
        x, np.ones_like(x), confidence=confidence, clusters=clusters, unit=unit, method="skew-corrected t",
        within=within,
    )  # fmt: skip


def ratio(
    parts: npt.ArrayLike, wholes: npt.ArrayLike, *, confidence: float = 0.95,
    clusters: npt.ArrayLike | None = None, unit: str = "", method: str = "ratio of sums, skew-corrected t",
    within: tuple[float, float] | None = None,
) -> Estimate:  # fmt: skip
    """Estimate a ratio of sums, such as the share of all spend that was avoided.

    Parameters
    ----------
    parts, wholes : array_like of float, shape (n,)
        Numerator and denominator of each run.
    confidence, clusters, unit, within
        As for :func:`mean`.
    method : str
        Name of the method, kept in the estimate.

    Returns
    -------
    Estimate
        The ratio of the sums (not the mean of the ratios), with the linearised variance [1]_.
    """
    y, z = sample(parts, what="parts"), sample(wholes, what="wholes")
    if y.shape != z.shape:
        raise InputError("wholes", expected=f"{y.size} values, one for each part", got=f"{z.size}")
    check_confidence(confidence)
    found = _ratio(y, z, clusters, confidence=confidence, unit=unit, method=method)
    if within is None or found.value is None or not within[0] <= found.value <= within[1]:
        return found
    if not isinstance(found.interval, Interval):
        return found
    low, high = max(found.interval.low, within[0]), min(found.interval.high, within[1])
    return replace(found, interval=replace(found.interval, low=low, high=high))


def _ratio(
    y: Floats, z: Floats, clusters: npt.ArrayLike | None, *, confidence: float, unit: str, method: str
) -> Estimate:
    if y.size == 0 or z.sum() == 0:
        none = NotEstimable(reason="no values" if y.size == 0 else "the sum it would be divided by is 0")
        return Estimate(value=None, interval=none, n=y.size, method=method, unit=unit)
    value = float(y.sum() / z.sum())
    residual = (y - value * z) * (y.size / float(z.sum()))
    if clusters is not None:
        return _clustered(value, residual, clusters, confidence=confidence, unit=unit, method=method)
    if y.size < 2:
        few = NotEstimable(reason="one value has no spread", needs_n=2)
        return Estimate(value=value, interval=few, n=y.size, method=method, unit=unit)
    se = float(residual.std(ddof=1)) / float(np.sqrt(y.size))
    interval = _interval(value, se, residual, df=y.size - 1.0, confidence=confidence, method=method)
    note = "" if np.ptp(y) or np.ptp(z) else f"identical in all {y.size} values"
    return Estimate(value=value, interval=interval, n=y.size, method=method, unit=unit, note=note)


def _clustered(
    value: float, residual: Floats, clusters: npt.ArrayLike, *, confidence: float, unit: str, method: str
) -> Estimate:
    group = codes(clusters, n=residual.size)
    effect = cluster_effect(residual, group)
    interval: Interval | NotEstimable | None = effect.too_few()
    if interval is None:
        se = float(np.sqrt(variance_of_mean(residual, group)))
        sums = np.bincount(group, weights=residual).astype(np.float64)
        df, name = effect.effective_clusters - 1, f"{method} over whole clusters"
        interval = _interval(value, se, sums, df=df, confidence=confidence, method=name, units=df + 1)
    return Estimate(
        value=value, interval=interval, n=residual.size, method=method, unit=unit, clusters=effect.clusters,
        effective_n=effect.effective_n,
    )  # fmt: skip


def _interval(
    value: float, se: float, residual: Floats, *, df: float, confidence: float, method: str, units: float | None = None
) -> Interval:
    units = float(residual.size) if units is None else units
    below, above = skewed_ends(se, skewness(residual), units=units, df=df, confidence=confidence)
    return Interval(low=value - float(below), high=value + float(above), confidence=confidence, method=method)
