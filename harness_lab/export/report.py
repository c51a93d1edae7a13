"""A report as one HTML file: no script, nothing from outside, the same bytes for the same content.

Whatever is put in is taken as text and escaped: names come from records and may hold anything.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pandas as pd

from harness_lab import files
from harness_lab.errors import InputError
from harness_lab.export._page import NA_MARK, page
from harness_lab.plots.svg import to_svg

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS: Final = 500
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Report:
    """A report in the making: sections, paragraphs, tables, figures and code, in the order in which they are added.

    Every method returns the report, so that calls can be chained.

    Parameters
    ----------
    title : str
        What it is about.
    subtitle : str
        One line below it: on what data, made when. Nothing is read from a clock.

    Examples
    --------
    >>> report = Report("Budgets", "six settlements").section("Floors").paragraph("The floor is <31,211>.")
    >>> "<p>The floor is &lt;31,211&gt;.</p>" in report.html()
    True
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title = title
        self._subtitle = subtitle
        self._sections: list[str] = []
        self._blocks: list[str] = []
        self._figures = 0

    def section(self, title: str) -> Self:
        """Begin a section; it is in the table of contents."""
        self._sections.append(as_text(title))
        number = len(self._sections)
        self._blocks.append(f'<h2 id="section-{number}">{as_text(title)}</h2>')
        return self

    def paragraph(self, text: str) -> Self:
        """Add a text; empty lines part it into paragraphs."""
        parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
        self._blocks += [f"<p>{as_text(part)}</p>" for part in parts]
        return self

    def table(self, frame: pd.DataFrame, caption: str, note: str = "", *, max_rows: int = MAX_ROWS) -> Self:
        """Add a table.

        Parameters
        ----------
        frame : DataFrame
            Its columns are shown, its index is not. What is NA is shown as a dash, never as zero.
        caption : str
            What the table shows.
        note : str
            Said below it.
        max_rows : int
            Rows that are shown; the note says how many are not.

        Raises
        ------
        InputError
            If `caption` is empty: a reader who cannot see the table needs it.
        """
        if not caption.strip():
            raise InputError("caption", expected="what the table shows", got=caption)
        self._blocks.append(_table(frame.head(max_rows), caption, _notes(frame, note, max_rows)))
        return self

    def figure(
        self,
        picture: Callable[[Axes], object] | Figure,
        *,
        alt: str,
        caption: str = "",
        figsize: tuple[float, float] = (7.0, 4.0),
    ) -> Self:
        """Add a picture, drawn at once.

        Parameters
        ----------
        picture : callable or Figure
            What draws on the axes that it is given (in matplotlib's default style), or a figure as it is.
        alt : str
            What the picture says, for those who cannot see it.
        caption : str
            Said below it.
        figsize : (float, float)
            Width and height in inches, for a callable.

        Raises
        ------
        InputError
            If `alt` is empty.
        """
        if not alt.strip():
            raise InputError("alt", expected="what the picture says, in words", got=alt)
        self._figures += 1
        svg = to_svg(picture, figsize=figsize, prefix=f"f{self._figures}-")
        named = svg.replace("<svg ", f'<svg role="img" aria-label="{as_text(alt)}" ', 1)
        words = f"<figcaption>{as_text(caption)}</figcaption>" if caption else ""
        self._blocks.append(f"<figure>{named}{words}</figure>")
        return self

    def code(self, text: str) -> Self:
        """Add text with its line breaks and spaces kept: a summary, a config, a command."""
        self._blocks.append(f'<pre tabindex="0"><code>{as_text(text)}</code></pre>')
        return self

    def html(self) -> str:
        """Return the page."""
        subtitle = as_text(self._subtitle)
        return page(
            title=as_text(self._title), subtitle=subtitle, sections=self._sections, body="\n".join(self._blocks)
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to `path`, whole or not at all; return the path. See :func:`harness_lab.files.replacing`."""
        return files.write_text(path, self.html())

    def __repr__(self) -> str:
        return f"Report({self._title!r}, {len(self._sections)} sections, {self._figures} figures)"


def as_text(value: object) -> str:
    """Return `value` as HTML text: escaped, and with a mark for characters that are not seen or turn text around."""
    return escape(_UNSEEN.sub("\ufffd", str(value)))


def _notes(frame: pd.DataFrame, note: str, max_rows: int) -> list[str]:
    notes = [note] if note else []
    if frame.empty:
        notes.append("No rows.")
    if bool(frame.head(max_rows).isna().to_numpy().any()):
        notes.append(f"{NA_MARK} is unknown or does not apply; it is not zero.")
    if len(frame) > max_rows:
        notes.append(f"The first {max_rows:,} of {len(frame):,} rows.")
    return notes


def _table(frame: pd.DataFrame, caption: str, notes: list[str]) -> str:
    numeric = [
        bool(pd.api.types.is_numeric_dtype(kind)) and kind != "bool" and kind != "boolean" for kind in frame.dtypes
    ]
    marks = [' class="n"' if number else "" for number in numeric]
    head = "".join(
        f'<th scope="col"{mark}>{as_text(name)}</th>' for name, mark in zip(frame.columns, marks, strict=True)
    )
    rows = [
        "<tr>" + "".join(f"<td{mark}>{_cell(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    ]
    below = "".join(f'<p class="note">{as_text(note)}</p>' for note in notes)
    caption = f"<caption>{as_text(caption)}</caption>"
    body = "\n".join(rows)
    inside = f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="table" tabindex="0"><table>{inside}</table></div>{below}'


def _cell(value: Any) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return NA_MARK
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "yes" if value else "no"
    if pd.api.types.is_integer(value):
        return f"{value:,}"
    if pd.api.types.is_float(value):
        return as_text(_float(float(value)))
    return as_text(value)


def _float(value: float) -> str:
    """Write a float with no more digits than can be read."""
    return (
        f"{value:,.0f}" if 1000 <= abs(value) < 1e15 or (value.is_integer() and abs(value) < 1e15) else f"{value:.4g}"
    )
