"""Iteration budgets in a policy: what counts, whose counter it is, and that scripts do not run for ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.clock import Time
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import (
    Composed,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    iteration_budget,
    shared_ledger,
)
from harness_lab.usage import amounts

NOW = Time(0)
NOTHING = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)
VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "iteration-budget.json"


def root_of(policy: Composed) -> Ticket:
    answer = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(answer, Grant)
    return answer.ticket


def call(policy: Composed, node: Ticket, *, script: bool = False, kind: Any = "model", count: int = 1) -> bool:
    answer = policy.admit(StepAsk(node, 0, 0, amounts(), kind, count), NOW)
    if isinstance(answer, Refusal):
        return False
    assert isinstance(answer, Grant)
    policy.settle(answer.ticket, Use(NOTHING, turn="programmatic" if script else "interactive"), NOW)
    return True


def test_a_batch_of_tool_calls_starts_whole_or_not_at_all() -> None:
    policy = iteration_budget(6, counts="tool-calls").start()
    node = root_of(policy)
    answer = policy.admit(StepAsk(node, 0, 0, amounts(), "tool", 8), NOW)
    assert isinstance(answer, Refusal)
    (short,) = answer.shortfalls
    assert (short.code, short.limit, short.asked, short.free) == (Code.TOOL_CALLS_EXHAUSTED, 6, 8, 6)
    assert call(policy, node, kind="tool", count=6)
    assert not call(policy, node, kind="tool")
    assert call(policy, node)  # model calls are not counted


def test_a_limit_of_n_allows_exactly_n_calls() -> None:
    for limit in (0, 1, 3):
        policy = iteration_budget(limit).start()
        node = root_of(policy)
        assert sum(call(policy, node) for _ in range(5)) == limit


def test_scripts_are_free_within_the_bound_and_no_further() -> None:
    policy = iteration_budget(3).start()
    node = root_of(policy)
    assert sum(call(policy, node, script=True) for _ in range(100)) == 6


def test_a_node_has_its_own_counter_or_the_tree_has_one() -> None:
    for whose, calls in (("node", [2, 2]), ("tree", [2, 0])):
        policy = iteration_budget(2, whose=whose).start()  # type: ignore[arg-type]
        root = root_of(policy)
        answer = policy.spawn(SpawnAsk(root, ((0, 0, 0),), amounts(calls=50)), NOW)
        assert isinstance(answer, Grant)
        assert [sum(call(policy, n) for _ in range(5)) for n in (root, answer.ticket)] == calls


def test_an_ask_narrows_a_childs_counter_and_never_widens_it() -> None:
    policy = iteration_budget(5).start()
    root = root_of(policy)
    for asked, allowed in ((2, 2), (50, 5)):
        answer = policy.spawn(SpawnAsk(root, ((0, asked, 0),), amounts(calls=asked)), NOW)
        assert isinstance(answer, Grant)
        assert sum(call(policy, answer.ticket) for _ in range(9)) == allowed


def test_what_was_never_sent_is_not_counted() -> None:
    policy = iteration_budget(1).start()
    node = root_of(policy)
    answer = policy.admit(StepAsk(node, 0, 0, amounts()), NOW)
    assert isinstance(answer, Grant)
    policy.settle(answer.ticket, Use(NOTHING, "unsent"), NOW)
    assert call(policy, node)


@pytest.mark.skipif(not VECTORS.is_file(), reason="the behaviour cases are not here")
def test_loops_end_where_the_recorded_ones_ended() -> None:
    """Two counters of which one is given back, or one that is given back without a bound."""
    cases = [c for c in json.loads(VECTORS.read_text()) if c["when"] == {"op": "run_loop"}]
    assert len(cases) == 6
    for case in cases:
        cap = case["given"]["max_iterations"]
        free = iteration_budget(cap, max_refunds="unbounded")
        presets = {
            "refund_budget_only_v0_19": compose(shared_ledger(cap), free),
            "refund_both_counters": free,
        }
        for name, spec in presets.items():
            assert _loop(spec, case["given"]["turns"]) == case["then"][name]["model_calls"], (case["id"], name)


def _loop(spec: PolicySpec, turns: list[Any]) -> int:
    """Play turns (the last one for ever) and return the model calls made, at most 501."""
    policy = spec.start()
    node = root_of(policy)
    calls = 0
    while calls <= 500:
        turn = turns[min(calls, len(turns) - 1)]
        if not call(policy, node, script=isinstance(turn, list) and set(turn) == {"execute_code"}):
            return calls
        calls += 1
        if turn == "text":
            return calls
    return calls
