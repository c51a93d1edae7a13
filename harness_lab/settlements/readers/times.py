"""Times as records write them: instants with and without a zone, and gaps between two of one clock."""

from __future__ import annotations

from typing import Final

from harness_lab.clock import NS_PER_S
from harness_lab.settlements.convert import Unfit, instant, is_naive

_MOST_HOURS: Final = 4_096
_PLAIN: Final = len("2026-01-15T12:10:12.532Z")
_MINUTES: Final = {f"{minute:02}:": minute * 60 * NS_PER_S for minute in range(60)}
_SECONDS: Final = {f"{second:02}.": second * NS_PER_S for second in range(60)}
_MILLIS: Final = {f"{milli:03}Z": milli * 1_000_000 for milli in range(1_000)}


def when(value: object) -> int | None:
    """Return an instant (ISO 8601, or milliseconds since 1970) as nanoseconds since 1970 UTC; None if it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000 if 0 <= value < 9_000_000_000_000 else None
    if not isinstance(value, str):
        return None
    try:
        return instant(value)
    except (Unfit, OverflowError, ValueError):
        return None


class Clock:
    """Fast reading of times as JavaScript writes them (``2026-01-15T12:10:12.532Z``); others are read as usual."""

    __slots__ = ("_hours",)

    def __init__(self) -> None:
        self._hours: dict[str, int] = {}

    def __call__(self, value: object) -> int | None:
        """Return an instant as :func:`when` does."""
        try:
            hour: int = self._hours[value[:14]]  # type: ignore[index]
            return hour + _MINUTES[value[14:17]] + _SECONDS[value[17:20]] + _MILLIS[value[20:]]  # type: ignore[index]
        except (KeyError, TypeError):
            return self._other(value) if isinstance(value, str) and len(value) == _PLAIN else when(value)

    def _other(self, value: str) -> int | None:
        """Read a time as usual and remember its hour."""
        hour = when(f"{value[:14]}00:00.000Z")
        if hour is not None:
            if len(self._hours) >= _MOST_HOURS:
                self._hours.clear()
            self._hours[value[:14]] = hour
        return when(value)


class Times:
    """Instants of one file; those without a zone are unknown, and counted."""

    __slots__ = ("naive",)

    def __init__(self) -> None:
        self.naive = 0

    def at(self, what: str, value: object) -> int | None:
        """Return an instant as nanoseconds since 1970 UTC; None for none, and for a time that names no zone.

        Raises
        ------
        Unfit
            If it is no time.
        """
        if value is None or value == "":
            return None
        try:
            if is_naive(value):
                self.naive += 1
                return None
            return instant(value)
        except (Unfit, OverflowError) as error:
            raise Unfit(f"{what}: {error}") from None

    def note(self, name: str, notes: list[str]) -> None:
        """Add a note if times without a zone were met."""
        if self.naive:
            notes.append(f"{name}: {self.naive:,} local time(s) without a zone; the start is unknown")


def between(start: object, end: object) -> int | None:
    """Return the nanoseconds between two times of the same clock, zone or none; None if one is missing or it ran back.

    Raises
    ------
    Unfit
        If one of them is no time.
    """
    if start is None or start == "" or end is None or end == "" or is_naive(start) != is_naive(end):
        return None
    try:
        gap = instant(end) - instant(start)
    except OverflowError:
        raise Unfit("times: should be ISO 8601 times") from None
    return gap if gap >= 0 else None
