"""A comparison says by itself in which switches its policies differ."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from harness_lab.analyze import compare
from harness_lab.analyze.switches import switches
from harness_lab.policies import AtLimit, compose, period_budget, shared_ledger, tree_limits, unlimited

NODES = pd.DataFrame({"run": [*range(20)] * 2, "policy": ["a"] * 20 + ["b"] * 20, "outcome": "completed"})


def result(**specs: object) -> SimpleNamespace:
    return SimpleNamespace(settlements=NODES, manifest={"specs": specs})


def test_one_changed_limit_is_one_switch() -> None:
    found = compare(result(a=shared_ledger(60, 0.75).to_dict(), b=shared_ledger(40, 0.75).to_dict()))
    assert found.switches is not None
    assert found.switches.to_numpy().tolist() == [["b", "shared_ledger.max_steps", "60", "40"]]
    assert "b differs from a in 1 switch(es): shared_ledger.max_steps 60 -> 40." in found.summary()


def test_several_switches_are_listed_with_a_warning() -> None:
    one = compose(shared_ledger(60), tree_limits(2), name="a").to_dict()
    two = compose(shared_ledger(60, 1.0), tree_limits(3), name="b", at_limit=AtLimit(then="pause")).to_dict()
    text = compare(result(a=one, b=two)).summary()
    assert "shared_ledger.max_cost_usd none -> 1.0" in text
    assert "tree_limits.max_depth 2 -> 3" in text
    assert "at_limit none -> then=pause" in text
    assert "which of them did it, this comparison cannot say" in text


def test_a_module_that_only_one_has_and_the_order_of_modules_are_switches() -> None:
    specs = {
        "a": compose(shared_ledger(60), tree_limits(2)).to_dict(),
        "b": compose(tree_limits(2), shared_ledger(60)).to_dict(),
        "c": unlimited().to_dict(),
    }
    found = switches(specs, baseline="a").set_index(["policy", "switch"])["value"]
    assert found["b"].to_dict() == {"order of modules": "tree_limits, shared_ledger"}
    assert found["c"].to_dict() == {"shared_ledger": "none", "tree_limits": "none"}


def test_modules_of_one_kind_are_told_apart_by_their_number() -> None:
    one = compose(period_budget(calls=5, every="day"), period_budget(calls=9, every="week")).to_dict()
    two = compose(period_budget(calls=5, every="day"), period_budget(calls=8, every="week")).to_dict()
    found = switches({"a": one, "b": two}, baseline="a")
    assert found["switch"].tolist() == ["period_budget#2.calls"]


def test_equal_policies_are_said_to_be_one_and_a_table_alone_says_nothing() -> None:
    spec = shared_ledger(60).to_dict()
    assert "b is the same policy as a under another name" in compare(result(a=spec, b=spec)).summary()
    assert compare(NODES).switches is None


def test_the_result_of_many_runs_at_once_says_which_rows_are_independent() -> None:
    nodes = NODES.assign(session=[f"s{i % 5}" for i in range(40)])
    spec = shared_ledger(60).to_dict()
    given = SimpleNamespace(settlements=nodes, manifest={"specs": {"a": spec, "b": spec}, "cluster": "session"})
    assert compare(given).cluster == "session"
    assert compare(given, cluster=None).cluster is None
