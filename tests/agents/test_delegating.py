"""Who may delegate: tools that a child does not get, and a gate that starts all or nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness_lab.agents.delegating import DELEGATION_TOOLS, DelegationRules, get_subagent_tool_set
from harness_lab.errors import InputError


def test_a_child_does_not_get_delegation_under_any_spelling() -> None:
    given = ["read", *DELEGATION_TOOLS, "DELEGATE_TASK", "Spawn-Agent", " create subagent ", "terminal"]
    assert get_subagent_tool_set(given) == ["read", "terminal"]


def test_a_tool_of_the_kind_an_alias_or_a_wrapper_of_one_is_left_out_too() -> None:
    inner = SimpleNamespace(name="delegate_task")
    tools = [
        SimpleNamespace(name="plain"),
        SimpleNamespace(name="helper", kind="Delegation"),
        SimpleNamespace(name="helper2", aliases=("spawn_agent",)),
        SimpleNamespace(name="logged", wraps=SimpleNamespace(name="retried", wraps=inner)),
    ]
    assert [tool.name for tool in get_subagent_tool_set(tools)] == ["plain"]


def test_a_wrapper_around_itself_is_not_handed_on() -> None:
    loop = SimpleNamespace(name="loop")
    loop.wraps = loop
    assert get_subagent_tool_set([loop]) == []


def test_depth_one_lets_no_child_delegate_whatever_its_role() -> None:
    (child,) = DelegationRules().decide({"goal": "x", "role": "orchestrator"}, depth=0)
    assert (child.role, child.depth) == ("leaf", 1)
    assert child.tools(["terminal", "delegation"]) == ["terminal"]
    with pytest.raises(InputError, match=r"depth=1, max_spawn_depth=1"):
        DelegationRules().decide({"goal": "x"}, depth=1)


def test_an_orchestrator_keeps_delegation_while_there_is_room_below() -> None:
    rules = DelegationRules(max_depth=2)
    (child,) = rules.decide({"goal": "x", "role": " Orchestrator "}, depth=0)
    assert child.tools(["terminal", "file", "delegation", "memory"]) == ["terminal", "file", "delegation"]
    (grandchild,) = rules.decide({"goal": "x", "role": "orchestrator"}, depth=1)
    assert grandchild.role == "leaf"


def test_too_many_tasks_are_refused_whole() -> None:
    with pytest.raises(InputError, match="Too many tasks: 4 provided, but max_concurrent_children is 3"):
        DelegationRules().decide({"tasks": [{"goal": str(i)} for i in range(4)]}, depth=0)


@pytest.mark.parametrize(
    "request_", [{}, {"tasks": []}, {"goal": " "}, {"tasks": ["a"]}, {"tasks": [{"goal": ""}]}, {"tasks": "["}]
)
def test_a_request_without_something_to_do_is_refused(request_: dict[str, object]) -> None:
    with pytest.raises(InputError, match="delegation"):
        DelegationRules().decide(request_, depth=0)
