"""What is no session, prompt, answer or stored conversation is one clear error, before anything has begun."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentError, Sessions, Tool, record_approval
from harness_lab.agents.scripted import calls, says
from harness_lab.budget import RunBudget
from harness_lab.errors import InputError, ReadError
from harness_lab.outcome import Outcome
from tests.kit.ended_runs import World

ODD: list[tuple[dict[str, Any], str]] = [
    ({"session": "top"}, r"session: expected a Session, as runtime\.sessions\.session\(scope\) opens one, got 'top'"),
    ({"prompt": None}, "prompt: expected text, empty to go on after an approval, got None"),
    ({"prompt": b"x"}, "prompt: expected text, empty to go on after an approval, got b'x'"),
    ({"context": RunBudget(3)}, "context: expected a RunContext, or None for a budget of its own, got RunBudget"),
    ({"tool_names": "echo"}, "tool_names: expected names of tools in a list, or None for all, got 'echo'"),
    ({"tool_names": [5]}, r"tool_names: expected names of tools in a list, or None for all, got \[5\]"),
    ({"groups": "search"}, "groups: expected names of groups by kind"),
    ({"groups": {"team": 5}}, "groups: expected names of groups by kind"),
]


@pytest.mark.parametrize(("odd", "line"), ODD)
def test_an_argument_of_another_kind_is_refused_before_anything_begins(odd: dict[str, Any], line: str) -> None:
    world = World([], [says("x")])
    given: dict[str, Any] = {"session": world.session, "prompt": "go"} | odd
    with pytest.raises(InputError, match=f"^{line}"):
        asyncio.run(world.runtime.send(given.pop("session"), given.pop("prompt"), **given))
    assert (world.events, world.session.run, world.session.messages) == ([], None, [])


@pytest.mark.parametrize("task", [None, "", "  ", 5])
def test_a_subagent_by_hand_needs_a_task(task: Any) -> None:
    world = World([says("x")], [says("x")])
    world.send()
    assert world.context is not None
    subagent = world.runtime.modes.resolve("lead").subagents["dig"]
    with pytest.raises(InputError, match=r"^task: expected text that says what the subagent shall do, got"):
        asyncio.run(world.runtime.runner.run(subagent, world.session, world.context, "run", task))


@pytest.mark.parametrize("approved", ["no", "false", "yes", 1, None])
def test_only_true_is_a_yes(approved: Any) -> None:
    world = World([], [calls("echo"), says("done")], lead={"requires_approval": ["echo"]})
    (pending,) = world.send().pending_approvals
    with pytest.raises(InputError, match=r"^approved: expected True or False, got"):
        record_approval(world.session, pending.id, approved=approved)
    stored = {"type": "approval", "approval_id": pending.id, "approved": approved, "reason": None}
    world.session.messages.append(stored)  # by whoever writes conversations by hand
    world.send("")
    assert world.session.messages[-2]["results"][0]["result"] == "User denied tool execution"


@pytest.mark.parametrize("name", ["", 5, []])
def test_a_mode_or_model_of_a_session_is_a_name(name: Any) -> None:
    session = Sessions().session("top")
    with pytest.raises(InputError, match=r"^mode: expected a name, or None for the default, got"):
        session.using_mode(name)
    with pytest.raises(InputError, match=r"^model: expected a name, or None for the default, got"):
        session.using_model(name)


def test_what_is_no_stored_session_is_one_line_without_its_words() -> None:
    stored = Sessions().session("top").to_dict()
    odd: list[Any] = [{}, stored | {"messages": 5}, stored | {"run": {"id": 1}}, stored | {"mode": 5}, [1]]
    for broken in odd:
        with pytest.raises(ReadError, match=r"^session: expected what Session\.to_dict wrote, got"):
            Sessions().restore(broken)


def test_a_session_that_a_run_holds_is_not_written_over() -> None:
    world = World([], [calls("again"), says("done")], lead={"tools": ["again"]})
    seen: list[str] = []

    def again(arguments: Any) -> str:
        with pytest.raises(AgentError) as error:
            world.runtime.sessions.restore(world.session.to_dict())
        seen.append(error.value.code)
        return "no"

    world.registry.register(Tool("again", again))
    assert world.send().outcome is Outcome.COMPLETED
    assert seen == ["session_locked"]
    assert world.runtime.sessions.restore(world.session.to_dict()) is world.session
