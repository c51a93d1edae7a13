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
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.special import ndtri, stdtrit

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, Ints, codes, sample
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, Interval, check_confidence
from harness_lab.stats.quantiles import Side, quantile, smaller_tail
from harness_lab.stats.survival import invert_band

CENSORED = 0
"""The cause of a run that was stopped before it ended by itself."""

MAX_DENSE_CELLS: Final = 1_000_000
"""Up to so many (cluster, class) cells a dense product is faster than a sparse one."""


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
    time, position = np.unique(x, return_inverse=True)
    mine = np.bincount(position[kind == of], minlength=time.size).astype(np.float64)
    ended = np.bincount(position[kind != CENSORED], minlength=time.size).astype(np.float64)
    at_risk = x.size - np.concatenate([[0.0], np.cumsum(np.bincount(position, minlength=time.size))[:-1]])
    keep = ended > 0
    time, mine, ended, at_risk = time[keep], mine[keep], ended[keep], at_risk[keep]
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
        self._x, self._kind = _checked(values, cause)
        if side != "two" and check_confidence(confidence) <= 0.5:
            raise InputError("confidence", expected="more than 0.5 for a one-sided interval", got=confidence)
        self._of, self._confidence, self._side = of, confidence, side
        self._group = None if clusters is None else codes(clusters, n=self._x.size)
        self._draws = (resamples, seed)
        self._reached = np.where(self._kind == of, self._x, np.inf)
        stopped = self._x[self._kind == CENSORED]
        self._first_stop = float(stopped.min()) if stopped.size else np.inf
        self._before_stops = int((self._reached <= self._first_stop).sum())

    def at(self, q: float) -> Estimate:
        """Estimate one quantile; see :func:`incidence_quantile`."""
        if np.isinf(self._first_stop) or not 0 < q < 1 or self._before_stops >= math.ceil(self._x.size * q - 1e-9):
            exact = quantile(self._reached, q, confidence=self._confidence, side=self._side, clusters=self._group)
            if np.isinf(self._first_stop) or (exact.estimable and _last(exact, self._side) <= self._first_stop):
                return exact
        if self._group is None:
            return _one_sided(self._curve.quantile(q), self._side, self._confidence)
        return _one_sided(self._clustered(q, self._group), self._side, self._confidence)

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
    def _resamples(self) -> _Resamples:
        group = np.arange(self._x.size) if self._group is None else self._group
        return _resampled(self._x, self._kind, group, of=self._of, draws=self._draws)

    def _clustered(self, q: float, group: Ints) -> Estimate:
        curve, sizes = self._curve, np.bincount(group).astype(np.float64)
        beyond = curve.incidence >= q * (1 - 1e-12)
        reached = bool(beyond.any())
        place = int(np.argmax(beyond)) if reached else curve.time.size - 1
        at = curve.time[place : place + 1]
        effect = self._resamples.design_effect(curve, at) if at.size and sizes.size > 1 else 1.0
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
    group = codes(clusters, n=x.size)
    sizes = np.bincount(group).astype(np.float64)
    at = curve.time[np.unique(_quarters(curve))] if at is None else at
    effect = 1.0
    if at.size and curve.time.size and sizes.size > 1:
        effect = _resampled(x, kind, group, of=of, draws=(resamples, seed)).design_effect(curve, at)
    return curve.widened(design_effect=effect, df=max(effective_clusters(sizes) - 1, 1.0)), effect


def _quarters(curve: IncidenceCurve) -> Ints:
    height = float(curve.incidence[-1]) if curve.time.size else 0.0
    return np.searchsorted(curve.incidence, height * np.array([0.25, 0.5, 0.75, 1.0]) * (1 - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Resamples:
    """The incidence in resamples of whole clusters: where it was taken, and its variance over the resamples."""

    edges: Floats
    variance: Floats

    def design_effect(self, curve: IncidenceCurve, at: Floats) -> float:
        """Return the largest ratio of this variance to that of the curve, at the classes that hold `at`; at least 1."""
        places = np.unique(np.minimum(np.searchsorted(self.edges, at), self.edges.size - 1))
        on_curve = np.searchsorted(curve.time, self.edges[places], side="right") - 1
        plain = np.where(on_curve >= 0, curve.se[on_curve], 0.0) ** 2
        spread = self.variance[places]
        return max(1.0, float(np.max(spread[plain > 0] / plain[plain > 0], initial=1.0)))


def _resampled(x: Floats, kind: Ints, group: Ints, *, of: int, draws: tuple[int, int]) -> _Resamples:
    """Resample whole clusters; `draws` is their number and the seed.

    Values are first put into at most 400 classes: for a standard error that is exact enough, and the work no longer
    grows with the number of distinct values.
    """
    edges = np.unique(np.quantile(x, np.linspace(0, 1, 401), method="inverted_cdf"))
    k = int(group.max()) + 1
    weight = np.random.default_rng(draws[1]).multinomial(k, np.full(k, 1 / k), size=draws[0]).astype(np.float64)
    place = np.searchsorted(edges, x)
    whole, ended, mine = (
        _counts(group[which], place[which], weight, edges.size)
        for which in (np.ones(x.size, dtype=np.bool_), kind != CENSORED, kind == of)
    )
    at_risk = np.maximum(whole.sum(axis=1, keepdims=True) - np.cumsum(whole, axis=1) + whole, 1e-300)
    going_on = np.cumprod(1 - ended / at_risk, axis=1)
    before = np.concatenate([np.ones((draws[0], 1)), going_on[:, :-1]], axis=1)
    incidence = np.cumsum(before * mine / at_risk, axis=1)
    return _Resamples(edges=edges, variance=incidence.var(axis=0, ddof=1))


def _counts(group: Ints, place: npt.NDArray[np.intp], weight: Floats, classes: int) -> Floats:
    """Return how many runs of each class each resample has, shape (resamples, classes); exact whole numbers."""
    k = weight.shape[1]
    if k * classes <= MAX_DENSE_CELLS:
        table = np.bincount(group * classes + place, minlength=k * classes).reshape(k, classes)
        return np.asarray(weight @ table.astype(np.float64))
    cells = coo_array((np.ones(group.size), (group, place)), shape=(k, classes))
    return np.asarray((cells.T.tocsr() @ weight.T).T, dtype=np.float64)


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
    step = np.exp(critical * se / (safe * -np.log(safe)))
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
