"""Choosing a parametric family for a sample, or saying why the sample itself is the better model.

References
----------
.. [1] Stute, W., Gonzales Manteiga, W., Presedo Quindimil, M. (1993). Bootstrap based goodness-of-fit-tests.
   Metrika 40, 243-256. https://doi.org/10.1007/BF02613687
.. [2] Smyth, P. (2000). Model selection for probabilistic clustering using cross-validated likelihood. Statistics and
   Computing 10, 63-72. https://doi.org/10.1023/A:1008940618127
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.stats.arrays import Bools, Floats, flags, sample
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.estimates import figure, with_unit
from harness_lab.stats.models import (
    TOLERANCE,
    Candidate,
    Model,
    NamedMixture,
    candidate,
    named_mixture,
    shown,
    with_p_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILIES = ("lognorm", "gamma", "weibull_min", "expon")
"""Families tried by default: positive, skewed to the right."""

MIN_N = 30
"""With fewer values no family is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
    mixture : NamedMixture or None
        What the sample is made of, where it has several humps: for a person to read. `distribution` gives the recorded
        values then. None: a family will do, no mixture does either, or there are too few values or stopped ones.
    unit : str
        Of the values, for display.
    values : ndarray of float64 or None
        The sample, for the picture.
    """

    distribution: Distribution
    reason: str
    candidates: tuple[Candidate, ...]
    n: int
    censored: int
    largest: float
    mixture: NamedMixture | None = None
    unit: str = ""
    values: Floats | None = field(default=None, repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a family, and one for the mixture: ``model, chosen, heldout, distance, p_value, n``."""
        rows = [
            (str(c.distribution), c.distribution == self.distribution, c.heldout, c.distance, c.p_value)
            for c in self.candidates
        ]
        if self.mixture is not None:
            one = self.mixture
            rows.append((str(one.mixture), True, one.heldout, one.distance, one.p_value))
        names = ["model", "chosen", "heldout", "distance", "p_value"]
        return pd.DataFrame(rows, columns=names).assign(n=self.n)

    def summary(self) -> str:
        """Return the choice and its reason in plain text."""
        stopped = f", {self.censored} of them only lower bounds" if self.censored else ""
        lines = [f"{self.distribution} (n = {self.n}{stopped}): {self.reason}"]
        lines += [
            f"  {c.distribution}: held-out log-likelihood {c.heldout:.4g} a value{shown(c)}" for c in self.candidates
        ]
        lines += filter(None, [self.goodness()])
        end = f"Nothing above {with_unit(self.largest, self.unit)} was seen; what lies beyond is extrapolation."
        return "\n".join([*lines, end])

    def goodness(self) -> str:
        """Say how well the best family fits: the p-value of the test, or why there is none; empty without a family."""
        if not self.candidates:
            return ""
        best = self.candidates[0]
        if best.p_value is not None and best.distance is not None:
            verdict = "rejected" if best.p_value < 0.05 else "not rejected"
            head = f"Goodness of fit of {best.distribution.dist}"
            return (
                f"{head}: p = {best.p_value:.2g}, {verdict} (parametric bootstrap); "
                f"no share that it states is off by more than {best.distance:.2g} in the sample."
            )
        why = f"{self.censored:,} of the values are only lower bounds" if self.censored else "it was not asked for"
        return f"Goodness of fit of {best.distribution.dist}: not tested, since {why}; look at the picture."

    def curves(self) -> pd.DataFrame:
        """Return the sample, sorted (``value``), and at each value the share at or below it by the best models.

        One column a model: the best family, and the mixture if one is named. For a picture
        (:func:`harness_lab.plots.fits.plot_fit`).
        """
        values = np.asarray([] if self.values is None else np.sort(self.values))
        models: dict[str, Any] = {c.distribution.dist: c.distribution.frozen() for c in self.candidates[:1]}
        if self.mixture is not None:
            models[f"mixture of {len(self.mixture.mixture.parts)} lognormals"] = self.mixture.mixture
        return pd.DataFrame({"value": values} | {name: model.cdf(values) for name, model in models.items()})

    def __repr__(self) -> str:
        return f"Fit({self.distribution}, n = {self.n:,})"

    def explain(self) -> str:
        """Return what the choice means and what it does not."""
        return (
            "Families are ranked by how well they predict values that they were not fitted to; the best one is then "
            "tested against the sample (parametric bootstrap). With many values every family is rejected, so a "
            f"rejected one is kept if no share it states is off by more than {TOLERANCE:g}. Where none is kept, two "
            "and three lognormals together are tried, and named if they predict better and are not rejected: several "
            "kinds of run may be in the sample. An empirical distribution never gives a value that was not seen. "
            "Values are taken as independent.\n"
            "Next: where a mixture is named, look for the column that tells its parts apart (by=)."
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
    model = Model(start=start, whole=whole)
    found = [c for name in families if (c := candidate(model, name, x, stopped, part)) is not None]
    ranked = sorted(found, key=lambda c: -c.heldout)
    if not ranked or ranked[0].heldout == -np.inf:
        return _empirical(x, stopped, "no family could be fitted", tuple(ranked))
    if resamples and not stopped.any():
        ranked[0] = with_p_value(model, ranked[0], x, resamples=resamples, rng=rng)
    return _choice(model, ranked, x, stopped, part, resamples=resamples, rng=rng)


def _choice(
    model: Model, ranked: list[Candidate], x: Floats, stopped: Bools, part: npt.NDArray[np.int64], *, resamples: int,
    rng: np.random.Generator,
) -> Fit:  # fmt: skip
    best = ranked[0]
    rejected = best.p_value is not None and best.p_value < 0.05
    if rejected and best.distance is not None and best.distance > TOLERANCE:
        why = f"the best family, {best.distribution.dist}, is rejected{shown(best)}"
        named = named_mixture(model, x, part, best.heldout, resamples=resamples, rng=rng)
        if named is not None:
            why += f"; {named.mixture} (distance {named.distance:.3f}, p = {named.p_value:.2g})"
        return replace(_empirical(x, stopped, why, tuple(ranked)), mixture=named)
    why = f"best held-out likelihood of {len(ranked)} families{shown(best)}"
    return Fit(
        distribution=best.distribution, reason=why, candidates=tuple(ranked), n=x.size, censored=int(stopped.sum()),
        largest=float(x.max()), values=x,
    )  # fmt: skip


def _empirical(x: Floats, stopped: Bools, why: str, candidates: tuple[Candidate, ...]) -> Fit:
    note = "; stopped values are kept at their lower bounds, so the tail is understated" if stopped.any() else ""
    return Fit(
        distribution=Distribution.empirical(x), reason=why + note, candidates=candidates, n=x.size,
        censored=int(stopped.sum()), largest=float(x.max()), values=x,
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
