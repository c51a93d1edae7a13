"""A sample's distribution function beside those of models of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.plots.quantities import SHARE, Quantity
from harness_lab.plots.style import NEUTRAL, PALETTE, draw_empty, headline, ink, legend_below, new_axes, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_STYLES = ("--", "-.", ":")


def plot_fit(curves: pd.DataFrame, *, ax: Axes | None = None, unit: str = "", censored: int = 0) -> Axes:
    """Draw what share of the values lies at or below each amount, in the sample and by each model.

    Parameters
    ----------
    curves : DataFrame
        ``value`` (the sample, sorted, in the unit shown) and one column a model: its share at or below the value.
    ax : Axes, optional
        Where to draw; a new figure if None.
    unit : str
        Of the values.
    censored : int
        Values that are only lower bounds; where there are any, the sample's line is too high and says so.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.0, height=4.2)
    if not len(curves):
        return draw_empty(ax, "no rows: there is no sample to draw")
    x = curves["value"].to_numpy(dtype=np.float64)
    share = np.arange(1, x.size + 1) / x.size
    note = f"sample ({censored:,} only lower bounds)" if censored else "sample"
    ax.step(x, share, where="post", color=ink(ax), linewidth=2.6, alpha=0.55, label=note)
    for place, name in enumerate(curves.columns.drop("value")):
        style = _STYLES[place % len(_STYLES)]
        ax.plot(x, curves[name], style, color=PALETTE[(3 * place) % len(PALETTE)], linewidth=1.8, label=name)
    shown = Quantity(name={"$": "spend", "s": "time", "calls": "model calls"}.get(unit, unit or "value"), unit=unit)
    if x.min() > 0 and x.max() > 20 * x.min():
        ax.set_xscale("log")
    ax.axhline(1.0, color=NEUTRAL, linewidth=0.8)
    tidy(ax)
    ax.set(xlabel=shown.label, ylabel="share at or below", ylim=(0, 1.03))
    shown.format_axis(ax.xaxis)
    SHARE.format_axis(ax.yaxis)
    headline(ax, "Which distribution describes it?")
    legend_below(ax, columns=3)
    return ax
