"""Amounts without an interval, one bar a name: what each limit would have stopped, when each policy dropped out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.plots.quantities import Quantity, write
from harness_lab.plots.rows import name_rows, rows_height
from harness_lab.plots.style import KEPT, NEUTRAL, draw_empty, headline, ink, legend_below, new_axes, note, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_bars(
    frame: pd.DataFrame, *, ax: Axes | None = None, shown: Quantity, marked: str = "", title: str | None = None,
    empty: str = "no rows: there is nothing to draw",
) -> Axes:  # fmt: skip
    """Draw one bar a row, the first on top.

    Parameters
    ----------
    frame : DataFrame
        ``name``, ``value`` (in the unit shown; NaN: unknown, and said), ``marked`` (hatched, so that grey tells too).
    ax : Axes, optional
        Where to draw; a new figure if None.
    shown : Quantity
        What it is, with its unit.
    marked : str
        What a marked bar says; no legend if empty.
    title : str, optional
        The headline.
    empty : str
        What is written where there are no rows.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=rows_height(len(frame)))
    if not len(frame):
        return draw_empty(ax, empty)
    value = frame["value"].to_numpy(dtype=np.float64, na_value=np.nan)
    reach = float(np.nanmax(value)) if np.isfinite(value).any() else 0.0
    flags = frame["marked"].to_numpy(dtype=bool)
    for mine, colour, hatch, words in ((~flags, KEPT, "", "the others"), (flags, NEUTRAL, "///", marked)):
        at = np.flatnonzero(mine)
        if at.size:
            look = {"color": colour, "hatch": hatch, "edgecolor": ink(ax), "linewidth": 0.6}
            ax.barh(at, np.nan_to_num(value[at]), height=0.5, label=words, **look)
    for place, one in enumerate(value):
        text = write(float(one), shown.unit) if np.isfinite(one) else "unknown"
        note(ax, text, (np.nan_to_num(one), place), offset=(4, 0), side="left", level="center", gid=f"bar-{place}")
    name_rows(ax, [str(name) for name in frame["name"]])
    ax.set_xlim(0, 1.25 * reach or 1.0)
    tidy(ax, grid="x")
    ax.set_xlabel(shown.label)
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=6)
    headline(ax, title)
    if marked and flags.any():
        legend_below(ax)
    return ax
