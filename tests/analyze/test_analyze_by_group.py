"""Choices for each group by itself, and results that can be drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness_lab.analyze import (
    best_policy,
    cap_check,
    check_config,
    compare,
    drift,
    floor_costs,
    hold_sizes,
    pareto,
    spend_split,
    symptoms,
)
from harness_lab.errors import InputError
from harness_lab.export import Evidence, Provenance, TunedConfig
from harness_lab.policies import reservation_pool
from harness_lab.settlements import Settlements
from harness_lab.tune import sensitivity_of_records


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


def test_symptoms_of_each_group_are_those_of_its_runs_with_their_calls() -> None:
    nodes = pd.DataFrame({"run": [f"r{k}" for k in range(20)], "node": "0", "agent": ["a", "b"] * 10,
                          "outcome": "completed", "calls": 4, "cost_nusd": 10**9})  # fmt: skip
    calls = pd.DataFrame({
        "run": np.repeat(nodes["run"], 4), "node": "0", "call": [*range(4)] * 20, "attempt": 0, "kind": "model",
        "model": "m", "output": 5, "cost_nusd": 10**8,
        "input_fresh": np.where(np.repeat(nodes["agent"] == "a", 4), 100, np.tile([1, 2, 3, 4], 20)),
    })  # fmt: skip
    parts = symptoms(Settlements.from_columns(nodes, calls), by="agent").parts
    assert parts is not None
    found = {key[0]: [one.what for one in part.found] for key, part in parts.answers.items()}
    assert found == {"a": ["calls of the same size, 3 or more in a row"], "b": []}


def test_limits_that_depend_on_the_kind_of_task_are_tested_within_each_kind() -> None:
    rng = np.random.default_rng(0)
    kind = np.where(np.arange(160) % 2, "long", "short")
    used = (rng.lognormal(0, 0.4, 160) * np.where(kind == "long", 4, 1) * 1e9).astype(np.int64)
    cap = (rng.choice([1.5, 3.0], 160) * np.where(kind == "long", 4, 1) * 1e9).astype(np.int64)
    runs = pd.DataFrame({"run": range(160), "task_kind": kind, "ceiling_cost": cap, "cost_nusd": np.minimum(used, cap),
                         "outcome": np.where(used > cap, "exhausted", "completed")})  # fmt: skip
    whole = cap_check(runs, by="task_kind")
    assert whole.dependent
    assert whole.parts is not None
    assert [part.dependent for part in whole.parts.answers.values()] == [False, False]
    assert set(whole.to_frame()["group"]) == {"short", "long"}


def test_a_promise_that_holds_for_all_may_be_broken_for_one_group() -> None:
    stated = Evidence(value="reservation_pool.cost_usd", chosen=1.0, unit="USD", target="80 %", target_share=0.8,
                      method="m", n=100)  # fmt: skip
    config = TunedConfig(
        reservation_pool(cost_usd=1.0, name="p"), provenance=Provenance(date="2026-01-01", harness_lab="0"),
        evidence=(stated,),
    )  # fmt: skip
    rare = np.arange(400) % 8 == 0
    nodes = pd.DataFrame({"run": range(400), "outcome": "completed", "team": np.where(rare, "dear", "usual"),
                          "cost_nusd": np.where(rare, 2 * 10**9, 5 * 10**8)})  # fmt: skip
    found = check_config(config, nodes, by="team", cluster=None)
    assert found.stale == ()
    assert found.parts is not None
    assert {key[0]: len(part.stale) for key, part in found.parts.answers.items()} == {"dear": 1, "usual": 0}
    assert "By group:\ndear:" in found.summary()


def test_what_moves_a_metric_is_asked_by_group_and_knows_clusters() -> None:
    rng = np.random.default_rng(0)
    calls = rng.integers(1, 50, 240)
    user = [f"u{k}" for k in np.repeat(np.arange(24), 10)]
    runs = pd.DataFrame({"run": range(240), "outcome": "completed", "calls": calls, "cost_nusd": calls * 10**7,
                         "user": user, "agent": np.where(np.arange(240) < 30, "few", "many")})  # fmt: skip
    with np.errstate(all="ignore"):
        found = sensitivity_of_records(runs, ("calls",), by="agent", cluster="user")
    assert found.clusters == 24
    assert found.parts is not None
    assert list(found.parts.answers) == [("many",)]
    assert "at least 50 runs" in found.parts.declined["few",]
    few = runs.assign(user=np.where(np.arange(240) < 120, "x", "y"))
    none = sensitivity_of_records(few, ("calls",), cluster="user")
    assert none.frame["low"].isna().all()
    assert none.note.startswith("needs clusters >= ")


def test_a_policy_may_be_dearer_for_one_group_and_cheaper_for_another() -> None:
    found = compare(policies(), by="task_kind")
    assert found.parts is not None
    spend = {key[0]: part.differences().query("metric == 'cost_nusd'")["value"].iloc[0]
             for key, part in found.parts.answers.items()}  # fmt: skip
    assert spend["short"] < 0 < spend["long"]
    assert set(found.to_frame()["group"]) == {"short", "long"}
    assert len(found.plot(Figure()).axes) > 2
