"""How many runs complete by which spend: cumulative incidence, its band, and where the data end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError
from harness_lab.plots.quantities import SHARE, Quantity, percent, quantity
from harness_lab.plots.style import (
    KEPT,
    NEUTRAL,
    REFUSED,
    SAVED,
    draw_empty,
    headline,
    ink,
    new_axes,
    note,
    plain,
    tidy,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]


class IncidenceInfo(NamedTuple):
    """One curve, in the unit shown.

    Attributes
    ----------
    value, completed, low, high : ndarray of float64, shape (k + 1,)
        Steps, beginning at 0; the ends of the band are NaN where they are unknown.
    stopped : ndarray of float64, shape (m,)
        What stopped runs had used, ascending.
    end : float
        The largest amount that any run used; nothing is known beyond it.
    open_end : bool
        Whether the run that used most was stopped, so that the curve goes on in the dark.
    """

    value: Floats
    completed: Floats
    low: Floats
    high: Floats
    stopped: Floats
    end: float
    open_end: bool

    def at(self, value: float) -> float:
        """Share completed within `value`; NaN beyond the data of a curve with an open end."""
        if value > self.end and self.open_end:
            return float("nan")
        return float(self.completed[np.searchsorted(self.value, value, side="right") - 1])

    def within(self, share: float) -> float:
        """Smallest amount within which `share` of the runs completed; NaN if the curve does not reach it."""
        reached = self.completed >= share
        return float(self.value[np.argmax(reached)]) if reached.any() else float("nan")


def incidence_info(
    frame: pd.DataFrame, *, stopped: npt.ArrayLike = (), end: float | None = None, factor: float = 1.0
) -> IncidenceInfo:
    """Prepare one curve.

    Parameters
    ----------
    frame : DataFrame
        ``value`` (ascending), ``completed``, and maybe ``low`` and ``high``.
    stopped : array_like of float
        What stopped runs had used, in the unit of ``value``.
    end : float, optional
        Where the data end, in the unit of ``value``; the largest amount seen if None.
    factor : float
        From that unit to the unit shown.

    Raises
    ------
    InputError
        If a column is missing or `value` does not ascend.
    """
    missing = [name for name in ("value", "completed") if name not in frame.columns]
    if missing:
        raise InputError("frame", expected="the columns value and completed", got=list(frame.columns))
    value, completed = (_numbers(frame, name) for name in ("value", "completed"))
    if (np.diff(value) < 0).any():
        raise InputError("value", expected="ascending amounts", got=frame["value"].tolist()[:8])
    low, high = (
        _numbers(frame, name) if name in frame.columns else np.full_like(value, np.nan) for name in ("low", "high")
    )
    ticks = np.sort(np.asarray(stopped, dtype=np.float64)) * factor
    last = max(np.max(value, initial=0.0) * factor, np.max(ticks, initial=0.0)) if end is None else end * factor
    return IncidenceInfo(
        value=np.concatenate([[0.0], value * factor]), completed=np.concatenate([[0.0], completed]),
        low=np.concatenate([[0.0], low]), high=np.concatenate([[0.0], high]), stopped=ticks, end=float(last),
        open_end=bool(ticks.size and ticks[-1] >= np.max(value, initial=0.0) * factor),
    )  # fmt: skip


def plot_incidence(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    column: str = "cost_nusd",
    stopped: npt.ArrayLike = (),
    end: float | None = None,
    label: str = "recorded",
    other: pd.DataFrame | None = None,
    other_label: str = "simulated",
    truth: pd.DataFrame | None = None,
    ceiling: float | None = None,
    noun: str = "runs",
    title: str | None = None,
) -> Axes:
    """Draw the share of all runs that complete by each amount.

    Parameters
    ----------
    frame : DataFrame
        One row per step, amounts in the column's unit: ``value`` (ascending), ``completed`` (share of all runs, failed
        ones included), ``low`` and ``high`` (band; NA: none).
    ax : Axes, optional
        Where to draw; a new figure if None.
    column : str
        The quantity: it gives the axis its name and unit (``cost_nusd``, ``calls``, ``tokens``, ``duration_ns`` ...).
    stopped : array_like of float
        What runs that a limit stopped had used, in the column's unit: drawn as ticks on the curve.
    end : float, optional
        Where the data end, in the column's unit; the largest amount seen if None. Beyond it the picture is shaded.
    label, other_label : str
        Names of the two curves.
    other : DataFrame, optional
        A second curve to hold against the first: simulated against recorded.
    truth : DataFrame, optional
        Points of the true curve, where it is known: ``value`` and ``completed``; drawn as diamonds.
    ceiling : float, optional
        A limit to mark, in the column's unit.
    noun : str
        What a row is: ``"runs"`` or ``"nodes"``.
    title : str, optional
        The headline; None says what the curve shows, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax)
    if not len(frame):
        return draw_empty(ax, f"no rows: none of the {noun} completed with known use")
    shown = quantity(column)
    info = incidence_info(frame, stopped=stopped, end=end, factor=shown.factor)
    limit = None if ceiling is None else ceiling * shown.factor
    right = max(info.end, limit or 0.0) * 1.12 or 1.0
    _draw_dark(ax, info, right, shown)
    _draw_curve(ax, info, right=right, colour=KEPT, label=label)
    _draw_stops(ax, info)
    if other is not None and len(other):
        second = incidence_info(other, factor=shown.factor)
        _draw_curve(ax, second, right=right, colour=REFUSED, label=other_label, dashed=True)
    if truth is not None and len(truth):
        x, y = _numbers(truth, "value") * shown.factor, _numbers(truth, "completed")
        ax.plot(x, y, linestyle="", marker="D", markersize=7, color=SAVED, label="truth")
    if limit is not None:
        _draw_ceiling(ax, info, limit, shown)
    tidy(ax)
    ax.set(xlim=(0, right), ylim=(0, 1), xlabel=shown.label_of("until completion"))
    ax.set_ylabel(f"share of all {noun} completed")
    shown.format_axis(ax.xaxis)
    SHARE.format_axis(ax.yaxis)
    _draw_legend(ax, info, right)
    headline(ax, _finding(info, shown, noun) if title is None else title or None)
    return ax


def _numbers(frame: pd.DataFrame, name: str) -> Floats:
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _draw_curve(
    ax: Axes, info: IncidenceInfo, *, right: float, colour: str, label: str, dashed: bool = False
) -> None:  # fmt: skip
    end = min(max(info.end, info.value[-1]), right)
    x = np.append(info.value, end)
    y, low, high = (np.append(part, part[-1]) for part in (info.completed, info.low, info.high))
    style = (0, (4, 2)) if dashed else "-"
    ax.step(x, y, where="post", color=colour, linestyle=style, linewidth=2, label=plain(label))
    if np.isfinite(info.low[1:]).any():
        ax.fill_between(x, low, high, step="post", color=colour, alpha=0.18, linewidth=0)


def _draw_stops(ax: Axes, info: IncidenceInfo) -> None:
    if info.stopped.size:
        height = [info.at(value) for value in info.stopped]
        faint = float(np.clip(60 / info.stopped.size, 0.15, 0.7))
        words = f"{info.stopped.size:,} stopped by a limit: would have used more"
        ax.plot(info.stopped, height, linestyle="", marker="|", markersize=8, color=ink(ax), alpha=faint, label=words)


def _draw_legend(ax: Axes, info: IncidenceInfo, right: float) -> None:
    """Put the legend where an ascending curve leaves room, left of the shaded part."""
    if info.completed[-1] < 0.5:
        legend = ax.legend(loc="upper left", frameon=False, fontsize="small")
    else:
        legend = ax.legend(
            loc="lower right", bbox_to_anchor=(info.end / right, 0.0), edgecolor="none", fontsize="small"
        )  # fmt: skip
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)


def _draw_dark(ax: Axes, info: IncidenceInfo, right: float, shown: Quantity) -> None:
    """Shade where the data say nothing."""
    ax.axvspan(info.end, right, facecolor=NEUTRAL, alpha=0.18, linewidth=0)
    words = "the data say nothing here" if info.open_end else "none used more"
    ax.text(
        (info.end + right) / 2, 0.03, words, rotation=90, ha="center", va="bottom", color=ink(ax), fontsize="small",
        alpha=0.9, gid="beyond",
    )  # fmt: skip


def _draw_ceiling(ax: Axes, info: IncidenceInfo, limit: float, shown: Quantity) -> None:
    ax.axvline(limit, color=REFUSED, linewidth=1.5, linestyle=":")
    share = info.at(limit)
    words = "nothing is known there" if np.isnan(share) else f"{percent(share)} complete within it"
    right = limit > 0.6 * ax.get_xlim()[1]
    note(
        ax, f"ceiling {shown.write(limit / shown.factor)}:\n{words}", (limit, 0.42), offset=(-6 if right else 6, 0),
        side="right" if right else "left", size="medium", gid="ceiling",
    )  # fmt: skip


def _finding(info: IncidenceInfo, shown: Quantity, noun: str) -> str:
    """Say what the curve reaches, and at its end the band: the last point alone rests on few runs."""
    half, top = info.within(0.5), float(info.completed[-1])
    end = shown.write(info.end / shown.factor)
    low, high = float(info.low[-1]), float(info.high[-1])
    reached = percent(top) if np.isnan(low + high) else f"{percent(low)} to {percent(high)}"
    if not np.isnan(half):
        start = f"Half of all {noun} complete within {shown.write(half / shown.factor)}"
        return f"{start}; {reached} by {end}, where the data end"
    return f"{reached} of all {noun} complete within {end}, where the data end"
