from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.plots import colour_of, plot_binding, plot_differences, plot_metric, plot_policies
from harness_lab.plots.binding import binding_info
from harness_lab.plots.compare import difference_rows, metric_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ["unlimited", "pool", "ledger"]


def figures(names: list[str] = NAMES) -> pd.DataFrame:
    rows = [
        {"policy": name, "metric": metric, "value": value, "low": 0.9 * value, "high": 1.1 * value}
        for name in names
        for metric, value in (("completed", 0.8), ("spend", 0.25), ("wasted", 0.1))
    ]
    return pd.DataFrame(rows)


def differences() -> pd.DataFrame:
    values = {"policy": ["pool", "ledger"], "value": [-0.10, 0.0], "low": [-0.12, 0.0], "high": [-0.08, 0.0]}
    counts = {"n": [400, 400], "identical": [100, 400], "p_adjusted": [0.001, 1.0]}
    both = [pd.DataFrame({**values, **counts, "metric": metric}) for metric in ("completed", "cost_nusd")]
    return pd.concat(both, ignore_index=True)


def binding() -> pd.DataFrame:
    rows = [("pool", "root", "budget-exhausted", 100, 400), ("ledger", "root", "steps-exhausted", 40, 400)]
    rows += [("pool", "node", "max-depth", 300, 900)]
    return pd.DataFrame(rows, columns=["policy", "level", "stopped_by", "count", "of"])


def axes() -> Axes:
    return Figure(figsize=(6, 3), layout="constrained").add_subplot()


def written(ax: Axes) -> list[str]:
    return [text.get_text().replace("\\", "") for text in ax.texts]


def test_one_row_a_policy_with_its_value_written_beside_it() -> None:
    ax = plot_metric(figures(), "spend", ax=axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == NAMES
    assert written(ax) == ["$0.25"] * 3
    assert ax.get_xlabel() == r"spend per run, \$"


def test_completion_is_drawn_from_nothing_to_all() -> None:
    assert plot_metric(figures(), "completed", ax=axes()).get_xlim() == (0, 1)


def test_intervals_are_drawn_where_they_are_known() -> None:
    frame = figures(["pool", "ledger"])
    frame.loc[frame["policy"] == "ledger", ["low", "high"]] = np.nan
    bars = [line for line in plot_metric(frame, "spend", ax=axes()).get_lines() if len(line.get_xdata()) == 2]
    assert [line.get_xdata() for line in bars] == [pytest.approx([0.225, 0.275])]


def test_an_unknown_value_is_said_and_not_drawn_at_zero() -> None:
    rows = metric_rows(figures(), "spend", policies=[*NAMES, "never run"])
    assert np.isnan(rows[-1].value)
    assert written(plot_metric(figures(), "spend", ax=axes(), policies=[*NAMES, "never run"]))[-1] == "unknown"


def test_a_policy_has_the_same_colour_in_every_panel() -> None:
    figure = plot_policies(figures(), differences(), binding(), figure=Figure(layout="constrained"))
    for ax in figure.axes[:5]:
        points = [line for line in ax.get_lines() if line.get_marker() != "None"]
        drawn = [to_hex(str(line.get_color())).upper() for line in points]
        assert drawn == [colour_of(name, NAMES) for name in NAMES]


def test_identical_runs_are_said_in_words_and_not_claimed_as_a_finding() -> None:
    row = difference_rows(differences(), "cost_nusd", policies=NAMES, baseline="unlimited")[2]
    assert (row.value, row.text, row.solid) == (0.0, "identical in all 400 runs", False)


def test_what_the_corrected_test_tells_apart_is_filled() -> None:
    rows = difference_rows(differences(), "cost_nusd", policies=NAMES, baseline="unlimited")
    assert [row.solid for row in rows] == [False, True, False]
    assert [row.text for row in rows[:2]] == ["baseline", "-$0.10"]


def test_the_forest_plot_has_a_zero_line_in_its_middle_and_says_what_is_compared() -> None:
    ax = plot_differences(differences(), "completed", ax=axes(), baseline="unlimited")
    low, high = ax.get_xlim()
    assert low == -high
    assert any(list(line.get_xdata()) == [0, 0] for line in ax.get_lines())
    assert ax.get_xlabel() == "difference in runs completed, percentage points"
    assert ax.get_title(loc="left") == "Difference from unlimited: runs completed"


def test_a_difference_without_an_interval_says_so() -> None:
    frame = differences().assign(low=np.nan, high=np.nan, identical=0)
    row = difference_rows(frame, "cost_nusd", baseline="unlimited")[0]
    assert (row.text, row.solid) == ("-$0.10, no interval", False)


def test_shares_that_limits_stopped_are_stacked_to_one() -> None:
    info = binding_info(binding(), policies=NAMES)
    assert info.limits == ("budget-exhausted", "steps-exhausted")
    assert info.share.tolist() == [[0, 0], [0.25, 0], [0, 0.1]]
    ax = plot_binding(binding(), ax=axes(), policies=NAMES)
    assert sum(patch.get_width() for patch in ax.patches) == pytest.approx(3)
    assert written(ax) == ["25 %", "10 %"]


def test_nodes_are_counted_apart_from_runs() -> None:
    assert binding_info(binding(), level="node").limits == ("max-depth",)


@pytest.mark.parametrize("count", [1, 20])
def test_one_policy_and_twenty_fit_with_names_of_any_length(count: int, tmp_path: Path) -> None:
    names = [f"policy {k} with a long $name$ that says what it does and why" for k in range(count)]
    figure = plot_policies(figures(names), figure=Figure(figsize=(12, 2 + count / 2), layout="constrained"))
    figure.savefig(tmp_path / "policies.png", dpi=50, facecolor="white")
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


def test_no_rows_decline_in_every_picture() -> None:
    nothing = figures().head(0)
    assert "no rows" in written(plot_metric(nothing, ax=axes()))[0]
    assert "no rows" in written(plot_differences(differences().head(0), ax=axes()))[0]
    assert "no rows" in written(plot_binding(binding().head(0), ax=axes()))[0]
    assert len(plot_policies(nothing, figure=Figure(layout="constrained")).axes) == 3


@pytest.mark.parametrize("plot", [plot_metric, plot_differences, plot_binding])
def test_a_frame_of_other_columns_is_refused(plot: object) -> None:
    with pytest.raises(InputError, match=r"^(frame|binding): expected the columns policy,"):
        plot(pd.DataFrame({"x": [1]}), ax=axes())  # type: ignore[operator]
