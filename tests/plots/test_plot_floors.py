from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.plots import plot_floors
from harness_lab.plots.floors import floors_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def points(**columns: object) -> pd.DataFrame:
    values = [31_211, 32_296, 47_365, 47_965, 48_253, 62_616]
    return pd.DataFrame({"backend": "pi", "model": "glm", "agent": None, "input_total": values, **columns})


def floors(**columns: object) -> pd.DataFrame:
    base = {"agent": [None], "backend": "pi", "model": "glm", "floor": 31_211, "second_lowest": 32_296, "n": 6}
    return pd.DataFrame({**base, **columns}).astype({"floor": "Int64", "second_lowest": "Int64"})


def axes() -> Axes:
    return Figure(figsize=(8.4, 3), layout="constrained").add_subplot()


def texts(ax: Axes, gid: str = "") -> list[str]:
    return [text.get_text() for text in ax.texts if str(text.get_gid()).startswith(gid)]


def test_every_settlement_is_a_dot_and_the_floor_says_its_n() -> None:
    ax = plot_floors(points(), floors(), ax=axes())
    drawn = np.concatenate([np.asarray(one.get_offsets()) for one in ax.collections[:2]])
    assert sorted(drawn[:, 0]) == points()["input_total"].tolist()
    assert texts(ax, "evidence") == ["floor 31,211\nsecond 32,296\nn = 6"]


def test_asks_below_the_floor_are_refused_in_words() -> None:
    ax = plot_floors(points(), floors(), ax=axes(), asks=[2_000, 8_000, 31_211])
    assert texts(ax, "ask") == ["2,000 refused", "8,000 refused", "31,211 let through"]
    assert ax.get_title(loc="left") == "2 of 3 asks lie below what their path was ever seen to need"


def test_a_path_without_evidence_is_not_measured_and_refuses_nothing() -> None:
    asks = pd.DataFrame({"agent": [None], "backend": ["pi"], "model": ["other"], "asked": [10]})
    rows = floors_info(points(), floors(), asks=asks)
    assert [row.measured for row in rows] == [True, False]
    assert rows[1].admitted.tolist() == [10]
    assert texts(plot_floors(points(), floors(), ax=axes(), asks=asks), "evidence")[1].startswith("not measured")


def test_a_row_of_unknown_floor_is_not_measured() -> None:
    unknown = floors(floor=[pd.NA], second_lowest=[pd.NA], n=0)
    row = floors_info(points(eligible=False), unknown, asks=[1])[0]
    assert (row.measured, row.used.size, row.unused.size, row.refused.size) == (False, 0, 6, 0)


def test_settlements_that_are_no_evidence_are_hollow() -> None:
    row = floors_info(points(eligible=pd.array([False, None, True, True, True, True], "boolean")), floors())[0]
    assert row.unused.tolist() == [31_211]
    assert row.used.size == 5


def test_a_settlement_of_unknown_use_is_left_out() -> None:
    few = points(input_total=pd.array([31_211, None, 1, 2, 3, 4], "Int64"))
    assert floors_info(few, floors())[0].used.tolist() == [1, 2, 3, 4, 31_211]


def test_paths_are_told_apart_by_context_only_where_nothing_else_does() -> None:
    two = pd.concat([floors(context=["aa"]), floors(context=[None])])
    names = [row.name for row in floors_info(points(context="aa"), two)]
    assert names == ["pi / glm, context aa", "pi / glm, context unknown"]
    assert floors_info(points(), floors(agent=["coder"]))[0].name == "coder on pi / glm"


def test_tokens_far_apart_are_drawn_on_a_logarithmic_axis() -> None:
    assert plot_floors(points(), floors(), ax=axes()).get_xscale() == "linear"
    assert plot_floors(points(), floors(), ax=axes(), asks=[100]).get_xscale() == "log"


def test_the_start_up_cost_is_marked_where_it_is_known() -> None:
    ax = plot_floors(points(), floors(startup_cost=1_300), ax=axes())
    assert any(line.get_marker() == "<" and list(line.get_xdata()) == [1_300] for line in ax.get_lines())


def test_nothing_at_all_declines() -> None:
    assert texts(plot_floors(points().head(0), floors().head(0), ax=axes()))[0].startswith("no rows")


def test_missing_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^points: expected the columns output, got 'no output'$"):
        plot_floors(points(), floors(), ax=axes(), value="output")
    with pytest.raises(InputError, match=r"^floors: expected the columns floor, second_lowest, n"):
        plot_floors(points(), floors().drop(columns="n"), ax=axes())


def test_hostile_names_are_drawn(tmp_path: Path) -> None:
    name = "<b>$\\frac{1}{2}$</b>\n\u202e"
    ax = plot_floors(points(model=name), floors(model=name), ax=axes(), asks=[5_000])
    figure = ax.get_figure()
    assert figure is not None
    figure.savefig(tmp_path / "floors.png", facecolor="white")
    assert (tmp_path / "floors.png").stat().st_size > 5_000
