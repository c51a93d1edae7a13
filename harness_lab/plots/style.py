"""How every picture of the package looks: colours, markers, words on axes, and what is drawn when there is nothing.

Nothing here changes rcParams. Text and lines that carry no meaning of their own take the colour that the axes already
use for text (:func:`ink`), so that pictures work on light and on dark backgrounds.

References
----------
.. [1] Okabe, M., Ito, K. (2008). Color universal design: how to make figures and presentations that are friendly to
   colorblind people. https://jfly.uni-koeln.de/color/
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final, Literal

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.transforms import ScaledTranslation

from harness_lab.errors import InputError
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#767676")
"""The colours of Okabe and Ito [1]_ without the yellow (too pale on white) and the black (unseen on dark), ordered so
that the first ones differ in grey too."""

MARKERS: Final = ("o", "s", "D", "^", "v", "P", "X")

REFUSED: Final = "#D55E00"
"""Colour of refusals and of what is lost."""
KEPT: Final = "#0072B2"
"""Colour of what is kept, observed or completed."""
SAVED: Final = "#009E73"
"""Colour of spend that a limit avoids."""
NEUTRAL: Final = "#767676"
"""Colour of what is only there for orientation: 4.54 : 1 on white, 4.62 : 1 on black."""

OUTCOME_COLOURS: Final[dict[str, str]] = {
    Outcome.COMPLETED: "#009E73",
    Outcome.EXHAUSTED: "#D55E00",
    Outcome.TIMED_OUT: "#E69F00",
    Outcome.CANCELLED: "#56B4E9",
    Outcome.FAILED: "#CC79A7",
    Outcome.DENIED: "#D55E00",
    Outcome.AWAITING_APPROVAL: "#0072B2",
    Outcome.UNKNOWN: "#767676",
}
OUTCOME_HATCHES: Final[dict[str, str]] = {
    Outcome.EXHAUSTED: "///",
    Outcome.TIMED_OUT: "\\\\\\",
    Outcome.CANCELLED: "...",
    Outcome.FAILED: "xxx",
    Outcome.AWAITING_APPROVAL: "---",
}
"""What tells outcomes apart without colour."""

MAX_NAME: Final = 120
"""Characters of a name that are ever drawn."""

_NARROW: Final = 1.5
"""Inches below which a headline is not broken further."""
LETTER: Final = 0.068
_HANDLE: Final = 0.5
"""Inches of a letter of a legend, and of what stands before and behind its words."""


def colour_of(name: str, names: Sequence[str]) -> str:
    """Return the colour of one name among all that a report or notebook shows.

    Parameters
    ----------
    name : str
        The name, such as a policy's.
    names : sequence of str
        All names in the order in which they were given; the same sequence gives the same colours everywhere.

    Returns
    -------
    str
        ``#rrggbb``. After seven names colours come again, with another marker (:func:`marker_of`).

    Raises
    ------
    InputError
        If `name` is not among `names`.

    Examples
    --------
    >>> colour_of("pool", ["unlimited", "pool"])
    '#E69F00'
    """
    return PALETTE[_place(name, names) % len(PALETTE)]


def marker_of(name: str, names: Sequence[str]) -> str:
    """Return the marker of one name; colour and marker together are unique among 49 names."""
    place = _place(name, names)
    return MARKERS[(place + place // len(PALETTE)) % len(MARKERS)]


def _place(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise InputError("name", expected=f"one of {', '.join(names)}", got=name)
    return list(names).index(name)


def ink(ax: Axes) -> Any:
    """Return the colour in which these axes write."""
    return ax.xaxis.label.get_color()


def lightness(colour: str) -> float:
    """Return the CIE lightness L* of a colour, 0 (black) to 100 (white): how it looks in grey."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return float(116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance)


def plain(text: object, *, most: int = MAX_NAME) -> str:
    r"""Return text that is drawn as it is: no mathematics between dollar signs, no line breaks, no control characters.

    Names come from records and may hold anything; more than `most` characters are cut.

    Examples
    --------
    >>> print(plain("from $1 to $2"))
    from \$1 to \$2
    """
    return _undollared(short(text, most=most))


def short(text: object, *, most: int = MAX_NAME) -> str:
    """Return a name on one line, cut to `most` characters; not yet safe to draw (see :func:`plain`)."""
    flat = "".join(part if part.isprintable() else " " for part in str(text))
    return flat if len(flat) <= most else f"{flat[: most - 3]}..."


def _undollared(text: str) -> str:
    """Keep matplotlib from reading mathematics: a backslash before a dollar sign is drawn as the sign alone."""
    return text.replace("$", r"\$")


def wrapped(text: object, *, width: int = 24, lines: int = 3) -> str:
    """Return a name broken into at most `lines` lines of `width` characters, for tick labels."""
    pieces = textwrap.wrap(short(text, most=10 * MAX_NAME), width=width, max_lines=lines, placeholder=" ...")
    return "\n".join(_undollared(piece) for piece in pieces)


def sentence(text: str, *, width: int) -> str:
    """Return a sentence broken into lines of `width` characters; dollar signs are drawn as they are."""
    return "\n".join(_undollared(line) for line in textwrap.wrap(short(text, most=10 * MAX_NAME), width=width))


def new_axes(ax: Axes | None, *, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return `ax`, or new axes of a new figure in inches if it is None."""
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def new_figure(figure: Figure | None, *, width: float, height: float) -> Figure:
    """Return `figure`, or a new one in inches if it is None."""
    return plt.figure(figsize=(width, height), layout="constrained") if figure is None else figure


def headline(ax: Axes, text: str | None) -> None:
    """Write the finding or the question above the axes, left-aligned and broken to their width; None writes nothing."""
    if text is None:
        return
    _break(ax.set_title(_undollared(short(text, most=10 * MAX_NAME)), loc="left", fontsize="large"), ax)


def _break(text: Any, ax: Axes) -> None:
    """Break a text to the width of its axes when all is laid out, for only then it is known.

    matplotlib itself would break at the figure's edge, which is beyond the axes beside these, and offers no other way
    to say where.
    """
    text.set_wrap(True)
    text._get_wrap_line_width = lambda: max(0.98 * ax.bbox.width, _NARROW * ax.figure.dpi)


def note(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    *,
    gid: str,
    offset: tuple[float, float] = (0.0, 0.0),
    side: Literal["left", "center", "right"] = "center",
    level: Literal["top", "center", "bottom"] = "bottom",
    weight: Literal["normal", "bold"] = "normal",
    size: str = "small",
    backing: float = 0.85,
) -> Annotation:
    """Write beside a point of the data, on a patch of the paper so that lines do not run through the words.

    Parameters
    ----------
    ax : Axes
        Where.
    text : str
        Taken as it is: dollar signs are no mathematics.
    at, offset : (float, float)
        The point, and the distance from it in printer's points.
    gid : str
        A name that is unique in the picture, by which tests find the text.
    side, level : str
        Which end of the text is at the point.
    weight, size : str
        How it is written.
    backing : float
        How opaque the patch is, 0 to 1.
    """
    paper = {"boxstyle": "round,pad=0.12", "facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": backing}
    return ax.annotate(
        "\n".join(plain(line) for line in text.split("\n")), at, xytext=offset, textcoords="offset points", ha=side,
        va=level, weight=weight, fontsize=size, color=ink(ax), gid=gid, bbox=paper,
    )  # fmt: skip


def legend_below(ax: Axes, handles: Sequence[Any] | None = None, *, columns: int = 2) -> None:
    """Put the legend under the axis label, a fixed distance in inches below the axes, in at most so many columns."""
    figure = ax.get_figure(root=True)
    place = ax.transAxes if figure is None else ax.transAxes + ScaledTranslation(0, -0.48, figure.dpi_scale_trans)
    shown = ax.get_legend_handles_labels()[0] if handles is None else handles
    words = max((len(line) for one in shown for line in str(one.get_label()).split("\n")), default=0)
    fits = int(width_of(ax) / (LETTER * words + _HANDLE))
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=place,
        ncols=max(1, min(columns, fits)), frameon=False, fontsize="small", borderaxespad=0.0,
    )  # fmt: skip


def width_of(ax: Axes) -> float:
    """Return the width of axes in inches, as far as it is known before all is laid out."""
    figure = ax.get_figure(root=True)
    return 6.4 if figure is None else float(figure.get_size_inches()[0] * ax.get_position().width)


def tidy(ax: Axes, *, grid: str = "both") -> None:
    """Take away the frame's upper and right line and add a faint grid behind the data along x, y or both."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(visible=True, axis=grid, alpha=0.25, linewidth=0.8)  # type: ignore[arg-type]


def draw_empty(ax: Axes, reason: str) -> Axes:
    """Draw, instead of a picture, why there is none.

    Parameters
    ----------
    ax : Axes
        Where.
    reason : str
        Such as ``"no rows: nothing was recorded"``.

    Returns
    -------
    Axes
        `ax`.
    """
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.spines[:].set_alpha(0.3)
    words = _undollared(short(reason, most=10 * MAX_NAME))
    _break(ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", color=ink(ax), alpha=0.8), ax)
    return ax
