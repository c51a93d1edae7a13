"""A picture with places to click: plain buttons without a face, laid over its points; no script is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets

from harness_lab.plots.style import NEUTRAL
from harness_lab.widgets.controls import named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes

    from harness_lab.widgets.panel import FigurePanel

SIDE: Final = 26
"""Width and height of a place, CSS pixels: at least 24, so that a finger hits it too."""
_PER_INCH: Final = 96
_ONE: Final = "whole"


class PointPicture(widgets.GridBox):
    """A picture, and over each of its points a button: for the pointer, the tabulator and a screen reader alike.

    Points that lie on one another share a place; each further click takes the next of them.

    Parameters
    ----------
    picture : FigurePanel
        What is drawn.
    pick : callable
        Told the name of the point that was clicked.
    told : str
        What a click does, before the name: ``"Runs of"``.

    Attributes
    ----------
    places : tuple of Button
        One for each point, or group of points.
    """

    def __init__(self, picture: FigurePanel, pick: Callable[[str], object], *, told: str) -> None:
        self.picture, self._pick, self._told = picture, pick, told
        self.places: tuple[widgets.Button, ...] = ()
        self._names: tuple[tuple[str, ...], ...] = ()
        self._chosen = ""
        picture.layout.grid_area, picture.layout.margin = _ONE, "0"
        layout = widgets.Layout(grid_template_areas=f'"{_ONE}"', justify_items="flex-start", align_items="flex-start")
        super().__init__([picture], layout=layout)

    def put(self, ax: Axes, points: Mapping[str, tuple[float, float]]) -> None:
        """Lay the places over points of axes that have just been drawn, in data coordinates, by name."""
        at = {name: _pixels(ax, point) for name, point in points.items()}
        groups = _groups(at)
        self._names = tuple(tuple(group) for group in groups)
        self.places = tuple(self._place(group, at[group[0]]) for group in groups)
        self.children = (self.picture, *self.places)
        self.choose(self._chosen)

    def choose(self, name: str) -> None:
        """Draw a frame around the point of this name."""
        self._chosen = name
        for place, names in zip(self.places, self._names, strict=True):
            place.layout.border = f"2px solid {NEUTRAL}" if name in names else "none"

    def _place(self, names: list[str], at: tuple[float, float]) -> widgets.Button:
        layout = widgets.Layout(
            grid_area=_ONE, width=f"{SIDE}px", height=f"{SIDE}px", padding="0",
            margin=f"{at[1] - SIDE / 2:.1f}px 0 0 {at[0] - SIDE / 2:.1f}px",
        )  # fmt: skip
        words = f"{self._told} {', '.join(names)}" + (": each click takes the next" if len(names) > 1 else "")
        look = {"button_color": "transparent", "font_size": "0"}  # its words are heard, not seen
        made = widgets.Button(description=words, tooltip=words, layout=layout, style=look)
        made.on_click(lambda _: self._clicked(names))
        return named(made, "point")

    def _clicked(self, names: list[str]) -> None:
        before = names.index(self._chosen) if self._chosen in names else -1
        self._pick(names[(before + 1) % len(names)])


def _pixels(ax: Axes, point: tuple[float, float]) -> tuple[float, float]:
    """Return where a point lies in the drawn figure, CSS pixels from its upper left corner."""
    figure: Any = ax.get_figure(root=True)
    wide, high = figure.get_size_inches() * _PER_INCH
    x, y = figure.transFigure.inverted().transform(ax.transData.transform(point))
    return float(x * wide), float((1 - y) * high)


def _groups(at: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """Put together what is too close to be hit apart: nearer than half a place to the first of its group."""
    groups: list[list[str]] = []
    for name, (x, y) in at.items():
        near = (g for g in groups if max(abs(at[g[0]][0] - x), abs(at[g[0]][1] - y)) < SIDE / 2)
        if (group := next(near, None)) is None:
            groups.append([name])
        else:
            group.append(name)
    return groups
