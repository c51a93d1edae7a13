"""Survival where some runs were stopped before they ended by themselves (right-censoring): Kaplan-Meier.

References
----------
.. [1] Kaplan, E. L., Meier, P. (1958). Nonparametric estimation from incomplete observations. Journal of the American
   Statistical Association 53(282), 457-481. https://doi.org/10.1080/01621459.1958.10501452
.. [2] Brookmeyer, R., Crowley, J. (1982). A confidence interval for the median survival time. Biometrics 38(1), 29-41.
   https://doi.org/10.2307/2530286
.. [3] Klein, J. P., Moeschberger, M. L. (2003). Survival Analysis, 2nd ed., sections 4.2-4.5. Springer.
   https://doi.org/10.1007/b97377
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import CensoredData, ecdf

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, Ints, flags, sample
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurvivalCurve:
    """The share of runs that are not yet over, as a step function.

    Parameters
    ----------
    time : ndarray of float64, shape (k,)
        Distinct observed values, ascending, in the unit of the input (spend, tokens, seconds ...).
    survival, low, high : ndarray of float64, shape (k,)
        Share that goes on beyond `time`, and its pointwise band.
    at_risk, events : ndarray of int64, shape (k,)
        Runs still observed just before `time`, and runs that ended at it.
    n, censored : int
        Runs, and those among them that were stopped.
    confidence : float
        Confidence of the band at each point (not of the whole curve).
    """

    time: Floats
    survival: Floats
    low: Floats
    high: Floats
    at_risk: Ints
    events: Ints
    n: int
    censored: int
    confidence: float

    def quantile(self, q: float) -> Estimate:
        """Estimate the value by which a share `q` has ended; the interval inverts the pointwise band [2]_ [3]_.

        Returns
        -------
        Estimate
            Neither value nor interval where the band does not reach `q`; the reason names the largest quantile that
            is supported.
        """
        ended = (self.time, 1 - self.survival, 1 - self.high, 1 - self.low)
        return invert_band(*ended, q=q, n=self.n, confidence=self.confidence, method="Kaplan-Meier, log-log band")

    @property
    def largest_quantile(self) -> float:
        """The largest quantile whose interval has both ends; 0 if there is none."""
        return float(np.max(1 - self.high, initial=0.0))


def kaplan_meier(values: npt.ArrayLike, ended: npt.ArrayLike, *, confidence: float = 0.95) -> SurvivalCurve:
    """Estimate a survival curve.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        What each run had used when it ended or was stopped.
    ended : array_like of bool, shape (n,)
        True if the run ended by itself, False if it was stopped (censored). Failures among runs that could complete
        are not censored: use :func:`harness_lab.stats.incidence.cumulative_incidence` for them.
    confidence : float, default 0.95
        Confidence of the pointwise log-log band.

    Returns
    -------
    SurvivalCurve

    Notes
    -----
    The estimate [1]_ and the band are scipy's (``ecdf`` of ``CensoredData``). Where the curve reaches 0 the band is not
    defined; its upper end is then carried over from the point before, its lower end is 0. It is assumed that being
    stopped tells nothing about how much more a run would have used.

    Examples
    --------
    >>> curve = kaplan_meier([1, 2, 2, 3, 4], [True, True, False, True, False])
    >>> curve.survival.round(3).tolist()
    [0.8, 0.6, 0.3, 0.3]
    """
    x = sample(values, what="values")
    done = flags(ended, n=x.size, what="ended")
    check_confidence(confidence)
    if x.size == 0:
        raise InputError("values", expected="at least one run", got="none")
    fit: Any = ecdf(CensoredData(uncensored=x[done], right=x[~done])).sf
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # the band at a survival of 0 or 1 is not defined
        band = fit.confidence_interval(confidence, method="log-log")
    time = np.asarray(fit.quantiles, dtype=np.float64)
    low, high = _closed(np.asarray(fit.probabilities), np.asarray(band.low.probabilities), band.high.probabilities)
    position = np.searchsorted(time, x)
    events = np.bincount(position[done], minlength=time.size)
    at_risk = x.size - np.concatenate([[0], np.cumsum(np.bincount(position, minlength=time.size))[:-1]])
    return SurvivalCurve(
        time=time, survival=np.asarray(fit.probabilities), low=low, high=high, at_risk=at_risk.astype(np.int64),
        events=events.astype(np.int64), n=x.size, censored=int((~done).sum()), confidence=confidence,
    )  # fmt: skip


def mean_to_end(values: npt.ArrayLike, ended: npt.ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Estimate the mean that runs would have reached had none been stopped: the area under the survival curve [3]_.

    Parameters
    ----------
    values, ended
        As for :func:`kaplan_meier`.
    confidence : float, default 0.95
        Confidence of the normal interval.

    Returns
    -------
    Estimate
        Neither value nor interval where the largest values were stopped: the rest of the area is then unknown.

    Examples
    --------
    >>> mean_to_end([1, 2, 3, 6], [True, True, True, True]).value
    3.0
    """
    curve = kaplan_meier(values, ended, confidence=confidence)
    left = float(curve.survival[-1])
    method = "area under Kaplan-Meier"
    if left > 1e-9:
        reason = f"{left:.1%} of the runs go on beyond the largest value that any run ended at"
        return Estimate(value=None, interval=NotEstimable(reason=reason), n=curve.n, method=method)
    steps = np.diff(curve.time) * curve.survival[:-1]
    beyond = np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
    value = float(curve.time[0] + beyond[0])
    rest = curve.at_risk - curve.events
    weight = np.where(rest > 0, curve.events / (curve.at_risk * np.maximum(rest, 1)), 0.0)
    half = float(ndtri(0.5 + confidence / 2) * np.sqrt(beyond**2 @ weight))
    interval = Interval(low=value - half, high=value + half, confidence=confidence, method=method)
    return Estimate(value=value, interval=interval, n=curve.n, method=method)


def invert_band(
    time: Floats, share: Floats, low: Floats, high: Floats, *,
    q: float, n: int, confidence: float, method: str,
) -> Estimate:  # fmt: skip
    """Read a quantile and its interval off a rising curve and its pointwise band.

    Parameters
    ----------
    time, share, low, high : ndarray of float64, shape (k,)
        The curve (share ended by each time) and its band.
    q : float
        The quantile, in (0, 1).
    n, confidence, method
        Kept in the estimate.

    Returns
    -------
    Estimate
        The interval holds every time at which the band contains `q`. Where its upper end is not reached, neither value
        nor interval.
    """
    check_confidence(q, what="q")
    supported = float(np.max(low, initial=0.0))
    reach = q * (1 - 1e-12)  # 120 of 240 steps may add up to a hair less than a half
    if supported < reach or not (share >= reach).any():
        return Estimate(value=None, interval=_unsupported(time, high, q, supported), n=n, method=method)
    first, middle, last = (float(time[np.argmax(line >= reach)]) for line in (high, share, low))
    interval = Interval(low=min(first, middle), high=last, confidence=confidence, method=method)
    return Estimate(value=middle, interval=interval, n=n, method=method)


def _unsupported(time: Floats, high: Floats, q: float, supported: float) -> NotEstimable:
    reached = high >= q
    place = int(np.argmax(reached)) if reached.any() else -1
    above = float(time[place]) if time.size else None
    reason = f"the {q:g} quantile lies beyond what the data reach"
    return NotEstimable(reason=reason, above=above, supported=round(supported, 4))


def _closed(survival: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Fill the band where it is not defined: exact at survival 1, carried over at survival 0."""
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    low[survival >= 1] = high[survival >= 1] = 1.0
    low[survival <= 0] = 0.0
    ends = np.flatnonzero(survival <= 0)
    if ends.size:
        high[ends] = high[ends[0] - 1] if ends[0] > 0 else 1.0
    return low, high
