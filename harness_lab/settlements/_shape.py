"""What a column of figures looks like: where it piles up, and whether it moved in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

QUANTITIES: Final = ("cost_nusd", "calls", "input_total", "output", "duration_ns")
"""Columns that are looked at for drift and for ceilings."""

LEAST: Final = 20
"""Rows below which nothing is said of a half, or of a pile."""

_Z: Final = 1.959964
"""The 97.5 % point of the normal distribution: intervals have 95 % confidence."""

_BIN: Final = 1.02
_MOST_ABOVE: Final = 0.05
_TIMES_NEIGHBOURS: Final = 5.0


class Pile(NamedTuple):
    """A value at which more rows lie than their neighbourhood lets expect, with few above it.

    Attributes
    ----------
    column : str
        The quantity.
    value : int
        Where, in the column's unit.
    rows, above, of : int
        Rows at the value (within 2 %), rows above, rows with a figure.
    declared : bool
        The records name a ceiling there.
    """

    column: str
    value: int
    rows: int
    above: int
    of: int
    declared: bool


class Shift(NamedTuple):
    """The later half of the rows against the earlier one.

    Attributes
    ----------
    column : str
        The quantity.
    n_earlier, n_later : int
        Rows with a figure.
    earlier, later : float
        Medians, in the column's unit.
    later_is_larger : float
        Chance that a row of the later half exceeds one of the earlier half (ties count half): 0.5 says no shift.
    low, high : float
        Its interval with 95 % confidence, for independent rows.
    """

    column: str
    n_earlier: int
    n_later: int
    earlier: float
    later: float
    later_is_larger: float
    low: float
    high: float

    @property
    def moved(self) -> bool:
        """Whether the interval leaves out 0.5."""
        return self.low > 0.5 or self.high < 0.5


def piles(nodes: pd.DataFrame) -> list[Pile]:
    """Find, for each quantity, the value at which rows pile up.

    Notes
    -----
    Values are counted in bins of 2 % (whole numbers below 50 in bins of one). A bin is a pile if it holds at least 5
    rows and 2 % of them, five times as many as the mean of the ten bins below it, and at most 5 % lie above: what an
    upper limit leaves behind. A pile that a declared ceiling explains is marked so.
    """
    found = []
    for name in QUANTITIES:
        values = nodes[name].dropna().to_numpy(dtype=np.float64)
        values = values[values > 0]
        if values.size >= LEAST:
            found += _pile(name, values, _declared(nodes, name))
    return found


def _pile(name: str, values: Floats, declared: Floats) -> list[Pile]:
    small = values.max() < 50
    bins = values.astype(np.int64) if small else np.floor(np.log(values) / np.log(_BIN)).astype(np.int64)
    counts = np.bincount(bins - bins.min())
    above = values.size - np.cumsum(counts)
    padded = np.concatenate((np.zeros(10), counts))
    below = np.array([padded[place : place + 10].mean() for place in range(counts.size)])
    enough = counts >= max(5, 0.02 * values.size)
    places = np.flatnonzero(enough & (counts >= _TIMES_NEIGHBOURS * below) & (above <= _MOST_ABOVE * values.size))
    if not places.size or counts.size == 1 or _all_below_alike(counts, int(places[-1])):
        return []
    place = int(places[-1])
    inside = values[bins - bins.min() == place]
    value = int(np.median(inside))
    known = bool(declared.size and (np.abs(declared - value) <= 0.03 * value).any())
    return [Pile(name, value, int(counts[place]), int(above[place]), values.size, known)]


def _all_below_alike(counts: npt.NDArray[np.int64], place: int) -> bool:
    """Whether nothing lies below the pile: then it is where the rows are, not where they were stopped."""
    return bool(counts[:place].sum() < LEAST // 2)


def _declared(nodes: pd.DataFrame, name: str) -> Floats:
    channel = {"cost_nusd": "cost", "calls": "calls", "input_total": "input", "duration_ns": "time_ns"}.get(name)
    if channel is None:
        return np.empty(0)
    return np.asarray(nodes[f"ceiling_{channel}"].dropna().unique(), dtype=np.float64)


def shifts(nodes: pd.DataFrame) -> list[Shift]:
    """Compare the half of the rows that started later with the half that started earlier, for each quantity."""
    dated = nodes[nodes["start_ns"].notna()].sort_values("start_ns", kind="stable")
    if len(dated) < 2 * LEAST:
        return []
    middle = len(dated) // 2
    found = []
    for name in QUANTITIES:
        earlier, later = (_known(part[name]) for part in (dated.iloc[:middle], dated.iloc[middle:]))
        if min(earlier.size, later.size) >= LEAST:
            found.append(_shift(name, earlier, later))
    return found


def _known(values: pd.Series) -> Floats:
    return np.asarray(values.dropna(), dtype=np.float64)


def _shift(name: str, earlier: Floats, later: Floats) -> Shift:
    """Return the comparison; the variance is that of the two sets of placements (DeLong et al. 1988).

    References
    ----------
    .. [1] DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
       receiver operating characteristic curves. Biometrics 44, 837-845. https://doi.org/10.2307/2531595
    """
    of_later = _placements(later, earlier)
    of_earlier = 1 - _placements(earlier, later)
    chance = float(of_later.mean())
    spread = float(np.sqrt(of_later.var(ddof=1) / later.size + of_earlier.var(ddof=1) / earlier.size))
    low, high = max(0.0, chance - _Z * spread), min(1.0, chance + _Z * spread)
    return Shift(
        name, earlier.size, later.size, float(np.median(earlier)), float(np.median(later)), chance, low, high
    )  # fmt: skip


def _placements(values: Floats, among: Floats) -> Any:
    """Return for each value the share of the others that it exceeds, ties half."""
    ordered = np.sort(among)
    below, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return (below + upto) / (2 * among.size)
