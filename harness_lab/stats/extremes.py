"""The lower end of a distribution, from its smallest values.

References
----------
.. [1] Robson, D. S., Whitlock, J. H. (1964). Estimation of a truncation point. Biometrika 51(1/2), 33-39.
   https://doi.org/10.1093/biomet/51.1-2.33
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness_lab.stats.arrays import sample
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence


def lower_end(values: npt.ArrayLike, *, confidence: float = 0.95, step: float = 1.0) -> Estimate:
    """Estimate where a distribution begins.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The sample.
    confidence : float, default 0.95
        Confidence of the interval.
    step : float, default 1
        Resolution of the values (1 for counts): the gap between the two smallest is taken as at least this.

    Returns
    -------
    Estimate
        The minimum, with an interval from below that ends at it.

    Notes
    -----
    ``[x1 - c / (1 - c) (x2 - x1), x1]`` with x1, x2 the two smallest values and c the confidence [1]_. It holds for
    large samples where the density at the lower end is positive; where the density rises from 0 it is too short.

    Examples
    --------
    >>> print(lower_end([120, 100, 101]))
    100 [81, 100] (95 %, n = 3, Robson-Whitlock)
    """
    x = np.sort(sample(values, what="values"))
    check_confidence(confidence)
    if x.size < 2:
        few = NotEstimable(reason="the gap above the smallest value is not known", needs_n=2)
        return Estimate(value=float(x[0]) if x.size else None, interval=few, n=x.size, method="minimum")
    gap = max(float(x[1] - x[0]), step)
    low = float(x[0]) - confidence / (1 - confidence) * gap
    interval = Interval(low=low, high=float(x[0]), confidence=confidence, method="Robson-Whitlock")
    return Estimate(value=float(x[0]), interval=interval, n=x.size, method="minimum")
