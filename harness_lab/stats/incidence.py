"""Completion where failures and aborts compete and some runs were stopped: Aalen-Johansen cumulative incidence.

References
----------
.. [1] Aalen, O. O., Johansen, S. (1978). An empirical transition matrix for non-homogeneous Markov chains based on
   censored observations. Scandinavian Journal of Statistics 5(3), 141-150.
.. [2] Marubini, E., Valsecchi, M. G. (1995). Analysing Survival Data from Clinical Trials and Observational Studies,
   section 10.2 (variance by the delta method). Wiley.
.. [3] Brookmeyer, R., Crowley, J. (1982). A confidence interval for the median survival time. Biometrics 38(1), 29-41.
   https://doi.org/10.2307/2530286
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, Ints, codes, sample
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, Interval, check_confidence
from harness_lab.stats.quantiles import Quantiles, Side, quantile_n, smaller_tail
from harness_lab.stats.resampled import Resamples, resampled_incidence
from harness_lab.stats.survival import invert_band

CENSORED = 0
"""The cause of a run that was stopped before it ended by itself."""
_MOST = 700.0
"""A band that is wider than e to this power spans everything."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IncidenceCurve:
    """The share of all runs that have ended by one cause, as a step function.

    Parameters
    ----------
    time : ndarray of float64, shape (k,)
        Distinct values at which runs ended by any cause, ascending.
    incidence, se, low, high : ndarray of float64, shape (k,)
        Share of all runs ended by the cause at or before `time`, its standard error, its pointwise band.
    at_risk : ndarray of int64, shape (k,)
        Runs still observed just before `time`.
    n, events, competing, censored : int
        Runs; ended by the cause; ended by another; stopped.
    confidence : float
        Confidence of the band at each point (not of the whole curve).
    """

    time: Floats
    incidence: Floats
    se: Floats
    low: Floats
    high: Floats
    at_risk: Ints
    n: int
    events: int
    competing: int
    censored: int
    confidence: float

    @property
    def largest_quantile(self) -> float:
        """The largest quantile whose interval has both ends; 0 if there is none."""
        return float(np.max(self.low, initial=0.0))

    def widened(self, *, design_effect: float, df: float) -> IncidenceCurve:
        """Return the curve with a band for clustered runs: variance times `design_effect`, t quantiles with `df`."""
        critical = float(stdtrit(df, 0.5 + self.confidence / 2)) * float(np.sqrt(max(design_effect, 1.0)))
        low, high = _band(self.incidence, self.se, critical)
        return replace(self, low=low, high=high)

    def quantile(self, q: float, *, method: str = "cumulative incidence, log-log band") -> Estimate:
        """Estimate the value by which a share `q` of all runs has ended by the cause [3]_."""
        return invert_band(
            self.time, self.incidence, self.low, self.high, q=q, n=self.n, confidence=self.confidence, method=method
        )


def cumulative_incidence(
    values: npt.ArrayLike, cause: npt.ArrayLike, *, of: int = 1, confidence: float = 0.95
) -> IncidenceCurve:
    """Estimate the share of all runs that end by one cause at or below each value.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        What each run had used when it ended or was stopped.
    cause : array_like of int, shape (n,)
        0: stopped (right-censored). 1, 2, ...: how the run ended.
    of : int, default 1
        The cause of interest.
    confidence : float, default 0.95
        Confidence of the pointwise band.

    Returns
    -------
    IncidenceCurve
        With no competing cause its incidence is 1 - Kaplan-Meier, with the same band.

    Notes
    -----
    Aalen-Johansen [1]_ with the delta-method variance [2]_; the band is symmetric in log(-log(1 - incidence)). Of equal
    values those that ended count before those that were stopped.

    Examples
    --------
    >>> cumulative_incidence([1, 2, 3, 4], [1, 2, 1, 0]).incidence.tolist()
    [0.25, 0.25, 0.5]
    """
    x, kind = _checked(values, cause)
    check_confidence(confidence)
    x, kind = _in_order(x, kind)
    last = np.flatnonzero(np.append(x[1:] > x[:-1], True)) if x.size else np.zeros(0, dtype=np.intp)
    mine, ended = (np.diff(np.cumsum(which)[last], prepend=0) for which in (kind == of, kind != CENSORED))
    at_risk = x.size - np.concatenate([[0], last[:-1] + 1])[: last.size].astype(np.float64)
    keep = ended > 0
    time, mine, ended, at_risk = x[last][keep], mine[keep].astype(np.float64), ended[keep], at_risk[keep]
    going_on = np.cumprod(1 - ended / at_risk)
    before = np.concatenate([[1.0], going_on[:-1]])[: time.size]
    incidence = np.cumsum(before * mine / at_risk)
    se = _standard_error(incidence, before=before, mine=mine, ended=ended, at_risk=at_risk)
    low, high = _band(incidence, se, float(ndtri(0.5 + confidence / 2)))
    return IncidenceCurve(
        time=time, incidence=incidence, se=se, low=low, high=high, at_risk=at_risk.astype(np.int64), n=x.size,
        events=int((kind == of).sum()), competing=int(((kind != of) & (kind != CENSORED)).sum()),
        censored=int((kind == CENSORED).sum()), confidence=confidence,
    )  # fmt: skip


def incidence_quantile(
    values: npt.ArrayLike,
    cause: npt.ArrayLike,
    q: float,
    *,
    of: int = 1,
    confidence: float = 0.95,
    side: Side = "two",
    clusters: npt.ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> Estimate:
    """Estimate the value by which a share `q` of all runs has ended by one cause.

    Parameters
    ----------
    values, cause, of
        As for :func:`cumulative_incidence`.
    q : float
        The share, in (0, 1).
    confidence : float, default 0.95
        Confidence of the interval.
    side : {"two", "lower", "upper"}
        Which ends the interval has.
    clusters : array_like, shape (n,), optional
        The cluster of each run. Whole clusters are then resampled for the standard error.
    resamples, seed : int
        Resamples of whole clusters and the seed of their draws; used only with clusters and stops.

    Returns
    -------
    Estimate
        By order statistics, and so exact, where no run was stopped at or below the upper end; by the inverted
        band elsewhere. Neither value nor interval where the data do not reach; the reason names the largest quantile
        they support.
    """
    prepared = IncidenceQuantiles(
        values, cause, of=of, confidence=confidence, side=side, clusters=clusters, resamples=resamples, seed=seed
    )
    return prepared.at(q)


class IncidenceQuantiles:
    """Several quantiles of the same runs: curve and resamples are made once.

    Parameters
    ----------
    values, cause, of, confidence, side, clusters, resamples, seed
        As for :func:`incidence_quantile`.
    """

    def __init__(
        self, values: npt.ArrayLike, cause: npt.ArrayLike, *, of: int = 1, confidence: float = 0.95, side: Side = "two",
        clusters: npt.ArrayLike | None = None, resamples: int = 200, seed: int = 0,
    ) -> None:  # fmt: skip
        x, kind = _checked(values, cause)
        if side != "two" and check_confidence(confidence) <= 0.5:
            raise InputError("confidence", expected="more than 0.5 for a one-sided interval", got=confidence)
        self._of, self._confidence, self._side = of, confidence, side
        group = None if clusters is None else codes(clusters, n=x.size)
        self._x, self._kind, *rest = _in_order(x, kind, *(() if group is None else (group,)))
        self._group = rest[0] if rest else None
        self._draws = (resamples, seed)
        reached = np.where(self._kind == of, self._x, np.inf)
        self._reached = Quantiles(reached, confidence=confidence, side=side, clusters=self._group)
        stopped = np.flatnonzero(self._kind == CENSORED)
        self._first_stop = float(self._x[stopped[0]]) if stopped.size else np.inf
        self._before_stops = int((reached <= self._first_stop).sum())

    def at(self, q: float) -> Estimate:
        """Estimate one quantile; see :func:`incidence_quantile`."""
        if np.isinf(self._first_stop) or not 0 < q < 1 or self._before_stops >= math.ceil(self._x.size * q - 1e-9):
            exact = self._reached.at(q)
            if np.isinf(self._first_stop) or (exact.estimable and _last(exact, self._side) <= self._first_stop):
                return exact
        lower_tail = 0 < q < 0.5 and self._group is None
        if lower_tail and self._x.size < quantile_n(q, confidence=self._confidence, side=self._side):
            return self._reached.at(q)  # of so few values the tail has no end, and stops tell nothing more of it
        found = self._curve.quantile(q) if self._group is None else self._clustered(q)
        return _one_sided(found, self._side, self._confidence)

    def largest(self, most: float) -> float:
        """Return the largest `q` up to `most` that is estimable, by bisection, down to three digits; 0: none."""
        low, high = 0.0, most
        for _ in range(10):
            middle = (low + high) / 2
            if self.at(middle).estimable:
                low = middle
            else:
                high = middle
        return math.floor(low * 1000) / 1000

    @cached_property
    def _curve(self) -> IncidenceCurve:
        band = 1 - (1 - self._confidence) * (1 if self._side == "two" else 2)
        return cumulative_incidence(self._x, self._kind, of=self._of, confidence=band)

    @cached_property
    def _resamples(self) -> Resamples:
        group = np.arange(self._x.size) if self._group is None else self._group
        return _resampled(self._x, self._kind, group, of=self._of, draws=self._draws)

    @cached_property
    def _sizes(self) -> Floats:
        return np.bincount(self._group if self._group is not None else [0]).astype(np.float64)

    def _clustered(self, q: float) -> Estimate:
        curve, sizes = self._curve, self._sizes
        beyond = curve.incidence >= q * (1 - 1e-12)
        reached = bool(beyond.any())
        place = int(np.argmax(beyond)) if reached else curve.time.size - 1
        at = curve.time[place : place + 1]
        effect = self._resamples.design_effect(curve.time, curve.se, at) if at.size and sizes.size > 1 else 1.0
        wide = curve.widened(design_effect=effect, df=max(effective_clusters(sizes) - 1, 1.0))
        found = wide.quantile(q, method="cumulative incidence, whole clusters resampled")
        few = too_few_clusters(sizes.size, effective_clusters(sizes), tail=smaller_tail(q, self._side))
        if few is not None:
            found = replace(found, value=float(at[0]) if reached else None, interval=few)
        return replace(found, clusters=sizes.size, effective_n=self._x.size / effect)


def clustered_band(
    curve: IncidenceCurve, values: npt.ArrayLike, cause: npt.ArrayLike, clusters: npt.ArrayLike, *,
    at: Floats | None = None, of: int = 1, resamples: int = 200, seed: int = 0,
) -> tuple[IncidenceCurve, float]:  # fmt: skip
    """Widen the band of a curve for clustered runs.

    Parameters
    ----------
    curve : IncidenceCurve
        The curve of these `values` and `cause`.
    clusters : array_like, shape (n,)
        The cluster of each run.
    at : ndarray of float64, optional
        Values at which the design effect is measured by resampling whole clusters; the largest one is applied to
        the whole band. Default: where the curve has reached a quarter, half, three quarters and all of its height.
    of, resamples, seed
        As for :func:`incidence_quantile`.

    Returns
    -------
    (IncidenceCurve, float)
        The widened curve, and the design effect (at least 1).
    """
    x, kind = _checked(values, cause)
    x, kind, group = _in_order(x, kind, codes(clusters, n=x.size))
    sizes = np.bincount(group).astype(np.float64)
    at = curve.time[np.unique(_quarters(curve))] if at is None else at
    effect = 1.0
    if at.size and curve.time.size and sizes.size > 1:
        drawn = _resampled(x, kind, group, of=of, draws=(resamples, seed))
        effect = drawn.design_effect(curve.time, curve.se, at)
    return curve.widened(design_effect=effect, df=max(effective_clusters(sizes) - 1, 1.0)), effect


def _quarters(curve: IncidenceCurve) -> Ints:
    height = float(curve.incidence[-1]) if curve.time.size else 0.0
    return np.searchsorted(curve.incidence, height * np.array([0.25, 0.5, 0.75, 1.0]) * (1 - 1e-9))


def _resampled(x: Floats, kind: Ints, group: Ints, *, of: int, draws: tuple[int, int]) -> Resamples:
    return resampled_incidence(x, kind != CENSORED, kind == of, group, draws=draws)


def _standard_error(incidence: Floats, *, before: Floats, mine: Floats, ended: Floats, at_risk: Floats) -> Floats:
    """Delta-method standard error [2]_, its three sums taken as running sums."""
    left = at_risk - ended
    a = np.where(left > 0, ended / (at_risk * np.where(left > 0, left, 1)), 0.0)
    b = before**2 * (at_risk - mine) * mine / at_risk**3
    c = before * mine / at_risk**2
    f = incidence
    variance = f**2 * np.cumsum(a) - 2 * f * np.cumsum(a * f) + np.cumsum(a * f**2) + np.cumsum(b)
    variance -= 2 * (f * np.cumsum(c) - np.cumsum(c * f))
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _band(incidence: Floats, se: Floats, critical: float) -> tuple[Floats, Floats]:
    rest = 1 - incidence
    inside = (incidence > 0) & (rest > 1e-12)
    safe = np.where(inside, rest, 0.5)
    step = np.exp(np.minimum(critical * se / (safe * -np.log(safe)), _MOST))
    low = np.where(inside, 1 - safe ** (1 / step), 0.0)
    high = np.where(inside, 1 - safe**step, np.where(incidence > 0, 1.0, 0.0))
    full = np.flatnonzero(rest <= 1e-12)
    if full.size and full[0] > 0:
        low[full] = low[full[0] - 1]
    return low, high


def _one_sided(found: Estimate, side: Side, confidence: float) -> Estimate:
    if side == "two" or not isinstance(found.interval, Interval):
        return found
    low = -np.inf if side == "upper" else found.interval.low
    high = np.inf if side == "lower" else found.interval.high
    return replace(found, interval=replace(found.interval, low=low, high=high, confidence=confidence))


def _last(exact: Estimate, side: Side) -> float:
    end = exact.value if side == "lower" else exact.high
    return np.inf if end is None else end


def _checked(values: npt.ArrayLike, cause: npt.ArrayLike) -> tuple[Floats, Ints]:
    x = sample(values, what="values")
    kind = np.asarray(cause)
    if kind.shape != x.shape or kind.dtype.kind not in "iu" or (kind.size and kind.min() < 0):
        raise InputError("cause", expected=f"one whole number >= 0 for each of {x.size} values", got=kind.ravel()[:3])
    return x, kind.astype(np.int64)


def _in_order(x: Floats, *beside: Ints) -> tuple[Any, ...]:
    """Return values in ascending order, and what lies beside them in the same."""
    if (x[1:] >= x[:-1]).all():
        return x, *beside
    order = np.argsort(x, kind="stable")
    return x[order], *(part[order] for part in beside)
