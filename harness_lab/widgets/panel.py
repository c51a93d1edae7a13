"""A picture in a notebook that redraws itself, without pyplot and without an Output widget, so it runs headless."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets
from IPython.display import Image
from matplotlib.figure import Figure

from harness_lab.plots.svg import to_svg

if TYPE_CHECKING:
    from collections.abc import Callable

_DPI: Final = 72


class FigurePanel(widgets.HTML):
    """A picture as SVG inside an HTML widget.

    Parameters
    ----------
    draw : callable
        Draws on the axes that it is given; called again by :meth:`redraw`.
    figsize : (float, float)
        Width and height in inches.
    css_class : str
        A class of its own for tests; every panel has ``hl-figure-panel``.
    whole : bool
        Whether `draw` is given the figure, to divide it itself, and not its axes.

    Notes
    -----
    The words of the picture are text in the page, and same input gives the same bytes.
    """

    def __init__(
        self,
        draw: Callable[[Any], object],
        *,
        figsize: tuple[float, float] = (7.0, 4.0),
        css_class: str = "hl-figure",
        whole: bool = False,
    ) -> None:
        super().__init__()
        self._draw = draw
        self._figsize = figsize
        self._whole = whole
        self.add_class("hl-figure-panel")
        self.add_class(css_class)
        self.redraw()

    def redraw(self, _change: object = None) -> None:
        """Draw again; takes and ignores a change, so that it can observe a control."""
        self.value = to_svg(
            self.figure() if self._whole else self._draw, figsize=self._figsize, text="words", look="current"
        )

    def figure(self) -> Figure:
        """Return the picture as a figure of its own."""
        figure = Figure(figsize=self._figsize, layout="constrained")
        self._draw(figure if self._whole else figure.add_subplot())
        return figure

    def still(self) -> Image:
        """Return the picture as an image that a stored notebook keeps: it is read where no kernel runs."""
        buffer = io.BytesIO()
        self.figure().savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
        return Image(buffer.getvalue(), format="png")  # type: ignore[no-untyped-call]
