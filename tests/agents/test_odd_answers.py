"""Tools and model clients that answer with odd things: each has one stated outcome, and the books are whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentError, ModelResponse, ToolCall, record_approval
from harness_lab.agents.scripted import calls, says
from harness_lab.errors import InputError
from harness_lab.usage import TokenCounts
from tests.kit.ended_runs import Brake, World, raises


class NoWords(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


async def one(arguments: Any) -> Any:
    return 1


async def one_and_one(arguments: Any) -> Any:
    return one(arguments)


def deep(arguments: Any) -> Any:
    found: list[Any] = []
    for _ in range(10**5):
        found = [found]
    return found


RAN = "The tool ran, and its result cannot be written as JSON: "
TOOLS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda a: None, "null"),
    "bytes": (lambda a: b"x", f"{RAN}Object of type bytes is not JSON serializable"),
    "an object": (lambda a: object(), f"{RAN}Object of type object is not JSON serializable"),
    "too deep": (deep, f"{RAN}maximum recursion depth exceeded while encoding a JSON object"),
    "half a character": (lambda a: "a\ud800", "a?"),
    "an awaitable": (one, "1"),
    "an awaitable of an awaitable": (one_and_one, "1"),
    "a task": (lambda a: asyncio.ensure_future(one(a)), "1"),
    "changes its arguments": (lambda a: a.clear(), "null"),
    "raises": (raises(OSError("disk")), "The tool failed: disk"),
    "raises half a character": (raises(OSError("\ud800")), "The tool failed: ?"),
    "raises what has no words": (raises(NoWords()), "The tool failed: NoWords"),
    "raises what nobody catches": (raises(Brake()), "The tool failed: ended by Brake"),
    "raises a cancellation of its own": (
        raises(asyncio.CancelledError()), "The tool failed: ended by CancelledError",
    ),
    "stops an iteration": (raises(StopIteration()), "The tool failed: coroutine raised StopIteration"),
}  # fmt: skip


def results(world: World) -> list[str]:
    return [r["result"] for m in world.session.messages if m["type"] == "tool_result" for r in m["results"]]


@pytest.mark.parametrize("what", TOOLS)
def test_whatever_a_tool_does_is_told_to_the_model_and_the_run_goes_on(what: str) -> None:
    tool, told = TOOLS[what]
    world = World(
        [], [calls("t", v=1, cost_usd=0.1), says("done", cost_usd=0.1)], lead={"tools": ["t"]}, tools={"t": tool}
    )
    response = world.send()
    assert (response.outcome, results(world)) == ("completed", [told])
    assert world.session.messages[1]["tool_calls"][0]["arguments"] == {"v": 1}
    assert (world.ledger.steps, world.ledger.cost_usd) == (2, 0.2)


def test_a_failing_run_whose_error_has_no_words_is_written_down_all_the_same() -> None:
    world = World([], [NoWords()])
    with pytest.raises(NoWords):
        world.send()
    assert world.session.run is not None
    assert (world.session.run.failure_detail, world.session.held) == ("NoWords", False)


PARTS: list[tuple[dict[str, Any], str]] = [
    ({"text": None}, r"text of a response: expected text, empty for a turn without words, got None"),
    ({"finish_reason": 5}, "finish_reason of a response: expected the provider's own as text, got 5"),
    ({"usage": {"input": 5}}, r"usage of a response: expected TokenCounts or None, got \{'input': 5\}"),
    ({"served_model": 5}, "served_model of a response: expected a name or None, got 5"),
    ({"additional_content": [1]}, r"additional_content of a response: expected a mapping, got \[1\]"),
    ({"tool_calls": None}, "tool_calls of a response: expected tool calls, none is "),
    ({"tool_calls": [{"name": "x"}]}, "tool_calls of a response: expected a ToolCall each, got "),
    ({"cost_usd": -1}, "cost_usd: expected a finite number of dollars"),
]


@pytest.mark.parametrize(("part", "line"), PARTS)
def test_a_response_that_is_none_is_refused_where_it_is_made(part: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=f"^{line}"):
        ModelResponse(**part)


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"id": None}, "id of a tool call: expected text, got None"),
        ({"name": []}, r"name of a tool call: expected text, got \[\]"),
        ({"arguments": '{"q": 1}'}, r"arguments of the call to \[t\]: expected a mapping, got .*json\.loads"),
    ],
)
def test_a_tool_call_that_is_none_is_refused_where_it_is_made(part: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=f"^{line}"):
        ToolCall(**{"id": "1", "name": "t", **part})


def test_tool_calls_that_can_be_read_once_only_are_all_made() -> None:
    once: Any = (ToolCall(id=str(i), name="echo") for i in range(2))
    world = World([], [ModelResponse(tool_calls=once), says("done")])
    world.send()
    assert results(world) == ["echo", "echo"]


def test_two_calls_of_one_id_fail_the_run_at_the_price_of_its_response() -> None:
    twice = [ToolCall(id="1", name="echo"), ToolCall(id="1", name="echo")]
    used = TokenCounts(input_fresh=5, output=1)
    world = World([], [ModelResponse(tool_calls=twice, cost_usd=0.25, usage=used)])
    with pytest.raises(InputError, match=r"^tool_calls of a response: expected an id for each call, got \['1', '1'\]$"):
        world.send()
    assert (world.ledger.steps, world.ledger.cost_usd, world.ledger.unmetered_runs) == (1, 0.25, 0)
    assert results(world) == []


@pytest.mark.parametrize(
    ("response", "finish_reason"),
    [(ModelResponse(), "stop"), (ModelResponse(text="x", finish_reason="new-word"), "new-word")],
)
def test_an_empty_answer_and_an_unknown_reason_are_answers(response: ModelResponse, finish_reason: str) -> None:
    world = World([], [response])
    found = world.send()
    assert (found.outcome, found.finish_reason, found.cut_off) == ("completed", finish_reason, False)


def test_a_later_call_of_an_approved_ones_id_is_authorised_by_itself() -> None:
    same = [ModelResponse(tool_calls=[ToolCall(id="1", name=name)]) for name in ("echo", "secret")]
    world = World([], same, lead={"tools": ["echo", "secret"], "requires_approval": ["echo"]})
    (pending,) = world.send().pending_approvals
    record_approval(world.session, pending.id, approved=True)
    with pytest.raises(AgentError) as error:
        world.send("")
    assert error.value.code == "call_not_authorized"
