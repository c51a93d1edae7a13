"""Settings at a glance: what runs spend, how many complete, what stops them, and one run over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.outcome import Outcome
from harness_lab.plots.binding import plot_binding
from harness_lab.plots.compare import plot_metric
from harness_lab.plots.quantities import SHARE, Quantity
from harness_lab.plots.style import colour_of, draw_empty, headline, legend_below, new_axes, new_figure, tidy, wrapped
from harness_lab.plots.timeline import plot_timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
"""What tells lines apart without colour."""
FEW = 3
"""Lines whose names have room beside them; those of more are written below."""


def spread_height(count: int) -> float:
    """Return the height of the lines of `count` names, inches."""
    return 4.0 + (0.2 * count if count > FEW else 0.0)


def plot_spread(
    amounts: Mapping[str, np.ndarray], *, ax: Axes | None = None, shown: Quantity | None = None,
    title: str | None = None,
) -> Axes:  # fmt: skip
    """Draw which share of the runs used at most so much.

    Parameters
    ----------
    amounts : mapping of str to ndarray of float
        What each run used, by name, in the unit shown; NaN is unknown and left out.
    ax : Axes, optional
        Where to draw; a new figure if None.
    shown : Quantity, optional
        What it is; dollars spent by a run if None.
    title : str, optional
        The headline; None names the quantity, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, height=spread_height(len(amounts)))
    shown = Quantity(name="spend per run", unit="$") if shown is None else shown
    known = {name: np.sort(one[np.isfinite(one)]) for name, one in amounts.items()}
    known = {name: one for name, one in known.items() if one.size}
    if not known:
        return draw_empty(ax, f"no rows: {shown.name} is known of no run")
    few = len(known) <= FEW
    for name, one in reversed(known.items()):
        colour, style = colour_of(name, list(known)), STYLES[list(known).index(name) % len(STYLES)]
        shares = np.arange(1, one.size + 1) / one.size
        ax.step(
            one, shares, where="post", color=colour, linestyle=style, linewidth=2,
            label=f"{wrapped(name, width=24 if few else 44, lines=3 if few else 1)}, n = {one.size:,}",
        )  # fmt: skip
    tidy(ax)
    ax.set(xlim=(0, None), ylim=(0, 1.01), xlabel=shown.label, ylabel="share of the runs")
    shown.format_axis(ax.xaxis)
    SHARE.format_axis(ax.yaxis)
    ax.locator_params(axis="x", nbins=6)
    if few:
        ax.legend(loc="lower right", edgecolor="none", fontsize="small")
    else:
        legend_below(ax)
    headline(ax, f"{shown.name.capitalize()}: share of runs within" if title is None else title or None)
    return ax


def board_height(count: int) -> float:
    """Return the height of a board of `count` settings, inches."""
    return 6.6 + 0.85 * max(0, count - 2)


def plot_board(
    figures: pd.DataFrame, runs: Mapping[str, pd.DataFrame], tree: pd.DataFrame, *, figure: Figure | None = None
) -> Figure:
    """Draw settings, and the baseline beside them.

    Parameters
    ----------
    figures : DataFrame
        As for :func:`harness_lab.plots.plot_metric`, with the metrics ``completed`` and ``spend``; policies are names
        in `runs`.
    runs : mapping of str to DataFrame
        By name, one row per run: ``outcome, stopped_by, cost_nusd``.
    tree : DataFrame
        The nodes of one run, as for :func:`harness_lab.plots.plot_timeline`.
    figure : Figure, optional
        Where to draw; a new one if None.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    figure = new_figure(figure, width=10.5, height=board_height(len(runs)))
    grid: Any = [["spend", "completed"], ["spend", "mean"], ["binding", "tree"]]
    axes = figure.subplot_mosaic(grid, height_ratios=[1, 1, 2])
    names = list(runs)
    spent = {name: one["cost_nusd"].to_numpy(dtype=np.float64, na_value=np.nan) / 1e9 for name, one in runs.items()}
    plot_spread(spent, ax=axes["spend"])
    plot_metric(figures, "completed", ax=axes["completed"], policies=names)
    plot_metric(figures, "spend", ax=axes["mean"], policies=names)
    plot_binding(binding_of(runs), ax=axes["binding"], policies=names, title="What stopped runs")
    plot_timeline(tree, ax=axes["tree"], max_nodes=14)
    return figure


def binding_of(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how often each limit stopped a run, in the columns of :func:`harness_lab.plots.plot_binding`."""
    rows = []
    for name, one in runs.items():
        stopped = one.loc[one["outcome"] != Outcome.COMPLETED, "stopped_by"].dropna()
        for code, count in stopped.value_counts().items():
            rows.append({"policy": name, "level": "root", "stopped_by": str(code), "count": int(count), "of": len(one)})
    return pd.DataFrame(rows, columns=["policy", "level", "stopped_by", "count", "of"])
