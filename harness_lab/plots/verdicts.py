"""Answers in words as pictures: what of a config still holds, and quantiles however limits were set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.plots.quantities import quantity
from harness_lab.plots.rows import name_rows, rows_height
from harness_lab.plots.style import KEPT, NEUTRAL, PALETTE, REFUSED, draw_empty, headline, legend_below, new_axes, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

STATUSES: Final = {
    "holds": ("holds", KEPT, "o"), "unknown": ("cannot be told", NEUTRAL, "s"), "stale": ("stale", REFUSED, "X"),
}  # fmt: skip
"""Status → words, colour and marker."""


def plot_statuses(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw which assumptions hold, which are stale and of which nothing can be told.

    Parameters
    ----------
    frame : DataFrame
        ``what`` and ``status`` (``holds``, ``unknown``, ``stale``).
    ax : Axes, optional
        Where to draw; a new figure if None.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.6, height=rows_height(len(frame)))
    if not len(frame):
        return draw_empty(ax, "no rows: nothing was to be checked")
    places = {status: place for place, status in enumerate(STATUSES)}
    for row, status in enumerate(frame["status"].astype(str)):
        _, colour, marker = STATUSES[status]
        ax.plot([-0.5, 2.5], [row, row], color=NEUTRAL, alpha=0.35, linewidth=0.8)
        ax.plot([places[status]], [row], marker=marker, color=colour, markersize=11, linestyle="")
    ax.set_xticks(list(places.values()), labels=[words for words, _, _ in STATUSES.values()])
    ax.set_xlim(-0.5, 2.5)
    name_rows(ax, [str(what) for what in frame["what"]], width=34)
    tidy(ax, grid="x")
    counts = frame["status"].value_counts()
    headline(ax, f"{int(counts.get('stale', 0))} of {len(frame)} assumptions are stale")
    ax.set_xlabel("what the newer records say")
    return ax


def plot_bounds(frame: pd.DataFrame, *, ax: Axes | None = None, channel: str = "cost") -> Axes:
    """Draw quantiles that take limits as independent of the task, and the bounds that hold however they were set.

    Parameters
    ----------
    frame : DataFrame
        ``name`` (of the quantile), ``value, low, high``, ``worst_low, worst_high``, in the column's unit. An unknown
        upper bound goes to the end of the axis, with an arrow.
    ax : Axes, optional
        Where to draw; a new figure if None.
    channel : str
        What is limited: it gives the amounts their unit.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=rows_height(len(frame)) + 0.3)
    if not len(frame):
        return draw_empty(ax, "no rows: no quantile was asked for")
    shown = quantity(channel)
    names = ("value", "low", "high", "worst_low", "worst_high")
    table = frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan) * shown.factor
    end = 1.3 * (float(np.nanmax(table)) if np.isfinite(table).any() else 1.0)
    for row, (value, low, high, bottom, top) in enumerate(table):
        if np.isfinite(bottom):
            open_ended = not np.isfinite(top)
            label = "however limits were set" if row == 0 else None
            ax.plot([bottom, end if open_ended else top], [row, row], color=NEUTRAL, linewidth=7, alpha=0.45,
                    solid_capstyle="butt", label=label)  # fmt: skip
            if open_ended:
                ax.plot([end], [row], marker=">", color=NEUTRAL, markersize=9, clip_on=False)
        ax.plot([low, high], [row, row], color=PALETTE[0], linewidth=2.2)
        label = "limits taken as independent of the task" if row == 0 else None
        ax.plot([value], [row], marker="o", color=PALETTE[0], linestyle="", label=label)
    name_rows(ax, [str(name) for name in frame["name"]])
    ax.set_xlim(0, end)
    tidy(ax, grid="x")
    ax.set_xlabel(shown.label)
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=6)
    headline(ax, "How much do the answers hang on how the limits were set?")
    legend_below(ax)
    return ax
