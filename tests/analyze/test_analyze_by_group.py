"""Choices for each group by itself, and results that can be drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness_lab.analyze import best_policy, drift, floor_costs, hold_sizes, pareto, spend_split, symptoms
from harness_lab.errors import InputError


def policies(n: int = 80) -> pd.DataFrame:
    """Make runs of two kinds: policy b is cheaper for the short kind and dearer for the long one."""
    rng = np.random.default_rng(0)
    kind = np.where(np.arange(n) % 2, "long", "short")
    cost = rng.integers(10**9, 2 * 10**9, n)
    other = np.where(kind == "long", cost * 2, cost // 2)
    one = {"run": np.arange(n), "task_kind": kind, "outcome": "completed", "input_total": rng.integers(500, 1500, n)}
    both = [pd.DataFrame(one | {"policy": name, "cost_nusd": spent}) for name, spent in (("a", cost), ("b", other))]
    return pd.concat(both, ignore_index=True)


def test_another_policy_may_be_the_best_for_each_group() -> None:
    found = best_policy(policies(), by="task_kind")
    assert found.parts is not None
    assert {key: part.maybe for key, part in found.parts.answers.items()} == {("short",): ("b",), ("long",): ("a",)}
    assert found.to_frame()["group"].tolist() == ["short", "short", "long", "long"]
    assert "long:\n" in found.summary()


def test_the_answer_for_a_group_is_that_of_its_rows_alone() -> None:
    data = policies()
    whole = pareto(data, by="task_kind")
    assert whole.parts is not None
    alone = pareto(data[data["task_kind"] == "long"])
    pd.testing.assert_frame_equal(whole.parts.answers["long",].to_frame(), alone.to_frame())


def test_a_group_that_cannot_answer_is_named_with_its_reason() -> None:
    data = policies()
    few = data[(data["task_kind"] == "short") | (data["run"] < 4)]
    found = hold_sizes(few, "input_total", pool=5000, at_once=4, by="task_kind", cluster=None)
    assert found.parts is not None
    assert list(found.parts.answers) == [("short",)]
    assert "long: no answer (settlements: expected at least 10 groups of 4 uses" in found.summary()


def test_a_child_belongs_to_the_group_of_its_root() -> None:
    nodes = pd.DataFrame({
        "run": ["r", "r", "s"], "node": ["0", "1", "0"], "parent": [None, "0", None], "depth": [0, 1, 0],
        "agent": ["lead", "helper", "solo"], "outcome": "completed", "input_total": [100, 200, 300],
    })  # fmt: skip
    found = floor_costs(nodes, by="agent")
    assert found.parts is not None
    assert {key: part.frame["n_good"].iloc[0] for key, part in found.parts.answers.items()} == {
        ("lead",): 2, ("solo",): 1,
    }  # fmt: skip


def test_a_group_column_that_is_missing_is_refused() -> None:
    with pytest.raises(InputError, match=r"^by: expected columns"):
        best_policy(policies(), by="country")


@pytest.mark.parametrize("ask", [drift, spend_split, lambda old, _: symptoms(old)])
def test_what_moved_what_it_cost_and_what_was_found_can_be_drawn(ask) -> None:
    one = policies().query("policy == 'a'").assign(output=0, run=range(80))
    ax = Figure().subplots()
    assert isinstance(ask(one, one.assign(cost_nusd=one["cost_nusd"] * 2)).plot(ax), Axes)
