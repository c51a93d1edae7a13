"""Prices and budgets: what runs cost against a flat price, and whom a budget that runs out blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.plots.quantities import SHARE, Quantity, write
from harness_lab.plots.rows import Side, name_rows, rows_height
from harness_lab.plots.style import (
    KEPT,
    NEUTRAL,
    PALETTE,
    REFUSED,
    draw_empty,
    headline,
    legend_below,
    new_axes,
    note,
    tidy,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


FEW: Final = 8
"""Rows up to which each has its whole text."""


def plot_flat_price(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the mean cost of a run with its interval beside its flat price.

    Parameters
    ----------
    frame : DataFrame
        ``name``, ``cost, low, high`` and ``price`` in dollars a run, ``text``; NaN: unknown.
    ax : Axes, optional
        Where to draw; a new figure if None.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=rows_height(len(frame)) + 0.4)
    if not len(frame):
        return draw_empty(ax, "no rows: no price was asked for")
    table = frame[["cost", "low", "high", "price"]].to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(table).any():
        return draw_empty(ax, "no price can be given: too few runs of known cost, or too few clusters")
    for row, (cost, low, high, price) in enumerate(table):
        first = row == 0
        ax.plot([low, high], [row, row], color=KEPT, linewidth=2.5, alpha=0.7)
        ax.plot([cost], [row], "o", color=KEPT, label="mean cost of a run" if first else None)
        ax.plot([price], [row], "D", color=REFUSED, markersize=8, label="flat price" if first else None)
        _say(ax, str(frame["text"].iloc[row]), row, table)
    name_rows(ax, [str(name) for name in frame["name"]])
    ax.set_xlim(0, (1.1 if len(frame) <= FEW else 1.35) * float(np.nanmax(table)))
    tidy(ax, grid="x")
    shown = Quantity(name="dollars a run", unit="$")
    ax.set_xlabel(shown.label)
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=6)
    headline(ax, "What does a flat price leave?")
    legend_below(ax)
    return ax


def _say(ax: Axes, text: str, row: int, table: NDArray[np.float64]) -> None:
    """Write a row's text above its price, or in short behind it where rows are many."""
    known = table[row][np.isfinite(table[row])]
    at = float(known[-1]) if known.size else 0.0
    if len(table) > FEW:
        note(ax, text.split(",")[0], (at, row), offset=(9, 0), side="left", level="center", gid=f"price-{row}")
        return
    side: Side = "right" if at > 0.8 * np.nanmax(table) else "center"
    note(ax, text, (at, row), offset=(0, 7), side=side, gid=f"price-{row}")


def plot_blocked(frame: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw each group's share of the runs, of the spend, and of the runs that are blocked when the budget is gone.

    Parameters
    ----------
    frame : DataFrame
        ``group, share_of_runs, share_of_spend, share_of_blocked``.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=rows_height(len(frame)) + 0.4)
    if not len(frame):
        return draw_empty(ax, "no rows: no groups were told apart")
    looks = (
        ("share_of_runs", NEUTRAL, "s", "of the runs"), ("share_of_spend", PALETTE[1], "^", "of the spend"),
        ("share_of_blocked", REFUSED, "X", "of the runs blocked"),
    )  # fmt: skip
    shares = frame[[name for name, *_ in looks]].to_numpy(dtype=np.float64)
    rows = np.arange(len(frame))
    ax.hlines(rows, shares.min(axis=1), shares.max(axis=1), color=NEUTRAL, alpha=0.5, linewidth=2)
    for name, colour, marker, label in looks:
        ax.plot(frame[name], rows, marker, color=colour, markersize=8, label=label)
    name_rows(ax, [str(group) for group in frame["group"]])
    ax.set_xlim(0, min(1.02, 1.15 * float(shares.max()) or 1.0))
    tidy(ax, grid="x")
    ax.set_xlabel("share of all")
    SHARE.format_axis(ax.xaxis)
    headline(ax, title)
    legend_below(ax, columns=3)
    return ax


def price_text(margin: float, month: float) -> str:
    """Write what a flat price leaves.

    Examples
    --------
    >>> price_text(0.2, 0.04), price_text(0.2, 0.0), price_text(float("nan"), float("nan"))
    ('margin 20 %, a month loses with chance 4 %', 'margin 20 %, a month loses with chance below 0.1 %', 'no price')
    """
    if not np.isfinite(margin):
        return "no price"
    chance = f", a month loses with chance {write(month, '%') if month >= 1e-3 else 'below 0.1 %'}"
    return f"margin {write(margin, '%')}{chance if np.isfinite(month) else ''}"
