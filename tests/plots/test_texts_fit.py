"""No words leave a picture and none lie on others: with long names, one, twenty and no policies, and in a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from drawn_texts import drawn, outside, overlapping
from gallery_of_pictures import PICTURES, REAL
from matplotlib import style
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = (6.4, 4.2)
TOO_LARGE = {"floors"}
"""Pictures that need their own size: the words of asks slant upwards from each row."""


@pytest.fixture(autouse=True)
def plain_style() -> Iterator[None]:
    with style.context("default"):
        yield


def made(name: str, size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    PICTURES[name].draw(figure)
    return figure


@pytest.mark.parametrize(
    ("name", "small"), [(name, False) for name in PICTURES] + [(name, True) for name in REAL if name not in TOO_LARGE]
)
def test_no_words_leave_the_picture_or_lie_on_others(name: str, small: bool) -> None:
    figure = made(name, SMALL if small else PICTURES[name].size)
    texts = drawn(figure)
    assert texts
    assert outside(figure, texts) == []
    assert overlapping(texts) == []


def test_words_outside_and_words_on_words_are_found() -> None:
    figure = Figure(figsize=(4, 3))
    figure.text(0.5, 0.5, "one")
    figure.text(0.52, 0.51, "another")
    figure.text(0.95, 0.1, "beyond the edge")
    texts = drawn(figure)
    assert outside(figure, texts) == ["beyond the edge"]
    assert overlapping(texts) == [("one", "another")]
