"""Mixtures of lognormals: what a sample with several humps is made of, named by weight and place.

References
----------
.. [1] Dempster, A. P., Laird, N. M., Rubin, D. B. (1977). Maximum likelihood from incomplete data via the EM algorithm.
   Journal of the Royal Statistical Society B 39(1), 1-38. https://doi.org/10.1111/j.2517-6161.1977.tb01600.x
.. [2] Hathaway, R. J. (1985). A constrained formulation of maximum-likelihood estimation for normal mixture
   distributions. Annals of Statistics 13(2), 795-800. https://doi.org/10.1214/aos/1176349557 (why spreads are bounded)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import logsumexp, ndtr

from harness_lab.stats.estimates import figure, percent

if TYPE_CHECKING:
    from harness_lab.stats.arrays import Floats

MIN_N: Final = 100
"""With fewer values no mixture is looked for."""
MIN_EACH: Final = 25
"""Values that a part must stand for."""
_LEAST_SPREAD: Final = 0.1
"""Smallest spread of a part, as a share of the spread of the largest part [2]_: ties make no part of their own."""
_ROUNDS: Final = 300
_LOG_SQRT_2PI: Final = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a mixture.

    Parameters
    ----------
    weight : float
        Its share of the values.
    median, mean : float
        Of its values, in their unit.
    spread : float
        Standard deviation of the logarithm: about two thirds of the part lie within a factor of ``exp(spread)``.
    """

    weight: float
    median: float
    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{percent(self.weight)} around {figure(self.median)} (mean {figure(self.mean)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Several lognormals, each with its share.

    Parameters
    ----------
    parts : tuple of Part
        By rising median.
    start : float
        Where all of them begin.
    """

    parts: tuple[Part, ...]
    start: float

    def cdf(self, x: Floats) -> Floats:
        """Return the share of values at or below each of `x`."""
        inside = np.maximum(np.asarray(x, dtype=np.float64)[..., None] - self.start, 1e-300)
        weight, centre, spread = self._arrays()
        return np.asarray(ndtr((np.log(inside) - centre) / spread) @ weight)

    def logpdf(self, x: Floats) -> Floats:
        """Return the logarithm of the density."""
        y = np.log(np.maximum(np.asarray(x, dtype=np.float64) - self.start, 1e-300))
        return np.asarray(logsumexp(_joint(y, *self._arrays()), axis=1) - y)

    def logsf(self, x: Floats) -> Floats:
        """Return the logarithm of the share of values above each of `x`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(-np.minimum(self.cdf(x), 1.0)))

    def mean(self) -> float:
        """Return the mean of all values."""
        return float(sum(part.weight * part.mean for part in self.parts))

    def rvs(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw values."""
        weight, centre, spread = self._arrays()
        which = rng.choice(weight.size, size=size, p=weight / weight.sum())
        return np.asarray(self.start + np.exp(rng.normal(centre[which], spread[which])))

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        medians = np.asarray([part.median for part in self.parts])
        weight, spread = (np.asarray([getattr(part, name) for part in self.parts]) for name in ("weight", "spread"))
        return weight, np.log(medians - self.start), spread

    def __str__(self) -> str:
        return f"a mixture of {len(self.parts)} lognormals: {'; '.join(map(str, self.parts))}"


def fit_mixture(x: Floats, parts: int, *, start: float = 0.0, like: Mixture | None = None) -> Mixture | None:
    """Fit a mixture by expectation and maximisation [1]_ on the logarithms.

    Parameters
    ----------
    x : ndarray of float64, shape (n,)
        Values above `start`.
    parts : int
        How many.
    start : float
        Where the parts begin.
    like : Mixture, optional
        Where to begin the search; else two places are tried.

    Returns
    -------
    Mixture or None
        None where there are fewer than 100 values, a part would stand for fewer than 25, or its spread is that of ties.
    """
    if x.size < max(MIN_N, parts * MIN_EACH):
        return None
    y = np.log(x - start)
    begins = [like._arrays()] if like is not None else _begins(y, parts)
    found = max((_climbed(y, *begin) for begin in begins), key=lambda one: one[0])
    weight, centre, spread = found[1]
    order = np.argsort(centre)
    if weight.min() * x.size < MIN_EACH or np.unique(np.round(centre, 6)).size < parts:
        return None
    made = [
        Part(
            weight=float(weight[k]), spread=float(spread[k]), median=float(start + np.exp(centre[k])),
            mean=float(start + np.exp(centre[k] + spread[k] ** 2 / 2)),
        )
        for k in order
    ]  # fmt: skip
    return Mixture(parts=tuple(made), start=start)


def _begins(y: Floats, parts: int) -> list[tuple[Floats, Floats, Floats]]:
    """Return two places to begin at: equal shares of the sorted values, and the widest gaps between them."""
    ordered = np.sort(y)
    cuts = [np.linspace(0, y.size, parts + 1).astype(int)[1:-1]]
    inner = np.diff(ordered)[MIN_EACH - 1 : y.size - MIN_EACH]
    if inner.size >= parts - 1:
        cuts.append(np.sort(np.argsort(inner)[-(parts - 1) :] + MIN_EACH))
    return [_of_groups(np.split(ordered, cut), float(y.std())) for cut in cuts if np.diff([0, *cut, y.size]).min() > 1]


def _of_groups(groups: list[Floats], spread: float) -> tuple[Floats, Floats, Floats]:
    size = np.asarray([group.size for group in groups], dtype=np.float64)
    centre = np.asarray([group.mean() for group in groups])
    return size / size.sum(), centre, np.maximum([group.std() for group in groups], 0.1 * spread + 1e-6)


def _climbed(y: Floats, weight: Floats, centre: Floats, spread: Floats) -> tuple[float, tuple[Floats, Floats, Floats]]:
    last = -np.inf
    for _ in range(_ROUNDS):
        joint = _joint(y, weight, centre, spread)
        each = logsumexp(joint, axis=1)
        total = float(each.mean())
        if total - last < 1e-7:
            break
        last = total
        share = np.exp(joint - each[:, None])
        mass = np.maximum(share.sum(axis=0), 1e-9)
        weight, centre = mass / y.size, (y @ share) / mass
        spread = np.sqrt((share * (y[:, None] - centre) ** 2).sum(axis=0) / mass)
        spread = np.maximum(spread, _LEAST_SPREAD * spread.max() + 1e-9)
    return last, (weight, centre, spread)


def _joint(y: Floats, weight: Floats, centre: Floats, spread: Floats) -> Floats:
    """Return the log of weight times normal density, shape (n, parts)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weight) - np.log(spread) - _LOG_SQRT_2PI - 0.5 * ((y[:, None] - centre) / spread) ** 2)
