from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.export._page import DARK, LIGHT
from harness_lab.export.report import Report, as_text

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\" onload=\"alert(2)"


def draw(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1])
    ax.text(0.5, 0.5, HOSTILE).set_in_layout(False)


def report(name: str = "policy") -> Report:
    frame = pd.DataFrame({name: [name, None], "spend": [0.25, None], "runs": pd.array([1200, None], "Int64")})
    page = Report(name, name).section(name).paragraph(name).table(frame, name, name)
    return page.section("Pictures").figure(draw, alt=name, caption=name, figsize=(3, 2)).code(name)


class Tags(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_same_content_is_the_same_bytes(tmp_path: Path) -> None:
    first, second = (report().write(tmp_path / name) for name in ("a.html", "b.html"))
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_hostile_names_stay_text_wherever_they_are_put() -> None:
    tags = Tags(report(HOSTILE).html()).tags
    assert not {tag for tag, _ in tags} & {"script", "img", "iframe", "object", "link", "base", "form"}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]


def test_nothing_comes_from_outside() -> None:
    tags = Tags(report().html()).tags
    links = [value for _, attributes in tags for name, value in attributes.items() if name in ("href", "src")]
    assert links
    assert all(value is not None and value.startswith("#") for value in links)
    assert "default-src 'none'" in report().html()


def test_names_on_the_page_are_unique_and_links_lead_somewhere() -> None:
    page = report().figure(draw, alt="again", figsize=(3, 2)).html()
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(names)


def test_the_table_of_contents_lists_the_sections() -> None:
    assert '<li><a href="#section-2">Pictures</a></li>' in report().html()
    assert "<nav" not in Report("one").section("only").html()


def test_what_is_unknown_is_a_dash_with_a_note_and_numbers_are_readable() -> None:
    page = report().html()
    assert '<td class="n">0.25</td><td class="n">1,200</td>' in page
    assert '<td class="n">\u2013</td>' in page
    assert "\u2013 is unknown or does not apply; it is not zero." in page


def test_flags_are_words_and_not_numbers() -> None:
    page = Report("t").table(pd.DataFrame({"stale": [True, False]}), "flags").html()
    assert "<td>yes</td>" in page
    assert "<td>no</td>" in page


def test_rows_that_are_not_shown_are_counted_and_no_rows_are_said() -> None:
    frame = pd.DataFrame({"x": range(1200)})
    assert "The first 2 of 1,200 rows." in Report("t").table(frame, "many", max_rows=2).html()
    assert "No rows." in Report("t").table(frame.head(0), "none").html()


def test_a_picture_can_be_read_aloud_and_is_a_figure_or_a_function() -> None:
    page = Report("t").figure(Figure(figsize=(1, 1)), alt='a "quoted" picture').html()
    assert '<svg role="img" aria-label="a &quot;quoted&quot; picture"' in page


@pytest.mark.parametrize("call", [lambda r: r.figure(draw, alt=" "), lambda r: r.table(pd.DataFrame(), "")])
def test_a_picture_without_words_and_a_table_without_a_caption_are_refused(call: object) -> None:
    with pytest.raises(InputError, match=r"^(alt|caption): expected what the"):
        call(Report("t"))  # type: ignore[operator]


def test_empty_lines_part_paragraphs_and_code_keeps_its_lines() -> None:
    page = Report("t").paragraph("one\n\ntwo").code("a\n  b").html()
    assert "<p>one</p>\n<p>two</p>" in page
    assert "<code>a\n  b</code>" in page


@given(st.text())
def test_any_text_can_be_put_in_and_written(text: str) -> None:
    shown = as_text(text)
    assert "<" not in shown
    assert '"' not in shown
    assert shown.encode().decode() == shown


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("ink", ["ink", "soft", "link"])
@pytest.mark.parametrize("paper", ["paper", "panel"])
def test_text_has_enough_contrast(colours: dict[str, str], ink: str, paper: str) -> None:
    light, dark = sorted((luminance(colours[name]) for name in (ink, paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
