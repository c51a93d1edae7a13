"""Two or more figures against one knob, each with its band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter

from harness_lab.plots.quantities import compact
from harness_lab.plots.style import NEUTRAL, colour_of, draw_empty, legend_below, new_axes, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

_STYLES = ("-", "--", ":", "-.")


def plot_lines(
    frame: pd.DataFrame, knob: str, figures: Sequence[str], *, ax: Axes | None = None, mark: float | None = None,
    xlabel: str = "", ylabel: str = "",
) -> Axes:  # fmt: skip
    """Draw figures against a knob.

    Parameters
    ----------
    frame : DataFrame
        `knob` and each figure, with ``_low`` and ``_high`` beside it where it has a band.
    knob : str
        The horizontal column.
    figures : sequence of str
        The columns to draw.
    ax : Axes, optional
        Where to draw.
    mark : float, optional
        A value of the knob to mark.
    xlabel, ylabel : str
        Labels, with units.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax)
    if not len(frame):
        return draw_empty(ax, "no rows: there is nothing to draw the lines from")
    for name in figures:
        colour = colour_of(name, figures)
        if f"{name}_low" in frame.columns:
            ax.fill_between(
                frame[knob], frame[f"{name}_low"], frame[f"{name}_high"], color=colour, alpha=0.2, step="post"
            )
        style = _STYLES[list(figures).index(name) % len(_STYLES)]
        ax.step(frame[knob], frame[name], where="post", color=colour, linestyle=style, label=name.replace("_", " "))
    if mark is not None:
        ax.axvline(mark, color=NEUTRAL, linestyle="-", linewidth=1.5, label="chosen")
    tidy(ax)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if float(frame[knob].abs().max()) >= 1_000:
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: compact(value)))
        ax.locator_params(axis="x", nbins=7)
    legend_below(ax, columns=3)
    return ax
