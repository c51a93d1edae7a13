"""What every ceiling would have cost in runs and saved in money: the picture to choose a limit by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.plots.ceiling_info import Band, CeilingInfo, Floats, ceiling_info
from harness_lab.plots.quantities import SHARE, Quantity, percent, quantity
from harness_lab.plots.style import KEPT, NEUTRAL, REFUSED, SAVED, draw_empty, headline, ink, new_axes, note, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MARKS: Final = 5


def plot_ceiling_tradeoff(
    curve: pd.DataFrame,
    *,
    ax: Axes | None = None,
    channel: str = "cost",
    chosen: float | None = None,
    most_lost: float | None = None,
    title: str | None = None,
) -> Axes:
    """Draw, for each ceiling, the delivered runs that it cuts against the spend that it avoids.

    Parameters
    ----------
    curve : DataFrame
        As for :func:`harness_lab.plots.ceiling_info.ceiling_info`.
    ax : Axes, optional
        Where to draw; a new figure if None.
    channel : str
        What is limited: it gives the ceilings their unit (``cost``, ``calls``, ``tokens``, ``input``, ``time``).
    chosen : float, optional
        The ceiling to explain in words, in the channel's own unit (nano-dollars, nanoseconds). The nearest candidate is
        drawn and named, so let it be one of them.
    most_lost : float, optional
        Largest share of runs lost that is drawn; None: up to a little more than the chosen ceiling loses, or all.
    title : str, optional
        The headline; None asks the question, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.

    Notes
    -----
    Where delivery of some runs is unknown, the band above the line reaches up to what would be lost if all of them had
    delivered; it is no confidence interval. Those are the grey band (share of all runs cut; drawn where at least ten
    are) and the bar at the chosen ceiling (spend avoided).
    """
    ax = new_axes(ax, width=7.2, height=4.6)
    if not len(curve) or not int(curve["n"].iloc[0]):
        return draw_empty(ax, "no rows: no run with a known outcome and known use")
    info, shown = ceiling_info(curve), quantity(channel)
    if np.isnan(info.avoided.value).all():
        return draw_empty(ax, "the spend of these runs is unknown, so nothing can be said of what a ceiling avoids")
    at = None if chosen is None else info.nearest(chosen)
    _draw_loss(ax, info)
    _frame_tradeoff(ax, info, at, most_lost)
    _draw_marks(ax, info, shown, at)
    if at is not None:
        _draw_chosen(ax, info, shown, at)
    ax.legend(loc="upper left", edgecolor="none", fontsize="small")
    question = f"What does a limit on {shown.name} save, and which runs does it cost?"
    finding = question if at is None else info.finding(at, shown)
    headline(ax, finding if title is None else title or None)
    return ax


def plot_ceiling_curve(
    curve: pd.DataFrame,
    *,
    ax: Axes | None = None,
    channel: str = "cost",
    chosen: float | None = None,
    title: str | None = None,
) -> Axes:
    """Draw completion, spend avoided and spend sunk against the ceiling, each with its band.

    Parameters
    ----------
    curve, ax, channel, chosen, title
        As for :func:`plot_ceiling_tradeoff`.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.2, height=4.2)
    if not len(curve) or not int(curve["n"].iloc[0]):
        return draw_empty(ax, "no rows: no run with a known outcome and known use")
    info, shown = ceiling_info(curve), quantity(channel)
    x = info.ceiling * shown.factor
    lines = (
        (info.completed, KEPT, "-", "runs completed within it"),
        (info.avoided, SAVED, "--", "spend avoided"),
        (info.sunk, REFUSED, ":", "spend sunk in runs that it cuts"),
    )
    for band, colour, style, label in lines:
        _draw_band(ax, x, band, colour=colour, style=style, label=label)
    finding = f"What would a limit on {shown.name} have done to {info.n:,} runs?"
    if chosen is not None:
        at = info.nearest(chosen)
        finding = _shares(info, at, shown)
        ax.axvline(float(x[at]), color=NEUTRAL, linewidth=1.5)
        _note_chosen(ax, info, shown, float(info.ceiling[at]))
    tidy(ax)
    ax.set(
        xlim=(0, float(x.max()) or 1.0), ylim=(0, 1), xlabel=shown.label_of("ceiling of a run"), ylabel="share of all"
    )
    shown.format_axis(ax.xaxis)
    SHARE.format_axis(ax.yaxis)
    ax.legend(loc="center right", edgecolor="none", fontsize="small")
    headline(ax, finding if title is None else title or None)
    return ax


def _draw_band(ax: Axes, x: Floats, band: Band, *, colour: str, style: str, label: str) -> None:
    if np.isnan(band.value).all():
        return
    ax.plot(x, band.value, color=colour, linestyle=style, linewidth=2, label=label)
    if np.isfinite(band.low).any():
        ax.fill_between(x, band.low, band.high, color=colour, alpha=0.15, linewidth=0)


def _draw_loss(ax: Axes, info: CeilingInfo) -> None:
    x = info.avoided.value
    if info.delivery_known:
        _draw_band(
            ax, x, info.cut_band(), colour=NEUTRAL, style=":", label="all runs cut, with the interval of that share"
        )
        upper = (info.delivered_cut + info.unknown_cut) / info.n
        ax.fill_between(
            x, info.lost, upper, color=REFUSED, alpha=0.2, linewidth=0, label="delivery unknown: perhaps lost too"
        )
        ax.plot(x, info.lost, color=REFUSED, linewidth=2.5, label="runs cut that had delivered")
    else:
        _draw_band(
            ax, x, info.cut_band(), colour=REFUSED, style="-", label="runs cut (whether they delivered is unknown)"
        )


def _frame_tradeoff(ax: Axes, info: CeilingInfo, at: int | None, most_lost: float | None) -> None:
    top = most_lost
    if top is None:
        top = 1.0 if at is None else min(1.0, max(0.05, 4.0 * float(info.cut.value[at])))
    inside = info.cut.value <= top
    right = float(np.max(info.avoided.value[inside], initial=0.0)) or 1.0
    tidy(ax)
    ax.set(xlim=(0, min(1.0, right * 1.05)), ylim=(0, top * 1.05))
    ax.set(xlabel="spend avoided, share of all spend", ylabel="runs lost, share of all runs")
    SHARE.format_axis(ax.xaxis)
    SHARE.format_axis(ax.yaxis)


def _draw_marks(ax: Axes, info: CeilingInfo, shown: Quantity, at: int | None) -> None:
    """Write some ceilings along the curve, evenly apart, none near the one that is explained."""
    left, right = ax.get_xlim()
    places = [] if at is None else [float(part[at]) for part in info.avoided]  # the point and the ends of its interval
    for goal in np.linspace(left, right, _MARKS + 2)[1:-1]:
        k = int(np.argmin(np.abs(info.avoided.value - goal)))
        x, y = float(info.avoided.value[k]), float(info.lost[k])
        if y > ax.get_ylim()[1] or any(abs(x - taken) < 0.08 * (right - left) for taken in places):
            continue
        places.append(x)
        ax.plot([x], [y], marker="o", color=REFUSED, markersize=5)
        note(ax, shown.brief(info.ceiling[k]), (x, y), offset=(5, -4), side="left", level="top", gid=f"mark-{k}")


def _draw_chosen(ax: Axes, info: CeilingInfo, shown: Quantity, at: int) -> None:
    x, y = float(info.avoided.value[at]), float(info.lost[at])
    low, high = float(info.avoided.low[at]), float(info.avoided.high[at])
    if np.isfinite(low) and np.isfinite(high):
        ax.errorbar([x], [y], xerr=[[max(x - low, 0.0)], [max(high - x, 0.0)]], color=ink(ax), capsize=4, linewidth=1.5)
    ax.plot([x], [y], marker="D", color=ink(ax), markersize=9, linestyle="")
    near = x < 0.08 * ax.get_xlim()[1]
    note(
        ax, f"limit {shown.write(info.ceiling[at])}", (x, y), backing=0.5, offset=(6 if near else 0, 11), weight="bold",
        side="left" if near else "center", gid="chosen", size="medium",
    )  # fmt: skip


def _note_chosen(ax: Axes, info: CeilingInfo, shown: Quantity, chosen: float) -> None:
    right = chosen > 0.55 * float(info.ceiling.max())
    note(
        ax, f"limit {shown.write(chosen)}", (chosen * shown.factor, 1.0), offset=(-6 if right else 6, -4),
        weight="bold", side="right" if right else "left", level="top", gid="chosen", size="medium",
    )  # fmt: skip


def _shares(info: CeilingInfo, at: int, shown: Quantity) -> str:
    completed = info.completed.value[at]
    runs = "completion is unknown" if np.isnan(completed) else f"{percent(completed)} of {info.n:,} runs complete"
    avoided, sunk = percent(info.avoided.value[at]), percent(info.sunk.value[at])
    return f"Under {shown.write(info.ceiling[at])}, {runs}, {avoided} of the spend is avoided, {sunk} sunk in runs cut"
