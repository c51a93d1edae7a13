"""Random agent trees in virtual time: what holds whatever the models say and whoever is stopped."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.agents import (
    AgentRuntime,
    Events,
    ModelError,
    ModelResponse,
    ModeRegistry,
    Tool,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.due import NOT_RUN, UNDER_WAY
from harness_lab.budget import RunBudget, RunContext
from harness_lab.clock import Time
from harness_lab.policies import tree_limits
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.usage import nusd

CENT = 0.01
ENDS = ("completed", "exhausted", "cancelled", "denied", "failed", "awaiting_approval")


@dataclass
class World:
    """A runtime whose models say what chance says, on a loop in virtual time."""

    seed: int
    budget: RunBudget
    timeout_s: float | None = None
    loop: VirtualLoop = field(default_factory=VirtualLoop)
    billed: list[float | None] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    cancel_after: int | None = None

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)  # noqa: S311
        declared = {name: {"mode": "agent", "max_steps": 3} for name in ("one", "two")}
        modes = {"agent": {"tools": ["echo"], "max_steps": 20, "subagents": declared}}
        self.context = RunContext.root("root", self.budget, clock=self)
        self.runtime = AgentRuntime(
            self,
            ModeRegistry({"default": "agent", "modes": modes}),
            ToolRegistry().register(Tool("echo", self._echo)),
            events=Events().listen(self.events.append),
            recorder=self,  # type: ignore[arg-type]
            policy=tree_limits(timeout_s=self.timeout_s) if self.timeout_s else None,
        )

    def now(self) -> Time:
        return Time(self.loop.now_ns())

    def node(self, conversation: Any, record: Any) -> None:
        self.rows.append({"record": record, "run": conversation.place.run_id})

    async def complete(self, request: Any) -> ModelResponse:
        assert request.budget.may_go_on
        await asyncio.sleep(self.luck.choice([0.0, 1.0, 5.0]))
        if self.luck.random() < 0.1:
            self.billed.append(0.0)
            raise ModelError("down", cost_usd=0.0)
        self.billed.append(CENT)
        if len(self.billed) == self.cancel_after:
            self.context.ledger.cancel("enough")
        names = self.luck.choice([(), ("echo",), ("one",), ("one", "two"), ("one", "echo", "one")])
        asked = [ToolCall(id=f"c{i}", name=name, arguments={"task": "t"}) for i, name in enumerate(names)]
        return ModelResponse(text="t", tool_calls=asked, cost_usd=CENT)

    async def _echo(self, arguments: Any) -> str:
        await asyncio.sleep(self.luck.choice([0.0, 2.0]))
        return "echo"

    def run(self) -> Any:
        session = self.runtime.sessions.session("top")
        job = self.runtime.send(session, "go", context=self.context)
        try:
            return self.loop.run_until_complete(job)
        except ModelError:
            return None
        finally:
            self.loop.close()

    def handed(self) -> list[dict[str, Any]]:
        sessions = self.runtime.sessions._open.values()
        rows = [r for s in sessions for m in s.messages for r in m.get("results", ())]
        told = [row["result"] for row in rows if row["name"] != "echo"]
        return [json.loads(text) for text in told if text not in (NOT_RUN, UNDER_WAY)]


WORLDS = st.builds(
    World,
    seed=st.integers(0, 10**9),
    budget=st.builds(
        RunBudget, st.integers(0, 12), st.none() | st.sampled_from([0.0, 0.03, 0.05]), st.none() | st.integers(0, 20)
    ),
    timeout_s=st.none() | st.sampled_from([3.0, 8.0]),
    cancel_after=st.none() | st.integers(1, 5),
)


@settings(max_examples=150, deadline=None)
@given(world=WORLDS)
def test_books_balance_and_nothing_is_left_open_in_any_tree(world: World) -> None:
    response = world.run()
    ledger, records = world.context.ledger, [row["record"] for row in world.rows]
    known = [record for record in records if record.cost_known]
    assert ledger.steps == sum(record.attempts for record in records)
    assert ledger.cost_nusd == sum(nusd(cost) for cost in world.billed if cost is not None)
    assert ledger.unmetered_runs == sum(record.attempts for record in records) - len(world.billed)
    assert sum(record.cost_nusd for record in known) <= ledger.cost_nusd
    assert not any(session.held for session in world.runtime.sessions._open.values())
    assert response is None or response.usage.steps == ledger.steps
    assert all(record.depth <= 3 or record.attempts == 0 for record in records)


@settings(max_examples=150, deadline=None)
@given(world=WORLDS)
def test_a_ceiling_is_overshot_by_no_more_than_the_calls_in_flight(world: World) -> None:
    world.run()
    width = 1 + max((row["record"].starts for row in world.rows), default=0)
    steps, most = world.context.ledger.steps, world.budget.max_steps
    assert steps <= most + 2**3 - 1
    if width == 1:
        assert steps <= most


@settings(max_examples=150, deadline=None)
@given(world=WORLDS)
def test_every_call_ends_in_one_outcome_and_every_run_has_one_start_and_one_end(world: World) -> None:
    world.run()
    for handed in world.handed():
        assert handed["outcome"] in ENDS
        assert handed["succeeded"] is (handed["outcome"] == "completed")
        assert handed["retryable"] is (handed["outcome"] == "failed")
    started = [event.run_id for event in world.events if event.name == "run.started"]
    ended = [event.run_id for event in world.events if event.name != "run.started"]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)
    assert set(started) <= {row["run"] for row in world.rows}


def test_a_time_limit_is_looked_at_between_steps_on_the_loops_own_clock() -> None:
    loop = VirtualLoop()

    class Slow:
        async def complete(self, request: Any) -> ModelResponse:
            await asyncio.sleep(10)
            return ModelResponse(tool_calls=[ToolCall(id="1", name="echo")])

    modes = ModeRegistry({"modes": {"chat": {"tools": ["echo"]}}})
    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    runtime = AgentRuntime(Slow(), modes, tools, max_seconds=25)
    response = loop.run_until_complete(runtime.send(runtime.sessions.session("s"), "go"))
    assert response.stopped_because == "time budget exhausted (30s of 25s used)"
    assert (response.outcome, response.usage.steps) == ("timed_out", 3)
