"""What a run costs under the prices of several dates, against a price that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.plots.quantities import Quantity, write
from harness_lab.plots.style import KEPT, REFUSED, draw_empty, headline, legend_below, new_axes, note, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def plot_price_changes(frame: pd.DataFrame, *, ax: Axes | None = None, price_usd: float | None = None) -> Axes:
    """Draw the mean cost of a run from each date on, with its interval, and the flat price that stays.

    Parameters
    ----------
    frame : DataFrame
        ``day`` (ISO format, ascending), ``value``, ``low``, ``high``: dollars a run; NaN: unknown.
    ax : Axes, optional
        Where to draw; a new figure if None.
    price_usd : float, optional
        The flat price.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    ax = new_axes(ax, width=7.0, height=4.0)
    if not len(frame):
        return draw_empty(ax, "no rows: no date has prices")
    days = frame["day"].to_numpy(dtype="datetime64[D]")
    gap = np.diff(days).astype(np.int64)
    after = np.append(days, days[-1] + np.timedelta64(max(int(gap.mean()) if gap.size else 30, 1), "D"))
    value, low, high = (frame[name].to_numpy(dtype=np.float64) for name in ("value", "low", "high"))
    ends = [np.append(part, part[-1]) for part in (value, low, high)]
    ax.fill_between(after, ends[1], ends[2], step="post", color=KEPT, alpha=0.2, linewidth=0)
    ax.step(after, ends[0], where="post", color=KEPT, linewidth=2.2, label="mean cost of a run")
    shown = Quantity(name="dollars a run", unit="$")
    few = len(frame) <= 8
    for day, amount in zip(days, value, strict=True):
        if few and np.isfinite(amount):
            note(ax, write(amount, "$"), (day, amount), offset=(4, 5), side="left", gid=f"cost-{day}")
    if price_usd is not None:
        ax.axhline(price_usd, color=REFUSED, linestyle="--", linewidth=1.8, label=f"flat price, {_plain(price_usd)}")
    tops = [part for part in (*value, *high, price_usd) if part is not None and np.isfinite(part)]
    ax.set(xlabel="date of the prices", ylabel=shown.label, ylim=(0, 1.2 * max(tops, default=1.0) or 1.0))
    ax.set_xlim(after[0], after[-1])
    tidy(ax)
    shown.format_axis(ax.yaxis)
    ticks = _apart(days, 0.17 * (after[-1] - after[0]))
    ax.set_xticks(ticks, labels=[str(day) for day in ticks])
    headline(ax, "What do price changes make of a run?")
    legend_below(ax)
    return ax


def _apart(days: NDArray[np.datetime64], least: np.timedelta64) -> NDArray[np.datetime64]:
    """Return the dates that can be written without touching each other, the first one always."""
    kept = [days[0]]
    for day in days[1:]:
        if day - kept[-1] >= least:
            kept.append(day)
    return np.asarray(kept)


def _plain(usd: float) -> str:
    return write(usd, "$").replace("$", r"\$")
