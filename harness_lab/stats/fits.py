"""Choosing a parametric family for a sample, or saying why the sample itself is the better model.

References
----------
.. [1] Stute, W., Gonzales Manteiga, W., Presedo Quindimil, M. (1993). Bootstrap based goodness-of-fit-tests.
   Metrika 40, 243-256. https://doi.org/10.1007/BF02613687
.. [2] Smyth, P. (2000). Model selection for probabilistic clustering using cross-validated likelihood. Statistics and
   Computing 10, 63-72. https://doi.org/10.1023/A:1008940618127
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.stats
from scipy.stats import CensoredData, monte_carlo_test

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Bools, Floats, flags, sample
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.estimates import figure

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILIES = ("lognorm", "gamma", "weibull_min", "expon")
"""Families tried by default: positive, skewed to the right."""

MIN_N = 30
"""With fewer values no family is chosen."""

TOLERANCE = 0.05
"""A family that the test rejects is kept if no share it states is off by more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One family's showing.

    Parameters
    ----------
    distribution : Distribution
        Fitted to the whole sample.
    heldout : float
        Mean log-likelihood of a value that the fit had not seen, natural logarithm; ``-inf`` where the family called
        a held-out value impossible.
    distance : float or None
        Largest distance between its distribution function and the sample's (Kolmogorov-Smirnov); None when some
        values are censored.
    p_value : float or None
        Of that distance, by parametric bootstrap; None where it was not tested.
    """

    distribution: Distribution
    heldout: float
    distance: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The distribution to use, and why.

    Parameters
    ----------
    distribution : Distribution
        A family, or the sample itself (``"empirical"``).
    reason : str
        Why this one, in one sentence.
    candidates : tuple of Candidate
        Families, best held-out likelihood first. Empty if none was tried.
    n, censored : int
        Values, and those among them that are only lower bounds.
    largest : float
        The largest value seen: what a family says beyond it is extrapolation.
    """

    distribution: Distribution
    reason: str
    candidates: tuple[Candidate, ...]
    n: int
    censored: int
    largest: float

    def summary(self) -> str:
        """Return the choice and its reason in plain text."""
        stopped = f", {self.censored} of them only lower bounds" if self.censored else ""
        lines = [f"{self.distribution} (n = {self.n}{stopped}): {self.reason}"]
        lines += [
            f"  {c.distribution}: held-out log-likelihood {c.heldout:.4g} a value{_tested(c)}" for c in self.candidates
        ]
        return "\n".join([*lines, f"Nothing above {figure(self.largest)} was seen; what lies beyond is extrapolation."])

    def explain(self) -> str:
        """Return what the choice means and what it does not."""
        return (
            "Families are ranked by how well they predict values that they were not fitted to; the best one is then "
            "tested against the sample (parametric bootstrap). With many values every family is rejected, so a "
            f"rejected one is kept if no share it states is off by more than {TOLERANCE:g}. An empirical distribution "
            "never gives a value that was not seen. Values are taken as independent."
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def fit(
    values: npt.ArrayLike,
    *,
    censored: npt.ArrayLike | None = None,
    families: Sequence[str] = FAMILIES,
    floor: float | None = None,
    folds: int = 5,
    resamples: int = 99,
    seed: int = 0,
) -> Fit:
    """Choose a distribution for a sample.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The sample. Whole numbers are taken as rounded: their likelihood is that of the interval ± 1/2.
    censored : array_like of bool, shape (n,), optional
        True where the run was stopped, so that the value is only a lower bound.
    families : sequence of str
        Continuous ``scipy.stats`` names.
    floor : float, optional
        Where the families begin (their ``loc``). Default 0, or half a unit below it for whole numbers that include 0.
    folds : int, default 5
        Folds of the held-out likelihood [2]_.
    resamples : int, default 99
        Resamples of the goodness-of-fit test of the best family [1]_; 0: no test. Not tested with censored values.
    seed : int
        Of folds and resamples.

    Returns
    -------
    Fit
        The empirical distribution, with its reason, where n < 30, values lie at or below the floor, no family can be
        fitted, or the best one is rejected and off by more than 0.05. With censored values the empirical one
        understates the tail, and its reason says so.

    Examples
    --------
    >>> fit([5, 7, 9]).reason
    'n = 3 is too few to choose a family (30 needed)'
    """
    x = sample(values, what="values")
    stopped = np.zeros(x.size, dtype=np.bool_) if censored is None else flags(censored, n=x.size, what="censored")
    if x.size == 0:
        raise InputError("values", expected="at least one value", got="none")
    whole = bool(np.all(x == np.round(x)))
    start = _start(x, floor, whole=whole)
    why = _unfit(x, stopped, start)
    if why:
        return _empirical(x, stopped, why, ())
    rng = np.random.default_rng(seed)
    part = rng.permutation(np.arange(x.size) % folds)
    model = _Model(start=start, whole=whole)
    found = [c for name in families if (c := _candidate(model, name, x, stopped, part)) is not None]
    ranked = sorted(found, key=lambda c: -c.heldout)
    if not ranked or ranked[0].heldout == -np.inf:
        return _empirical(x, stopped, "no family could be fitted", tuple(ranked))
    if resamples and not stopped.any():
        ranked[0] = _tested_candidate(model, ranked[0], x, resamples=resamples, rng=rng)
    return _choice(ranked, x, stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """How a family is fitted and scored: where it begins, and whether values are rounded."""

    start: float
    whole: bool

    def fitted(self, name: str, x: Floats, stopped: Bools) -> Distribution | None:
        """Return the maximum-likelihood fit with ``loc`` at the start, None where it fails."""
        family = getattr(scipy.stats, name)
        data: Any = CensoredData(uncensored=x[~stopped], right=x[stopped]) if stopped.any() else x
        try:
            with np.errstate(all="ignore"):
                *shapes, loc, scale = (float(value) for value in family.fit(data, floc=self.start))
            names = family.shapes.split(", ") if family.shapes else []
            return Distribution.of(name, **dict(zip(names, shapes, strict=True)), loc=loc, scale=scale)
        except (InputError, ValueError, RuntimeError):  # scipy's FitError is a RuntimeError
            return None

    def log_likelihood(self, frozen: Any, x: Floats, stopped: Bools) -> Floats:
        """Return the log-likelihood of each value."""
        half = 0.5 if self.whole else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.log(frozen.cdf(x + half) - frozen.cdf(x - half)) if self.whole else frozen.logpdf(x)
            scores = np.where(stopped, frozen.logsf(x), seen)
        return np.asarray(np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf))

    def distance(self, distribution: Distribution, x: Floats) -> float:
        """Return the largest distance between the distribution function and the sample's, at the values."""
        values, counts = np.unique(x, return_counts=True)
        above = np.cumsum(counts) / x.size
        frozen = distribution.frozen()
        if self.whole:
            return float(np.max(np.abs(frozen.cdf(values + 0.5) - above)))
        stated = frozen.cdf(values)
        return float(np.max(np.maximum(above - stated, stated - (above - counts / x.size))))


def _candidate(model: _Model, name: str, x: Floats, stopped: Bools, part: npt.NDArray[np.int64]) -> Candidate | None:
    whole = model.fitted(name, x, stopped)
    if whole is None:
        return None
    total = 0.0
    for fold in np.unique(part):
        kept = part != fold
        trained = model.fitted(name, x[kept], stopped[kept])
        if trained is None:
            return None
        total += float(model.log_likelihood(trained.frozen(), x[~kept], stopped[~kept]).sum())
    distance = None if stopped.any() else model.distance(whole, x)
    return Candidate(distribution=whole, heldout=total / x.size, distance=distance, p_value=None)


def _tested_candidate(
    model: _Model, best: Candidate, x: Floats, *, resamples: int, rng: np.random.Generator
) -> Candidate:
    """Add the p-value of the distance: samples of the fit, each fitted again [1]_."""
    frozen, name = best.distribution.frozen(), best.distribution.dist
    none = np.zeros(x.size, dtype=np.bool_)

    def draws(size: tuple[int, ...]) -> Floats:
        raw = np.asarray(frozen.rvs(size=size, random_state=rng), dtype=np.float64)
        return np.maximum(np.round(raw), np.ceil(model.start)) if model.whole else raw

    def statistic(values: Floats) -> float:
        again = model.fitted(name, values, none)
        return 1.0 if again is None else model.distance(again, values)

    found = monte_carlo_test(x, draws, statistic, vectorized=False, n_resamples=resamples, alternative="greater")
    return Candidate(
        distribution=best.distribution, heldout=best.heldout, distance=best.distance, p_value=float(found.pvalue)
    )


def _choice(ranked: list[Candidate], x: Floats, stopped: Bools) -> Fit:
    best = ranked[0]
    rejected = best.p_value is not None and best.p_value < 0.05
    if rejected and best.distance is not None and best.distance > TOLERANCE:
        why = f"the best family, {best.distribution.dist}, is rejected{_tested(best)}"
        return _empirical(x, stopped, why, tuple(ranked))
    why = f"best held-out likelihood of {len(ranked)} families{_tested(best)}"
    return Fit(
        distribution=best.distribution, reason=why, candidates=tuple(ranked), n=x.size, censored=int(stopped.sum()),
        largest=float(x.max()),
    )  # fmt: skip


def _empirical(x: Floats, stopped: Bools, why: str, candidates: tuple[Candidate, ...]) -> Fit:
    note = "; stopped values are kept at their lower bounds, so the tail is understated" if stopped.any() else ""
    return Fit(
        distribution=Distribution.empirical(x), reason=why + note, candidates=candidates, n=x.size,
        censored=int(stopped.sum()), largest=float(x.max()),
    )  # fmt: skip


def _start(x: Floats, floor: float | None, *, whole: bool) -> float:
    if floor is None:
        return -0.5 if whole and x.min() == 0 else 0.0
    return floor - 0.5 if whole and x.min() == floor else float(floor)


def _unfit(x: Floats, stopped: Bools, start: float) -> str:
    if x.size < MIN_N:
        return f"n = {x.size} is too few to choose a family ({MIN_N} needed)"
    if x.min() <= start:
        return f"values lie at or below the floor {figure(start)}"
    if np.unique(x[~stopped]).size < 5:
        return "fewer than five distinct values"
    return ""


def _tested(candidate: Candidate) -> str:
    if candidate.distance is None:
        return ""
    p_value = "not tested" if candidate.p_value is None else f"p = {candidate.p_value:.2g}"
    return f" (distance {candidate.distance:.3f}, {p_value})"
