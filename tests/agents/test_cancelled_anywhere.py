"""A run that is cancelled wherever any agent of its tree waits: books, sessions and events are whole afterwards."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents import (
    AgentRuntime,
    Event,
    Events,
    ModelResponse,
    ModeRegistry,
    SettlementRecorder,
    Tool,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.budget import RunBudget, RunContext
from harness_lab.policies import compose, reservation_pool, tree_limits
from tests.kit.cancelled_anywhere import run_cancelled
from tests.kit.ended_runs import unanswered

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec

ASK = {"tokens": 10}
MODES: dict[str, Any] = {
    "lead": {
        "model": "big",
        "tools": ["echo", "slow"],
        "subagents": {"one": {"mode": "mid", "ask": ASK}, "two": {"mode": "small", "ask": ASK}},
    },
    "mid": {"model": "mid", "subagents": {"deep": {"mode": "small", "ask": {"tokens": 5}}}},
    "small": {"model": "small", "tools": ["slow"]},
}
SAID = {"big": [["echo", "one", "two", "one"], ["slow"], []], "mid": [["deep"], []], "small": [["slow"], []]}
QUEUE = compose(
    tree_limits(max_depth=3, max_concurrent=1, max_wait_s=50, lend=True, timeout_s=30), reservation_pool(tokens=100)
)


class Client:
    """Says what the conversation has come to, after a second."""

    async def complete(self, request: Any) -> ModelResponse:
        await asyncio.sleep(1)
        lines = SAID[request.model]
        said = sum(message["type"] == "assistant" for message in request.messages)
        asked = lines[said % len(lines)]
        named = [ToolCall(id=f"{said}-{i}", name=name, arguments={"task": "t"}) for i, name in enumerate(asked)]
        return ModelResponse(text=f"{request.model} {said}", tool_calls=named, cost_usd=0.01)


class World:
    """A runtime, what it told, and the ledger of its last run."""

    def __init__(self, policy: PolicySpec | None) -> None:
        self.events: list[Event] = []
        self.rows = io.StringIO()
        self.context: RunContext | None = None
        self.runtime = AgentRuntime(
            Client(),
            ModeRegistry({"default": "lead", "modes": MODES}),
            ToolRegistry().register(Tool("echo", lambda arguments: "echo"), Tool("slow", self._slow)),
            events=Events().listen(self.events.append),
            recorder=SettlementRecorder(self.rows, wall=lambda: 0),
            policy=policy,
        )

    async def _slow(self, arguments: Any) -> str:
        await asyncio.sleep(2)
        return "slow"

    async def send(self) -> Any:
        self.context = RunContext.root("run", RunBudget(30, 1.0, 100), clock=AsyncioRuntime())
        return await self.runtime.send(self.runtime.sessions.session("top"), "go", context=self.context)

    def check(self) -> None:
        """Hold what has to be true after every run, however it ended."""
        sessions = self.runtime.sessions._open.values()
        assert [session.scope for session in sessions if session.held] == []
        assert [session.scope for session in sessions if session.run and session.run.status == "running"] == []
        assert [unanswered(session) for session in sessions if unanswered(session)] == []
        started = Counter(event.run_id for event in self.events if event.name == "run.started")
        assert started == Counter(event.run_id for event in self.events if event.name != "run.started")
        rows = [json.loads(line) for line in self.rows.getvalue().splitlines()]
        assert self.context is None or sum(row["attempts"] for row in rows) == self.context.ledger.steps
        assert {row["outcome"] for row in rows} <= {"completed", "cancelled", "denied"}


@pytest.mark.parametrize("policy", [None, QUEUE], ids=["ledger", "queue and pool"])
def test_whenever_a_run_is_cancelled_its_books_sessions_and_events_are_whole(policy: PolicySpec | None) -> None:
    _, waits = run_cancelled(World(policy).send(), 0)
    assert waits > 15
    for after in range(1, waits + 1):
        world = World(policy)
        end, _ = run_cancelled(world.send(), after)
        assert end == "cancelled"
        world.check()
        again, _ = run_cancelled(world.send(), 0)
        assert again.outcome == "completed"
