from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness_lab.errors import InputError
from harness_lab.plots import plot_timeline
from harness_lab.plots.timeline import timeline_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes

S = 10**9


def nodes(**columns: object) -> pd.DataFrame:
    """Return a run with a child, a grandchild and a child that was denied; rows end before they begin, as recorded."""
    frame = pd.DataFrame(
        {
            "run": "r",
            "node": ["b", "a1", "a", "0"],
            "parent": ["0", "a", "0", None],
            "depth": [1, 2, 1, 0],
            "agent": ["reviewer", "helper", "worker", "lead"],
            "start_ns": np.array([130, 112, 105, 100]) * S,
            "duration_ns": pd.array([0, 8 * S, 20 * S, 60 * S], dtype="Int64"),
            "outcome": ["denied", "timed_out", "completed", "completed"],
            "stopped_by": ["max-calls", "deadline", None, None],
        }
    )
    return frame.assign(**columns)


def axes() -> Axes:
    return Figure(figsize=(8, 3), layout="constrained").add_subplot()


def test_parents_come_before_their_children_and_siblings_by_start() -> None:
    names = [bar.name.replace("\u203a", ">") for bar in timeline_info(nodes())]
    assert names == ["lead 0", "> worker a", "> > helper a1", "> reviewer b"]


def test_bars_begin_at_the_start_of_the_run_in_seconds() -> None:
    ax = plot_timeline(nodes(), ax=axes())
    assert [(patch.get_x(), patch.get_width()) for patch in ax.patches] == [(0, 60), (5, 20), (12, 8)]
    assert ax.get_xlabel() == "time since the run started, s"


def test_a_denied_node_is_a_marker_with_its_reason() -> None:
    ax = plot_timeline(nodes(), ax=axes())
    assert [list(line.get_xdata()) for line in ax.get_lines() if line.get_marker() == "x"] == [[30]]
    assert "denied: max-calls" in [text.get_text() for text in ax.texts]


def test_the_legend_names_the_outcomes_that_are_there() -> None:
    legend = plot_timeline(nodes(), ax=axes()).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["completed", "timed out"]


def test_the_headline_says_how_the_run_ended() -> None:
    assert plot_timeline(nodes(), ax=axes()).get_title(loc="left") == "The run completed after 60 s: 4 nodes, 1 denied"
    stopped = nodes(outcome=["denied", "timed_out", "completed", "exhausted"], stopped_by="cost-exhausted")
    assert "A limit stopped the run (cost-exhausted)" in plot_timeline(stopped, ax=axes()).get_title(loc="left")


def test_an_unknown_length_is_said() -> None:
    ax = plot_timeline(nodes(duration_ns=pd.array([0, None, None, 60 * S], dtype="Int64")), ax=axes())
    assert {"deadline, length unknown", "length unknown"} <= {text.get_text() for text in ax.texts}


def test_more_nodes_than_fit_are_counted() -> None:
    ax = plot_timeline(nodes(), ax=axes(), max_nodes=2)
    assert len(ax.get_yticklabels()) == 2
    assert "2 nodes are not drawn" in ax.get_title(loc="left").replace("\n", " ")


def test_a_node_without_a_known_parent_and_a_circle_are_still_drawn() -> None:
    assert len(timeline_info(nodes(parent=["gone", "0", None, None]))) == 4
    assert len(timeline_info(nodes(parent=["a1", "b", "0", None]))) == 4


def test_unknown_starts_do_not_stop_the_picture() -> None:
    ax = plot_timeline(nodes(start_ns=pd.array([None] * 4, dtype="Int64")), ax=axes())
    assert len(ax.patches) == 3


def test_several_runs_and_missing_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^nodes: expected the rows of one run, got '4 of them'$"):
        plot_timeline(nodes(run=list("abcd")), ax=axes())
    with pytest.raises(InputError, match=r"^nodes: expected the columns node, start_ns, outcome"):
        plot_timeline(nodes().drop(columns="outcome"), ax=axes())


def test_no_rows_decline() -> None:
    assert plot_timeline(nodes().head(0), ax=axes()).texts[0].get_text().startswith("no rows")
