"""What is written in a picture, as it was really drawn: what leaves the picture, and what lies on other words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    Texts = list[tuple[str, Bbox]]

SLACK = 1.0
"""Pixels by which boxes may touch: a box is a little larger than its letters."""


def drawn(figure: Figure) -> Texts:
    """Draw a figure and return each text that was drawn, with its box in pixels."""
    canvas, found = FigureCanvasAgg(figure), []
    plain: Any = Text.draw

    def draw(self: Text, renderer: Any) -> None:
        plain(self, renderer)
        if self.get_visible() and self.get_text().strip():
            found.append((self.get_text(), Text.get_window_extent(self, renderer)))

    canvas.draw()  # the first time, places are found
    Text.draw = draw  # type: ignore[method-assign]
    try:
        canvas.draw()
    finally:
        Text.draw = plain  # type: ignore[method-assign]
    return found


def outside(figure: Figure, texts: Texts) -> list[str]:
    """Return the texts that leave the figure."""
    wide, high = figure.bbox.width + SLACK, figure.bbox.height + SLACK
    return [text for text, box in texts if box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > wide or box.y1 > high]


def overlapping(texts: Texts) -> list[tuple[str, str]]:
    """Return the pairs of texts that lie on one another."""
    return [(a, b) for (a, one), (b, other) in combinations(texts, 2) if _meet(one, other)]


def _meet(one: Bbox, other: Bbox) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > SLACK and high > SLACK
