"""One run replayed alone: the same run as among all others, with everything that was asked and answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import compose, period_budget, shared_ledger, tree_limits
from harness_lab.simulate import Scenario
from harness_lab.simulate.arrivals import Arrivals
from harness_lab.simulate.explain import Timeline, explain
from harness_lab.stats.distributions import Distribution

if TYPE_CHECKING:
    from harness_lab.simulate import Experiment


@pytest.fixture
def stopped(busy: Experiment) -> Timeline:
    """The first run that the ledger stops."""
    nodes = busy.run(backend="serial").settlements.nodes
    roots = nodes[(nodes["policy"] == "ledger") & nodes["parent"].isna() & (nodes["cause"] == "limit")]
    return explain(busy, int(roots["run"].iloc[0]), policy="ledger")


@pytest.mark.parametrize("policy", ["ledger", "pool", "tree", "unlimited"])
def test_a_run_explained_alone_has_the_rows_it_has_among_all_others(busy: Experiment, policy: str) -> None:
    everything = busy.run(backend="serial").settlements
    for run in (0, 17):
        expected = everything.where(policy=policy, run=str(run)).nodes
        pd.testing.assert_frame_equal(explain(busy, run, policy=policy).nodes, expected)


@pytest.mark.parametrize("policy", ["ledger", "pool", "tree"])
def test_the_events_hold_every_answer_and_every_call_is_settled_once(busy: Experiment, policy: str) -> None:
    for run in range(12):
        found = explain(busy, run, policy=policy)
        decisions = busy.run(only=[run], decisions=True).decisions
        assert decisions is not None
        kept = decisions[decisions["policy"] == policy]
        answers = found.events[found.events["event"].isin(["spawn", "admit", "answer"])]
        assert len(answers) == len(kept)
        assert (answers["answer"] == "granted").sum() == (kept["answer"] == "granted").sum()
        settled = found.events[found.events["event"] == "settle"]
        assert len(settled) == found.nodes["attempts"].sum()
        assert not settled.duplicated(["node", "call", "attempt"]).any()


def test_a_refusal_says_which_limit_and_how_full_it_was(stopped: Timeline) -> None:
    refused = stopped.events[stopped.events["answer"] == "refused"].iloc[0]
    root = stopped.nodes[stopped.nodes["parent"].isna()].iloc[0]
    assert refused["reason"].startswith(root["stopped_by"])
    assert "shared ledger: calls" in refused["state"]
    assert f"exhausted by {root['stopped_by']}" in stopped.summary()


def test_a_call_that_a_deadline_cuts_off_is_settled_as_abandoned_with_its_reason(busy: Experiment) -> None:
    late = busy.with_policies(compose(shared_ledger(99), tree_limits(timeout_s=3)))
    events = pd.concat([explain(late, run).events for run in range(5)])
    assert (events["answer"] == "abandoned").any()
    closed = events[(events["event"] == "close") & (events["answer"] == "timed_out")]
    assert closed["reason"].str.contains("deadline").all()


def test_who_waited_is_shown_waiting_and_then_answered(busy: Experiment) -> None:
    events = pd.concat([explain(busy, run, policy="tree").events for run in range(10)])
    waiting = events[events["answer"] == "waits"]
    assert len(waiting)
    assert len(waiting) == (events["event"] == "answer").sum()


def spans(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [one for one in trace["traceEvents"] if one.get("cat") == category and one["ph"] == "X"]


def test_the_trace_file_has_a_slice_for_each_call_inside_its_nodes_slice(stopped: Timeline, tmp_path: Path) -> None:
    trace = json.loads(stopped.to_chrome_trace(tmp_path / "run.json").read_text())
    calls, nodes = spans(trace, "call"), {one["tid"]: one for one in spans(trace, "node")}
    assert len(calls) == stopped.nodes["attempts"].sum()
    assert len(nodes) == len(stopped.nodes)
    for call in calls:
        node = nodes[call["tid"]]
        assert node["ts"] <= call["ts"]
        assert call["ts"] + call["dur"] <= node["ts"] + node["dur"] + 1e-6


def test_the_trace_file_marks_refusals_and_counts_what_was_spent(stopped: Timeline) -> None:
    trace = stopped.chrome_trace()["traceEvents"]
    marks = [one for one in trace if one["ph"] == "i"]
    assert len(marks) == (stopped.events["answer"] == "refused").sum()
    last = [one for one in trace if one["ph"] == "C" and one["name"] == "calls"][-1]
    assert last["args"]["calls"] == stopped.events["spent_calls"][stopped.events["event"] == "settle"].sum()


def test_the_picture_has_a_bar_or_a_mark_for_each_node(stopped: Timeline) -> None:
    ax = stopped.plot()
    assert len(ax.get_yticklabels()) == len(stopped.nodes)


@pytest.mark.parametrize(
    ("run", "policy", "message"),
    [(40, "pool", r"^run: expected a whole number from 0 to 39"), (0, None, r"^policy: expected one of ledger"),
     (0, "none", r"^policy: expected one of ledger")],
)  # fmt: skip
def test_a_run_or_policy_that_is_not_there_is_refused(busy: Experiment, run: int, policy: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        explain(busy, run, policy=policy)


def test_a_run_is_explained_in_the_scenario_that_is_named(busy: Experiment) -> None:
    model = replace(busy.provider.models["m"], latency_s=Distribution.constant(60))
    slow = Scenario(name="slow", provider=replace(busy.provider, models={"m": model}))
    one = replace(busy, scenarios=(Scenario(name="as it is"), slow))
    expected = one.run(backend="serial", only=[4]).settlements.where(policy="pool", scenario="slow").nodes
    pd.testing.assert_frame_equal(explain(one, 4, policy="pool", scenario="slow").nodes, expected)
    assert explain(one, 4, policy="pool").scenario == "as it is"


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_among_many_at_once_is_explained_with_its_own_events(busy: Experiment, shared: bool) -> None:
    arrivals = Arrivals(period_s=200, at_s=(0, 1, 1, 50), shared=shared)
    one = replace(busy, runs=2, workload=replace(busy.workload, arrivals=arrivals)).with_policies(shared_ledger(60))
    everything = one.run(backend="serial").settlements
    for run in ("1.0", "1.2", "1.3"):
        found = explain(one, run)
        pd.testing.assert_frame_equal(found.nodes, everything.where(run=run).nodes)
        settled = found.events[found.events["event"] == "settle"]
        assert len(settled) == found.nodes["attempts"].sum()
        assert found.events["agent"].notna().all()


def test_a_run_under_a_budget_that_runs_share_is_explained_with_it(busy: Experiment) -> None:
    arrivals = Arrivals(period_s=200, at_s=(0, 1, 60))
    day = period_budget(calls=30, every="day", name="a day")
    one = replace(busy, runs=1, workload=replace(busy.workload, arrivals=arrivals)).with_policies(day)
    found = explain(one, "0.2")
    pd.testing.assert_frame_equal(found.nodes, one.run(backend="serial").settlements.where(run="0.2").nodes)
    assert (found.events["answer"] == "refused").any()
    with pytest.raises(InputError, match=r"^run: expected one of 0\.0, 0\.1, 0\.2, got '0\.9'"):
        explain(one, "0.9")
