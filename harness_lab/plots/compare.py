"""Policies side by side: what each achieves, and how each differs from a baseline run by run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.errors import InputError
from harness_lab.plots.binding import plot_binding
from harness_lab.plots.quantities import Quantity, quantity, write
from harness_lab.plots.rows import Row, draw_rows, rows_height
from harness_lab.plots.style import colour_of, draw_empty, headline, ink, marker_of, new_axes, new_figure, short, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS: Final[dict[str, Quantity]] = {
    "completed": Quantity(name="runs completed", unit="%"),
    "spend": Quantity(name="spend per run", unit="$"),
    "cost_nusd": Quantity(name="spend per run", unit="$"),
    "wasted": Quantity(name="wasted spend per run", unit="$"),
    "wasted_nusd": Quantity(name="wasted spend per run", unit="$"),
    "wasted_share": Quantity(name="share of the spend wasted", unit="%"),
    "time": Quantity(name="time per run", unit="s"),
    "duration_ns": Quantity(name="time per run", unit="s"),
}
"""Metrics of a comparison, in the units in which they come: shares, dollars, seconds."""

ALPHA: Final = 0.05


def metric_rows(frame: pd.DataFrame, metric: str, *, policies: Sequence[str] | None = None) -> tuple[Row, ...]:
    """Prepare one metric of each policy.

    Parameters
    ----------
    frame : DataFrame
        ``policy, metric, value, low, high`` (share, dollars or seconds; NA: unknown) and maybe ``n``.
    metric : str
        Which rows.
    policies : sequence of str, optional
        All names in the order wanted, also those without a row; the frame's own if None. The same names give the same
        colours in every picture.

    Raises
    ------
    InputError
        If a column is missing.
    """
    frame = _checked(frame, ("policy", "metric", "value", "low", "high"))
    mine = frame[frame["metric"] == metric].drop_duplicates("policy").set_index("policy")
    names = _names(frame) if policies is None else list(policies)
    shown = METRICS.get(metric, quantity(metric))
    rows = []
    for name in names:
        value, low, high = (_number(mine, name, column) for column in ("value", "low", "high"))
        text = "unknown" if np.isnan(value) else write(value, shown.unit)
        rows.append(Row(name=name, value=value, low=low, high=high, text=text, solid=True))
    return tuple(rows)


def difference_rows(
    frame: pd.DataFrame, metric: str, *, policies: Sequence[str] | None = None, baseline: str = ""
) -> tuple[Row, ...]:
    """Prepare the paired differences of one metric to the baseline.

    Parameters
    ----------
    frame : DataFrame
        ``policy, metric, value, low, high``; maybe ``n`` and ``identical`` (pairs, and those without a difference) and
        ``p_adjusted``.
    metric, policies
        As for :func:`metric_rows`.
    baseline : str
        The policy that has no difference to itself.

    Returns
    -------
    tuple of Row
        Solid where the corrected test tells a policy apart from the baseline.
    """
    frame = _checked(frame, ("policy", "metric", "value", "low", "high"))
    mine = frame[frame["metric"] == metric].drop_duplicates("policy").set_index("policy")
    names = _names(frame) if policies is None else list(policies)
    unit = METRICS.get(metric, quantity(metric)).unit
    return tuple(_difference(mine, name, unit, baseline) for name in names)


def plot_metric(
    frame: pd.DataFrame,
    metric: str = "completed",
    *,
    ax: Axes | None = None,
    policies: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw one metric of each policy with its interval.

    Parameters
    ----------
    frame, metric, policies
        As for :func:`metric_rows`; ``completed``, ``spend``, ``wasted``, ``wasted_share`` or ``time``.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline; None names the metric, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    rows = metric_rows(frame, metric, policies=policies)
    ax = new_axes(ax, height=rows_height(len(rows)))
    shown = METRICS.get(metric, quantity(metric))
    if all(np.isnan(row.value) for row in rows):
        return draw_empty(ax, f"no rows: {shown.name} is known under no policy")
    limits = (0.0, 1.0 if metric == "completed" else _reach(rows))
    draw_rows(ax, rows, limits=limits, **_looks(rows, [row.name for row in rows]))
    tidy(ax, grid="x")
    ax.set_xlabel(shown.label)
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=5)
    headline(ax, shown.name.capitalize() if title is None else title or None)
    return ax


def plot_differences(
    frame: pd.DataFrame,
    metric: str = "cost_nusd",
    *,
    ax: Axes | None = None,
    baseline: str = "baseline",
    policies: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the paired differences to the baseline: a forest plot with its zero line.

    Parameters
    ----------
    frame, metric, policies, baseline
        As for :func:`difference_rows`; ``completed``, ``cost_nusd``, ``wasted_nusd`` or ``duration_ns``.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline; None names metric and baseline, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.

    Notes
    -----
    A filled marker says that the test corrected for the number of comparisons (column ``p_adjusted``) tells the policy
    apart from the baseline at 5 %; a hollow one, that it does not. Identical runs are said in words.
    """
    rows = difference_rows(frame, metric, policies=policies, baseline=baseline)
    ax = new_axes(ax, height=rows_height(len(rows)))
    shown = METRICS.get(metric, quantity(metric))
    if not any(np.isfinite(row.value) and row.name != baseline for row in rows):
        return draw_empty(ax, f"no rows: no policy shares runs of known {shown.name} with {short(baseline, most=40)}")
    shown = replace(shown, unit={"%": "pts"}.get(shown.unit, shown.unit))
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if np.isfinite(end)]
    reach = 1.25 * max(ends, default=0.0) or 1.0
    names = [row.name for row in rows]
    draw_rows(ax, rows, limits=(-reach, reach), **_looks(rows, names if baseline in names else [baseline, *names]))
    ax.axvline(0, color=ink(ax), linewidth=1.2, zorder=1)
    tidy(ax, grid="x")
    ax.set_xlabel(f"difference in {shown.label}")
    shown.format_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=5)
    finding = f"Difference from {short(baseline, most=40)}: {shown.name}"
    headline(ax, finding if title is None else title or None)
    return ax


def plot_policies(
    per_policy: pd.DataFrame,
    differences: pd.DataFrame | None = None,
    binding: pd.DataFrame | None = None,
    *,
    baseline: str | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw a whole comparison: each policy's figures, its differences to the baseline, and which limits bound.

    Parameters
    ----------
    per_policy : DataFrame
        As for :func:`metric_rows`, with the metrics ``completed``, ``spend`` and ``wasted``.
    differences : DataFrame, optional
        As for :func:`difference_rows`, with the metrics ``completed`` and ``cost_nusd``; None leaves them out.
    binding : DataFrame, optional
        As for :func:`harness_lab.plots.binding.plot_binding`; None leaves it out.
    baseline : str, optional
        The policy that the others are compared with; the first if None.
    figure : Figure, optional
        An empty figure to draw on; a new one if None.

    Returns
    -------
    Figure
        The figure: a panel each, in two rows.
    """
    names = _names(per_policy)
    first = baseline if baseline is not None else (names[0] if names else "")
    lower = [part for part in ("completed", "cost_nusd") if differences is not None] + (
        ["binding"] * (binding is not None)
    )
    tall = 1 + bool(lower)
    figure = new_figure(figure, width=12.0, height=tall * rows_height(len(names)))
    grid = figure.subplots(tall, 3, squeeze=False)
    for ax, metric in zip(grid[0], ("completed", "spend", "wasted"), strict=True):
        plot_metric(per_policy, metric, ax=ax, policies=names)
    for ax, part in zip(grid[-1] if lower else (), lower, strict=False):
        if part == "binding" and binding is not None:
            plot_binding(binding, ax=ax, policies=names)
        elif differences is not None:
            plot_differences(differences, part, ax=ax, policies=names, baseline=first)
    _clean(grid, unused=3 - len(lower) if lower else 0)
    return figure


def _clean(grid: np.ndarray, *, unused: int) -> None:
    """Drop the policies' names where the panel to the left has them, and panels that are not used."""
    for ax in grid[-1][3 - unused :]:
        ax.set_axis_off()
    for row in grid:
        for ax in row[1:]:
            ax.tick_params(axis="y", labelleft=False)


def _names(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame["policy"].dropna().unique()] if "policy" in frame.columns else []


def _checked(frame: pd.DataFrame, needed: tuple[str, ...]) -> pd.DataFrame:
    """Return a frame with the columns that are needed; one without rows and columns has nothing in each of them."""
    if frame.empty and not len(frame.columns):
        return frame.reindex(columns=list(needed))
    if not set(needed) <= set(frame.columns):
        raise InputError(
            "frame", expected=f"the columns {', '.join(needed)}", got=[str(name) for name in frame.columns]
        )
    return frame


def _number(rows: pd.DataFrame, name: str, column: str) -> float:
    """Return one figure; NaN where the row or the value is missing."""
    if name not in rows.index or column not in rows.columns:
        return float("nan")
    value = rows.loc[[name], column].to_numpy(dtype=np.float64, na_value=np.nan)
    return float(value[0])


def _difference(rows: pd.DataFrame, name: str, unit: str, baseline: str) -> Row:
    value, low, high, n, same, p = (
        _number(rows, name, column) for column in ("value", "low", "high", "n", "identical", "p_adjusted")
    )
    text, solid = signed(value, unit), p <= ALPHA if np.isfinite(p) else not low <= 0 <= high
    if name == baseline:
        value, text, solid = 0.0, "baseline", False
    elif np.isnan(value):
        text = "no run that both have"
    elif n > 0 and same == n:
        value, text, solid = 0.0, f"identical in all {n:,.0f} runs", False
    elif np.isnan(low):
        text, solid = f"{text}, no interval", False
    return Row(name=name, value=value, low=low, high=high, text=text, solid=solid)


def signed(value: float, unit: str) -> str:
    """Write a difference with its sign; shares in percentage points.

    Examples
    --------
    >>> signed(0.021, "%"), signed(-0.25, "$"), signed(90, "s")
    ('+2.1 pts', '-$0.25', '+90 s')
    """
    words = write(value, "pts" if unit == "%" else unit)
    return words if value <= 0 or np.isnan(value) else f"+{words}"


def _reach(rows: Sequence[Row]) -> float:
    ends = [end for row in rows for end in (row.value, row.high) if np.isfinite(end)]
    return 1.15 * max(ends, default=0.0) or 1.0


def _looks(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    """Return colours and markers: the same for a name wherever `names` are the same."""
    return {
        "colours": [colour_of(row.name, names) for row in rows],
        "markers": [marker_of(row.name, names) for row in rows],
    }
