"""What each path was seen to need: every settlement, the floor under them, and asks that fall below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.plots.quantities import Quantity, quantity
from harness_lab.plots.rows import name_rows
from harness_lab.plots.style import KEPT, NEUTRAL, REFUSED, draw_empty, headline, ink, legend_below, new_axes, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
PATH: Final = ("agent", "backend", "model", "context")
_GOLDEN: Final = 0.6180339887498949
_LOG_FROM: Final = 50
_ROW: Final = 0.95


class FloorRow(NamedTuple):
    """One path, in the unit of its values.

    Attributes
    ----------
    name : str
        What the path is called.
    used, unused : ndarray of float64
        Settlements that are evidence, and others, ascending.
    floor, second, startup : float
        Smallest and second-lowest eligible settlement, smallest first prompt; NaN: not measured.
    n : int
        Settlements behind the floor.
    refused, admitted : ndarray of float64
        Asks below the floor, and others.
    """

    name: str
    used: Floats
    unused: Floats
    floor: float
    second: float
    startup: float
    n: int
    refused: Floats
    admitted: Floats

    @property
    def measured(self) -> bool:
        """Whether there is a floor."""
        return bool(np.isfinite(self.floor))


def floors_info(
    points: pd.DataFrame,
    floors: pd.DataFrame,
    *,
    value: str = "input_total",
    asks: pd.DataFrame | Sequence[int] | None = None,
) -> tuple[FloorRow, ...]:
    """Prepare one row per path.

    Parameters
    ----------
    points : DataFrame
        One row per settlement: the columns of a path that both frames have, `value` (NA: unknown, left out), and maybe
        ``eligible`` (whether it is evidence; yes if missing or NA).
    floors : DataFrame
        One row per path: some of ``agent, backend, model, context`` (NA: unknown, a value of its own), ``floor``,
        ``second_lowest``, ``n``, and maybe ``startup_cost``.
    value : str
        The column of `points` that is counted.
    asks : DataFrame or sequence of int, optional
        ``asked`` beside the columns of a path; or figures that are asked of every path.

    Returns
    -------
    tuple of FloorRow
        In the order of `floors`, then paths that only settlements or asks name.

    Raises
    ------
    InputError
        If a column is missing.
    """
    keys = [name for name in PATH if name in floors.columns and name in points.columns]
    _check(floors, ("floor", "second_lowest", "n"), "floors")
    _check(points, (value,), "points")
    wanted = _as_frame(asks, floors, keys)
    paths = dict.fromkeys([*_keys(floors, keys), *_keys(points, keys), *_keys(wanted, keys)])
    by_path = {path: floors.iloc[place] for place, path in reversed(list(enumerate(_keys(floors, keys))))}
    names = _path_names(list(paths), keys)
    return tuple(
        _row(name, by_path.get(path), _rows(points, keys, path), _rows(wanted, keys, path), value)
        for path, name in zip(paths, names, strict=True)
    )


def plot_floors(
    points: pd.DataFrame,
    floors: pd.DataFrame,
    *,
    ax: Axes | None = None,
    value: str = "input_total",
    asks: pd.DataFrame | Sequence[int] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw every settlement of each path, its floor, and which asks lie below it.

    Parameters
    ----------
    points, floors, value, asks
        As for :func:`floors_info`.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline; None says what was found, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    rows = floors_info(points, floors, value=value, asks=asks)
    ax = new_axes(ax, width=8.4, height=2.0 + _ROW * max(len(rows), 1))
    if not rows:
        return draw_empty(ax, "no rows: no settlement and no ask, so no floor")
    shown = quantity(value)
    _scale(ax, rows)
    for y, row in enumerate(rows):
        _draw_row(ax, y, row, shown)
    asked = any(row.refused.size or row.admitted.size for row in rows)
    name_rows(ax, [row.name for row in rows], room=_ASKED if asked else 0.0)
    tidy(ax, grid="x")
    ax.set_xlabel(f"{shown.label} of one settlement")
    shown.format_axis(ax.xaxis)
    _legend(ax, rows)
    headline(ax, _finding(rows) if title is None else title or None)
    return ax


_ASKED: Final = 0.9
"""Inches that the slanting words of an ask need above it."""


def _check(frame: pd.DataFrame, needed: Sequence[str], what: str) -> None:
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise InputError(what, expected=f"the columns {', '.join(needed)}", got=f"no {', '.join(missing)}")


def _as_frame(asks: pd.DataFrame | Sequence[int] | None, floors: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    if isinstance(asks, pd.DataFrame):
        _check(asks, ("asked",), "asks")
        missing = [name for name in keys if name not in asks.columns]
        return asks.reindex(columns=[*asks.columns, *missing])
    figures = pd.DataFrame({"asked": list(asks or ())})
    return floors[keys].drop_duplicates().merge(figures, how="cross") if len(figures) else figures


def _keys(frame: pd.DataFrame, keys: list[str]) -> list[tuple[str, ...]]:
    """Return the path of each row; unknown parts are empty. Without common columns all rows are one path."""
    if not set(keys) <= set(frame.columns):
        return []
    parts = [frame[name].astype("string").fillna("").tolist() for name in keys]
    return list(zip(*parts, strict=True)) if parts else [()] * len(frame)


def _rows(frame: pd.DataFrame, keys: list[str], path: tuple[str, ...]) -> pd.DataFrame:
    return frame[[key == path for key in _keys(frame, keys)]] if len(frame) else frame


def _row(
    name: str, floor: pd.Series[Any] | None, points: pd.DataFrame, asks: pd.DataFrame, value: str
) -> FloorRow:  # fmt: skip
    figures = _floats(points, value)
    counts = np.ones(len(points), dtype=bool)
    if "eligible" in points.columns:
        counts = points["eligible"].astype("boolean").fillna(value=True).to_numpy(dtype=bool)
    known = np.isfinite(figures)
    lowest, second, startup = (_one(floor, column) for column in ("floor", "second_lowest", "startup_cost"))
    asked = np.sort(_floats(asks, "asked"))
    n = _one(floor, "n")
    return FloorRow(
        name=name, used=np.sort(figures[known & counts]), unused=np.sort(figures[known & ~counts]), floor=lowest,
        second=second, startup=startup, n=0 if np.isnan(n) else int(n), refused=asked[asked < lowest],
        admitted=asked[~(asked < lowest)],
    )  # fmt: skip


def _floats(frame: pd.DataFrame, name: str) -> Floats:
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan) if name in frame.columns else np.empty(0)


def _one(row: pd.Series[Any] | None, name: str) -> float:
    found = None if row is None else row.get(name)
    return float("nan") if found is None or pd.isna(found) else float(found)


def _path_names(paths: list[tuple[str, ...]], keys: list[str]) -> list[str]:
    """Name paths by what is known of them; the context only where nothing else tells two of them apart."""
    names = [_path_name(dict(zip(keys, path, strict=True)), context=False) for path in paths]
    again = {name for name in names if names.count(name) > 1}
    full = [_path_name(dict(zip(keys, path, strict=True)), context=True) for path in paths]
    return [long if name in again else name for name, long in zip(names, full, strict=True)]


def _path_name(parts: dict[str, str], *, context: bool) -> str:
    where = " / ".join(parts[name] for name in ("backend", "model") if parts.get(name))
    name = " on ".join(part for part in (parts.get("agent"), where) if part) or "unknown path"
    return f"{name}, context {parts.get('context') or 'unknown'}" if context else name


def _scale(ax: Axes, rows: Iterable[FloorRow]) -> None:
    """Set the horizontal axis: from 0, or logarithmic where the figures lie far apart."""
    parts = [part for row in rows for part in (row.used, row.unused, row.refused, row.admitted)]
    figures = np.concatenate([*parts, [row.floor for row in rows], [row.startup for row in rows]])
    figures = figures[np.isfinite(figures)]
    least, most = float(np.min(figures, initial=np.inf)), float(np.max(figures, initial=0.0))
    if 0 < least < most / _LOG_FROM:
        ax.set_xscale("log")
        ax.set_xlim(least / 1.5, most * 1.5)
    else:
        ax.set_xlim(0, most * 1.06 or 1.0)


def _draw_row(ax: Axes, y: int, row: FloorRow, shown: Quantity) -> None:
    for figures, face, faint in ((row.unused, "none", 0.6), (row.used, KEPT, 1.0)):
        shift = 0.32 * ((np.arange(figures.size) * _GOLDEN) % 1 - 0.5) * min(1.0, figures.size / 12)
        alpha = faint * float(np.clip(150 / max(figures.size, 1), 0.12, 0.8))
        ax.scatter(figures, y + shift, s=26, facecolor=face, edgecolor=KEPT, alpha=alpha, linewidth=0.8)
    if row.measured:
        ax.fill_betweenx([y - 0.3, y + 0.3], ax.get_xlim()[0], row.floor, color=REFUSED, alpha=0.1, linewidth=0)
        ax.plot([row.floor] * 2, [y - 0.3, y + 0.3], color=REFUSED, linewidth=2.5)
        ax.plot([row.second] * 2, [y - 0.3, y + 0.3], color=NEUTRAL, linewidth=1.5)
    if np.isfinite(row.startup):
        ax.plot([row.startup], [y], marker="<", color=NEUTRAL, linestyle="", markersize=7)
    ax.annotate(
        _evidence(row), (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize="small", color=ink(ax),
        annotation_clip=False, gid=f"evidence-{y}",
    )  # fmt: skip
    _draw_asks(ax, y, row.refused, marker="x", colour=REFUSED, word="refused")
    _draw_asks(ax, y, row.admitted, marker="v", colour=KEPT, word="let through")


def _evidence(row: FloorRow) -> str:
    if not row.measured:
        return "not measured:\nno ask is refused,\nnothing is promised"
    second = "none" if np.isnan(row.second) else f"{row.second:,.0f}"
    return f"floor {row.floor:,.0f}\nsecond {second}\nn = {row.n:,}"


def _draw_asks(ax: Axes, y: int, asked: Floats, *, marker: str, colour: str, word: str) -> None:
    ax.plot(asked, [y] * asked.size, marker=marker, color=colour, linestyle="", markersize=9, markeredgewidth=2.5)
    for figure in asked:
        ax.annotate(
            f"{figure:,.0f} {word}", (figure, y), xytext=(-2, 8), textcoords="offset points", rotation=32, ha="left",
            va="bottom", fontsize="small", color=ink(ax), gid=f"ask-{y}-{figure:.0f}", rotation_mode="anchor",
        )  # fmt: skip


def _legend(ax: Axes, rows: Sequence[FloorRow]) -> None:
    """Explain the marks that the rows have, below the picture."""
    marks = [
        ax.scatter([], [], s=26, facecolor=KEPT, edgecolor=KEPT, label="settlement"),
        ax.plot([], [], color=REFUSED, linewidth=2.5, label="floor: asks to its left are refused")[0],
        ax.plot([], [], color=NEUTRAL, linewidth=1.5, label="second-lowest settlement")[0],
    ]
    if any(row.unused.size for row in rows):
        marks.append(ax.scatter([], [], s=26, facecolor="none", edgecolor=KEPT, label="no evidence: stopped or failed"))
    if any(np.isfinite(row.startup) for row in rows):
        words = "start-up cost: smallest first prompt"
        marks.append(ax.plot([], [], marker="<", color=NEUTRAL, linestyle="", markersize=7, label=words)[0])
    legend_below(ax, marks)


def _finding(rows: Sequence[FloorRow]) -> str:
    refused = sum(row.refused.size for row in rows)
    asks = refused + sum(row.admitted.size for row in rows)
    measured = sum(row.measured for row in rows)
    if asks:
        return f"{refused} of {asks} asks lie below what their path was ever seen to need"
    return f"What {len(rows)} path(s) were seen to need at least ({measured} measured)"
