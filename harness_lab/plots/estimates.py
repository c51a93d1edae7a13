"""Figures of one kind below one another, each with its interval: splits of spend, symptoms, what moved, chances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.errors import InputError
from harness_lab.plots.quantities import Quantity, write
from harness_lab.plots.rows import Row, draw_rows, rows_height
from harness_lab.plots.style import KEPT, NEUTRAL, REFUSED, draw_empty, headline, new_axes, tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

_NEEDED: Final = ("value", "low", "high")
_LETTERS: Final = 32
"""Of a line of a name: these are half sentences."""


def plot_estimates(
    frame: pd.DataFrame,
    names: str,
    *,
    ax: Axes | None = None,
    shown: Quantity | None = None,
    around_zero: bool = False,
    title: str | None = None,
) -> Axes:
    """Draw figures with their intervals; filled where the interval leaves out zero, or everywhere.

    Parameters
    ----------
    frame : DataFrame
        The column `names`, and ``value, low, high`` in the unit shown; NA is unknown, and said.
    names : str
        The column that names the rows.
    ax : Axes, optional
        Where to draw; a new figure if None.
    shown : Quantity, optional
        What it is, with its unit; a share if None.
    around_zero : bool
        Whether the figures are changes: zero is in the middle then, and what is surely above or below it is filled.
    title : str, optional
        The headline.

    Returns
    -------
    Axes
        The axes that were drawn on.

    Raises
    ------
    InputError
        If a column is missing.
    """
    missing = [name for name in (names, *_NEEDED) if name not in frame.columns]
    if missing:
        raise InputError("frame", expected=f"the columns {', '.join((names, *_NEEDED))}", got=f"no {missing[0]}")
    shown = Quantity(name="share", unit="%") if shown is None else shown
    ax = new_axes(ax, width=7.6, height=rows_height(len(frame)))
    if not len(frame):
        return draw_empty(ax, f"no rows: there is no {shown.name} to draw")
    rows = [_row(record, names, shown, around_zero=around_zero) for record in frame.to_dict("records")]
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if np.isfinite(end)]
    reach = 1.2 * max(ends, default=1.0) or 1.0
    colours = [_colour(row, around_zero=around_zero) for row in rows]
    limits = (-reach if around_zero else min(0.0, *(row.value for row in rows if np.isfinite(row.value)), 0.0), reach)
    draw_rows(ax, rows, limits=limits, colours=colours, markers=["o"] * len(rows), letters=_LETTERS)
    if around_zero:
        ax.axvline(0.0, color=NEUTRAL, linewidth=1.2)
    tidy(ax, grid="x")
    ax.set_xlabel(shown.label)
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=5)
    headline(ax, title or None)
    return ax


def plot_split(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw which part of a change in spend came from mix, tokens and price.

    Parameters
    ----------
    frame : DataFrame
        As :meth:`harness_lab.analyze.SpendSplit.to_frame` gives it.
    ax : Axes, optional
        Where to draw; a new figure if None.
    """
    effects = frame[~frame["figure"].str.endswith("spend per run")]
    shown = Quantity(name="change of the spend per run", unit="$")
    return plot_estimates(effects, "figure", ax=ax, shown=shown, around_zero=True, title="What changed the spend?")


def plot_symptoms(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how often each symptom of a budget that runs out was found.

    Parameters
    ----------
    frame : DataFrame
        As :meth:`harness_lab.analyze.Symptoms.to_frame` gives it.
    ax : Axes, optional
        Where to draw; a new figure if None.
    """
    named = frame.assign(name=frame["where"].astype(str) + ": " + frame["what"].astype(str))
    shown = Quantity(name="share of what was looked at", unit="%")
    return plot_estimates(named, "name", ax=ax, shown=shown, title="Which of these is it?")


def plot_chances(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how likely a later run uses more than an earlier one, quantity by quantity; a half is no change.

    Parameters
    ----------
    frame : DataFrame
        As :meth:`harness_lab.analyze.Drift.to_frame` gives it.
    ax : Axes, optional
        Where to draw; a new figure if None.
    """
    moved = frame[["group", "column"]].astype(str)
    named = frame.assign(
        name=moved["column"].where(moved["group"] == "all", moved["group"] + ": " + moved["column"]),
        value=frame["chance_value"], low=frame["chance_low"], high=frame["chance_high"],
    )  # fmt: skip
    shown = Quantity(name="chance that a later run uses more than an earlier one", unit="%")
    ax = plot_estimates(named, "name", ax=ax, shown=shown, title="What moved?")
    if len(named):
        ax.axvline(0.5, color=NEUTRAL, linewidth=1.2, label="no change")
    return ax


def _row(record: Mapping[Any, Any], names: str, shown: Quantity, *, around_zero: bool) -> Row:
    value, low, high = (_number(record[name]) for name in _NEEDED)
    text = "unknown" if np.isnan(value) else write(value, shown.unit)
    sure = not around_zero or low > 0 or high < 0
    return Row(name=str(record[names]), value=value, low=low, high=high, text=text, solid=sure)


def _number(value: object) -> float:
    """Return a figure as a float; what is unknown is NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _colour(row: Row, *, around_zero: bool) -> str:
    return KEPT if not around_zero or row.value <= 0 or np.isnan(row.value) else REFUSED
