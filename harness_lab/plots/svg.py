"""Pictures as SVG text that can stand inside a page: same input, same bytes; nothing from outside, no script."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

import matplotlib as mpl
from matplotlib import style
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

SALT: Final = "harness-lab"
_NOT_NEEDED: Final = re.compile(
    r"<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL
)
_NAMES: Final = re.compile(r'(\bid="|href="#|url\(#)(?=[\w.-]+["\)])')
_META: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}


def to_svg(
    picture: Figure | Callable[[Axes], object],
    *,
    figsize: tuple[float, float] = (7.0, 4.0),
    text: Literal["paths", "words"] = "paths",
    look: Literal["default", "current"] = "default",
    prefix: str = "",
) -> str:
    """Return a picture as an ``<svg>`` element.

    Parameters
    ----------
    picture : Figure or callable
        A figure, or what draws on the axes that it is given.
    figsize : (float, float)
        Width and height in inches, for a callable.
    text : {"paths", "words"}
        Letters as shapes, which look the same everywhere; or as text in the reader's fonts, which can be searched.
    look : {"default", "current"}
        For a callable: matplotlib's default style whatever the user has set, or the rcParams as they are.
    prefix : str
        Put before every name inside, so that several pictures can stand on one page.

    Returns
    -------
    str
        From ``<svg`` to ``</svg>``; the background is opaque.
    """
    settings: Any = {"svg.fonttype": "path" if text == "paths" else "none", "svg.hashsalt": SALT}
    base: AbstractContextManager[None] = style.context("default") if look == "default" else nullcontext()
    with base, mpl.rc_context(settings):
        figure = picture if isinstance(picture, Figure) else _drawn(picture, figsize)
        buffer = io.StringIO()
        figure.savefig(
            buffer, format="svg", metadata=_META, facecolor=figure.get_facecolor(), transparent=False, dpi=72
        )  # fmt: skip
    written = buffer.getvalue()
    svg = _NOT_NEEDED.sub("", written[written.index("<svg") :]).strip()
    return _NAMES.sub(lambda found: found.group(0) + prefix, svg) if prefix else svg


def _drawn(draw: Callable[[Axes], object], figsize: tuple[float, float]) -> Figure:
    figure = Figure(figsize=figsize, layout="constrained")
    draw(figure.add_subplot())
    return figure
