from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.widgets import FigurePanel
from harness_lab.widgets.points import SIDE, PointPicture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = {"a": (0.0, 0.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}


def made(points: dict[str, tuple[float, float]]) -> tuple[PointPicture, list[str]]:
    drawn: list[Axes] = []
    picked: list[str] = []

    def draw(ax: Axes) -> None:
        ax.plot([0, 1], [0, 1])
        ax.set(xlim=(0, 1), ylim=(0, 1))
        drawn.append(ax)

    picture = PointPicture(FigurePanel(draw, figsize=(5, 4)), picked.append, told="Runs of")
    picture.put(drawn[-1], points)
    return picture, picked


def middle(picture: PointPicture, place: int) -> tuple[float, float]:
    top, _, _, left = (float(part.removesuffix("px")) for part in picture.places[place].layout.margin.split())
    return left + SIDE / 2, top + SIDE / 2


def test_a_place_lies_over_its_point_in_the_picture() -> None:
    picture, _ = made(POINTS)
    ax = picture.picture.figure().axes[0]
    ax.get_figure().draw_without_rendering()
    box = ax.get_position()
    assert abs(middle(picture, 0)[0] - box.x0 * 5 * 96) < 2
    assert abs(middle(picture, 0)[1] - (1 - box.y0) * 4 * 96) < 2


def test_a_click_tells_the_name_of_the_point() -> None:
    picture, picked = made(POINTS)
    picture.places[0].click()
    assert picked == ["a"]


def test_points_on_one_another_share_a_place_whose_clicks_take_them_in_turn() -> None:
    picture, picked = made(POINTS)
    assert [place.tooltip for place in picture.places] == ["Runs of a", "Runs of b, c: each click takes the next"]
    for name in ("b", "c", "b"):
        picture.places[1].click()
        assert picked[-1] == name
        picture.choose(name)


def test_the_chosen_point_has_a_frame_and_keeps_it_when_the_picture_is_drawn_again() -> None:
    picture, _ = made(POINTS)
    picture.choose("a")
    picture.put(picture.picture.figure().axes[0], POINTS)
    assert [place.layout.border_top != "none" for place in picture.places] == [True, False]


def test_a_picture_without_points_has_no_places() -> None:
    picture, _ = made({})
    assert picture.places == ()
