"""One run over time with everything that was asked: calls, waiting, refusals, cancellations, and a place in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.errors import InputError
from harness_lab.plots.style import REFUSED, ink, legend_below
from harness_lab.plots.timeline import MAX_NODES, plot_timeline, tree_order

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NEEDED: Final = ("time_ns", "event", "node", "call", "attempt", "answer")


def plot_run(
    nodes: pd.DataFrame,
    events: pd.DataFrame,
    *,
    ax: Axes | None = None,
    at: int | None = None,
    max_nodes: int = MAX_NODES,
    title: str | None = None,
) -> Axes:
    """Draw one run's tree over time, and what was asked in it.

    Parameters
    ----------
    nodes : DataFrame
        As for :func:`harness_lab.plots.plot_timeline`.
    events : DataFrame
        One row per question or piece of news, as :meth:`harness_lab.simulate.Timeline.to_frame` gives them.
    ax : Axes, optional
        Where to draw; a new figure if None.
    at : int, optional
        The event (by its place) that is pointed at.
    max_nodes : int
        Nodes that are drawn.
    title : str, optional
        As for :func:`harness_lab.plots.plot_timeline`.

    Returns
    -------
    Axes
        The axes that were drawn on; each event that has a mark is a group ``event-PLACE`` in an SVG.

    Raises
    ------
    InputError
        If a column is missing.
    """
    missing = [name for name in _NEEDED if name not in events.columns]
    if missing:
        raise InputError("events", expected=f"the columns {', '.join(_NEEDED)}", got=f"no {', '.join(missing)}")
    ax = plot_timeline(nodes, ax=ax, max_nodes=max_nodes, title=title)
    if not len(nodes):
        return ax
    starts = nodes["start_ns"].to_numpy(dtype=np.float64, na_value=np.nan) / 1e9
    names = [str(nodes["node"].iloc[k]) for k in tree_order(nodes, starts)][:max_nodes]
    rows = {name: y for y, name in enumerate(names)}
    began = float(np.nanmin(starts)) if np.isfinite(starts).any() else 0.0
    times = events["time_ns"].to_numpy(dtype=np.float64) / 1e9 - began
    handles = [*_spans(ax, events, times, rows), *_marks(ax, events, times, rows)]
    if at is not None:
        ax.axvline(times[at], color=ink(ax), linewidth=1.2, gid="cursor")
        if (y := rows.get(str(events["node"].iloc[at]))) is not None:
            ax.plot([times[at]], [y], marker="v", color=ink(ax), markersize=9, clip_on=False, gid="here")
    legend = ax.get_legend()
    known = [] if legend is None else list(legend.legend_handles)
    legend_below(ax, [*known, *handles], columns=4)
    return ax


def _spans(ax: Axes, events: pd.DataFrame, times: np.ndarray, rows: dict[str, int]) -> list[object]:
    """Draw each call from its grant to its settlement, and each wait until its answer."""
    open_: dict[tuple[str, str, str], tuple[int, str]] = {}
    shown: dict[str, object] = {}
    for k, row in enumerate(events.to_dict("records")):
        key = (str(row["node"]), str(row["call"]), str(row["attempt"]))
        if key in open_ and row["event"] in ("admit", "spawn", "settle", "close", "cancel", "answer"):
            began, what = open_.pop(key)
            if (y := rows.get(key[0])) is not None:
                width, style = (3.0, "-") if what == "call" else (2.0, ":")
                shown[what] = ax.plot(
                    [times[began], times[k]], [y, y], color=ink(ax), linewidth=width, linestyle=style,
                    solid_capstyle="butt", label=what, gid=f"event-{began}",
                )[0]  # fmt: skip
        if row["event"] == "admit" and row["answer"] == "granted":
            open_[key] = (k, "call")
        elif row["answer"] == "waits":
            open_[key] = (k, "waiting")
    return list(shown.values())


def _marks(ax: Axes, events: pd.DataFrame, times: np.ndarray, rows: dict[str, int]) -> list[object]:
    """Mark refusals and cancellations; a refused child that has no row is marked at its parent's."""
    shown: dict[str, object] = {}
    for k, row in enumerate(events.to_dict("records")):
        what = "refused" if row["answer"] == "refused" else "cancelled" if row["event"] == "cancel" else None
        node = str(row["node"])
        y = rows.get(node, rows.get(node.rpartition(".")[0]))
        if what is not None and y is not None:
            marker = "x" if what == "refused" else "|"
            shown[what] = ax.plot(
                [times[k]], [y], marker=marker, color=REFUSED, markersize=9, markeredgewidth=2.5, linestyle="",
                label=what, clip_on=False, gid=f"event-{k}",
            )[0]  # fmt: skip
    return list(shown.values())
