"""How other systems bound a tree, by name: in Python, in an experiment file, and what each of them answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import PRESETS, Grant, PolicySpec, SpawnAsk, StepAsk, Ticket, Use, iteration_budget, preset
from harness_lab.simulate.config import read_policy
from harness_lab.usage import amounts

NOW = Time(0)
ONE = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)


def root(policy: Any) -> Ticket:
    answer = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(answer, Grant)
    return answer.ticket


def spawn(policy: Any, parent: Ticket, slot: int) -> Any:
    return policy.spawn(SpawnAsk(parent, (*parent.path, (0, slot, 0)), amounts()), NOW)


def calls(policy: Any, node: Ticket, *, turn: Any = "interactive", most: int = 200) -> int:
    """Make calls until one is refused; return how many were made."""
    for made in range(most):
        answer = policy.admit(StepAsk(node, made, 0, amounts()), NOW)
        if isinstance(answer, Refusal):
            return made
        policy.settle(answer.ticket, Use(ONE, turn=turn), NOW)
    return most


def test_every_preset_is_data_and_comes_back_as_it_was() -> None:
    assert set(PRESETS) == {"tanstack-1520", "hermes-0.19", "hermes-shared-2026-03", "skill"}
    assert all(PolicySpec.from_dict(policy.to_dict()) == policy == preset(policy.name) for policy in PRESETS.values())


def test_tanstack_counts_children_at_once_for_each_parent_and_starts_for_the_tree() -> None:
    policy = preset("tanstack-1520").start()
    top = root(policy)
    kids = [spawn(policy, top, i) for i in range(4)]
    assert kids.pop().code is Code.MAX_CONCURRENT
    below = [spawn(policy, kid.ticket, i) for kid in kids for i in range(3)]
    assert all(isinstance(one, Grant) for one in below)  # 3 + 9 run at once
    assert spawn(policy, below[0].ticket, 0).shortfalls[0].code is Code.MAX_DEPTH


def test_hermes_children_have_fifty_calls_of_their_own_and_do_not_delegate() -> None:
    policy = preset("hermes-0.19").start()
    top = root(policy)
    kid = spawn(policy, top, 0).ticket
    assert spawn(policy, kid, 0).code is Code.MAX_DEPTH
    assert (calls(policy, kid), calls(policy, top)) == (50, 90)


def test_code_turns_of_hermes_are_not_free_and_those_of_the_skill_have_no_end() -> None:
    for name, made in (("hermes-0.19", 90), ("skill", 200)):
        policy = preset(name).start()
        assert calls(policy, root(policy), turn="programmatic") == made


def test_in_march_2026_children_draw_on_their_parents_calls_and_have_a_time_limit() -> None:
    policy = preset("hermes-shared-2026-03").start()
    top = root(policy)
    first, second = spawn(policy, top, 0), spawn(policy, top, 1)
    assert first.deadline == 300 * NS_PER_S
    assert (calls(policy, first.ticket), calls(policy, second.ticket), calls(policy, top)) == (50, 40, 0)
    short = policy.admit(StepAsk(second.ticket, 0, 0, amounts()), NOW).shortfalls[0]  # type: ignore[union-attr]
    assert (short.limit, short.free) == (90, 0)


def test_a_unit_that_was_never_used_goes_back_to_child_and_tree() -> None:
    policy = iteration_budget(3, max_child_iterations=2, whose="tree").start()
    kid = spawn(policy, root(policy), 0).ticket
    step = policy.admit(StepAsk(kid, 0, 0, amounts()), NOW)
    assert isinstance(step, Grant)
    policy.settle(step.ticket, Use((0,) * 5, "unsent"), NOW)
    assert (calls(policy, kid, turn="programmatic", most=4), kid.memory[0].tree.refunds) == (4, 3)


def test_an_experiment_file_begins_from_a_preset_and_changes_it() -> None:
    table = {"preset": "hermes-0.19", "name": "deeper", "tree_limits": {"max_depth": 3}}
    assert read_policy(table) == replace(preset("hermes-0.19", tree_limits={"max_depth": 3}), name="deeper")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"preset": "hermes"}, "preset: expected one of tanstack-1520"),
        ({"preset": ["skill"]}, "preset: expected one of"),
        ({"preset": "skill", "tree_limits": {"max_deep": 1}}, "parameters of tree_limits: expected some of"),
        ({"preset": "skill", "pool": {}}, "module: expected one of"),
        ({"preset": "skill", "limits": 1}, "policy: expected preset, maybe name"),
        ({"preset": "skill", "tree_limits": {"max_depth": -1}}, "max_depth: expected"),
    ],
)
def test_what_a_preset_does_not_know_is_one_clear_error(table: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_policy(table)
