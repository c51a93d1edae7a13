"""The clock port: where time comes from.

Inside the package time is an ``int`` of nanoseconds on the run's own clock (0.7 + 0.1 < 0.8 in floats). Seconds as
floats exist only at the surface.
"""

from __future__ import annotations

import time
from numbers import Real
from operator import index
from typing import NewType, Protocol

from harness_lab.errors import InputError

Time = NewType("Time", int)
"""An instant, nanoseconds on the run's own clock."""

NS_PER_S = 1_000_000_000


def instant(what: str, value: object) -> Time:
    """Check an instant at the edge: whole nanoseconds, on whatever clock the run has.

    Raises
    ------
    InputError
        If it is no whole number. A float is refused whatever its value: it is likely to be seconds.

    Examples
    --------
    >>> instant("now", 1_500_000_000)
    1500000000
    """
    if type(value) is int:
        return Time(value)
    try:
        if not isinstance(value, bool):
            return Time(index(value))  # type: ignore[arg-type]  # integers of other libraries
    except TypeError:
        pass
    hint = "time.monotonic_ns() gives them, ns(seconds) converts"
    raise InputError(what, expected="whole nanoseconds", got=value, hint=hint)


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now(self) -> Time:
        """Return the current instant, nanoseconds."""
        ...


class MonotonicClock:
    """The machine's monotonic clock; the default in production."""

    __slots__ = ()

    def now(self) -> Time:
        """Return the current instant, nanoseconds."""
        return Time(time.monotonic_ns())


class ManualClock:
    """A clock that moves only when told to, for tests and notebooks.

    Examples
    --------
    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.now()
    1500000000
    """

    __slots__ = ("_now",)

    def __init__(self, start_ns: int = 0) -> None:
        self._now: int = instant("start_ns", start_ns)

    def now(self) -> Time:
        """Return the current instant, nanoseconds."""
        return Time(self._now)

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`; moving back is refused."""
        if seconds < 0:
            raise InputError("seconds", expected="a number >= 0", got=seconds)
        self._now += ns(seconds)

    def set(self, now: Time) -> None:
        """Set the current instant, nanoseconds; for callers that are told the time."""
        self._now = now


def ns(seconds: float, *, what: str = "seconds") -> int:
    """Convert seconds to nanoseconds, rounded to the nearest; `what` names them in the error.

    Raises
    ------
    InputError
        If `seconds` is not a finite number.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or seconds != seconds or abs(seconds) > 9e9:
        raise InputError(what, expected="a finite number below 9e9", got=seconds)
    return round((seconds if isinstance(seconds, (int, float)) else float(seconds)) * NS_PER_S)


def seconds(ns: int) -> float:
    """Convert nanoseconds to seconds."""
    return ns / NS_PER_S
