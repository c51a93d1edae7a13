"""Runs of one parent and its child that end in every way, and every place in which the end is told."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness_lab.agents import (
    AgentRuntime,
    Event,
    Events,
    ModeRegistry,
    SettlementRecorder,
    Tool,
    ToolAuthorizer,
    ToolRegistry,
)
from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.budget import RunBudget, RunContext
from harness_lab.simulate.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.agents import AgentResponse, Session


class Brake(BaseException):
    """What no ``except Exception`` catches."""


@dataclass
class World:
    """A parent (mode ``lead``, model ``big``) whose child ``dig`` (mode ``child``, model ``small``) ends somehow."""

    small: list[Any]
    big: list[Any] = field(default_factory=lambda: [calls("dig", task="x"), says("done")])
    lead: dict[str, Any] = field(default_factory=dict)
    child: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    depth: int = 0
    budget: RunBudget | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        self.events: list[Event] = []
        self.rows = io.StringIO()
        self.context = RunContext.root("run-1", RunBudget(9)) if self.budget is None else None
        modes = {
            "lead": {
                "model": "big",
                "tools": ["echo"],
                "subagents": {"dig": {"mode": "child", **self.declared}},
                **self.lead,
            },
            "child": {"model": "small", "tools": ["echo", "secret", "stop", "odd"], "max_steps": 2, **self.child},
        }
        self.registry = ToolRegistry().register(
            Tool("echo", lambda arguments: "echo"),
            Tool("secret", lambda arguments: "secret"),
            Tool("stop", lambda arguments: self.ledger.cancel("enough")),
            Tool("odd", lambda arguments: None),
            *(Tool(name, function) for name, function in self.tools.items()),
        )
        self.client = ScriptedClient(by_model={"big": self.big, "small": self.small}, repeat_last=self.repeat)
        self.runtime = AgentRuntime(
            self.client,
            ModeRegistry({"default": "lead", "modes": modes}),
            self.registry,
            authorizer=ToolAuthorizer(call=lambda session, tool, arguments: tool.name != "secret"),
            events=Events().listen(self.events.append),
            recorder=SettlementRecorder(self.rows, wall=lambda: 0),
            **self.options,
        )
        self.session = self.runtime.sessions.session("top")

    @property
    def ledger(self) -> Any:
        """The ledger of the whole tree."""
        assert self.context is not None
        return self.context.ledger

    def send(self, prompt: str = "go") -> AgentResponse:
        """Run a turn in virtual time."""
        budget = self.budget if self.budget is not None else RunBudget(9)
        loop = VirtualLoop()

        async def run() -> AgentResponse:
            root = RunContext.root("run-1", budget, clock=AsyncioRuntime())
            self.context = RunContext(ledger=root.ledger, budget=root.budget, parent_run_id=None, depth=self.depth)
            return await self.runtime.send(self.session, prompt, context=self.context)

        try:
            return loop.run_until_complete(run())
        finally:
            loop.close()

    @property
    def handed(self) -> dict[str, Any]:
        """The envelope that the parent's model was handed."""
        texts = [r["result"] for m in self.session.messages if m["type"] == "tool_result" for r in m["results"]]
        found: dict[str, Any] = json.loads(next(text for text in texts if text.startswith("{")))
        return found

    @property
    def written(self) -> dict[str, dict[str, Any]]:
        """The settlement rows by agent."""
        rows = [json.loads(line) for line in self.rows.getvalue().splitlines()]
        return {row["agent"]: row for row in rows}

    def told(self, scope: str) -> list[str]:
        """Names of the events of a session."""
        return [e.name for e in self.events if e.session_key == self.runtime.sessions.session(scope).key]


def unanswered(session: Session) -> list[str]:
    """Return the calls that have not exactly one result and wait for nobody: a provider refuses those."""
    asked: list[str] = []
    results: list[str] = []
    waiting: set[str] = set()
    for turn, message in enumerate(session.messages):
        if message["type"] == "assistant":
            last = turn
            asked += [f"{turn} {call['id']}" for call in message["tool_calls"]]
            waiting = {f"{turn} {request['tool_call_id']}" for request in message["approval_requests"]}
        results += [f"{last} {result['tool_call_id']}" for result in message.get("results", ())]
    return [name for name in asked if results.count(name) != (0 if name in waiting - set(results) else 1)]


def sleeps(seconds: float) -> Callable[[Mapping[str, Any]], Any]:
    """Return a tool that takes its time."""

    async def tool(arguments: Mapping[str, Any]) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    return tool


def raises(error: BaseException) -> Callable[[Any], Any]:
    """Return a function that raises: a tool, a bound, a listener."""

    def function(_argument: Any) -> Any:
        raise error

    return function
