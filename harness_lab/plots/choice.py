"""Choosing among policies: means with intervals, and two objectives at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.plots.compare import METRICS
from harness_lab.plots.quantities import Quantity
from harness_lab.plots.rows import name_rows
from harness_lab.plots.style import colour_of, draw_empty, legend_below, marker_of, new_axes, tidy, wrapped

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_FEW: Final = 6
"""Policies whose names are written in full below a front."""


def plot_best(frame: pd.DataFrame, *, ax: Axes | None = None, metric: str = "", filled: str = "") -> Axes:
    """Draw each policy's mean with its interval; rows with ``maybe_best`` are filled.

    Parameters
    ----------
    frame : DataFrame
        ``policy, value, low, high, unit, maybe_best``.
    ax : Axes, optional
        Where to draw.
    metric : str
        The metric in words.
    filled : str
        What a filled marker says; nothing if empty.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, height=1.6 + 0.4 * max(len(frame), 2))
    if not len(frame):
        return draw_empty(ax, "no rows: no policy to draw")
    for place, (_, row) in enumerate(frame.iterrows()):
        colour = colour_of(str(row["policy"]), [str(name) for name in frame["policy"]])
        ax.plot([float(row["low"]), float(row["high"])], [place, place], color=colour)
        fill = colour if row["maybe_best"] else ax.get_facecolor()
        ax.plot([float(row["value"])], [place], marker="o", linestyle="", color=colour, markerfacecolor=fill)
    unit = str(frame["unit"].iloc[0]) if len(frame) else ""
    words = f"{metric}{f', {unit}' if unit else ''}{f' (filled: {filled})' if filled else ''}"
    ax.set(xlabel=words, ylim=(len(frame) - 0.5, -0.5))
    tidy(ax, grid="x")
    name_rows(ax, [str(name) for name in frame["policy"]])
    return ax


def front_height(count: int) -> float:
    """Return the height of a front of `count` policies, inches: their names stand below it."""
    return 4.0 + 0.19 * count


def _named(policy: str, place: str, *, count: int) -> str:
    return (
        wrapped(f"{policy} ({place})", width=38) if count <= _FEW else f"{wrapped(policy, width=44, lines=1)} ({place})"
    )


def plot_front(
    frame: pd.DataFrame, objectives: tuple[str, ...], *, ax: Axes | None = None, labels: tuple[str, ...] = ("", "")
) -> Axes:
    """Draw policies in two objectives with their intervals; dominated ones are hollow, sure ones are filled.

    Parameters
    ----------
    frame : DataFrame
        ``policy``, both objectives with ``_low`` and ``_high``, ``place``.
    objectives : tuple of str
        The two columns, vertical first.
    ax : Axes, optional
        Where to draw.
    labels : tuple of str
        Axis labels, with units, in the same order.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, height=front_height(len(frame)))
    if not len(frame):
        return draw_empty(ax, "no rows: no policy to draw")
    up, across = objectives
    names = [str(name) for name in frame["policy"]]
    for place, (_, row) in enumerate(frame.iterrows()):
        colour, x, y = colour_of(str(row["policy"]), names), float(row[across]), float(row[up])
        ends = [[abs(v - float(row[f"{name}_{end}"]))] for name, v in ((across, x), (up, y)) for end in ("low", "high")]
        fill = {"on the front": colour, "dominated": ax.get_facecolor()}.get(str(row["place"]), "lightgrey")
        point = ax.errorbar(
            x, y, xerr=np.nan_to_num(ends[:2]), yerr=np.nan_to_num(ends[2:]), color=colour,
            fmt=marker_of(str(row["policy"]), names), markerfacecolor=fill,
            label=_named(str(row["policy"]), str(row["place"]), count=len(frame)),
        )  # fmt: skip
        point[0].set_gid(f"point-{place}")
    tidy(ax)
    ax.margins(0.15)
    ax.set(xlabel=labels[1], ylabel=labels[0])
    for name, axis in ((across, ax.xaxis), (up, ax.yaxis)):
        METRICS.get(name, Quantity(name=name)).format_axis(axis)
    legend_below(ax, columns=2 if len(frame) <= _FEW else 3)
    return ax
