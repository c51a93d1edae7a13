"""How amounts are written for a target: counts, dollars, seconds; what does not fit is refused or adjusted and told."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from harness_lab.clock import ns
from harness_lab.usage import nusd, usd

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON and TypeScript reader holds exactly."""
INT32 = 2**31 - 1
INT64 = 2**63 - 1


class Unfit(Exception):
    """The target cannot be told such an amount; the text says why."""


class Amount(Protocol):
    """A way of writing an amount."""

    def write(self, value: float) -> tuple[int | float | str, str]:
        """Return what is written, and how it was adjusted; raises Unfit."""

    def read(self, written: float | str) -> int | float:
        """Return our amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number.

    Parameters
    ----------
    least, most : int
        What the target accepts. Less is unfit; more is written as `most`, which is said.
    why : str
        What the target makes of a smaller one.
    """

    least: int = 0
    most: int = SAFE_INTEGER
    why: str = ""

    def write(self, value: float) -> tuple[int, str]:
        """Return the number."""
        number = int(value)
        if number < self.least:
            raise Unfit(f"must be at least {self.least} there{f': {self.why}' if self.why else ''}")
        if number > self.most:
            return self.most, f"{number} is written as {self.most}, the largest it can hold"
        return number, ""

    def read(self, written: float | str) -> int:
        """Return the count."""
        return int(written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dollars:
    """Dollars, exact to the nano-dollar, which is how they are enforced here.

    Parameters
    ----------
    zero : str
        Why 0 is unfit; empty: it is a limit like any other.
    """

    zero: str = ""

    def write(self, value: float) -> tuple[float, str]:
        """Return the dollars."""
        exact = usd(nusd(value))
        if exact == 0 and self.zero:
            raise Unfit(self.zero)
        return exact, "" if exact == value else f"{value} is {exact}, to the nano-dollar"

    def read(self, written: float | str) -> float:
        """Return the dollars."""
        return float(written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """A duration.

    Parameters
    ----------
    per_second : int
        Units in a second: 1000 for milliseconds.
    whole : bool
        Whether only whole units can be written; a fraction is cut off, so that the limit is never exceeded, and said.
    least : int
        Least units accepted; less is unfit.
    why : str
        What the target makes of less.
    """

    per_second: int = 1
    whole: bool = True
    least: float = 0
    why: str = ""

    def write(self, value: float) -> tuple[int | float, str]:
        """Return the units, of the seconds as they are written in decimals: 67108864.527 s are 67108864527 ms."""
        ns(value)  # refuses what is no time
        units, rest = divmod(Decimal(str(value)) * self.per_second, 1)
        whole = int(units)
        written = whole if self.whole or not rest else value * self.per_second
        if written < self.least:
            raise Unfit(f"must be at least {self.least} there{f': {self.why}' if self.why else ''}")
        cut = self.whole and rest
        return written, f"{value} s is cut to {written / self.per_second} s" if cut else ""

    def read(self, written: float | str) -> float:
        """Return the seconds."""
        number = float(written) / self.per_second
        return int(number) if number.is_integer() and self.whole else number


Written = int | float | str
