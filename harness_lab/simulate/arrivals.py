"""When runs arrive: a process of arrivals over a period, for many runs at once on one pool or one rate limit.

Arrivals are drawn on a clock of work (evenly busy) and read off on the clock of the wall: busy hours, weekends and
growth stretch it. So two settings of the hours meet the same luck.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness_lab import draws
from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError
from harness_lab.outcome import Purpose
from harness_lab.providers.tables import Table
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.settlements import Settlements

MAX_ARRIVALS = 50_000
"""Runs of one period."""
_HOUR_S = 3600
_DAY_HOURS = 24
_GAP = Distribution.of("expon", high=64.0)
_UNIT = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How runs arrive in one period. Each run of an experiment is then a whole period, with a run for each arrival.

    One of `per_day`, `gap_s` and `at_s` says how.

    Parameters
    ----------
    period_s : float
        Length of the period, seconds; runs that have begun go on after its end.
    per_day : float or None
        Mean number of arrivals on an average day at the start of the period (a Poisson process).
    gap_s : Distribution or None
        Seconds between an arrival and the next (a renewal process).
    at_s : tuple of float
        Recorded arrivals, seconds from the start.
    weekdays : tuple of float
        How busy Monday to Sunday are, relative to one another; with `per_day` or `gap_s`.
    hours : tuple of float
        How busy the 24 hours of a day (UTC) are, relative to one another; with `per_day` or `gap_s`.
    growth_per_week : float
        Growth of the rate, a share: 0.1 is a tenth more each week.
    users : int
        Users who start runs, each as likely; their names are ``user-0``, ``user-1`` ...
    start : str
        Start of the period, ISO 8601; without an offset it is UTC.
    shared : bool
        All runs of a period stand under one policy; else each has one of its own. A policy whose state outlives a run
        is always shared.
    """

    period_s: float
    per_day: float | None = None
    gap_s: Distribution | None = None
    at_s: tuple[float, ...] = ()
    weekdays: tuple[float, ...] = (1.0,) * 7
    hours: tuple[float, ...] = (1.0,) * 24
    growth_per_week: float = 0.0
    users: int = 1
    start: str = "2026-01-05T00:00:00+00:00"
    shared: bool = True

    def __post_init__(self) -> None:
        if ns(self.period_s, what="period_s") <= 0:
            raise InputError("period_s", expected="seconds above 0", got=self.period_s)
        given = [name for name in ("per_day", "gap_s", "at_s") if getattr(self, name) not in (None, ())]
        if len(given) != 1:
            raise InputError("arrivals", expected="one of per_day, gap_s, at_s", got=given or "none")
        if self.per_day is not None and not 0 < self.per_day <= 1e9:
            raise InputError("per_day", expected="above 0", got=self.per_day)
        for name, length in (("weekdays", 7), ("hours", 24)):
            value = getattr(self, name)
            if len(value) != length or not all(0 <= part < 1e6 for part in value) or not sum(value):
                raise InputError(name, expected=f"{length} numbers >= 0, not all 0", got=value)
        if not -0.9 <= self.growth_per_week <= 10:
            raise InputError("growth_per_week", expected="-0.9 to 10", got=self.growth_per_week)
        if any(ns(at, what="at_s") < 0 for at in self.at_s):
            raise InputError("at_s", expected="seconds >= 0", got=min(self.at_s))
        if count("users", self.users, maximum=1_000_000) == 0:
            raise InputError("users", expected="at least 1", got=0)
        _instant(self.start)

    @classmethod
    def recorded(cls, settlements: Settlements, *, shared: bool = True) -> Arrivals:
        """Return the arrivals of recorded runs: the instants at which their roots started.

        Raises
        ------
        InputError
            If no root has a recorded start.
        """
        nodes = settlements.nodes
        starts = nodes.loc[nodes["parent"].isna(), "start_ns"].dropna().sort_values()
        if starts.empty:
            raise InputError("records", expected="roots with a start", got="none")
        first = int(starts.iloc[0])
        at = tuple((int(start) - first) / NS_PER_S for start in starts)
        begin = datetime.fromtimestamp(first // NS_PER_S, UTC).isoformat()
        return cls(period_s=at[-1] + 1, at_s=at, start=begin, shared=shared)

    @property
    def start_ns(self) -> int:
        """Start of the period as epoch nanoseconds."""
        return int(_instant(self.start).timestamp()) * NS_PER_S

    def compile(self) -> Arriving:
        """Make the tables; the result draws the arrivals of a period."""
        return Arriving(self)


class Arriving:
    """A process of arrivals as tables."""

    __slots__ = ("_at", "_edges", "_end", "_gap", "_users", "arrivals")

    def __init__(self, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        self._end = ns(arrivals.period_s)
        self._at = sorted(ns(at) for at in arrivals.at_s)
        self._users = arrivals.users
        self._edges: list[int] = []
        gap = _GAP if arrivals.gap_s is None else arrivals.gap_s
        self._gap = Table(gap, _UNIT if arrivals.gap_s is None else NS_PER_S).draw
        if not self._at:
            self._edges = _clock_of_work(arrivals)

    def times(self, key: int) -> list[int]:
        """Return the instants at which the runs of a period arrive, ascending, nanoseconds from its start.

        Raises
        ------
        InputError
            If there are more than :data:`MAX_ARRIVALS`.
        """
        found = [at for at in self._at if at < self._end] if self._at else list(self._drawn(key))
        if len(found) > MAX_ARRIVALS:
            raise InputError("arrivals", expected=f"at most {MAX_ARRIVALS:,} in a period", got=len(found))
        return found

    def user(self, key: int, number: int) -> str:
        """Return who starts the run that arrives as the `number`-th, from 0."""
        return f"user-{draws.word(key, number, 1, Purpose.ARRIVAL) * self._users >> 64}"

    def _drawn(self, key: int) -> Iterator[int]:
        edges, work, hour = self._edges, 0, _HOUR_S * NS_PER_S
        for number in range(MAX_ARRIVALS + 1):
            work += self._gap(draws.word(key, number, 0, Purpose.ARRIVAL))
            if work >= edges[-1]:
                return
            i = bisect_left(edges, work + 1) - 1
            at = i * hour + (work - edges[i]) * hour // (edges[i + 1] - edges[i])
            if at >= self._end:
                return
            yield at


def _clock_of_work(arrivals: Arrivals) -> list[int]:
    """Return the work done by the start of each hour: its unit is a mean gap, or a second of an average hour."""
    first = _instant(arrivals.start)
    hours = int(arrivals.period_s // _HOUR_S) + 2
    per_hour = _UNIT * arrivals.per_day / _DAY_HOURS if arrivals.per_day is not None else _HOUR_S * NS_PER_S
    week = sum(arrivals.weekdays) / 7
    day = sum(arrivals.hours) / _DAY_HOURS
    shift = first.weekday() * _DAY_HOURS + first.hour
    busy = []
    for hour in range(hours):
        at = shift + hour
        share = arrivals.weekdays[at // _DAY_HOURS % 7] / week * arrivals.hours[at % _DAY_HOURS] / day
        busy.append(round(per_hour * share * (1 + arrivals.growth_per_week) ** (hour / (7 * _DAY_HOURS))))
    return list(itertools.accumulate(busy, initial=0))


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InputError("start", expected="a date and time as ISO 8601, 2026-01-05T00:00", got=text) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
