"""Two samples, earlier and later: whether the quantity has moved, and by how much, with clusters respected.

References
----------
.. [1] Brunner, E., Munzel, U. (2000). The nonparametric Behrens-Fisher problem. Biometrical Journal 42(1), 17-25.
   https://doi.org/10.1002/(SICI)1521-4036(200001)42:1<17::AID-BIMJ17>3.0.CO;2-U
.. [2] Obuchowski, N. A. (1997). Nonparametric analysis of clustered ROC curve data. Biometrics 53(2), 567-578.
   https://doi.org/10.2307/2533958
.. [3] Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54(1),
   221-228. https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import wasserstein_distance

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Floats, Ints, codes, sample
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence
from harness_lab.stats.skewed import skewed_ends, skewness

TAIL = 0.95
"""The tail begins here."""
MIN_BEYOND = 10
"""With fewer values in the tail nothing is said about it."""
ROUNDING = 1e-12
"""Chances and errors of them below this are rounding: clusters that are in both samples cancel but for it."""
MIN_EACH = 5
"""With fewer values (or clusters) on a side nothing is said about a shift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How a quantity moved between two samples.

    Parameters
    ----------
    difference : Estimate
        Later mean less earlier mean.
    chance : Estimate
        Chance that a later value is larger than an earlier one, ties counted half; 0.5 where nothing moved.
    distance : float or None
        Wasserstein distance, in the quantity's unit: how far values moved on average, whichever way. It has no
        interval, is at least the difference of the means, and is above 0 by chance alone.
    median_old, median_new : float or None
        Sample medians.
    p_value : float or None
        Two-sided, of ``chance = 0.5`` (Brunner and Munzel, over clusters); None where there is no interval.
    n_old, n_new : int
        Values.
    tail : Estimate
        Share of the later values above `tail_from` less that of the earlier ones: ceilings rest on the tail, which may
        move while the middle stays.
    tail_from : float or None
        The 0.95 quantile of both samples together.
    p_tail : float or None
        Two-sided, of an unchanged tail.
    """

    difference: Estimate
    chance: Estimate
    distance: float | None
    median_old: float | None
    median_new: float | None
    p_value: float | None
    n_old: int
    n_new: int
    tail: Estimate
    tail_from: float | None
    p_tail: float | None

    @property
    def p_either(self) -> float | None:
        """Of "neither the middle nor the tail moved": the smaller p-value, times two."""
        found = [p for p in (self.p_value, self.p_tail) if p is not None]
        return min(1.0, len(found) * min(found)) if found else None

    def record(self) -> dict[str, object]:
        """Return a flat row."""
        rest = {f"chance_{name}": getattr(self.chance, name) for name in ("value", "low", "high")}
        return {
            "n_old": self.n_old, "n_new": self.n_new, "median_old": self.median_old, "median_new": self.median_new,
            **self.difference.record(), "distance": self.distance, **rest, "p_value": self.p_value,
            "tail_from": self.tail_from, "tail_change": self.tail.value, "p_tail": self.p_tail,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """Influence of each cluster (or value) on an estimate: its standard error and degrees of freedom."""

    se: float
    df: float
    sums: Floats
    few: NotEstimable | None
    clusters: int | None


def shift(
    old: npt.ArrayLike, new: npt.ArrayLike, *, confidence: float = 0.95,
    clusters_old: npt.ArrayLike | None = None, clusters_new: npt.ArrayLike | None = None, unit: str = "",
) -> Shift:  # fmt: skip
    """Estimate how far a quantity moved from `old` to `new`.

    Parameters
    ----------
    old, new : array_like of float, shapes (n,) and (m,)
        The quantity; unknown values must have been set apart.
    confidence : float, default 0.95
        Confidence of each interval.
    clusters_old, clusters_new : array_like, optional
        The cluster of each value, both or neither. A label that occurs in both is one cluster that was seen twice.
    unit : str
        Unit, for display.

    Returns
    -------
    Shift

    Notes
    -----
    The chance is the Mann-Whitney statistic with Brunner's and Munzel's variance [1]_, summed over clusters [2]_; its
    interval is taken on the logit scale. The difference of means is skew-corrected [3]_.

    Examples
    --------
    >>> found = shift(range(100), range(30, 130))
    >>> found.difference.value, round(found.chance.value, 3), found.p_value < 1e-6
    (30.0, 0.755, True)
    """
    a, b = sample(old, what="old"), sample(new, what="new")
    check_confidence(confidence)
    if (clusters_old is None) != (clusters_new is None):
        raise InputError("clusters", expected="labels for both samples or for neither", got="one")
    group = None if clusters_old is None else _joined(clusters_old, clusters_new, a.size, b.size)
    if min(a.size, b.size) < 2:
        return _nothing(a, b, unit)
    difference = _difference(a, b, group, confidence=confidence, unit=unit)
    chance, p_value = _chance(a, b, group, confidence=confidence)
    tail, start, p_tail = _tail(a, b, group, confidence)
    return Shift(
        tail=tail, tail_from=start, p_tail=p_tail, difference=difference, chance=chance, p_value=p_value,
        distance=float(wasserstein_distance(a, b)),
        median_old=float(np.median(a)), median_new=float(np.median(b)), n_old=a.size, n_new=b.size,
    )  # fmt: skip


def placements(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return, for each value of `a`, the share of `b` above it, and for each of `b` the share of `a` below it.

    Ties count half.
    """
    x, y = np.sort(a), np.sort(b)
    below = (np.searchsorted(x, b, side="left") + np.searchsorted(x, b, side="right")) / (2 * a.size)
    above = 1 - (np.searchsorted(y, a, side="left") + np.searchsorted(y, a, side="right")) / (2 * b.size)
    return np.asarray(above), np.asarray(below)


def _difference(a: Floats, b: Floats, group: Ints | None, *, confidence: float, unit: str) -> Estimate:
    value = float(b.mean() - a.mean())
    influence = np.concatenate([-(a - a.mean()) / a.size, (b - b.mean()) / b.size])
    units = _units(influence, a.size, group)
    interval: Interval | NotEstimable | None = units.few
    if interval is None:
        below, above = skewed_ends(
            units.se, skewness(units.sums), units=units.sums.size, df=units.df, confidence=confidence
        )
        name = "skew-corrected t, two samples" + ("" if group is None else ", whole clusters")
        interval = Interval(
            low=value - float(below), high=value + float(above), confidence=confidence, method=name
        )  # fmt: skip
    n = a.size + b.size
    return Estimate(
        value=value, interval=interval, n=n, method="difference of means", clusters=units.clusters, unit=unit
    )  # fmt: skip


def _chance(a: Floats, b: Floats, group: Ints | None, *, confidence: float) -> tuple[Estimate, float | None]:
    above, below = placements(a, b)
    value = float(below.mean())
    units = _units(np.concatenate([(above - value) / a.size, (below - value) / b.size]), a.size, group)
    name = "Brunner-Munzel" + ("" if group is None else ", whole clusters")
    interval: Interval | NotEstimable | None = units.few
    p_value = None
    if interval is None and units.se > ROUNDING:
        odds, spread = math.log(value / (1 - value)), units.se / (value * (1 - value))
        reach = float(stdtrit(units.df, 0.5 + confidence / 2)) * spread
        interval = Interval(
            low=_expit(odds - reach), high=_expit(odds + reach), confidence=confidence, method=f"{name}, logit"
        )
        p_value = float(2 * stdtr(units.df, -abs(value - 0.5) / units.se))
    elif interval is None:
        interval, p_value = _apart(value, a, b, group, confidence)
    return (
        Estimate(value=value, interval=interval, n=a.size + b.size, method=name, clusters=units.clusters),
        p_value,
    )


def _tail(a: Floats, b: Floats, group: Ints | None, confidence: float) -> tuple[Estimate, float, float | None]:
    start = float(np.quantile(np.concatenate([a, b]), TAIL, method="inverted_cdf"))
    beyond = (a > start).astype(np.float64), (b > start).astype(np.float64)
    change = _difference(*beyond, group, confidence=confidence, unit="")
    if beyond[0].sum() + beyond[1].sum() < MIN_BEYOND:
        few = NotEstimable(
            reason=f"only {int(beyond[0].sum() + beyond[1].sum())} values lie in the tail",
            needs_n=math.ceil(MIN_BEYOND / (1 - TAIL)),
        )
        return replace(change, interval=few), start, None
    return change, start, _chance(*beyond, group, confidence=confidence)[1]


def _apart(value: float, a: Floats, b: Floats, group: Ints | None, confidence: float) -> tuple[Interval, float]:
    """Bound the chance for samples that do not overlap, by what as many pairs as the smaller side has would say."""
    sides = (a.size, b.size) if group is None else (np.unique(part).size for part in (group[: a.size], group[a.size :]))
    pairs = min(sides)
    reach = (1 - confidence) ** (1 / pairs)
    if abs(value - 0.5) <= ROUNDING:
        return Interval(low=0.5, high=0.5, confidence=confidence, method="no difference"), 1.0
    low, high = (reach, 1.0) if value > 0.5 else (0.0, 1 - reach)
    return Interval(low=low, high=high, confidence=confidence, method="no overlap"), min(1.0, 2 * 0.5**pairs)


def _units(influence: Floats, first: int, group: Ints | None) -> _Units:
    """Sum influences over clusters. Welch's degrees of freedom where no cluster is in both samples."""
    sides = (influence[:first], influence[first:])
    if group is None:
        few = _too_few(*(side.size for side in sides))
        v, counts = [float(s @ s) * s.size / (s.size - 1) for s in sides], [float(s.size) for s in sides]
        return _Units(se=math.sqrt(sum(v)), df=_welch(v, counts), sums=influence, few=few, clusters=None)
    parts = [np.unique(group[:first], return_counts=True), np.unique(group[first:], return_counts=True)]
    sizes = [effective_clusters(count.astype(np.float64)) for _, count in parts]
    sums = np.asarray(np.bincount(group, weights=influence), dtype=np.float64)
    k = sums.size
    few = next((f for (found, _), e in zip(parts, sizes, strict=True) if (f := too_few_clusters(found.size, e))), None)
    if np.intersect1d(parts[0][0], parts[1][0]).size:
        se = math.sqrt(float(sums @ sums) * k / max(k - 1, 1))
        return _Units(se=se, df=max(min(sizes) - 1, 1.0), sums=sums, few=few, clusters=k)
    each = [sums[found] for found, _ in parts]
    v = [float(s @ s) * s.size / max(s.size - 1, 1) for s in each]
    return _Units(se=math.sqrt(sum(v)), df=_welch(v, sizes), sums=sums, few=few, clusters=k)


def _welch(variances: list[float], counts: list[float]) -> float:
    below = sum(v**2 / max(c - 1, 1e-9) for v, c in zip(variances, counts, strict=True))
    return max(sum(variances) ** 2 / below, 1.0) if below > 0 else max(min(counts) - 1, 1.0)


def _too_few(n: int, m: int) -> NotEstimable | None:
    if min(n, m) >= MIN_EACH:
        return None
    return NotEstimable(reason=f"{n} value(s) before, {m} after; each side needs {MIN_EACH}", needs_n=MIN_EACH)


def _joined(old: npt.ArrayLike, new: npt.ArrayLike | None, n: int, m: int) -> Ints:
    a, b = np.asarray(old), np.asarray(new)
    if a.shape != (n,) or b.shape != (m,):
        raise InputError("clusters", expected=f"{n} and {m} labels", got=f"{a.shape} and {b.shape}")
    return codes(np.concatenate([a, b]), n=n + m)


def _nothing(a: Floats, b: Floats, unit: str) -> Shift:
    few = NotEstimable(reason=f"{a.size} value(s) before, {b.size} after", needs_n=MIN_EACH)
    none = Estimate(value=None, interval=few, n=a.size + b.size, method="difference of means", unit=unit)
    medians = [float(np.median(part)) if part.size else None for part in (a, b)]
    return Shift(
        difference=none, chance=none, distance=None, median_old=medians[0], median_new=medians[1], p_value=None,
        n_old=a.size, n_new=b.size, tail=none, tail_from=None, p_tail=None,
    )  # fmt: skip


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def difference_of_shares(
    old: npt.ArrayLike, new: npt.ArrayLike, *, confidence: float = 0.95,
    clusters_old: npt.ArrayLike | None = None, clusters_new: npt.ArrayLike | None = None,
) -> Estimate:  # fmt: skip
    """Estimate a later share less an earlier one; Agresti and Caffo's added runs keep it honest near 0 and 1.

    Parameters
    ----------
    old, new : array_like of bool
        Whether it holds.
    confidence, clusters_old, clusters_new
        As for :func:`shift`.

    Notes
    -----
    Agresti, A., Caffo, B. (2000). Simple and effective confidence intervals for proportions and differences of
    proportions. The American Statistician 54(4), 280-288. https://doi.org/10.1080/00031305.2000.10474560
    """
    found = shift(
        np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64), confidence=confidence,
        clusters_old=clusters_old, clusters_new=clusters_new,
    ).difference  # fmt: skip
    if clusters_old is not None or not isinstance(found.interval, Interval) or found.value is None:
        return found
    counts = [(float(np.sum(part)) + 1, np.asarray(part).size + 2) for part in (old, new)]
    p, q = (hits / n for hits, n in counts)
    se = math.sqrt(p * (1 - p) / counts[0][1] + q * (1 - q) / counts[1][1])
    reach = float(ndtri(0.5 + confidence / 2)) * se
    low, high = max(q - p - reach, -1.0), min(q - p + reach, 1.0)
    return replace(found, interval=Interval(low=low, high=high, confidence=confidence, method="Agresti-Caffo"))
