"""How benchmarks measure: pairs of measurements in one process, medians with their range."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def ratios(measure: Callable[[], float], against: Callable[[], float], *, repeats: int) -> list[float]:
    """Return the ratio of two measurements, taken in turn so that both meet the same load."""
    return [measure() / against() for _ in range(repeats)]


def entry(values: list[float], what: str) -> dict[str, object]:
    """Return median, lowest and highest of some ratios."""
    return {
        "value": round(statistics.median(values), 3),
        "low": round(min(values), 3),
        "high": round(max(values), 3),
        "what": what,
    }
