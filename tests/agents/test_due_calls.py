"""However a run ends, each of its tool calls has one result, and a person's yes lets a call run once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentError, ModelResponse, ToolCall, record_approval
from harness_lab.agents.due import NOT_RUN, UNDER_WAY
from harness_lab.agents.scripted import calls, says
from tests.kit.ended_runs import World, unanswered


def results(world: World) -> list[str]:
    return [r["result"] for m in world.session.messages if m["type"] == "tool_result" for r in m["results"]]


def cancelled_in_a_tool(world: World, started: asyncio.Event, prompt: str) -> None:
    async def run() -> None:
        job = asyncio.ensure_future(world.runtime.send(world.session, prompt))
        await started.wait()
        job.cancel()
        await asyncio.wait([job])

    asyncio.run(run())


def world_of(gated: list[str], *script: ModelResponse) -> tuple[World, asyncio.Event, list[Any]]:
    started = asyncio.Event()
    ran: list[Any] = []

    async def slow(arguments: Any) -> None:
        ran.append("slow")
        started.set()
        await asyncio.Event().wait()

    lead = {"tools": ["echo", "slow"], "requires_approval": gated}
    return World([], list(script), lead=lead, tools={"slow": slow}), started, ran


def test_calls_of_a_run_that_was_cancelled_say_what_came_of_them_and_the_session_goes_on() -> None:
    world, started, _ = world_of([], calls("echo", "slow", "echo"), says("on"))
    cancelled_in_a_tool(world, started, "go")
    assert results(world) == ["echo", UNDER_WAY, NOT_RUN]
    assert unanswered(world.session) == []
    assert world.send("again").text == "on"


def test_an_approved_call_that_was_under_way_when_its_run_was_stopped_does_not_run_again() -> None:
    world, started, ran = world_of(["slow"], calls("slow"), says("on"))
    (pending,) = world.send().pending_approvals
    record_approval(world.session, pending.id, approved=True)
    cancelled_in_a_tool(world, started, "")
    assert (results(world), ran) == ([UNDER_WAY], ["slow"])
    assert world.send("again").text == "on"
    assert ran == ["slow"]


def test_what_a_denied_call_leaves_behind_is_not_run_and_a_gated_one_beside_it_still_waits() -> None:
    asked = [ToolCall(id=str(i), name=name) for i, name in enumerate(("secret", "echo", "odd"))]
    lead = {"tools": ["echo", "odd", "secret"], "requires_approval": ["odd"]}
    world = World([], [ModelResponse(tool_calls=asked), says("on")], lead=lead)
    with pytest.raises(AgentError):
        world.send()
    assert results(world) == [NOT_RUN, NOT_RUN]
    request = world.session.messages[1]["approval_requests"][0]
    record_approval(world.session, request["approval_id"], approved=True)
    assert world.send("").text == "on"
    assert (results(world)[2:], unanswered(world.session)) == (["null"], [])


def test_a_child_that_a_stopped_run_left_tells_how_it_ended() -> None:
    started = asyncio.Event()

    async def slow(arguments: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    world = World([calls("slow", text="so far")], child={"tools": ["slow"]}, tools={"slow": slow})
    cancelled_in_a_tool(world, started, "go")
    assert (world.handed["outcome"], world.handed["content"]) == ("cancelled", "so far")
    assert unanswered(world.runtime.sessions.session("top::sub::dig")) == []
