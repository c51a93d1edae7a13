"""Which limit stopped how many: binding limits as stacked bars, one bar a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError
from harness_lab.plots.quantities import SHARE, percent
from harness_lab.plots.rows import name_rows, rows_height
from harness_lab.plots.style import (
    NEUTRAL,
    PALETTE,
    draw_empty,
    headline,
    legend_below,
    lightness,
    new_axes,
    plain,
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

_NEEDED: Final = ("policy", "level", "stopped_by", "count", "of")
_HATCHES: Final = ("", "//", "..", "\\\\", "xx", "--", "++")
_WIDE: Final = 0.09


class BindingInfo(NamedTuple):
    """Shares that each limit stopped.

    Attributes
    ----------
    policies, limits : tuple of str
        Rows, and reason codes with the most frequent first.
    share : ndarray of float64, shape (policies, limits)
        Share of the runs (or nodes) of a policy; 0 where a limit stopped none.
    of : tuple of int or None
        Runs (or nodes) of each policy; None where no row says so.
    """

    policies: tuple[str, ...]
    limits: tuple[str, ...]
    share: npt.NDArray[np.float64]
    of: tuple[int | None, ...]


def binding_info(frame: pd.DataFrame, *, level: str = "root", policies: Sequence[str] | None = None) -> BindingInfo:
    """Prepare the shares of one level.

    Parameters
    ----------
    frame : DataFrame
        ``policy``, ``level`` (root or node), ``stopped_by`` (reason code), ``count``, ``of``.
    level : {"root", "node"}
        Whether runs or all their nodes are counted.
    policies : sequence of str, optional
        All names in the order wanted, also those in which nothing was stopped; the frame's own if None.

    Raises
    ------
    InputError
        If a column is missing.
    """
    if not set(_NEEDED) <= set(frame.columns):
        raise InputError("binding", expected=f"the columns {', '.join(_NEEDED)}", got=[str(c) for c in frame.columns])
    names = tuple(str(name) for name in (frame["policy"].unique() if policies is None else policies))
    mine = frame[(frame["level"] == level) & (frame["count"] > 0)]
    totals = mine.groupby("stopped_by")["count"].sum().sort_values(ascending=False, kind="stable")
    limits = tuple(str(code) for code in totals.index)
    share = np.zeros((len(names), len(limits)))
    known = dict.fromkeys(names, 0)
    columns = (mine[name].tolist() for name in ("policy", "stopped_by", "count", "of"))
    for name, limit, count, of in zip(*columns, strict=True):
        if name in known:
            share[names.index(name), limits.index(limit)] = count / of
            known[name] = int(of)
    return BindingInfo(names, limits, share, tuple(known[name] or None for name in names))


def plot_binding(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    level: str = "root",
    policies: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw which limit stopped what share of the runs (or nodes), one bar a policy.

    Parameters
    ----------
    frame, level, policies
        As for :func:`binding_info`.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline; None asks the question, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    info = binding_info(frame, level=level, policies=policies)
    noun = "runs" if level == "root" else "nodes"
    ax = new_axes(ax, height=rows_height(len(info.policies)))
    if not info.policies:
        return draw_empty(ax, f"no rows: no limit stopped any of the {noun}")
    left = np.zeros(len(info.policies))
    for place, limit in enumerate(info.limits):
        colour = PALETTE[place % len(PALETTE)]
        hatch = _HATCHES[place % len(_HATCHES)]
        ax.barh(
            range(len(left)), info.share[:, place], left=left, height=0.5, color=colour, hatch=hatch, edgecolor="white",
            linewidth=0.6, label=plain(limit),
        )  # fmt: skip
        _write_shares(ax, info.share[:, place], left, colour)
        left += info.share[:, place]
    ax.barh(range(len(left)), 1 - left, left=left, height=0.5, color=NEUTRAL, alpha=0.18, label="no limit stopped it")
    tidy(ax, grid="x")
    name_rows(ax, info.policies)
    ax.set(xlim=(0, 1), xlabel=f"share of {noun}")
    SHARE.format_axis(ax.xaxis)
    legend_below(ax)
    headline(ax, f"Which limit stopped the {noun}?" if title is None else title or None)
    return ax


def _write_shares(ax: Axes, share: npt.NDArray[np.float64], left: npt.NDArray[np.float64], colour: str) -> None:
    ink = "black" if lightness(colour) > 55 else "white"
    for y, (width, start) in enumerate(zip(share, left, strict=True)):
        if width >= _WIDE:
            ax.text(
                start + width / 2, y, percent(width), ha="center", va="center", color=ink, fontsize="small",
                gid=f"share-{y}-{colour[1:]}",
                bbox={"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"},
            )  # fmt: skip
