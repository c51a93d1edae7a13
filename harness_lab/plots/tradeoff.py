"""Two or more figures against one knob, each with its band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.plots.style import colour_of, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes


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
    for name in figures:
        colour = colour_of(name, figures)
        if f"{name}_low" in frame.columns:
            ax.fill_between(
                frame[knob], frame[f"{name}_low"], frame[f"{name}_high"], color=colour, alpha=0.2, step="post"
            )
        ax.step(frame[knob], frame[name], where="post", color=colour, label=name.replace("_", " "))
    if mark is not None:
        ax.axvline(mark, color="0.4", linestyle="--", label="chosen")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(fontsize="small")
    return ax
