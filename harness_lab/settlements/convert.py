"""From what a flat record says to what the table holds: dollars, seconds, dates, and targets that stand for a column.

The table keeps integers (nano-dollars, nanoseconds). Sources have dollars, seconds and dates, so every ``*_nusd``
column (and every cost amount) can also be given as ``*_usd``, and every ``*_ns`` column as ``*_s``; ``start`` and
``end`` are instants.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.settlements.columns import NODE_COLUMNS
from harness_lab.settlements.rows import comma, shown
from harness_lab.usage import nusd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_SECONDS: Final = Decimal(9_000_000_000)


class Unfit(ValueError):
    """A value that cannot be taken as what it was said to be; its text is the reason."""


def money(value: object) -> int:
    """Return dollars (number or text) as nano-dollars, exactly, half to even.

    Examples
    --------
    >>> money("0.3817132000000001")
    381713200
    """
    try:
        return nusd(value if not isinstance(value, str) else Decimal(value.strip().removeprefix("$")))
    except (InputError, InvalidOperation):
        raise Unfit(f"should be a finite number of dollars, at least 0{comma(value)}, got {shown(value)}") from None


def span(value: object) -> int:
    """Return seconds (number or text) as nanoseconds, rounded half to even."""
    return _nanoseconds(value, "should be a finite number of seconds, at least 0", low=Decimal(0))


def instant(value: object) -> int:
    """Return an instant as nanoseconds since 1970 UTC.

    Parameters
    ----------
    value : number, str or datetime
        Seconds since 1970, or an ISO 8601 date or time. A time without a zone is taken as UTC (see :func:`is_naive`).
    """
    moment = _moment(value)
    if moment is None:
        wanted = "should be seconds since 1970 or an ISO 8601 time"
        return _nanoseconds(value, wanted, low=-_MAX_SECONDS)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    gap = aware.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    whole = (gap.days * 86_400 + gap.seconds) * NS_PER_S + gap.microseconds * 1_000
    return whole + int(getattr(moment, "nanosecond", 0))


def is_naive(value: object) -> bool:
    """Whether `value` is a date or time that names no zone."""
    moment = _moment(value)
    return moment is not None and moment.tzinfo is None


def _moment(value: object) -> datetime | None:
    """Return `value` as a datetime if it is one or an ISO text; None if it may be a number."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if not isinstance(value, str) or "-" not in value.strip()[1:] or "e-" in value.lower():
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise Unfit(f"should be an ISO 8601 time, got {shown(value)}") from None


def _nanoseconds(value: object, wanted: str, *, low: Decimal) -> int:
    try:
        number = Decimal(str(value).strip()) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not low <= number <= _MAX_SECONDS:
        hint = " (milliseconds?)" if number.is_finite() and number > _MAX_SECONDS else ""
        raise Unfit(f"{wanted}{comma(value)}, got {shown(value)}{hint}")
    return int((number * NS_PER_S).to_integral_value())


def _targets() -> dict[str, tuple[str, Callable[[object], int]]]:
    found: dict[str, tuple[str, Callable[[object], int]]] = {"start": ("start_ns", instant), "end": ("end_ns", instant)}
    for column in NODE_COLUMNS:
        stem = column.name
        if stem.endswith("_nusd"):
            found[f"{stem.removesuffix('_nusd')}_usd"] = (stem, money)
        elif stem.endswith("_cost"):
            found[f"{stem}_usd"] = (stem, money)
        elif stem.endswith("_ns") and stem != "start_ns":
            found[f"{stem.removesuffix('_ns')}_s"] = (stem, span)
    return found


TARGETS: Final[Mapping[str, tuple[str, Callable[[object], int]]]] = _targets()
"""Field that can be given instead of a column → (that column, how to convert)."""


def converted(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with its ``*_usd``, ``*_s``, ``start`` and ``end`` fields turned into columns.

    Raises
    ------
    Unfit
        If one of them cannot be; the reason begins with the field's name.
    """
    row = {name: value for name, value in record.items() if name not in TARGETS}
    for name in record.keys() & TARGETS.keys():
        column, convert = TARGETS[name]
        try:
            row[column] = convert(record[name])
        except Unfit as error:
            raise Unfit(f"{name}: {error}") from None
    end, start = row.pop("end_ns", None), row.get("start_ns")
    if isinstance(end, int) and isinstance(start, int) and "duration_ns" not in row:
        if end < start:
            raise Unfit("end: should not be before start")
        row["duration_ns"] = end - start
    return row
