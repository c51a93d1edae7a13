"""Windows of time: rolling, or calendar days, weeks and months in a named time zone.

A calendar window begins when local midnight *first* strikes and ends when the next one does, so windows follow one
another without a gap and without an overlap whatever the clocks do: a day has 23 or 25 hours where they are changed, a
day that a country skipped has none, and an hour that is repeated across midnight belongs to the day that had begun.
Instants are nanoseconds since 1970-01-01T00:00Z (POSIX time: leap seconds are not counted).
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError

Every = Literal["day", "week", "month"]
EVERY: Final[tuple[Every, ...]] = ("day", "week", "month")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MONDAY: Final = 1  # date.fromordinal(1) is a Monday
_FIRST, _LAST = date(1900, 1, 1), date(9000, 1, 1)


@dataclass(frozen=True, slots=True)
class Window:
    """One window: from `start_ns` on, up to but without `end_ns`.

    Parameters
    ----------
    index : int
        Its number; the next window has the next number.
    start_ns, end_ns : int
        Epoch nanoseconds.
    """

    index: int
    start_ns: int
    end_ns: int

    @property
    def hours(self) -> float:
        """Its length, hours: 23 or 25 for a day on which clocks change by one."""
        return (self.end_ns - self.start_ns) / NS_PER_S / 3600


@dataclass(frozen=True, slots=True)
class Rolling:
    """The trailing stretch of time: at `now` it holds what was admitted after ``now - seconds``.

    What is admitted at t counts before ``t + seconds`` and from that instant on no more.

    Parameters
    ----------
    seconds : float
        Length, above 0.

    Raises
    ------
    InputError
        If it is not a finite number above 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        if ns(self.seconds) <= 0:
            raise InputError("rolling seconds", expected="a number above 0", got=self.seconds)

    @property
    def length_ns(self) -> int:
        """Its length, nanoseconds."""
        return ns(self.seconds)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days, weeks (from Monday) or months in a time zone.

    Parameters
    ----------
    every : {"day", "week", "month"}
        Length of a window.
    zone : str
        Name in the IANA time zone database, such as ``Europe/Amsterdam``.
    day : int, default 1
        Day of the month on which a month's window begins; a month without it begins on its last day.

    Raises
    ------
    InputError
        If there is no such zone, length or day.

    Examples
    --------
    >>> spring = datetime(2026, 3, 29, 12, tzinfo=UTC)
    >>> Calendar("day", "Europe/Amsterdam").window(epoch_ns(spring)).hours
    23.0
    """

    every: Every
    zone: str = "UTC"
    day: int = 1
    _tz: ZoneInfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.every not in EVERY:
            raise InputError("every", expected=f"one of {', '.join(EVERY)}", got=self.every)
        if type(self.day) is not int or not 1 <= self.day <= 31 or (self.day != 1 and self.every != "month"):
            raise InputError("day", expected="a day of the month, 1 to 31, with every='month' only", got=self.day)
        object.__setattr__(self, "_tz", _zone(self.zone))

    def window(self, now_ns: int) -> Window:
        """Return the window that an instant lies in.

        Raises
        ------
        InputError
            If the instant lies outside the years 1900 to 9000.
        """
        index = self._index(self._local_date(now_ns))
        start, end = self._start(index), self._start(index + 1)
        while now_ns >= end:
            index, start, end = index + 1, end, self._start(index + 2)
        while now_ns < start:
            index, start, end = index - 1, self._start(index - 1), start
        return Window(index, start, end)

    def _local_date(self, now_ns: int) -> date:
        try:
            found = (_EPOCH + timedelta(seconds=now_ns // NS_PER_S)).astimezone(self._tz).date()
        except (OverflowError, TypeError):
            found = _LAST
        if not _FIRST <= found < _LAST:
            raise InputError("instant", expected="epoch nanoseconds in the years 1900 to 9000", got=now_ns)
        return found

    def _index(self, local: date) -> int:
        if self.every == "day":
            return local.toordinal()
        if self.every == "week":
            return (local.toordinal() - _MONDAY) // 7
        months = local.year * 12 + local.month - 1
        return months if local >= self._begin(months) else months - 1

    def _begin(self, index: int) -> date:
        """Return the date on which a window begins."""
        if self.every == "day":
            return date.fromordinal(index)
        if self.every == "week":
            return date.fromordinal(index * 7 + _MONDAY)
        year, month = index // 12, index % 12 + 1
        return date(year, month, min(self.day, monthrange(year, month)[1]))

    def _start(self, index: int) -> int:
        return _midnight(self._begin(index), self._tz) * NS_PER_S


def epoch_ns(instant: datetime) -> int:
    """Return an instant with a time zone as epoch nanoseconds, exactly.

    Raises
    ------
    InputError
        If it has no time zone.
    """
    if instant.tzinfo is None:
        raise InputError("instant", expected="a datetime with a time zone", got=instant)
    return (instant - _EPOCH) // timedelta(microseconds=1) * 1000


def instant_text(now_ns: int, zone: str = "UTC") -> str:
    """Write epoch nanoseconds as ISO 8601 text in a time zone."""
    return (_EPOCH + timedelta(microseconds=now_ns // 1000)).astimezone(_zone(zone)).isoformat()


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, TypeError, ValueError) as error:
        hint = "Where the system has no time zone database, install the package tzdata"
        raise InputError("zone", expected="a name of the IANA time zone database", got=name, hint=hint) from error


def _midnight(local: date, tz: ZoneInfo) -> int:
    """Return the first second since 1970 at which the local calendar shows `local` or, if it was skipped, a later day.

    Midnight may not exist (clocks go forward over it): then the two readings of it lie around the change.
    """
    wall = datetime(local.year, local.month, local.day, tzinfo=tz)
    first, second = _posix(wall.replace(fold=0)), _posix(wall.replace(fold=1))
    if second >= first:  # it exists once, or twice and the first counts
        return first
    low, high = second - 1, first  # `low` lies before the change, `high` at or after it
    while high - low > 1:
        middle = (low + high) // 2
        shown = (_EPOCH + timedelta(seconds=middle)).astimezone(tz).date()
        low, high = (middle, high) if shown < local else (low, middle)
    return high


def _posix(instant: datetime) -> int:
    return (instant.astimezone(UTC) - _EPOCH) // _SECOND
