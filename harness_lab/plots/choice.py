"""Choosing among policies: means with intervals, and two objectives at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from harness_lab.plots.style import colour_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    for place, (_, row) in enumerate(frame.iterrows()):
        colour = colour_of(str(row["policy"]), [str(name) for name in frame["policy"]])
        ax.plot([float(row["low"]), float(row["high"])], [place, place], color=colour)
        fill = colour if row["maybe_best"] else "white"
        ax.plot([float(row["value"])], [place], marker="o", linestyle="", color=colour, markerfacecolor=fill)
    unit = str(frame["unit"].iloc[0]) if len(frame) else ""
    words = f"{metric}{f', {unit}' if unit else ''}{f' (filled: {filled})' if filled else ''}"
    ax.set(xlabel=words, ylim=(len(frame) - 0.5, -0.5))
    ax.set_yticks(range(len(frame)), [str(name) for name in frame["policy"]])
    return ax


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
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    up, across = objectives
    for _, row in frame.iterrows():
        names = [str(name) for name in frame["policy"]]
        colour, x, y = colour_of(str(row["policy"]), names), float(row[across]), float(row[up])
        ends = [[abs(v - float(row[f"{name}_{end}"]))] for name, v in ((across, x), (up, y)) for end in ("low", "high")]
        fill = {"on the front": colour, "dominated": "white"}.get(str(row["place"]), "lightgrey")
        ax.errorbar(
            x, y, xerr=np.nan_to_num(ends[:2]), yerr=np.nan_to_num(ends[2:]), fmt="o", color=colour,
            markerfacecolor=fill,
            label=f"{row['policy']} ({row['place']})",
        )  # fmt: skip
    ax.set(xlabel=labels[1], ylabel=labels[0])
    ax.legend(loc="best", fontsize="small")
    return ax
