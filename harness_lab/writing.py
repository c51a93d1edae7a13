"""How figures are written for a person: one rule for texts, tables and pictures, so that they say the same number."""

from __future__ import annotations

import math
from decimal import Decimal


def figure(value: float) -> str:
    """Write a number: thousands apart, four significant digits.

    Examples
    --------
    >>> figure(31211), figure(0.36849), figure(float("inf"))
    ('31,211', '0.3685', 'no end')
    """
    if math.isinf(value):
        return "no end"
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.4g}"


def dollars(value: float) -> str:
    """Write an amount of money: four significant digits, and cents in full where there are any.

    Examples
    --------
    >>> dollars(0.80919), dollars(-0.3), dollars(12), dollars(1234.5), dollars(0.0000421)
    ('$0.8092', '-$0.30', '$12', '$1,234', '$0.0000421')
    """
    if math.isinf(value):
        return figure(value)
    amount = abs(value)
    whole = amount >= 1000 or float(f"{amount:.4g}").is_integer()
    shown = f"{round(amount):,}" if whole else _places(amount)
    return f"{'-' if value < 0 else ''}${shown}"


def percent(share: float) -> str:
    """Write a share as a percentage: three significant digits, four above 99 %; what rounding makes of 0 is 0.

    Examples
    --------
    >>> percent(0.95), percent(0.607), percent(0.9995), percent(0.0184), percent(3e-8), percent(1e-17)
    ('95 %', '60.7 %', '99.95 %', '1.84 %', '0.000003 %', '0 %')
    """
    if abs(share) < 1e-12:
        return "0 %"
    digits = 4 if share > 0.99 else 3
    return f"{_plain(f'{100 * share:.{digits}g}')} %"


def _plain(number: str) -> str:
    """Return a number without an exponent."""
    return f"{Decimal(number):f}" if "e" in number else number


def _places(amount: float) -> str:
    """Return four significant digits without exponent, at least two of them behind the point."""
    behind = max(2, 3 - math.floor(math.log10(amount)))
    head, tail = f"{amount:.{behind}f}".split(".")
    return f"{head}.{tail.rstrip('0').ljust(2, '0')}"
