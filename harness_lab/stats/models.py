"""What may describe a sample: families and mixtures, fitted, scored on values they have not seen, and tested.

References
----------
.. [1] Stute, W., Gonzales Manteiga, W., Presedo Quindimil, M. (1993). Bootstrap based goodness-of-fit-tests.
   Metrika 40, 243-256. https://doi.org/10.1007/BF02613687
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.stats
from scipy.stats import CensoredData, monte_carlo_test

from harness_lab.errors import InputError
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.mixtures import Mixture, fit_mixture

if TYPE_CHECKING:
    from harness_lab.stats.arrays import Bools, Floats

TOLERANCE = 0.05
"""A family that the test rejects is kept if no share it states is off by more than this."""

CLOSE = 0.02
"""The same for naming a mixture, which bends to anything."""


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
class NamedMixture:
    """A mixture's showing, where no family will do.

    Parameters
    ----------
    mixture : Mixture
        Fitted to the whole sample.
    heldout, distance, p_value : float
        As for :class:`Candidate`.
    """

    mixture: Mixture
    heldout: float
    distance: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
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

    def rounded(self, draws: Floats) -> Floats:
        """Return draws as the sample's values are: whole ones above the start where those are whole."""
        return np.maximum(np.round(draws), np.floor(self.start) + 1) if self.whole else draws

    def log_likelihood(self, frozen: Any, x: Floats, stopped: Bools) -> Floats:
        """Return the log-likelihood of each value."""
        half = 0.5 if self.whole else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.log(frozen.cdf(x + half) - frozen.cdf(x - half)) if self.whole else frozen.logpdf(x)
            scores = np.where(stopped, frozen.logsf(x), seen)
        return np.asarray(np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf))

    def distance(self, frozen: Any, x: Floats) -> float:
        """Return the largest distance between the distribution function and the sample's, at the values."""
        values, counts = np.unique(x, return_counts=True)
        above = np.cumsum(counts) / x.size
        if self.whole:
            return float(np.max(np.abs(frozen.cdf(values + 0.5) - above)))
        stated = frozen.cdf(values)
        return float(np.max(np.maximum(above - stated, stated - (above - counts / x.size))))


def candidate(model: Model, name: str, x: Floats, stopped: Bools, part: npt.NDArray[np.int64]) -> Candidate | None:
    """Fit a family and score it on each fold from the others; None where it cannot be fitted."""
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
    distance = None if stopped.any() else model.distance(whole.frozen(), x)
    return Candidate(distribution=whole, heldout=total / x.size, distance=distance, p_value=None)


def with_p_value(model: Model, best: Candidate, x: Floats, *, resamples: int, rng: np.random.Generator) -> Candidate:
    """Add the p-value of the distance: samples of the fit, each fitted again [1]_."""
    frozen, name = best.distribution.frozen(), best.distribution.dist
    none = np.zeros(x.size, dtype=np.bool_)

    def draws(size: tuple[int, ...]) -> Floats:
        raw = np.asarray(frozen.rvs(size=size, random_state=rng), dtype=np.float64)
        return model.rounded(raw)

    def statistic(values: Floats) -> float:
        again = model.fitted(name, values, none)
        return 1.0 if again is None else model.distance(again.frozen(), values)

    found = monte_carlo_test(x, draws, statistic, vectorized=False, n_resamples=resamples, alternative="greater")
    return Candidate(
        distribution=best.distribution, heldout=best.heldout, distance=best.distance, p_value=float(found.pvalue)
    )


def named_mixture(
    model: Model, x: Floats, part: npt.NDArray[np.int64], family: float, *, resamples: int, rng: np.random.Generator
) -> NamedMixture | None:
    """Return the smallest mixture that predicts better than the best family and is not rejected as it was."""
    for parts in (2, 3):
        whole = fit_mixture(x, parts, start=model.start)
        heldout = None if whole is None else _heldout(model, x, part, parts)
        if whole is None or heldout is None or heldout <= family:
            continue
        distance, p_value = model.distance(whole, x), _bootstrap(model, whole, x, resamples=resamples, rng=rng)
        if p_value >= 0.05 or distance <= CLOSE:
            return NamedMixture(mixture=whole, heldout=heldout, distance=distance, p_value=p_value)
    return None


def _heldout(model: Model, x: Floats, part: npt.NDArray[np.int64], parts: int) -> float | None:
    total = 0.0
    for fold in np.unique(part):
        trained = fit_mixture(x[part != fold], parts, start=model.start)
        if trained is None:
            return None
        unseen = x[part == fold]
        total += float(model.log_likelihood(trained, unseen, np.zeros(unseen.size, dtype=np.bool_)).sum())
    return total / x.size


def _bootstrap(model: Model, mixture: Mixture, x: Floats, *, resamples: int, rng: np.random.Generator) -> float:
    """P-value of the distance: samples of the mixture, each fitted again [1]_."""
    observed, above = model.distance(mixture, x), 1
    for _ in range(resamples):
        raw = mixture.rvs(x.size, rng)
        drawn = model.rounded(raw)
        again = fit_mixture(drawn, len(mixture.parts), start=model.start, like=mixture)
        above += again is None or model.distance(again, drawn) >= observed
    return above / (resamples + 1)


def shown(candidate: Candidate) -> str:
    """Write how far a family is off, for a person; nothing where values are censored."""
    if candidate.distance is None:
        return ""
    p_value = "not tested" if candidate.p_value is None else f"p = {candidate.p_value:.2g}"
    return f" (distance {candidate.distance:.3f}, {p_value})"
