"""Chances that come out of a model of a sum: said no finer than the records can show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness_lab.stats.estimates import Interval

if TYPE_CHECKING:
    from harness_lab.stats.estimates import Estimate

LEAST_CHANCE: Final = 1e-3
"""No chance is told from 0, or from 1, beyond this: what lies further out in the tail has not been seen."""


def within_sight(chance: Estimate) -> Estimate:
    """Return a chance without digits that nothing recorded supports.

    A chance below :data:`LEAST_CHANCE` becomes 0 with an interval that reaches at least that far; one near 1 likewise.
    """
    value = None if chance.value is None else _seen(chance.value)
    if not isinstance(chance.interval, Interval):
        return replace(chance, value=value)
    low, high = min(_seen(chance.interval.low), 1 - LEAST_CHANCE), max(_seen(chance.interval.high), LEAST_CHANCE)
    return replace(chance, value=value, interval=replace(chance.interval, low=low, high=high))


def chance_text(chance: Estimate) -> str:
    """Write a chance that :func:`within_sight` returned.

    Examples
    --------
    >>> from harness_lab.stats.estimates import Estimate
    >>> ends = Interval(low=2e-9, high=4e-5, confidence=0.95, method="model")
    >>> chance_text(within_sight(Estimate(value=3e-28, interval=ends, n=100, method="model")))
    'below 0.001 [0, 0.001] (95 %, n = 100, model)'
    """
    text = str(chance)
    if chance.value == 0:
        return f"below {LEAST_CHANCE:g}{text.removeprefix('0')}"
    return f"above {1 - LEAST_CHANCE:g}{text.removeprefix('1')}" if chance.value == 1 else text


def _seen(value: float) -> float:
    return 0.0 if value < LEAST_CHANCE else 1.0 if value > 1 - LEAST_CHANCE else value
