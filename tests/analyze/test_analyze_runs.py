from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze import run_table
from harness_lab.errors import InputError


def tree(**columns: object) -> pd.DataFrame:
    """Return one run: a root, two children, and a grandchild below the first."""
    base = {"run": ["r"] * 4, "node": ["0", "a", "b", "a1"], "parent": [None, "0", "0", "a"], "depth": [0, 1, 1, 2]}
    return pd.DataFrame({**base, "outcome": ["completed"] * 4, "cost_nusd": [10, 20, 30, 40], **columns})


def test_a_run_is_its_root_and_the_sum_of_its_tree() -> None:
    row = run_table(tree(duration_ns=[9, 1, 2, 3], calls=[1, 2, 3, 4])).iloc[0]
    assert (row["nodes"], row["cost_nusd"], row["calls"], row["duration_ns"]) == (4, 100, 10, 9)
    assert row["wasted_nusd"] == 0


def test_what_lies_below_a_node_that_did_not_complete_is_wasted_too() -> None:
    row = run_table(tree(outcome=["completed", "exhausted", "completed", "completed"])).iloc[0]
    assert (row["outcome"], row["wasted_nusd"]) == ("completed", 20 + 40)


def test_a_root_that_failed_wastes_everything() -> None:
    assert run_table(tree(outcome=["failed", *["completed"] * 3])).iloc[0]["wasted_nusd"] == 100


def test_an_unknown_cost_makes_the_sum_unknown_and_never_zero() -> None:
    row = run_table(tree(cost_nusd=pd.array([10, None, 30, 40], dtype="Int64"))).iloc[0]
    assert row["cost_nusd"] is pd.NA
    assert (row["cost_known"], row["known_cost_nusd"], row["unknown_nodes"], row["wasted_nusd"]) == (False, 80, 1, 0)


def test_wasted_spend_is_unknown_where_a_lost_node_has_no_cost() -> None:
    nodes = tree(
        cost_nusd=pd.array([10, None, 30, 40], dtype="Int64"), outcome=["completed", "failed", *["completed"] * 2]
    )
    assert run_table(nodes).iloc[0]["wasted_nusd"] is pd.NA


def test_an_unknown_outcome_leaves_open_what_was_wasted() -> None:
    assert run_table(tree(outcome=["completed", "completed", "completed", "unknown"])).iloc[0]["wasted_nusd"] is pd.NA


def test_a_child_that_was_denied_spent_nothing() -> None:
    nodes = tree(
        outcome=["completed", "completed", "denied", "completed"], cost_nusd=pd.array([10, 20, None, 40], dtype="Int64")
    )
    row = run_table(nodes).iloc[0]
    assert (row["cost_nusd"], row["wasted_nusd"], row["cost_known"]) == (70, 0, True)


def test_usage_that_was_not_reported_leaves_tokens_unknown_but_not_calls() -> None:
    nodes = tree(usage_known=[True, False, True, True], input_total=[1, 2, 3, 4], output=[1] * 4, calls=[1] * 4)
    row = run_table(nodes).iloc[0]
    assert row["tokens"] is pd.NA
    assert (row["calls"], row["cost_known"]) == (4, False)
    recorded = run_table(nodes.assign(cost_source="recorded")).iloc[0]
    assert recorded["cost_nusd"] == 100


def test_the_same_run_under_two_policies_is_two_rows() -> None:
    both = pd.concat([tree(policy="a"), tree(policy="b")], ignore_index=True)
    assert run_table(both)[["policy", "run"]].to_numpy().tolist() == [["a", "r"], ["b", "r"]]


def test_overspending_anywhere_is_overspending() -> None:
    flags = pd.array([None, True, False, None], dtype="boolean")
    assert run_table(tree(overspent=flags)).iloc[0]["overspent"]
    unknown = pd.array([None, False, False, False], dtype="boolean")
    assert run_table(tree(overspent=unknown)).iloc[0]["overspent"] is pd.NA


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(sizes: list[int], seed: int) -> None:
    parts = [tree(run=[f"r{k}"] * 4, cost_nusd=[k, size, 1, 2**50]) for k, size in enumerate(sizes)]
    nodes = pd.concat(parts, ignore_index=True)
    mixed = nodes.iloc[np.random.default_rng(seed).permutation(len(nodes))]
    one, other = (run_table(frame).sort_values("run").reset_index(drop=True) for frame in (nodes, mixed))
    pd.testing.assert_frame_equal(one, other)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"^settlements: expected Settlements or their nodes frame, got 'list'"):
        run_table([])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^settlements: expected at least the columns run and outcome"):
        run_table(pd.DataFrame({"run": ["r"]}))


def test_money_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"^cost_nusd: expected whole numbers or NA, got 'float64'"):
        run_table(tree(cost_nusd=[0.5, 1, 2, 3]))


def test_importing_the_package_loads_no_plotting_and_no_readers() -> None:
    code = "import sys, harness_lab.analyze as a; print([m for m in ('matplotlib', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
