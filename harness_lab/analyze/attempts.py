"""What every run would have spent, and whether it would have completed, under each of some ceilings.

References
----------
.. [1] Bang, H., Tsiatis, A. A. (2000). Estimating medical costs with censored data. Biometrika 87(2), 329-343.
   https://doi.org/10.1093/biomet/87.2.329
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.stats.resampled import at_shares

if TYPE_CHECKING:
    from harness_lab.analyze.frames import Bools, Floats, Ints

MIN_UNSTOPPED: Final = 0.1
"""Nothing is said about amounts up to which fewer runs than this would not have been stopped."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempts:
    """Runs under candidate ceilings c. A run that used x > c would have spent ``rate * c`` and not completed.

    Where a limit of the same channel stopped runs, the others count for them: a run that ended below c by itself has
    the weight 1 / (chance of not having been stopped before), and one beyond c that of c; weights have mean 1 at each
    candidate [1]_.

    Parameters
    ----------
    spend, rate, done : ndarray of float64, shape (n,)
        Spend of each run, dollars; dollars a unit of the channel; 1 if it completed.
    ended : ndarray of float64, shape (n,)
        Weight of a run within a candidate.
    below, upto : ndarray of int64, shape (n,)
        How many candidates lie at or below the run's amount, and strictly below it.
    at, open_, scale : ndarray of float64, shape (g,)
        Candidates, ascending; the weight of runs beyond each; what makes its weights' mean 1.
    beyond : float or None
        Above this amount nothing is said; None: no limit of the channel stopped a run.
    """

    spend: Floats
    rate: Floats
    done: Floats
    ended: Floats
    below: Ints
    upto: Ints
    at: Floats
    open_: Floats
    scale: Floats
    beyond: float | None

    @classmethod
    def of(cls, x: Floats, spend: Floats, done: Bools, own: Bools, *, most: int) -> Attempts:
        """Prepare runs that used `x`, up to `most` candidates; `own`: stopped by a limit of the channel itself."""
        order = np.argsort(x)
        ordered, stops = x[order], own[order]
        free = _unstopped(ordered, stops)
        beyond = float(ordered[free >= MIN_UNSTOPPED][-1]) if stops.any() else None
        at = _candidates(ordered if beyond is None else ordered[ordered <= beyond], most)
        first, last = (np.searchsorted(ordered, at, side=side) for side in ("left", "right"))
        below, upto = np.empty(x.size, dtype=np.int64), np.empty(x.size, dtype=np.int64)
        below[order], upto[order] = (_counted(part, x.size) for part in (first, last))
        ended, open_ = np.ones(x.size), np.ones(at.size)
        if stops.any():
            least = MIN_UNSTOPPED / 2
            ended[order] = np.where(stops, 0.0, 1 / np.maximum(free, least))
            open_ = 1 / np.maximum(free[first], least)
        running = np.concatenate([[0.0], np.cumsum(ended[order])])
        scale = x.size / (running[first] + open_ * (x.size - first))
        rate = np.divide(spend, x, out=np.zeros_like(spend), where=x > 0)
        return cls(
            spend=spend, rate=rate, done=done.astype(np.float64), ended=ended, below=below, upto=upto, at=at,
            open_=open_, scale=scale, beyond=beyond,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Runs."""
        return self.spend.size

    def runs(self, k: int) -> tuple[Floats, Floats]:
        """Return each run's spend and completion under one candidate, weighted."""
        weight = np.where(self.below <= k, self.ended, self.open_[k]) * self.scale[k]
        inside = self.upto <= k
        return weight * np.where(inside, self.spend, self.rate * self.at[k]), weight * (self.done * inside)

    def totals(self) -> tuple[Floats, Floats]:
        """Return the sums of :meth:`runs` over all runs, shape (g,)."""
        spend, done = self.sums(np.zeros(self.n, dtype=np.int64), 1)
        return spend[0], done[0]

    def sums(self, group: Ints, count: int) -> tuple[Floats, Floats]:
        """Return the sums of :meth:`runs` within each of `count` groups, shape (count, g)."""
        g = self.at.size

        def upward(place: Ints, values: Floats) -> Floats:
            """Sum over the runs whose place is at most each candidate's."""
            cells = np.bincount(group * (g + 1) + place, weights=values, minlength=count * (g + 1))
            return np.cumsum(cells.reshape(count, g + 1), axis=1)

        within = [upward(self.below, self.ended * part)[:, :g] for part in (self.spend, self.done)]
        # at a candidate itself a run is inside, but has the weight of those beyond
        on = [upward(self.upto, part)[:, :g] - upward(self.below, part)[:, :g] for part in (self.spend, self.done)]
        rate = upward(self.upto, self.rate)
        past = (rate[:, -1:] - rate[:, :g]) * self.at
        return self.scale * (within[0] + self.open_ * (on[0] + past)), self.scale * (within[1] + self.open_ * on[1])


def _counted(bounds: Ints, n: int) -> Ints:
    """Return how many of the ascending `bounds` lie at or below each of the places 0 ... n - 1."""
    return np.cumsum(np.bincount(bounds, minlength=n + 1)[:n])


def _unstopped(ordered: Floats, own: Bools) -> Floats:
    """Return the chance that no limit of the channel had stopped a run below its amount (Kaplan-Meier of the stops)."""
    if not own.any():
        return np.ones_like(ordered)
    first = np.searchsorted(ordered, ordered, side="left") if ordered.size else np.zeros(0, dtype=np.intp)
    start = np.flatnonzero(np.diff(first, prepend=-1))
    stopped = np.add.reduceat(own.astype(np.float64), start)
    survival = np.cumprod(1 - stopped / (ordered.size - start))
    before = np.concatenate([[1.0], survival[:-1]])
    return np.asarray(np.repeat(before, np.diff(np.append(start, ordered.size))))


def _candidates(ordered: Floats, most: int) -> Floats:
    """Return amounts that runs used; the largest stands for no ceiling."""
    at = ordered[np.append(True, ordered[1:] > ordered[:-1])]
    return np.unique(at_shares(at, np.linspace(0, 1, most))) if at.size > most else at
