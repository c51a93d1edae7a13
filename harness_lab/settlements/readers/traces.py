"""Request traces and aggregates that people publish, made ready for a column map; one row is one request or aggregate.

Traces say when requests came and how large they were; who asked, and how it ended, they mostly do not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.rows import shown

Row = Mapping[str, Any]

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_MAX_NS: Final = 2**62


def request(row: Row) -> dict[str, Any]:
    """Return a row as one call."""
    return {**row, "calls": 1}


def mooncake(row: Row) -> dict[str, Any]:
    """Return a row of a Mooncake trace, with its arrival (milliseconds since the trace's start) in nanoseconds."""
    return {**row, "calls": 1, "start_ns": _offset("timestamp", row.get("timestamp"), _NS_PER_MS)}


def burstgpt(row: Row) -> dict[str, Any]:
    """Return a row of BurstGPT, with its arrival in nanoseconds; no answer tokens means that the request failed."""
    failed = str(row.get("Response tokens")).strip() in {"0", "0.0"}
    start = _offset("Timestamp", row.get("Timestamp"), _NS_PER_S)
    known = {**row, "calls": 1, "start_ns": start, "outcome": "failed" if failed else "completed"}
    return known | {"Response tokens": None} if failed else known


def benchmark(row: Row) -> dict[str, Any]:
    """Return a leaderboard row; a cost of 0 is none that was known, and neither is a prompt of 0 tokens."""
    known = dict(row)
    for name in ("total_cost", "prompt_tokens", "completion_tokens"):
        if str(row.get(name)).strip() in {"0", "0.0", "0.0000"}:
            known[name] = None
    return known


def _offset(what: str, value: object, unit: int) -> int | None:
    """Return a time on a trace's own clock in nanoseconds, exactly."""
    if value is None or value == "":
        return None
    try:
        number = Decimal(str(value).strip()) * unit
        whole = int(number.to_integral_value()) if number.is_finite() and abs(number) <= _MAX_NS else -1
    except InvalidOperation:
        whole = -1
    if whole < 0:
        raise Unfit(f"{what}: should be a number, at least 0, got {shown(value)}")
    return whole
