from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import pytest
from drawn_texts import drawn
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.plots.style import (
    MARKERS,
    NEUTRAL,
    PALETTE,
    colour_of,
    draw_empty,
    headline,
    legend_below,
    lightness,
    marker_of,
    note,
    plain,
    sentence,
    short,
    wrapped,
)

NAMES = [f"policy {k}" for k in range(20)]


def test_a_name_has_the_same_colour_wherever_the_same_names_are_shown() -> None:
    assert colour_of("policy 3", NAMES) == colour_of("policy 3", list(NAMES)) == PALETTE[3]


def test_twenty_names_are_told_apart_by_colour_and_marker_together() -> None:
    looks = {(colour_of(name, NAMES), marker_of(name, NAMES)) for name in NAMES}
    assert len(looks) == len(NAMES)
    assert len(MARKERS) == len(PALETTE) == len(set(PALETTE))


def test_a_name_that_is_not_shown_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^name: expected one of a, b, got 'c'$"):
        colour_of("c", ["a", "b"])


def test_the_first_three_colours_differ_in_grey() -> None:
    greys = sorted(lightness(colour) for colour in PALETTE[:3])
    assert min(b - a for a, b in pairwise(greys)) > 10


def test_black_white_and_middle_grey_have_the_lightness_that_cie_gives_them() -> None:
    assert lightness("black") == pytest.approx(0)
    assert lightness("white") == pytest.approx(100)
    assert lightness(NEUTRAL) == pytest.approx(50, abs=1)


@pytest.mark.parametrize("text", ["$a$ to $b$", r"\frac", "a\nb\x00", "\u202eback", "x" * 500])
def test_hostile_names_are_drawn_as_one_line_of_text(text: str) -> None:
    figure = Figure()
    drawn = figure.add_subplot().set_title(plain(text))
    figure.draw_without_rendering()
    assert "\n" not in drawn.get_text()
    assert len(plain(text)) <= 124


def test_two_amounts_in_dollars_are_no_mathematics() -> None:
    assert plain("from $1 to $2") == r"from \$1 to \$2"
    assert sentence("from $1 to $2", width=8).splitlines() == [r"from \$1", r"to \$2"]


def test_long_names_are_wrapped_and_cut() -> None:
    lines = wrapped("a shared ledger of twenty steps and a quarter of a dollar", width=20, lines=2).splitlines()
    assert len(lines) == 2
    assert lines[-1].endswith("...")
    assert all(len(line) <= 20 for line in lines)
    assert short("abcdef", most=5) == "ab..."


def test_what_is_empty_says_why_and_has_no_ticks() -> None:
    ax = draw_empty(Figure().add_subplot(), "no rows: nothing was recorded")
    assert [text.get_text() for text in ax.texts] == ["no rows: nothing was recorded"]
    assert not ax.get_xticks().size


def test_words_take_the_colour_in_which_the_axes_write() -> None:
    with mpl.rc_context({"axes.labelcolor": "white", "axes.facecolor": "black"}):
        ax = Figure().add_subplot()
    assert note(ax, "x", (0, 0), gid="x").get_color() == "white"


def test_a_headline_is_broken_to_the_width_of_its_axes_when_all_is_laid_out() -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    narrow, _ = figure.subplots(1, 2)
    headline(narrow, "a limit of $0.70 cuts some runs and avoids some of the spend")
    narrow.set_ylabel("\n".join(["labels take room"] * 4))
    box = next(box for text, box in drawn(figure) if text.startswith("a limit"))
    assert box.width <= narrow.bbox.width
    assert box.height > 30  # more than one line
    headline(narrow, None)


def test_a_legend_below_lies_below_the_axes() -> None:
    figure = Figure(figsize=(5, 3), layout="constrained")
    ax = figure.add_subplot()
    ax.plot([0, 1], label="line")
    legend_below(ax)
    figure.draw_without_rendering()
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y1 < ax.get_window_extent().y0
    assert legend.get_window_extent().y0 >= 0


def test_importing_plots_changes_no_setting() -> None:
    code = (
        "import matplotlib as mpl, matplotlib.pyplot; before = dict(mpl.rcParams); import harness_lab.plots;"
        "assert dict(mpl.rcParams) == before"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={"MPLBACKEND": "agg", "PATH": ""})
