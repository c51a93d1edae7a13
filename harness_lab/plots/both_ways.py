"""One ceiling asked of records and of a simulation: two curves of completion, and where they surely differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.plots.quantities import SHARE, quantity
from harness_lab.plots.style import NEUTRAL, PALETTE, draw_empty, headline, ink, legend_below, new_axes, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_both_ways(
    frame: pd.DataFrame, *, ax: Axes | None = None, channel: str = "cost", target: float | None = None
) -> Axes:
    """Draw the share of runs that complete under each ceiling, by replay and by simulation, each with its band.

    Parameters
    ----------
    frame : DataFrame
        ``ceiling`` (column's unit), ``replayed`` and ``simulated`` with ``_low`` and ``_high``, and ``differs``: where
        they surely do, which is marked. NaN: not known.
    ax : Axes, optional
        Where to draw; a new figure if None.
    channel : str
        What is limited: it gives the ceilings their unit.
    target : float, optional
        The share that is aimed at.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=4.4)
    if not len(frame):
        return draw_empty(ax, "no rows: no ceiling was asked for")
    shown = quantity(channel)
    x = frame["ceiling"].to_numpy(dtype=np.float64) * shown.factor
    for name, colour, style in (("replayed", PALETTE[0], "-"), ("simulated", PALETTE[3], "--")):
        value, low, high = (frame[f"{name}{end}"].to_numpy(dtype=np.float64) for end in ("", "_low", "_high"))
        ax.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(x, value, style, color=colour, linewidth=2, label=name)
    differs = frame["differs"].to_numpy(dtype=bool)
    if differs.any():
        mark = {"marker": "x", "linestyle": "", "color": ink(ax), "markersize": 6}
        ax.plot(x[differs], frame["simulated"].to_numpy(dtype=np.float64)[differs], label="they surely differ", **mark)
    if target is not None:
        ax.axhline(target, color=NEUTRAL, linewidth=1.2, linestyle=":", label="target")
    if x.min() > 0 and x.max() > 30 * x.min():
        ax.set_xscale("log")
    tidy(ax)
    ax.set(xlabel=f"ceiling on {shown.label}", ylabel="share of all runs completed", ylim=(0, 1.02))
    shown.format_axis(ax.xaxis)
    ax.xaxis.set_minor_formatter("")
    SHARE.format_axis(ax.yaxis)
    headline(ax, f"Does a limit on {shown.name} do in simulation what it does to the records?")
    legend_below(ax, columns=4)
    return ax
