"""Ceilings on a tree's size, and runs that a person has labelled as runaways."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import run
from matplotlib.figure import Figure

from harness_lab.analyze import ceiling, ceiling_curve, run_table
from harness_lab.analyze.tree_shape import with_shape
from harness_lab.export import TunedConfig
from harness_lab.settlements import Settlements

NS = 10**9


def trees(n: int = 60) -> pd.DataFrame:
    """Make runs with a root and k % 4 children, of which two run at once, one below the other in every fourth run."""
    rows = []
    for k in range(n):
        base = {"run": f"r{k}", "outcome": "completed", "cost_nusd": 10**8 * (k + 1), "calls": 2}
        rows.append({**base, "node": "0", "parent": None, "depth": 0, "start_ns": 0, "duration_ns": 100 * NS})
        for child in range(k % 4):
            nested = k % 4 == 3 and child == 2
            rows.append({
                **base, "node": f"c{child}", "parent": "c1" if nested else "0", "depth": 2 if nested else 1,
                "start_ns": (20 if child == 2 else 0) * NS, "duration_ns": 10 * NS,
            })  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("channel", "column", "found"), [
    ("depth", "max_depth", [0, 1, 1, 2]), ("starts", "starts", [0, 1, 2, 3]), ("concurrency", "at_once", [0, 1, 2, 2]),
])  # fmt: skip
def test_the_size_of_a_tree_is_counted(channel: str, column: str, found: list[int]) -> None:
    nodes = trees(4)
    assert with_shape(run_table(nodes), nodes, channel)[column].tolist() == found


def test_a_child_that_ends_as_another_starts_is_not_beside_it() -> None:
    nodes = trees(3)
    nodes.loc[nodes["node"] == "c1", "start_ns"] = 10 * NS
    assert with_shape(run_table(nodes), nodes, "concurrency")["at_once"].tolist() == [0, 1, 1]


def test_what_is_unknown_is_not_counted_as_none() -> None:
    nodes = trees(4)
    nodes["depth"] = nodes["depth"].astype("Int64").mask(nodes["node"] == "c0")
    nodes["start_ns"] = nodes["start_ns"].astype("Int64").mask(nodes["node"] == "c1")
    assert np.isnan(with_shape(run_table(nodes), nodes, "depth")["max_depth"]).tolist() == [False, True, True, True]
    assert np.isnan(with_shape(run_table(nodes), nodes, "concurrency")["at_once"]).tolist() == [
        False,
        False,
        True,
        True,
    ]


def test_a_child_that_was_denied_never_started() -> None:
    nodes = trees(4)
    nodes.loc[nodes["node"] == "c2", "outcome"] = "denied"
    assert with_shape(run_table(nodes), nodes, "depth")["max_depth"].tolist() == [0, 1, 1, 1]
    assert with_shape(run_table(nodes), nodes, "starts")["starts"].tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("channel", "words"), [("depth", "2 levels"), ("starts", "3 starts"), ("concurrency", "2 at once")]
)
def test_the_smallest_ceiling_on_a_tree_keeps_the_target(channel: str, words: str) -> None:
    found = ceiling(trees(), channel, target=0.95, cluster=None)  # type: ignore[arg-type]
    assert f"{channel} ceiling for 95 % of runs with 95 % confidence: {words}" in found.summary()
    assert found.curve()["avoided_share"].isna().all()  # what a run does without a child, no record says
    assert "unknown" in found.plot(Figure().subplots()).texts[0].get_text()
    assert TunedConfig.from_ceiling(found, trees()).evidence[0].chosen == found.ceiling


def test_the_runaways_that_a_ceiling_catches_are_counted() -> None:
    labelled = ["r59", "r50", "r3"]
    found = ceiling(trees(), target=0.7, runaways=labelled, cluster=None)
    assert "Labelled runaways caught: 2 of 3." in found.summary()
    row = ceiling_curve(trees(), runaways=labelled, candidates=[9 * 10**9], cluster=None).iloc[0]
    assert (row["runaways"], row["runaways_caught"]) == (3, 2)
    assert row["caught_share_low"] < 2 / 3 < row["caught_share_high"]


def test_without_labels_nothing_is_said_of_runaways() -> None:
    assert "runaway" not in ceiling(trees(), target=0.7, cluster=None).summary()
    assert "runaways" not in ceiling_curve(trees(), cluster=None).columns
    none = ceiling_curve(trees(), runaways=["elsewhere"], candidates=[10**9], cluster=None).iloc[0]
    assert none["runaways"] == 0
    assert pd.isna(none["caught_share_low"])


def test_the_command_takes_labels_and_tree_channels(tmp_path, capsys) -> None:
    Settlements.from_columns(trees()).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "bad.txt").write_text("r59\nr50\n")
    assert run("ceiling", tmp_path / "t.parquet", "--target", "0.7", "--runaways", tmp_path / "bad.txt") == 0
    assert "Labelled runaways caught: " in capsys.readouterr().out
    assert run("ceiling", tmp_path / "t.parquet", "--channel", "depth", "--target", "0.9") == 0
    assert "2 levels" in capsys.readouterr().out
