"""One change point in an ordered series, on ranks: whether there is one, where, and how sure that is.

References
----------
.. [1] Pettitt, A. N. (1979). A non-parametric approach to the change-point problem. Journal of the Royal Statistical
   Society C 28(2), 126-135. https://doi.org/10.2307/2346729
.. [2] Hušková, M., Kirch, C. (2008). Bootstrapping confidence intervals for the change-point of time series. Journal of
   Time Series Analysis 29(6), 947-972. https://doi.org/10.1111/j.1467-9892.2008.00589.x
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import kolmogorov
from scipy.stats import rankdata

from harness_lab.stats.arrays import Floats, codes, sample
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence

MIN_UNITS = 20
"""With fewer values (or clusters) in order no change point is looked for."""
_BLOCKS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The most likely place of one change in level.

    Parameters
    ----------
    place : Estimate
        Number of values before the change, with its interval; no value where no change point was looked for.
    p_value : float or None
        Of "no change anywhere"; the search over all places is allowed for.
    median_before, median_after : float or None
        Sample medians on both sides of the place.
    """

    place: Estimate
    p_value: float | None
    median_before: float | None
    median_after: float | None


def change_point(
    values: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None, confidence: float = 0.95, resamples: int = 400,
    seed: int = 0,
) -> ChangePoint:  # fmt: skip
    """Look for one change in level.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The quantity, in order of time.
    clusters : array_like, shape (n,), optional
        The cluster of each value. A cluster then counts once, at its first value's place.
    confidence : float, default 0.95
        Confidence of the interval of the place.
    resamples, seed : int
        Of the interval.

    Returns
    -------
    ChangePoint

    Notes
    -----
    The statistic is the largest distance of the running sum of ranks from its course without a change [1]_, in units of
    its standard deviation, with the limiting distribution of Kolmogorov: conservative for short series. The interval
    resamples the values on both sides of the place and looks again [2]_.

    Examples
    --------
    >>> found = change_point([*range(50), *range(100, 150)])
    >>> found.place.value, found.p_value < 0.001
    (50.0, True)
    """
    x = sample(values, what="values")
    check_confidence(confidence)
    group = np.arange(x.size) if clusters is None else codes(clusters, n=x.size)
    first = np.unique(group, return_index=True)[1]
    if first.size < MIN_UNITS:
        few = NotEstimable(
            reason=f"{first.size} unit(s) in order", needs_n=MIN_UNITS, of="n" if clusters is None else "clusters"
        )
        place = Estimate(value=None, interval=few, n=x.size, method="rank sums")
        return ChangePoint(place=place, p_value=None, median_before=None, median_after=None)
    order = np.argsort(first, kind="stable")
    sizes = np.bincount(group)[order].astype(np.float64)
    part = (np.bincount(group, weights=rankdata(x))[order] / sizes - (x.size + 1) / 2) * sizes
    part -= sizes * part.sum() / sizes.sum()
    split, height = _split(part, sizes)
    p_value = float(kolmogorov(height)) if height > 0 else 1.0
    low, high = _range(part, sizes, split, confidence=confidence, resamples=resamples, seed=seed)
    ends = np.concatenate([[0.0], np.cumsum(sizes)])
    interval = Interval(
        low=float(ends[low]), high=float(ends[high]), confidence=confidence, method="both sides resampled"
    )
    units = None if clusters is None else first.size
    place = Estimate(value=float(ends[split]), interval=interval, n=x.size, method="rank sums", clusters=units)
    before = np.isin(group, group[first[order[:split]]])
    medians = [float(np.median(x[part])) for part in (before, ~before)]
    return ChangePoint(place=place, p_value=p_value, median_before=medians[0], median_after=medians[1])


def _split(part: Floats, sizes: Floats) -> tuple[int, float]:
    """Return the number of units before the change, and the statistic."""
    course = np.abs(np.cumsum(part))[:-1]
    spread = math.sqrt(float(part @ part))
    place = int(np.argmax(course))
    return place + 1, float(course[place]) / spread if spread > 0 else 0.0


def _range(part: Floats, sizes: Floats, split: int, *, confidence: float, resamples: int, seed: int) -> tuple[int, int]:
    """Return the interval of the split: as far to both sides as its place is off in resamples of the units.

    The basic and the percentile bootstrap, which take one tail each, covered in 87 % of series with a small change.

    Long series are first put into blocks of neighbours that do not reach across the split.
    """
    starts = np.unique(np.concatenate([_starts(0, split), _starts(split, part.size)]))
    sums = np.add.reduceat(part, starts)
    here = int(np.searchsorted(starts, split))
    rng = np.random.default_rng(seed)
    left = rng.integers(0, here, size=(resamples, here))
    right = rng.integers(here, sums.size, size=(resamples, sums.size - here))
    drawn = sums[np.concatenate([left, right], axis=1)]
    drawn = drawn - drawn.mean(axis=1, keepdims=True)
    found = np.argmax(np.abs(np.cumsum(drawn, axis=1))[:, :-1], axis=1) + 1
    error = (1 - confidence) / 2
    low, high = np.quantile(found - here, [error, 1 - error], method="closest_observation")
    edges = np.concatenate([starts, [part.size]])
    reach = max(-int(low), int(high))
    ends = [int(edges[min(max(here + off, 0), edges.size - 1)]) for off in (-reach, reach)]
    return ends[0], ends[1]


def _starts(begin: int, end: int) -> npt.NDArray[np.int64]:
    size = end - begin
    return begin + np.unique(np.arange(min(size, _BLOCKS // 2)) * size // min(size, _BLOCKS // 2)).astype(np.int64)
