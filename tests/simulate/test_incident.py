"""One recorded run under other policies, by hand: where it is stopped, after how much, and what else is cut."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec, shared_ledger, tree_limits, unlimited
from harness_lab.settlements import Settlements
from harness_lab.simulate.incident import replay

S = 10**9
USD = 10**9


def recorded(**columns: Any) -> Settlements:
    """A runaway of ten calls at ten cents, one a second; runs of four, two and two calls, which delivered."""
    runs, calls = ["runaway", "four", "two", "other"], [10, 4, 2, 2]
    nodes = {
        "run": runs, "node": "0", "outcome": "completed", "delivered": [False, True, True, True], "calls": calls,
        "start_ns": [1000 * S, 1010 * S, 1900 * S, 5000 * S], "duration_ns": [n * S for n in calls],
        "cost_nusd": [n * USD // 10 for n in calls], "input_total": [n * 100 for n in calls],
        "output": [n * 10 for n in calls],
    }  # fmt: skip
    rows = [(run, start, i) for run, n, start in zip(runs, calls, nodes["start_ns"], strict=True) for i in range(n)]
    made = {
        "run": [run for run, _, _ in rows], "node": "0", "call": [i for _, _, i in rows], "attempt": 0,
        "kind": "model", "status": "completed", "model": "m", "input_total": 100, "output": 10, "cost_nusd": USD // 10,
        "start_ns": [start + i * S for _, start, i in rows], "duration_ns": S,
    }  # fmt: skip
    return Settlements.from_columns(nodes | columns, made)


THREE: tuple[PolicySpec, ...] = (shared_ledger(3, name="three"), shared_ledger(99, 0.65, name="money"), unlimited())


def test_a_policy_stops_the_run_at_the_call_it_refuses_after_what_was_used_by_then() -> None:
    found = replay(recorded(), "runaway", THREE)
    three, money = found.stops["three"], found.stops["money"]
    assert three is not None
    assert money is not None
    assert (three.at_ns, three.event, three.limit) == (3 * S, "call 3 of node 0", "steps-exhausted")
    assert (three.calls, three.tokens, three.cost_nusd) == (3, 330, 3 * USD // 10)
    assert (money.at_ns, money.event, money.limit, money.calls) == (7 * S, "call 7 of node 0", "cost-exhausted", 7)
    assert found.stops["unlimited"] is None


def test_the_delivered_runs_of_the_period_that_would_have_been_cut_are_counted() -> None:
    frame = replay(recorded(), "runaway", THREE).to_frame().set_index("policy")
    assert frame["good_runs"].tolist() == [3, 3, 3]
    assert frame["good_cut"].tolist() == [1, 0, 0]  # the run of four
    assert frame["saved_usd"].tolist() == pytest.approx([0.7, 0.3, 0.0])
    assert frame["low"].notna().all()


def test_the_period_is_told_in_seconds_around_the_run() -> None:
    near = replay(recorded(), "runaway", THREE, around_s=1000)
    assert near.to_frame()["good_runs"].tolist() == [2, 2, 2]
    assert "started within 1000 s of it" in near.summary()


def test_runs_without_a_start_are_left_out_of_a_period_and_counted() -> None:
    found = replay(recorded(start_ns=[1000 * S, None, 1900 * S, 5000 * S]), "runaway", THREE, around_s=1000)
    assert found.to_frame()["good_runs"].tolist() == [1, 1, 1]
    assert found.unplaced == 1


def test_completed_runs_are_counted_where_no_delivery_is_recorded() -> None:
    found = replay(recorded(delivered=None), "runaway", THREE)
    assert found.basis == "completed"
    assert "of 3 completed runs" in found.summary()


def test_what_is_unknown_is_said_and_is_no_zero() -> None:
    rows = recorded()
    assert rows.calls is not None
    unknown = Settlements.from_columns(rows.nodes.assign(cost_nusd=None), rows.calls.assign(cost_nusd=None))
    found = replay(unknown, "runaway", THREE[:1])
    assert found.stops["three"] is not None
    assert found.stops["three"].cost_nusd is None
    assert "$0.00" not in found.summary()


def test_without_call_rows_the_answer_is_marked() -> None:
    found = replay(Settlements.from_columns(recorded().nodes), "runaway", THREE)
    assert found.to_frame()["marked"].all()
    assert "spread over its calls" in found.explain()


def test_a_policy_that_refuses_a_child_only_does_not_stop_the_run() -> None:
    nodes = {
        "run": "a", "node": ["0", "0.0.0"], "path": [None, "0.0.0"], "parent": [None, "0"], "depth": [0, 1],
        "outcome": "completed", "calls": 1, "input_total": 10, "output": 1,
    }  # fmt: skip
    found = replay(Settlements.from_columns(nodes), "a", [tree_limits(0)])
    assert found.stops["tree limits"] is None
    first = found.first["tree limits"]
    assert first is not None
    assert (first.event, first.limit) == ("the start of node 0.0.0", "max-depth")


def test_every_text_says_that_agents_are_taken_as_oblivious() -> None:
    found = replay(recorded(), "runaway", THREE)
    assert "ssumes oblivious agents" in found.summary()
    assert "ssumes oblivious agents" in found.explain()


def test_the_picture_has_a_line_for_each_policy_that_says_no() -> None:
    ax = replay(recorded(), "runaway", THREE).plot()
    assert sorted(line.get_xdata()[0] for line in ax.get_lines() if line.get_label() in ("three", "money")) == [3, 7]


def test_a_run_that_is_not_there_and_a_period_that_is_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"^runs: expected some of the 4 recorded runs, got \['none'\]"):
        replay(recorded(), "none", THREE)
    with pytest.raises(InputError, match=r"^around_s: expected seconds >= 0"):
        replay(recorded(), "runaway", THREE, around_s=-1)


def test_where_the_record_has_no_times_the_time_of_a_stop_is_unknown_and_not_nothing() -> None:
    timed = recorded()
    assert timed.calls is not None
    bare = Settlements.from_columns(
        {name: column for name, column in timed.nodes.items() if name not in ("duration_ns", "end_ns")},
        {name: column for name, column in timed.calls.items() if name not in ("duration_ns", "end_ns")},
    )
    found = replay(bare, "runaway", THREE)
    frame = found.to_frame().set_index("policy")
    assert frame.loc["three", ["first_s", "at_s"]].isna().all()
    assert "stops the run after an unknown time at call 3 of node 0" in found.summary()
    assert "0.0 s" not in found.summary()
