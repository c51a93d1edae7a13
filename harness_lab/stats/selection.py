"""Which of several alternatives is best: a race with a stated probability, and a set that holds the best.

References
----------
.. [1] Kim, S.-H., Nelson, B. L. (2001). A fully sequential procedure for indifference-zone selection in simulation.
   ACM Transactions on Modeling and Computer Simulation 11(3), 251-273. https://doi.org/10.1145/502109.502111
.. [2] Nelson, B. L., Swann, J., Goldsman, D., Song, W. (2001). Simple procedures for selecting the best simulated
   system when the number of alternatives is large. Operations Research 49(6), 950-963.
   https://doi.org/10.1287/opre.49.6.950.10019
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError
from harness_lab.stats.estimates import check_confidence
from harness_lab.stats.paired import MIN_PAIRS, paired_difference

if TYPE_CHECKING:
    from harness_lab.stats.arrays import Bools, Floats

FIRST_STAGE: Final = 100
_MAX_FIRST_STAGE: Final = 10 * FIRST_STAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The outcome of a race.

    Parameters
    ----------
    chosen : int or None
        The alternative that was selected; None where more observations are needed.
    remaining : tuple of int
        Alternatives that are still in the race.
    out_at : tuple of int or None
        For each alternative, the number of observations after which it was out; None: still in.
    used : int
        Observations of each remaining alternative.
    needs : int
        Observations after which the race ends at the latest; 0 before the first stage is over.
    probability, indifference : float
        What was promised, and from which difference on it is promised.
    """

    chosen: int | None
    remaining: tuple[int, ...]
    out_at: tuple[int | None, ...]
    used: int
    needs: int
    probability: float
    indifference: float


class Race:
    """A fully sequential selection of the largest mean [1]_, fed with blocks of paired observations.

    Parameters
    ----------
    alternatives : int
        How many, at least 2.
    indifference : float
        Smallest difference worth telling apart, in the unit of the observations, above 0.
    probability : float, default 0.95
        Chance that the best is selected when it is better than the rest by at least `indifference`.
    first_stage : int, default 100
        Observations from which variances of differences are taken. It is extended, up to tenfold, until each pair
        differs in ten: variances of differences that are nearly always 0 would be too small.

    Notes
    -----
    Common random numbers and unequal variances are allowed: only variances of differences enter. Observations are taken
    as normal; where they are not, means over many observations are. Differences rarer than the extended first stage can
    see are smaller than anything worth telling apart, unless they are very large.
    """

    __slots__ = ("_indifference", "_out", "_probability", "_squares", "_stage", "_sums", "_used", "_wanted")

    def __init__(
        self, alternatives: int, *, indifference: float, probability: float = 0.95, first_stage: int = FIRST_STAGE
    ) -> None:
        if alternatives < 2:
            raise InputError("alternatives", expected="at least 2", got=alternatives)
        if not 0 < indifference < math.inf:
            raise InputError("indifference", expected="a difference above 0, in the metric's unit", got=indifference)
        if first_stage < MIN_PAIRS:
            raise InputError("first_stage", expected=f"at least {MIN_PAIRS}", got=first_stage)
        self._indifference, self._probability = float(indifference), check_confidence(probability, what="probability")
        self._stage: list[Floats] = []
        self._wanted, self._used = first_stage, 0
        self._out: list[int | None] = [None] * alternatives
        self._sums = np.zeros(alternatives)
        self._squares: Floats | None = None

    @property
    def remaining(self) -> tuple[int, ...]:
        """Alternatives still in the race; only theirs need further observations."""
        return tuple(k for k, out in enumerate(self._out) if out is None)

    def feed(self, block: npt.ArrayLike) -> Selection:
        """Take further observations, shape (alternatives, m); rows of those that are out are not looked at."""
        rows = np.asarray(block, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] != len(self._out):
            raise InputError("block", expected=f"{len(self._out)} rows of observations", got=f"shape {rows.shape}")
        if not np.isfinite(rows[list(self.remaining)]).all():
            raise InputError("block", expected="known, finite numbers", got="unknown values")
        if self._squares is None:
            rows = self._first(rows)
        if self._squares is not None and rows.shape[1] and len(self.remaining) > 1 and self._used < self._needs():
            self._advance(rows)
        return self._state()

    def _first(self, rows: Floats) -> Floats:
        """Collect the first stage; return what lies beyond it."""
        self._stage.append(rows)
        seen = np.concatenate(self._stage, axis=1)
        while seen.shape[1] >= self._wanted:
            stage = seen[:, : self._wanted]
            gaps = stage[:, None, :] - stage[None, :, :]
            pairs = (gaps != 0).sum(axis=2)[np.triu_indices(len(self._out), 1)]
            if pairs.min() >= MIN_PAIRS or self._wanted >= _MAX_FIRST_STAGE:
                self._squares = np.asarray(gaps.var(axis=2, ddof=1))
                self._stage = []
                self._sums, self._used = stage.sum(axis=1), self._wanted - 1
                self._sums -= stage[:, -1]
                return np.asarray(seen[:, self._wanted - 1 :])
            self._wanted = min(self._wanted * 2, _MAX_FIRST_STAGE)
        return np.zeros((rows.shape[0], 0))

    def _constant(self) -> float:
        k, n = len(self._out), self._wanted
        eta = 0.5 * ((2 * (1 - self._probability) / (k - 1)) ** (-2 / (n - 1)) - 1)
        return float(2 * eta * (n - 1))

    def _needs(self) -> int:
        """Observations after which the largest sample mean is selected."""
        if self._squares is None:
            return 0
        still = list(self.remaining)
        worst = float(self._squares[np.ix_(still, still)].max())
        return max(math.floor(self._constant() * worst / self._indifference**2) + 1, self._wanted)

    def _advance(self, rows: Floats) -> None:
        """Go through the observations; whoever falls behind the best by more than its width is out."""
        assert self._squares is not None  # noqa: S101 - the first stage is over
        course = self._sums[:, None] + np.cumsum(rows, axis=1)
        r = self._used + 1 + np.arange(rows.shape[1])
        done = 0
        while len(self.remaining) > 1 and done < r.size:
            last = min(r.size, self._needs() - self._used)
            if last <= done:
                break
            behind = self._behind(course[:, done:last], r[done:last])
            if not behind.any():
                done = last
                break
            step = int(np.argmax(behind.any(axis=0)))
            for place in np.flatnonzero(behind[:, step]):
                self._out[int(place)] = int(r[done + step])
            done += step
            if len(self.remaining) <= 1:
                done += 1
        done = max(done, 1)
        self._sums, self._used = course[:, done - 1], int(r[done - 1])

    def _behind(self, course: Floats, r: npt.NDArray[np.int64]) -> Bools:
        """Whether each alternative is out at each step, were it compared with those now in the race."""
        found = np.zeros(course.shape, dtype=np.bool_)
        delta, h2 = self._indifference, self._constant()
        assert self._squares is not None  # noqa: S101
        for i in self.remaining:
            for other in self.remaining:
                if i != other:
                    width = np.maximum(0.0, (h2 * self._squares[i, other] / delta - delta * r) / 2)
                    found[i] |= course[i] < course[other] - width
        return found

    def _state(self) -> Selection:
        still, needs = self.remaining, self._needs()
        chosen = None
        if len(still) == 1:
            chosen = still[0]
        elif self._squares is not None and self._used >= needs:
            chosen = max(still, key=lambda k: float(self._sums[k]))
        return Selection(
            chosen=chosen, remaining=still, out_at=tuple(self._out), used=self._used, needs=needs,
            probability=self._probability, indifference=self._indifference,
        )  # fmt: skip


def select_best(
    values: npt.ArrayLike, *, indifference: float, probability: float = 0.95, first_stage: int = FIRST_STAGE
) -> Selection:
    """Race alternatives through observations that are there already, in their order.

    Parameters
    ----------
    values : array_like of float, shape (k, n)
        One row per alternative, larger is better; columns are paired (the same run under each).
    indifference, probability, first_stage
        As for :class:`Race`.

    Returns
    -------
    Selection
        Without a choice where the observations do not suffice; ``needs`` says how many would at the latest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> select_best(rng.normal([[0], [1]], 1, (2, 200)), indifference=0.5).chosen
    1
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError("values", expected="one row per alternative", got=f"shape {rows.shape}")
    race = Race(rows.shape[0], indifference=indifference, probability=probability, first_stage=first_stage)
    return race.feed(rows)


def maybe_best(
    values: npt.ArrayLike, *, confidence: float = 0.95, clusters: npt.ArrayLike | None = None
) -> tuple[int, ...]:
    """Return the alternatives that cannot be told from the best: a set that holds the best with `confidence` [2]_.

    Parameters
    ----------
    values : array_like of float, shape (k, n)
        One row per alternative, larger is better; columns are paired.
    confidence : float, default 0.95
        Chance that the set holds the alternative of the largest mean.
    clusters : array_like, shape (n,), optional
        The cluster of each column.

    Notes
    -----
    One is left out if a one-sided paired test (skew-corrected t) at ``(1 - confidence) / (k - 1)`` finds another
    better.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maybe_best(rng.normal([[0], [0.9], [1]], 1, (3, 60)))
    (1, 2)
    """
    rows = np.asarray(values, dtype=np.float64)
    level = (1 - check_confidence(confidence)) / max(len(rows) - 1, 1)
    kept = []
    for i, mine in enumerate(rows):
        found = [paired_difference(mine, other, clusters=clusters) for j, other in enumerate(rows) if j != i]
        beaten = any(
            one.p_value is not None and (one.difference.value or 0.0) > 0 and one.p_value / 2 <= level for one in found
        )
        kept += [] if beaten else [i]
    return tuple(kept)
