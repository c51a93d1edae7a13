"""Integer inverse-CDF tables: how a distribution becomes draws that are identical in every engine.

A table has 4,096 cells for the body of the distribution and 4,096 more inside each of the two end cells, so that tails
are resolved to 2^-24. A draw is ``q[i] + ((d[i] * f) >> 20)`` on int64: no exp, log or cos, whose last bits differ
between libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_lab.stats.distributions import Distribution

CELLS = 4096
_FRACTION_BITS = 20
_EDGE = 2.0**-40
_CLIP = "Clip it with low= and high="
_LARGEST = 2**53
_WIDEST = 2**43
"""A cell's width times its 20-bit fraction has to stay below 2^63."""


class Table:
    """The inverse CDF of one quantity, in whole units.

    Parameters
    ----------
    distribution : Distribution
        What to draw from.
    scale : float
        Units per unit of the distribution: 1e9 turns seconds into nanoseconds.

    Raises
    ------
    InputError
        If the distribution yields negative or non-finite values, values beyond 2^53 units (104 days, where a unit is a
        nanosecond), or a tail so heavy that neighbouring quantiles lie over 2^43 units (2.4 hours) apart; the last
        2^-40 of a tail counts, so a heavy one has to be clipped.
    """

    __slots__ = ("_arrays", "_cells")

    def __init__(self, distribution: Distribution, scale: float = 1.0) -> None:
        edges = [(0.0, 1.0), (0.0, 1 / CELLS), (1 - 1 / CELLS, 1.0)]
        body, low, high = (_cells(distribution, lo, hi, scale) for lo, hi in edges)
        widest = max(body[1][1:-1].max(), low[1].max(), high[1].max())
        if widest >= _WIDEST:
            expected = f"neighbouring quantiles less than {_WIDEST / scale:,.0f} apart, tails included"
            raise InputError(str(distribution), expected=expected, got=float(widest / scale), hint=_CLIP)
        self._set(np.stack([*body, *low, *high]))

    def _set(self, arrays: NDArray[np.int64]) -> None:
        self._arrays = arrays
        self._cells: tuple[list[int], ...] = tuple(arrays.tolist())

    def __getstate__(self) -> NDArray[np.int64]:
        """Return what is sent to a worker: one array of the smallest ints, made faster than lists, and smaller."""
        return self._arrays.astype(np.min_scalar_type(self._arrays.max()))

    def __setstate__(self, arrays: NDArray[np.int64]) -> None:
        self._set(arrays.astype(np.int64))

    def cells(self) -> tuple[list[int], ...]:
        """Return six lists of 4,096 ints: quantiles and their distances, of the body, the low end and the high end."""
        return self._cells

    def constant(self) -> int | None:
        """Return the one value of the table, None where it has several: a constant needs no draw."""
        values = {value for cells in self._cells[::2] for value in cells}
        widths = {width for cells in self._cells[1::2] for width in cells}
        return values.pop() if len(values) == 1 and widths == {0} else None

    def draw(self, word: int) -> int:
        """Return the value of a 64-bit word."""
        q, d, low_q, low_d, high_q, high_d = self._cells
        i: int = word >> 52
        if 0 < i < CELLS - 1:
            value: int = q[i] + (d[i] * ((word >> 32) & 0xFFFFF) >> _FRACTION_BITS)
            return value
        j = (word >> 40) & (CELLS - 1)
        f = (word >> 20) & 0xFFFFF
        value = low_q[j] + (low_d[j] * f >> _FRACTION_BITS) if i == 0 else high_q[j] + (high_d[j] * f >> _FRACTION_BITS)
        return value

    def draw_many(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the values of many words; each is that of :meth:`draw`."""
        i = (words >> np.uint64(52)).astype(np.int64)
        f = (words >> np.uint64(32)).astype(np.int64) & 0xFFFFF
        edge = (i == 0) | (i == CELLS - 1)
        value: NDArray[np.int64] = self._arrays[0][i] + (self._arrays[1][i] * f >> _FRACTION_BITS)
        if edge.any():
            value[edge] = [self.draw(word) for word in words[edge].tolist()]
        return value


def _cells(
    distribution: Distribution, low: float, high: float, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    grid = np.linspace(low, high, CELLS + 1)
    grid[0], grid[-1] = max(grid[0], _EDGE), min(grid[-1], 1 - _EDGE)
    quantiles = np.asarray(distribution.ppf(grid), dtype=float)
    values = quantiles * scale
    if not np.isfinite(values).all() or values.min() < 0 or values.max() >= _LARGEST:
        raise InputError(
            str(distribution),
            expected=f"values from 0 to {_LARGEST / scale:,.0f}, tails included",
            got=(float(quantiles.min()), float(quantiles.max())),
            hint=_CLIP,
        )
    edges = np.rint(values).astype(np.int64)
    return edges[:-1].copy(), np.diff(edges)
