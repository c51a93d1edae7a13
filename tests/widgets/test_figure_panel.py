from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.widgets import FigurePanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Counter:
    """Draws how often it was asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, ax: Axes) -> None:
        self.times += 1
        ax.set_title(f"drawn {self.times}")


def test_a_panel_is_an_svg_whose_words_are_in_the_page() -> None:
    panel = FigurePanel(Counter())
    assert panel.value.startswith("<svg")
    assert "drawn 1" in panel.value


def test_redrawing_shows_what_has_changed_and_can_observe_a_control() -> None:
    panel = FigurePanel(Counter())
    panel.redraw({"name": "value"})
    assert "drawn 2" in panel.value


def test_a_panel_has_classes_by_which_a_test_finds_it() -> None:
    assert FigurePanel(Counter(), css_class="mine")._dom_classes == ("hl-figure-panel", "mine")


def test_the_same_picture_is_the_same_bytes() -> None:
    assert FigurePanel(Counter()).value == FigurePanel(Counter()).value
