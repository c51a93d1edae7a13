"""What every ceiling would have cut, avoided and destroyed: one pass over the sorted runs.

References
----------
.. [1] Cochran, W. G. (1977). Sampling Techniques, 3rd ed., section 6.4 (variance of a ratio). Wiley.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv, ndtri, stdtrit

from harness_lab.analyze.grouping import gapless
from harness_lab.errors import InputError
from harness_lab.stats.arrays import dot
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.incidence import clustered_band, cumulative_incidence
from harness_lab.stats.resampled import at_shares
from harness_lab.stats.shares import wilson
from harness_lab.stats.skewed import skewed_ends

if TYPE_CHECKING:
    from harness_lab.analyze.frames import Floats, Ints
    from harness_lab.analyze.sample import Sample

MAX_CANDIDATES: Final = 200
MIN_CUT: Final = 10
"""With fewer runs cut, no interval of a share of the money keeps its promise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Beyond:
    """For each candidate, the runs beyond it: per-unit sums of a count or an amount, and what variances need.

    Parameters
    ----------
    total : ndarray of float64, shape (g,)
        Sum over the runs beyond each candidate.
    moments : tuple of ndarray of float64, shape (g,)
        Sums over units (runs, or clusters) of y y, y w, y y y, y y w and y w w, with y the unit's part beyond the
        candidate and w the unit's whole.
    """

    total: Floats
    moments: tuple[Floats, ...]


def curve_rows(sample: Sample, column: str, candidates: npt.ArrayLike | None, *, confidence: float) -> pd.DataFrame:
    """Return the frame that :func:`harness_lab.analyze.ceilings.ceiling_curve` describes, for one group."""
    sample = sample.in_order()  # what follows sorts again where it has to, which then costs nothing
    at = _candidates(sample, candidates)
    first = np.searchsorted(sample.amounts, at, side="right")
    frame = pd.DataFrame({"ceiling": at, "n": sample.n})
    frame["clusters"] = pd.array([sample.clusters] * at.size, dtype="Int64")
    unknown = np.isnan(sample.spend)
    frame["unknown_spend"] = int(unknown.sum())
    frame["runs_cut"] = sample.n - first
    frame["delivered_cut"] = _count_beyond(sample.delivered, first)
    frame["delivered_unknown_cut"] = _count_beyond(~(sample.delivered | sample.undelivered), first)
    group, usable = _groups(sample)
    _add_share(frame, sample, at, group, usable=usable, confidence=confidence)
    _add_money(frame, sample, at, column, group, usable=usable, confidence=confidence)
    _add_completion(frame, sample, at, group, usable=usable, confidence=confidence)
    return frame


def _candidates(sample: Sample, candidates: npt.ArrayLike | None) -> Floats:
    if candidates is None:
        distinct = sample.amounts[np.diff(sample.amounts, prepend=-1.0) > 0]
        if distinct.size <= MAX_CANDIDATES:
            return distinct
        return np.unique(at_shares(sample.amounts, np.linspace(0, 1, MAX_CANDIDATES)))
    at = np.atleast_1d(np.asarray(candidates, dtype=np.float64))
    if at.ndim != 1 or not np.isfinite(at).all() or (at.size and at.min() < 0):
        raise InputError("candidates", expected="finite amounts >= 0 in the channel's unit", got=candidates)
    return np.sort(at)


def _count_beyond(which: npt.NDArray[np.bool_], first: npt.NDArray[np.intp]) -> Ints:
    running = np.concatenate([[0], np.cumsum(which)]).astype(np.int64)
    return np.asarray(running[-1] - running[first])


def _groups(sample: Sample) -> tuple[Ints | None, bool]:
    """Return the cluster of each run as a code (None: runs are the units), and whether intervals can be given."""
    if sample.labels is None:
        return None, sample.n >= 2
    group = gapless(sample.labels)
    sizes = np.bincount(group).astype(np.float64)
    return group, too_few_clusters(sizes.size, effective_clusters(sizes)) is None


def _df(n: int, group: Ints | None) -> float:
    return n - 1.0 if group is None else effective_clusters(np.bincount(group).astype(np.float64)) - 1


def _add_share(
    frame: pd.DataFrame, sample: Sample, at: Floats, group: Ints | None, *, usable: bool, confidence: float
) -> None:
    n = max(sample.n, 1)
    value = frame["runs_cut"].to_numpy(dtype=np.float64) / n
    if group is None:
        low, high = wilson(frame["runs_cut"].to_numpy(), n, confidence=confidence)
    else:
        ones = np.ones(sample.n)
        beyond = _beyond(sample.amounts, ones, np.zeros(sample.n), ones, at, group)
        low, high = _worth_interval(value, _spread(beyond, ones, group).variance, sample.n, _df(n, group), confidence)
    _put(frame, "cut_share", value, low, high, usable=usable)


def _add_money(
    frame: pd.DataFrame, sample: Sample, at: Floats, column: str, group: Ints | None, *, usable: bool, confidence: float
) -> None:
    """Spend avoided and sunk. A run beyond c that spent s on x avoids s (x - c) / x, and sinks s c / x."""
    known = ~np.isnan(sample.spend)
    x, spend = sample.amounts[known], sample.spend[known]
    units = None if group is None else gapless(group[known])
    rate = np.ones_like(x) if column == "cost_nusd" else spend / np.where(x > 0, x, 1)
    total = float(spend.sum())
    for name, constant, slope in (("avoided", spend, -rate), ("sunk", np.zeros_like(x), rate)):
        beyond = _beyond(x, constant, slope, spend, at, units)
        frame[f"{name}_nusd"] = beyond.total
        value = beyond.total / total if total else np.full(at.size, np.nan)
        spread = _spread(beyond, spend, units)
        se, df = np.sqrt(spread.variance), max(_df(x.size, units), 1.0)
        below, above = skewed_ends(se, spread.skew, units=df + 1, df=df, confidence=confidence)
        few = frame["runs_cut"].to_numpy() < MIN_CUT
        low, high = (np.where(few, np.nan, end) for end in (np.maximum(value - below, 0), np.minimum(value + above, 1)))
        _put(frame, f"{name}_share", value, low, high, usable=usable)


def _add_completion(
    frame: pd.DataFrame, sample: Sample, at: Floats, group: Ints | None, *, usable: bool, confidence: float
) -> None:
    if not sample.n:
        value = low = high = np.full(at.size, np.nan)
    elif sample.stopped.any():
        value, low, high = _incidence(sample, at, usable=usable, confidence=confidence)
    else:
        ones = np.ones(sample.n)
        within = _within(sample.amounts, sample.completed.astype(np.float64), at, group)
        value = within.total / sample.n
        if group is None:
            low, high = wilson(within.total, sample.n, confidence=confidence)
        else:
            variance = _spread(within, ones, group).variance
            low, high = _worth_interval(value, variance, sample.n, _df(sample.n, group), confidence)
    _put(frame, "completed_share", value, low, high, usable=usable)


def _incidence(sample: Sample, at: Floats, *, usable: bool, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Cumulative incidence of completion and its band; NaN beyond what was tried."""
    line = cumulative_incidence(sample.amounts, sample.kinds, confidence=confidence)
    if sample.labels is not None and usable:
        line, _ = clustered_band(line, sample.amounts, sample.kinds, sample.labels)
    place = np.searchsorted(line.time, at, side="right")
    untried = at > float(sample.amounts.max())
    value, low, high = (
        np.where(untried, np.nan, np.concatenate([[0.0], part])[place])
        for part in (line.incidence, line.low, line.high)
    )
    return value, low, high


def _put(frame: pd.DataFrame, name: str, value: Floats, low: Floats, high: Floats, *, usable: bool) -> None:
    frame[name] = value
    frame[f"{name}_low"] = low if usable else np.nan
    frame[f"{name}_high"] = high if usable else np.nan


def _beyond(x: Floats, constant: Floats, slope: Floats, whole: Floats, at: Floats, group: Ints | None) -> _Beyond:
    """Sum ``constant + slope * c`` over the runs with ``x > c``, for every candidate c at once."""
    order = np.argsort(x, kind="stable")
    first = np.searchsorted(x[order], at, side="right")
    if group is not None:
        return _beyond_clusters(constant[order], slope[order], whole, first, at, group, order)
    a, b, w = constant[order], slope[order], whole[order]

    def power(first_factor: Floats, *polynomial: Floats) -> Floats:
        """Sum ``first_factor * (p0 + p1 c + p2 c^2 ...)`` over the runs beyond each candidate."""
        terms = [_tail(first_factor * part, first) * at**k for k, part in enumerate(polynomial)]
        return np.asarray(np.sum(terms, axis=0))

    one, square, cube = (a, b), (a * a, 2 * a * b, b * b), (a**3, 3 * a * a * b, 3 * a * b * b, b**3)
    ones = np.ones_like(a)
    moments = (power(ones, *square), power(w, *one), power(ones, *cube), power(w, *square), power(w * w, *one))
    return _Beyond(total=power(ones, *one), moments=moments)


def _within(x: Floats, hits: Floats, at: Floats, group: Ints | None) -> _Beyond:
    """Sum `hits` over the runs with ``x <= c``: those beyond on the mirrored axis."""
    mirrored = np.nextafter(-at[::-1], -np.inf)
    found = _beyond(-x, hits, np.zeros_like(x), np.ones_like(x), mirrored, group)
    return _Beyond(total=found.total[::-1], moments=tuple(part[::-1] for part in found.moments))


def _beyond_clusters(
    constant: Floats, slope: Floats, whole: Floats, first: npt.NDArray[np.intp], at: Floats, group: Ints,
    order: npt.NDArray[np.intp],
) -> _Beyond:  # fmt: skip
    k = int(group.max(initial=-1)) + 1
    cell = np.cumsum(np.bincount(first, minlength=order.size + 1)[:-1])  # candidates that the run lies beyond
    flat = cell * k + group[order]

    def beyond(part: Floats) -> Floats:
        """Sum per candidate and cluster, shape (candidates, clusters)."""
        table = np.bincount(flat, weights=part, minlength=k * (at.size + 1)).reshape(at.size + 1, k)
        return np.asarray(np.cumsum(table[::-1], axis=0)[::-1][1:])

    sums = beyond(constant)
    if slope.any():
        sums += beyond(slope) * at[:, None]
    wholes = np.bincount(group, weights=whole, minlength=k)
    squares = sums**2
    linear, twice = np.einsum("ij,uj->ui", sums, np.stack([wholes, wholes**2]))
    moments = (squares.sum(axis=1), linear, np.einsum("ij,ij->i", squares, sums),
               np.einsum("ij,j->i", squares, wholes), twice)  # fmt: skip
    return _Beyond(total=sums.sum(axis=1), moments=moments)


def _tail(values: Floats, first: npt.NDArray[np.intp]) -> Floats:
    running = np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
    return np.asarray(running[first])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Spread:
    """Of ``total / sum(whole)`` at each candidate: variance, linearised over the units [1]_, and their skewness."""

    variance: Floats
    skew: Floats


def _spread(beyond: _Beyond, whole: Floats, group: Ints | None) -> _Spread:
    w: Floats = whole if group is None else np.bincount(group, weights=whole).astype(np.float64)
    units, total = w.size, float(w.sum())
    if units < 2 or total == 0:
        nothing = np.full(beyond.total.size, np.nan)
        return _Spread(variance=nothing, skew=nothing)
    r = beyond.total / total
    yy, yw, yyy, yyw, yww = beyond.moments
    second = np.maximum(yy - 2 * r * yw + r**2 * dot(w, w), 0.0)
    third = yyy - 3 * r * yyw + 3 * r**2 * yww - r**3 * dot(w**2, w)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(second > 0, third / units / (second / units) ** 1.5, 0.0)
    return _Spread(variance=second / total**2 * units / (units - 1), skew=skew)


def _worth_interval(value: Floats, variance: Floats, n: int, df: float, confidence: float) -> tuple[Floats, Floats]:
    """Interval of shares from clusters, as in :func:`harness_lab.stats.shares.share`, for many at once."""
    error = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(variance > 0, value * (1 - value) / variance, df + 1)
        worth = np.minimum(worth, n) * (ndtri(1 - error) / stdtrit(max(df, 1.0), 1 - error)) ** 2
        low = np.where(value > 0, betaincinv(worth * value, worth * (1 - value) + 1, error), 0.0)
        high = np.where(value < 1, betaincinv(worth * value + 1, worth * (1 - value), 1 - error), 1.0)
    return low, high
