"""One run over time: a bar for each node, coloured by how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from harness_lab.errors import InputError
from harness_lab.outcome import Outcome
from harness_lab.plots.quantities import SECONDS, duration
from harness_lab.plots.rows import name_rows
from harness_lab.plots.style import (
    LETTER,
    OUTCOME_COLOURS,
    OUTCOME_HATCHES,
    REFUSED,
    colour_of,
    draw_empty,
    headline,
    legend_below,
    new_axes,
    note,
    short,
    tidy,
    width_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_NEEDED: Final = ("node", "start_ns", "outcome")
_ROW: Final = 0.34
MAX_NODES: Final = 60


class Bar(NamedTuple):
    """One node.

    Attributes
    ----------
    name : str
        Agent and node, after one arrow for each level below the root.
    start_s, length_s : float
        Seconds since the run's start, and seconds long; NaN: unknown.
    outcome : str
        How it ended.
    reason : str
        The limit that stopped it, or an empty text.
    """

    name: str
    start_s: float
    length_s: float
    outcome: str
    reason: str


def timeline_info(nodes: pd.DataFrame) -> tuple[Bar, ...]:
    """Prepare the nodes of one run, parents before their children, children by start.

    Parameters
    ----------
    nodes : DataFrame
        One row per node: ``node``, ``start_ns``, ``outcome``; maybe ``parent``, ``depth``, ``duration_ns``, ``agent``,
        ``stopped_by``, and ``run`` and ``policy``, which must be the same in all rows.

    Raises
    ------
    InputError
        If a column is missing, or the rows are of several runs.
    """
    missing = [name for name in _NEEDED if name not in nodes.columns]
    if missing:
        raise InputError("nodes", expected=f"the columns {', '.join(_NEEDED)}", got=f"no {', '.join(missing)}")
    for name in ("run", "policy"):
        found = nodes[name].dropna().unique() if name in nodes.columns else ()
        if len(found) > 1:
            raise InputError("nodes", expected=f"the rows of one {name}", got=f"{len(found)} of them")
    starts = _seconds(nodes, "start_ns")
    begin = float(np.nanmin(starts)) if np.isfinite(starts).any() else 0.0
    lengths = _seconds(nodes, "duration_ns")
    return tuple(_bar(nodes.iloc[k], starts[k] - begin, lengths[k]) for k in tree_order(nodes, starts))


def plot_timeline(
    nodes: pd.DataFrame, *, ax: Axes | None = None, max_nodes: int = MAX_NODES, title: str | None = None,
    marks: Mapping[str, float] | None = None,
) -> Axes:  # fmt: skip
    """Draw one run's tree over time.

    Parameters
    ----------
    nodes : DataFrame
        As for :func:`timeline_info`.
    ax : Axes, optional
        Where to draw; a new figure if None.
    max_nodes : int
        Nodes that are drawn, from the top of the tree; the headline says how many are not.
    title : str, optional
        The headline; None says how the run ended, ``""`` draws none.
    marks : mapping of str to float, optional
        Moments to mark with a line: name, and seconds since the run started.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    bars = timeline_info(nodes) if len(nodes) else ()
    ax = new_axes(ax, width=8.4, height=1.9 + _ROW * max(min(len(bars), max_nodes), 2))
    if not bars:
        return draw_empty(ax, "no rows: this run has no nodes")
    ends = [bar.start_s + (0.0 if np.isnan(bar.length_s) else bar.length_s) for bar in bars]
    right = float(np.nanmax([*ends, 0.0])) or 1.0
    ax.set_xlim(0, right * 1.02)
    for y, bar in enumerate(bars[:max_nodes]):
        _draw_bar(ax, y, bar, right)
    name_rows(ax, [bar.name for bar in bars[:max_nodes]], width=min(34, max(16, int(5.3 * width_of(ax)))))
    ax.set_ylim(min(len(bars), max_nodes) - 0.5, -0.5)
    tidy(ax, grid="x")
    ax.set_xlabel("time since the run started, s")
    SECONDS.format_axis(ax.xaxis)
    names = list(marks or ())
    lines = [_mark(ax, i, name, at, colour_of(name, names)) for i, (name, at) in enumerate((marks or {}).items())]
    _legend(ax, bars[:max_nodes], lines)
    headline(ax, _finding(bars, right, max_nodes) if title is None else title or None)
    return ax


def _seconds(nodes: pd.DataFrame, name: str) -> np.ndarray:
    if name not in nodes.columns:
        return np.full(len(nodes), np.nan)
    return nodes[name].to_numpy(dtype=np.float64, na_value=np.nan) / 1e9


def _text(row: pd.Series[Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None or pd.isna(value) else str(value)


def tree_order(nodes: pd.DataFrame, starts: np.ndarray) -> list[int]:
    """Return the rows depth first; a node whose parent is not among them counts as a root."""
    names = [str(name) for name in nodes["node"]]
    parents = [_text(nodes.iloc[k], "parent") for k in range(len(nodes))]
    children: dict[str, list[int]] = {}
    for k in sorted(range(len(nodes)), key=lambda k: (np.isnan(starts[k]), starts[k], k)):
        above = parents[k] if parents[k] in names and parents[k] != names[k] else ""
        children.setdefault(above, []).append(k)
    order: list[int] = []
    waiting = list(reversed(children.get("", [])))
    while waiting:
        k = waiting.pop()
        order.append(k)
        waiting += reversed(children.pop(names[k], []))
    return order + [k for k in range(len(nodes)) if k not in set(order)]


def _bar(row: pd.Series[Any], start: float, length: float) -> Bar:
    node, agent, depth = _text(row, "node"), _text(row, "agent"), _text(row, "depth")
    steps = "\u203a " * min(int(float(depth or 0)), 8)
    name = f"{agent} {node}" if agent else node
    return Bar(f"{steps}{short(name, most=60)}", start, length, _text(row, "outcome"), _text(row, "stopped_by"))


def _draw_bar(ax: Axes, y: int, bar: Bar, right: float) -> None:
    colour = OUTCOME_COLOURS.get(bar.outcome, OUTCOME_COLOURS[Outcome.UNKNOWN])
    start = 0.0 if np.isnan(bar.start_s) else bar.start_s
    end = start
    if bar.outcome == Outcome.DENIED:
        ax.plot([start], [y], marker="x", color=REFUSED, markersize=8, markeredgewidth=2.5, clip_on=False)
    elif np.isnan(bar.length_s):
        ax.plot([start], [y], marker=">", color=colour, markersize=7, clip_on=False)
    else:
        end = start + bar.length_s
        hatch = OUTCOME_HATCHES.get(bar.outcome)
        ax.barh(
            [y], [bar.length_s], left=[start], height=0.62, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5
        )  # fmt: skip
    words = _words(bar)
    if len(words) * LETTER > 0.5 * width_of(ax):
        words = bar.reason or words  # its mark says that it was denied
    if words:
        inside = end > 0.55 * right
        note(
            ax, words, (end, y), offset=(-6 if inside else 7, 0), side="right" if inside else "left", level="center",
            gid=f"reason-{y}",
        )  # fmt: skip


def _words(bar: Bar) -> str:
    if bar.outcome == Outcome.DENIED:
        return f"denied: {bar.reason or 'reason unknown'}"
    length = ", length unknown" if np.isnan(bar.length_s) else ""
    return f"{bar.reason}{length}".strip(", ")


def _word(outcome: str) -> str:
    return outcome.replace("_", " ")


def _mark(ax: Axes, i: int, name: str, at_s: float, colour: str) -> Line2D:
    """Draw a line in a dash and a colour of its own: moments of several policies may lie close together."""
    return ax.axvline(
        at_s, color=colour, linestyle=(0, (2 + 2 * (i % 3), 1.5)), linewidth=2.2, label=short(name), gid="mark",
        path_effects=[withStroke(linewidth=4.5, foreground="white")],
    )  # fmt: skip


def _legend(ax: Axes, bars: tuple[Bar, ...], lines: Sequence[Line2D] = ()) -> None:
    found = [outcome for outcome in Outcome if any(bar.outcome == outcome for bar in bars)]
    handles = [
        Patch(facecolor=OUTCOME_COLOURS[one], hatch=OUTCOME_HATCHES.get(one), edgecolor="white", label=_word(one))
        for one in found
        if one != Outcome.DENIED
    ]
    if handles or lines:
        legend_below(ax, [*handles, *lines], columns=4 if not lines else 3)


_ENDS: Final[dict[str, str]] = {
    Outcome.COMPLETED: "the run completed",
    Outcome.EXHAUSTED: "a limit stopped the run",
    Outcome.TIMED_OUT: "the run timed out",
    Outcome.CANCELLED: "the run was cancelled",
    Outcome.FAILED: "the run failed",
    Outcome.DENIED: "the run never started",
    Outcome.AWAITING_APPROVAL: "the run waits for approval",
}


def _finding(bars: tuple[Bar, ...], right: float, max_nodes: int) -> str:
    denied = sum(bar.outcome == Outcome.DENIED for bar in bars)
    end = _ENDS.get(bars[0].outcome, "how the run ended is unknown")
    why = f" ({bars[0].reason})" if bars[0].reason else ""
    nodes = "1 node" if len(bars) == 1 else f"{len(bars)} nodes"
    lost = f", {denied} denied" if denied else ""
    hidden = f"; {len(bars) - max_nodes} nodes are not drawn" if len(bars) > max_nodes else ""
    return f"{end[0].upper()}{end[1:]}{why} after {duration(right)}: {nodes}{lost}{hidden}"
