from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib import colors
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.plots import plot_incidence
from harness_lab.plots.distribution import incidence_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USD = 10**9


def curve() -> pd.DataFrame:
    """Return four of five runs completed within $4; pointwise band around."""
    value = np.array([1, 2, 3, 4]) * USD
    share = np.array([0.2, 0.4, 0.6, 0.8])
    return pd.DataFrame({"value": value, "completed": share, "low": share - 0.1, "high": share + 0.1})


def axes() -> Axes:
    return Figure(figsize=(6.4, 4), layout="constrained").add_subplot()


def words(ax: Axes) -> str:
    return "\n".join([ax.get_title(loc="left"), *(text.get_text() for text in ax.texts)])


def test_the_curve_is_a_step_function_in_dollars_that_begins_at_zero() -> None:
    ax = plot_incidence(curve(), ax=axes())
    line = ax.get_lines()[0]
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xydata()[:5].tolist() == [[0, 0], [1, 0.2], [2, 0.4], [3, 0.6], [4, 0.8]]


def test_axes_have_names_units_and_the_limits_of_a_share() -> None:
    ax = plot_incidence(curve(), ax=axes(), noun="nodes")
    assert ax.get_xlabel() == r"spend until completion, \$"
    assert ax.get_ylabel() == "share of all nodes completed"
    assert ax.get_ylim() == (0, 1)


def test_beyond_the_last_stopped_run_the_data_say_nothing() -> None:
    ax = plot_incidence(curve(), ax=axes(), stopped=[2 * USD, 6 * USD])
    shaded = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (shaded.x0, shaded.x1) == pytest.approx((6, ax.get_xlim()[1]))
    assert "the data say nothing here" in words(ax)


def test_where_every_run_ended_nothing_is_left_in_the_dark() -> None:
    assert "none used more" in words(plot_incidence(curve(), ax=axes()))


def test_a_supported_end_can_be_named() -> None:
    info = incidence_info(curve(), end=3 * USD, factor=1 / USD)
    assert info.end == 3


def test_stopped_runs_are_ticks_on_the_curve() -> None:
    ax = plot_incidence(curve(), ax=axes(), stopped=[2.5 * USD])
    ticks = next(line for line in ax.get_lines() if line.get_marker() == "|")
    assert ticks.get_xydata().tolist() == [[2.5, 0.4]]
    assert ticks.get_label() == "1 stopped by a limit: would have used more"


def test_a_ceiling_says_what_share_completes_within_it() -> None:
    ax = plot_incidence(curve(), ax=axes(), ceiling=3 * USD)
    assert "ceiling \\$3:\n60 % complete within it" in words(ax)


def test_a_ceiling_in_the_dark_says_so() -> None:
    ax = plot_incidence(curve(), ax=axes(), stopped=[5 * USD], ceiling=7 * USD)
    assert "nothing is known there" in words(ax)


def test_the_headline_says_the_median_or_where_the_data_end() -> None:
    assert "Half of all runs complete within \\$3" in words(plot_incidence(curve(), ax=axes()))
    short = plot_incidence(curve().head(2), ax=axes(), title=None)
    assert "30 % to 50 % of all runs complete within \\$2, where the data" in words(short)
    assert plot_incidence(curve(), ax=axes(), title="").get_title(loc="left") == ""


def test_a_second_curve_is_dashed_and_named() -> None:
    twice = curve().assign(value=lambda f: f["value"] * 2)
    ax = plot_incidence(curve(), ax=axes(), other=twice, other_label="simulated, no limit")
    other = next(line for line in ax.get_lines() if line.get_label() == "simulated, no limit")
    assert other.get_linestyle() == "--"
    legend = ax.get_legend()
    assert legend is not None
    assert "simulated, no limit" in [text.get_text() for text in legend.get_texts()]


def test_known_points_of_the_truth_are_diamonds() -> None:
    ax = plot_incidence(curve(), ax=axes(), truth=curve().iloc[[1]])
    points = next(line for line in ax.get_lines() if line.get_label() == "truth")
    assert points.get_xydata().tolist() == [[2, 0.4]]


def test_an_unknown_band_is_not_drawn() -> None:
    with_band = plot_incidence(curve(), ax=axes())
    without = plot_incidence(curve().drop(columns=["low", "high"]), ax=axes())
    assert len(without.collections) == len(with_band.collections) - 1


def test_no_rows_decline() -> None:
    assert "no rows" in words(plot_incidence(curve().head(0), ax=axes()))


@pytest.mark.parametrize("bad", [pd.DataFrame({"x": [1]}), curve().iloc[::-1]])
def test_a_frame_that_is_no_curve_is_refused(bad: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"^(frame|value): expected"):
        plot_incidence(bad, ax=axes())


def test_it_is_drawn_on_dark_paper_too(tmp_path: Path) -> None:
    figure = Figure(facecolor="black", layout="constrained")
    ax = figure.add_subplot(facecolor="black")
    ax.xaxis.label.set_color("white")
    plot_incidence(curve(), ax=ax, stopped=[5 * USD], ceiling=3 * USD)
    assert {colors.to_hex(text.get_color()) for text in ax.texts} == {"#ffffff"}
    figure.savefig(tmp_path / "dark.png", facecolor=figure.get_facecolor())
    assert (tmp_path / "dark.png").stat().st_size > 5_000
