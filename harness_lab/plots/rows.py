"""Rows of figures with intervals: what comparisons of policies, groups or paths are drawn with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from harness_lab.plots.style import note, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


Side = Literal["left", "center", "right"]

_TWO_LINES = 0.32
"""Inches of a row that two lines need."""
_TEXT = 0.3
"""Inches that a row's text needs above its marker."""


class Row(NamedTuple):
    """One row, in the unit shown.

    Attributes
    ----------
    name : str
        What the row is about.
    value, low, high : float
        Figure and interval; NaN where unknown.
    text : str
        What is written beside the marker.
    solid : bool
        Whether the marker is filled.
    """

    name: str
    value: float
    low: float
    high: float
    text: str
    solid: bool


def rows_height(count: int) -> float:
    """Return the height of a panel with `count` rows, inches."""
    return 1.5 + 0.46 * max(count, 1)


def draw_rows(
    ax: Axes, rows: Sequence[Row], *, limits: tuple[float, float], colours: Sequence[str], markers: Sequence[str],
    letters: int = 22,
) -> None:  # fmt: skip
    """Draw markers with intervals, the first row on top, each with its text above.

    Parameters
    ----------
    ax : Axes
        Where.
    rows : sequence of Row
        What.
    limits : (float, float)
        Ends of the horizontal axis.
    colours, markers : sequence of str
        One each.
    letters : int
        Of a line of a name.
    """
    ax.set_xlim(*limits)
    name_rows(ax, [row.name for row in rows], width=letters)
    for y, (row, colour, marker) in enumerate(zip(rows, colours, markers, strict=True)):
        if np.isfinite(row.low) and np.isfinite(row.high):
            ends = [row.low, row.high]
            ax.plot(ends, [y, y], color=colour, linewidth=2.5, alpha=0.7, solid_capstyle="butt", clip_on=False)
        at = row.value if np.isfinite(row.value) else max(limits[0], 0.0)
        if np.isfinite(row.value):
            face = colour if row.solid else ax.get_facecolor()
            ax.plot(
                [at], [y], marker=marker, color=colour, markerfacecolor=face, markersize=7, markeredgewidth=1.5,
                clip_on=False,
            )  # fmt: skip
        _write(ax, row.text, at, y, limits)


def _write(ax: Axes, text: str, x: float, y: float, limits: tuple[float, float]) -> None:
    """Write a row's text above its marker, inwards where it is near an end of the axis."""
    place = (x - limits[0]) / (limits[1] - limits[0])
    side: Side = "left" if place < 0.12 else "right" if place > 0.88 else "center"
    note(ax, text, (x, y), offset=(0, 6), side=side, gid=f"row-{y:g}")


def name_rows(ax: Axes, names: Sequence[str], *, width: int = 22, room: float = _TEXT) -> None:
    """Write names beside rows 0, 1, 2 ... from the top down; on one line and smaller where rows are close together.

    Parameters
    ----------
    ax : Axes
        Where.
    names : sequence of str
        The first one comes on top.
    width : int
        Letters of a line of a name.
    room : float
        Inches that are left above the first row for what is written there.
    """
    figure = ax.get_figure(root=True)
    inches = 4.0 if figure is None else figure.get_size_inches()[1] * ax.get_position().height
    close = inches < _TWO_LINES * len(names)
    lines, letters = (1, 2 * width) if close else (2, width)
    ax.set_yticks(range(len(names)), labels=[wrapped(name, width=letters, lines=lines) for name in names])
    above = max(0.75, room * len(names) / max(inches, 0.1))
    ax.set_ylim(max(len(names), 1) - 0.5, -above)
    ax.tick_params(axis="y", length=0, **({"labelsize": "small"} if close else {}))
