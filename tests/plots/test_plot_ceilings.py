from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness_lab.analyze import ceiling
from harness_lab.errors import InputError
from harness_lab.plots import plot_ceiling_curve, plot_ceiling_tradeoff
from harness_lab.plots.ceiling_info import ceiling_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USD = 10**9


def curve(**changes: object) -> pd.DataFrame:
    """Return what ceilings of $1 to $4 would have done to 100 runs that spent $400 together."""
    frame = pd.DataFrame(
        {
            "ceiling": np.array([1, 2, 3, 4]) * USD,
            "n": 100,
            "runs_cut": [90, 40, 20, 0],
            "delivered_cut": [50, 20, 8, 0],
            "delivered_unknown_cut": [9, 4, 2, 0],
            "cut_share": [0.9, 0.4, 0.2, 0.0],
            "cut_share_low": [0.8, 0.3, 0.1, 0.0],
            "cut_share_high": [0.95, 0.5, 0.3, 0.04],
            "avoided_nusd": np.array([240, 100, 40, 0]) * USD,
            "avoided_share": [0.6, 0.25, 0.1, 0.0],
            "avoided_share_low": [0.5, 0.2, 0.05, 0.0],
            "avoided_share_high": [0.7, 0.3, 0.15, 0.01],
            "sunk_share": [0.2, 0.2, 0.15, 0.0],
            "completed_share": [0.1, 0.6, 0.8, 1.0],
        }
    )
    return frame.assign(**changes)


def axes() -> Axes:
    return Figure(figsize=(7.2, 4.6), layout="constrained").add_subplot()


def texts(ax: Axes) -> str:
    return "\n".join([ax.get_title(loc="left").replace("\n", " "), *(text.get_text() for text in ax.texts)])


def labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_delivered_runs_cut_are_drawn_against_spend_avoided() -> None:
    ax = plot_ceiling_tradeoff(curve(), ax=axes())
    line = next(line for line in ax.get_lines() if line.get_label() == "runs cut that had delivered")
    assert line.get_xydata().tolist() == [[0.6, 0.5], [0.25, 0.2], [0.1, 0.08], [0.0, 0.0]]


def test_axes_are_shares_and_say_of_what() -> None:
    ax = plot_ceiling_tradeoff(curve(), ax=axes())
    assert ax.get_xlabel() == "spend avoided, share of all spend"
    assert ax.get_ylabel() == "runs lost, share of all runs"
    assert ax.get_xlim()[0] == ax.get_ylim()[0] == 0


def test_the_chosen_ceiling_is_told_in_words_with_runs_and_dollars() -> None:
    ax = plot_ceiling_tradeoff(curve(), ax=axes(), chosen=3 * USD)
    said = texts(ax).replace("\\", "")
    assert "A limit of $3 cuts 20 of 100 runs (8 of them had delivered, 2 perhaps)" in said
    assert "avoids $40, 10 % of the spend; 15 % is sunk in the runs that it cuts" in said
    assert "limit $3" in said


def test_the_picture_zooms_on_the_chosen_ceiling() -> None:
    ax = plot_ceiling_tradeoff(curve(), ax=axes(), chosen=3 * USD)
    assert ax.get_ylim()[1] == pytest.approx(0.8 * 1.05)
    assert plot_ceiling_tradeoff(curve(), ax=axes(), most_lost=0.3).get_ylim()[1] == pytest.approx(0.3 * 1.05)


def test_without_a_choice_the_headline_asks_the_question() -> None:
    ax = plot_ceiling_tradeoff(curve(), ax=axes(), channel="calls")
    assert texts(ax).startswith("What does a limit on model calls save, and which runs does it cost?")


def test_other_ceilings_are_written_along_the_curve_in_their_unit() -> None:
    ax = plot_ceiling_tradeoff(curve(ceiling=[5, 10, 20, 40]), ax=axes(), channel="calls")
    marks = [text.get_text() for text in ax.texts if str(text.get_gid()).startswith("mark")]
    assert set(marks) <= {"5 calls", "10 calls", "20 calls", "40 calls"}
    assert len(marks) >= 2


def test_unknown_delivery_is_a_band_and_no_delivery_at_all_is_said() -> None:
    assert "delivery unknown: perhaps lost too" in labels(plot_ceiling_tradeoff(curve(), ax=axes()))
    unknown = curve(delivered_cut=0, delivered_unknown_cut=[90, 40, 20, 0])
    assert labels(plot_ceiling_tradeoff(unknown, ax=axes())) == ["runs cut (whether they delivered is unknown)"]


def test_an_interval_from_fewer_than_ten_runs_is_not_drawn() -> None:
    band = ceiling_info(curve(runs_cut=[90, 40, 9, 0])).cut_band()
    assert np.isfinite(band.high).tolist() == [True, True, False, False]


def test_completion_avoided_and_sunk_are_drawn_against_the_ceiling() -> None:
    ax = plot_ceiling_curve(curve(), ax=axes(), chosen=2 * USD)
    assert labels(ax) == ["runs completed within it", "spend avoided", "spend sunk in runs that it cuts"]
    assert ax.get_lines()[0].get_xydata().tolist() == [[1, 0.1], [2, 0.6], [3, 0.8], [4, 1.0]]
    assert "60 % of 100 runs complete, 25 % of the spend is avoided" in texts(ax)


def test_line_and_words_are_about_the_same_candidate() -> None:
    ax = plot_ceiling_curve(curve(), ax=axes(), chosen=2.2 * USD)
    assert "Under \\$2," in texts(ax)
    assert "limit \\$2" in texts(ax)
    assert any(list(line.get_xdata()) == [2, 2] for line in ax.get_lines())


def test_unknown_spend_and_no_rows_decline() -> None:
    unknown = plot_ceiling_tradeoff(curve(avoided_share=np.nan), ax=axes())
    assert "spend of these runs is unknown" in texts(unknown).replace("\n", " ")
    for plot in (plot_ceiling_tradeoff, plot_ceiling_curve):
        assert "no rows" in texts(plot(curve().head(0), ax=axes()))
        assert "no rows" in texts(plot(curve(n=0), ax=axes()))


def test_groups_and_missing_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^curve: expected one row per ceiling"):
        plot_ceiling_tradeoff(pd.concat([curve(), curve()]), ax=axes())
    with pytest.raises(InputError, match=r"^curve: expected the columns ceiling, n,"):
        plot_ceiling_curve(curve().drop(columns="sunk_share"), ax=axes())


def test_a_ceiling_on_tokens_of_runs_without_a_cost_says_that_the_spend_is_unknown() -> None:
    nodes = pd.DataFrame(
        {"run": [f"r{k}" for k in range(60)], "node": "0", "parent": None, "outcome": "completed",
         "input_total": range(1, 61), "output": 1, "calls": 1}
    )  # fmt: skip
    choice = ceiling(nodes, "input", target=0.5)
    assert "an unknown share of the spend avoided" in choice.summary()
    assert "spend of these runs is unknown" in str([text.get_text() for text in choice.plot().texts])
