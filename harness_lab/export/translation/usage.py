"""What runs used of a quantity, counted as a knob counts it: the values at which a limit there would do anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.export.scopes import counted_over

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pandas as pd

    from harness_lab.export.targets.base import Knob
    from harness_lab.export.values import Quantity

SUMMED: Final[dict[Quantity, tuple[tuple[str, int], ...]]] = {
    "calls": (("calls", 1),),
    "tool-calls": (("tool_calls", 1),),
    "input": (("input_total", 1),),
    "tokens": (("input_total", 1), ("output", 1)),
    "fresh": (("input_total", 1), ("output", 1), ("cache_read", -1)),
    "cost": (("cost_nusd", 1),),
}
"""Columns that make up a quantity; a run's is the sum over its nodes."""
NS_PER_S: Final = 10**9
FIGURES: Final = 3


def used(nodes: pd.DataFrame, knob: Knob) -> pd.Series:
    """Return what each unit of a knob's scope used of its quantity, in our units; what is unknown is left out."""
    rows = counted_over(nodes, knob.bounds[0])
    if knob.quantity == "time":
        roots = rows[rows["parent"].isna()] if knob.bounds[0] == "tree" else rows
        return roots["duration_ns"].dropna().astype("float64") / NS_PER_S
    columns = SUMMED[knob.quantity]
    known = [rows[name].astype("Float64") * sign for name, sign in columns]
    each = sum(known[1:], start=known[0])
    total = each.groupby(rows["run"].astype("string"), sort=False).sum(min_count=1).dropna().astype("float64")
    return total / NS_PER_S if knob.quantity == "cost" else total


def grid(values: Iterable[float], *, points: int, whole: bool) -> list[float]:
    """Return up to so many values of a sample, evenly spaced by rank, the smallest and the largest among them.

    Examples
    --------
    >>> grid([1, 1, 2, 3, 5, 8], points=4, whole=True)
    [1, 2, 3, 8]
    >>> grid([0.0123456, 12345.6], points=2, whole=False)
    [0.0123, 12300.0]
    """
    sample = np.sort(np.asarray(list(values), dtype=np.float64))
    if sample.size == 0:
        return []
    chosen = sample[np.linspace(0, sample.size - 1, points).round().astype(int)]
    return _short(chosen, whole=whole)


def between(low: float, high: float, *, points: int, whole: bool) -> list[float]:
    """Return up to so many values strictly between two.

    Examples
    --------
    >>> between(4, 8, points=5, whole=True), between(0.0, 1.0, points=1, whole=False)
    ([5, 6, 7], [0.5])
    """
    return [value for value in _short(np.linspace(low, high, points + 2)[1:-1], whole=whole) if low < value < high]


def _short(values: npt.NDArray[np.float64], *, whole: bool) -> list[float]:
    """Return positive amounts that a person would write: three figures, each once, in order."""
    kept = sorted({float(f"{value:.{FIGURES}g}") for value in values.tolist()})
    whole_ones = sorted({round(value) for value in kept})
    return [value for value in (whole_ones if whole else kept) if value > 0]
