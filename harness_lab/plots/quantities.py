"""Quantities in pictures: what a column is called on an axis, in which unit, and how its figures are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matplotlib.ticker import FuncFormatter, MaxNLocator

from harness_lab.writing import dollars, figure
from harness_lab.writing import percent as percent

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_STEPS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """How one quantity is shown to a person.

    Parameters
    ----------
    name : str
        What is measured, without its unit.
    unit : {"$", "s", "tokens", "calls", "%", "pts", ""}
        The unit of what is shown; ``%`` is a share from 0 to 1 written in per cent, ``pts`` a difference of shares.
    factor : float
        From the column's unit to the unit shown.
    """

    name: str
    unit: str = ""
    factor: float = 1.0

    @property
    def label(self) -> str:
        """The text of an axis, with the unit where the name does not hold it."""
        return self.label_of("")

    def label_of(self, what: str) -> str:
        """Return the text of an axis with `what` between name and unit."""
        shown = {"$": r"\$", "s": "s", "pts": "percentage points"}.get(self.unit, "")
        words = f"{self.name} {what}".strip()
        return f"{words}, {shown}" if shown else words

    def write(self, value: float) -> str:
        """Write a value of the column with its unit.

        Examples
        --------
        >>> quantity("input_total").write(31_211), quantity("calls").write(1)
        ('31,211 tokens', '1 call')
        """
        return write(value * self.factor, self.unit)

    def brief(self, value: float) -> str:
        """Write a value of the column for a mark that only helps to find one's way: tokens in thousands.

        Examples
        --------
        >>> quantity("tokens").brief(225_876), quantity("cost").brief(368_498_200)
        ('226k tokens', '$0.3685')
        """
        return f"{compact(value * self.factor)} tokens" if self.unit == "tokens" else self.write(value)

    def format_axis(self, axis: Axis) -> None:
        """Write an axis that is in the shown unit: ``$0.50``, ``12k``, ``90 s``, ``40 %``."""
        axis.set_major_formatter(FuncFormatter(lambda value, _at: tick(value, self.unit).replace("$", r"\$")))
        if self.unit == "calls":
            axis.set_major_locator(MaxNLocator(integer=True))


SHARE: Final = Quantity(name="share of runs", unit="%")
DOLLARS: Final = Quantity(name="spend", unit="$", factor=1e-9)
SECONDS: Final = Quantity(name="time", unit="s", factor=1e-9)

QUANTITIES: Final[dict[str, Quantity]] = {
    "cost": DOLLARS,
    "cost_nusd": DOLLARS,
    "cost_usd": Quantity(name="spend", unit="$"),
    "wasted_nusd": Quantity(name="wasted spend", unit="$", factor=1e-9),
    "wasted_usd": Quantity(name="wasted spend", unit="$"),
    "time": SECONDS,
    "duration_ns": SECONDS,
    "duration_s": Quantity(name="time", unit="s"),
    "calls": Quantity(name="model calls", unit="calls"),
    "tokens": Quantity(name="tokens", unit="tokens"),
    "input": Quantity(name="prompt tokens", unit="tokens"),
    "input_total": Quantity(name="prompt tokens", unit="tokens"),
    "fresh": Quantity(name="newly presented tokens", unit="tokens"),
    "output": Quantity(name="completion tokens", unit="tokens"),
}
"""Columns and channels that have a unit."""


def quantity(name: str) -> Quantity:
    """Return how a column or channel is shown; an unlisted one by its own name, without a unit.

    Examples
    --------
    >>> quantity("cost_nusd").write(368_498_200), quantity("duration_ns").label, quantity("tool_calls").label
    ('$0.3685', 'time, s', 'tool calls')
    """
    return QUANTITIES.get(name, Quantity(name=name.replace("_", " ")))


def write(value: float, unit: str) -> str:
    """Write a value for a sentence, with its unit; what is not finite is unknown.

    Examples
    --------
    >>> write(0.368, "$"), write(0.0042, "$"), write(1200, "$"), write(0.154, "%"), write(90, "s"), write(7200, "s")
    ('$0.368', '$0.0042', '$1,200', '15.4 %', '90 s', '2 h')
    """
    if not math.isfinite(value):
        return "unknown"
    if unit == "$":
        return dollars(value)
    if unit == "%":
        return percent(value)
    if unit == "pts":
        return f"{100 * value:.3g} pts"
    if unit == "s":
        return duration(value)
    words = {"calls": "call" if value == 1 else "calls"}.get(unit, unit)
    return f"{figure(value)} {words}".strip()


def tick(value: float, unit: str) -> str:
    """Write a value beside a tick: short, without the unit's word.

    Examples
    --------
    >>> tick(12_000, "tokens"), tick(0.5, "$"), tick(0.125, "$"), tick(0.4, "%"), tick(90, "s")
    ('12k', '$0.50', '$0.125', '40 %', '90')
    """
    if unit == "$":
        places = next((d for d in (0, 2, 3, 4, 5) if math.isclose(round(value, d), value, abs_tol=1e-9)), 6)
        return f"{'-' if value < 0 else ''}${abs(value):,.{places}f}"
    if unit == "%":
        return percent(value)
    return f"{100 * value:g}" if unit == "pts" else compact(value)


def compact(value: float) -> str:
    """Write a count in at most four characters or so.

    Examples
    --------
    >>> compact(999), compact(31_211), compact(2_500_000), compact(-1500)
    ('999', '31k', '2.5M', '-1.5k')
    """
    for size, letter in _STEPS:
        if abs(value) >= size:
            scaled = value / size
            return f"{scaled:.0f}{letter}" if abs(scaled) >= 10 else f"{scaled:.2g}{letter}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Write a time: seconds below two minutes, then minutes, hours, days.

    Examples
    --------
    >>> duration(0.25), duration(300), duration(5400), duration(864_000)
    ('0.25 s', '5 min', '90 min', '10 d')
    """
    for size, name in ((172_800, "d"), (7_200, "h"), (120, "min")):
        if abs(seconds) >= size:
            return f"{seconds / {'d': 86_400, 'h': 3_600, 'min': 60}[name]:.3g} {name}"
    return f"{seconds:.3g} s"
