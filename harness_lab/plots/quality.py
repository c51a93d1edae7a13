"""What is odd in a table of settlements: one bar per finding, its share of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from harness_lab.errors import InputError
from harness_lab.plots.quantities import SHARE, percent
from harness_lab.plots.rows import name_rows, rows_height
from harness_lab.plots.style import KEPT, draw_empty, headline, new_axes, note, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NEEDED: Final = ("what", "rows", "of")


class QualityRow(NamedTuple):
    """One finding.

    Attributes
    ----------
    what : str
        In words.
    share : float
        Of the rows, 0 to 1.
    rows, of : int
        How many of how many.
    """

    what: str
    share: float
    rows: int
    of: int


def quality_info(findings: pd.DataFrame, *, most: int = 12) -> tuple[QualityRow, ...]:
    """Prepare the findings that are counted in rows, largest share first, at most `most` of them.

    Parameters
    ----------
    findings : DataFrame
        ``what`` (str), ``rows``, ``of`` (int; 0: not counted in rows, left out).
    most : int
        Bars that are drawn.

    Raises
    ------
    InputError
        If a column is missing.
    """
    if not set(_NEEDED) <= set(findings.columns):
        got = [str(name) for name in findings.columns]
        raise InputError("findings", expected=f"the columns {', '.join(_NEEDED)}", got=got)
    columns = (findings[name].tolist() for name in _NEEDED)
    found = [QualityRow(what, rows / of, int(rows), int(of)) for what, rows, of in zip(*columns, strict=True) if of]
    return tuple(sorted(found, key=lambda row: -row.share)[:most])


def plot_quality(findings: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw how much of a table each finding concerns.

    Parameters
    ----------
    findings : DataFrame
        As for :func:`quality_info`.
    ax : Axes, optional
        Where to draw; a new figure if None.
    title : str, optional
        The headline; None asks the question, ``""`` draws none.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    info = quality_info(findings)
    ax = new_axes(ax, width=7.2, height=rows_height(len(info)))
    if not info:
        return draw_empty(ax, "nothing odd was found in these rows")
    ax.barh(range(len(info)), [row.share for row in info], height=0.5, color=KEPT)
    for place, row in enumerate(info):
        inside = row.share > 0.7
        at = (row.share, float(place))
        text = f"{percent(row.share)}: {row.rows:,} of {row.of:,}"
        side, offset = ("right", (-5.0, 0.0)) if inside else ("left", (5.0, 0.0))
        note(ax, text, at, gid=f"finding-{place}", offset=offset, side=side, level="center")  # type: ignore[arg-type]
    name_rows(ax, [row.what for row in info], width=30)
    tidy(ax, grid="x")
    ax.set(xlim=(0, 1), xlabel="share concerned (of rows, records or paths)")
    SHARE.format_axis(ax.xaxis)
    headline(ax, "What should a reader of these figures know?" if title is None else title or None)
    return ax
