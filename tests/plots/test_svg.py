from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from harness_lab.plots import to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], label="a & b <c>")
    ax.fill_between([0, 1], [0, 1], hatch="//")
    ax.legend()


@pytest.mark.parametrize("text", ["paths", "words"])
def test_the_same_picture_is_the_same_bytes(text: str) -> None:
    assert to_svg(draw, text=text) == to_svg(draw, text=text)  # type: ignore[arg-type]


def test_it_is_one_well_formed_element_without_comments_dates_or_addresses_to_load() -> None:
    svg = to_svg(draw)
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
    assert not re.search(r"<!--|<script|<style|dc:date|<image|(?:href|src)=\"(?!#)", svg)


def test_words_can_be_read_in_the_page_and_are_escaped() -> None:
    assert "a &amp; b &lt;c&gt;" in to_svg(draw, text="words")
    assert "<text" not in to_svg(draw, text="paths")


def test_a_prefix_renames_every_name_and_every_use_of_it() -> None:
    svg = to_svg(draw, prefix="f1-")
    names = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert names
    assert all(name.startswith("f1-") for name in names)
    assert {one or two for one, two in used} <= names


def test_the_users_style_is_kept_out_unless_it_is_asked_for() -> None:
    plain = to_svg(draw)
    with mpl.rc_context({"figure.facecolor": "black", "axes.facecolor": "black"}):
        assert to_svg(draw) == plain
        assert "#000000" in to_svg(draw, look="current")[:2000]


def test_no_setting_is_left_changed() -> None:
    before = dict(mpl.rcParams)
    to_svg(draw)
    assert dict(mpl.rcParams) == before


def test_a_figure_is_taken_as_it_is_and_gets_an_opaque_background() -> None:
    figure = Figure(figsize=(2, 1), facecolor="#123456")
    draw(figure.add_subplot())
    svg = to_svg(figure)
    assert 'width="144pt" height="72pt"' in svg
    assert "#123456" in svg
