"""prism-ai-harness and ours side by side: the same random operations, the same answers under its preset."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from harness_lab.agents import (
    RULES,
    AgentRuntime,
    ModelError,
    ModelResponse,
    ModeRegistry,
    Tool,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.readout import BudgetLeft
from harness_lab.budget import RunBudget, RunContext
from harness_lab.clock import ManualClock

prism = pytest.importorskip("prism_harness", reason="the public package prism-ai-harness is not installed")
from prism_harness import subagents as theirs  # noqa: E402
from prism_harness.runtime import LlmResponse, LlmToolCall  # noqa: E402
from prism_harness.stores.base import Durability  # noqa: E402
from prism_harness.stores.memory import MemorySessionStore  # noqa: E402
from prism_harness.subagent_runner import SubagentRunner as TheirRunner  # noqa: E402

PRESET = RULES["prism-py"]
LEDGERS, TREES = 10_000, 1_000
CENT = 1 / 64  # exact in binary and in nano-dollars: ten dimes are in the table of deviations


def _luck(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


class Pair:
    """One ledger of each, driven alike."""

    def __init__(self, luck: random.Random, clock: SimpleNamespace) -> None:
        self.luck, self.clock = luck, clock
        self.ours_clock = ManualClock()
        clock.now = 0.0
        theirs_root, ours_root = self.budget()
        self.contexts = [
            (
                theirs.RunContext.root("run", theirs_root),
                RunContext.root("run", ours_root, clock=self.ours_clock),
            )
        ]

    def budget(self) -> tuple[Any, RunBudget]:
        luck = self.luck
        config = {
            "max_steps": luck.choice([None, 0, 1, 2, 3, 8, 40]),
            "max_cost_usd": luck.choice([None, None, 0.0, CENT, 0.25, 1.0, 4.0]),
            "max_seconds": luck.choice([None, None, 0, 1, 7, 60, 600]),
            "max_output_tokens_per_call": 2048,
        }
        return theirs.RunBudget.from_config(config, 8), RunBudget.from_config(config, 8)

    def step(self) -> None:
        luck = self.luck
        their, our = luck.choice(self.contexts)
        match luck.randrange(6):
            case 0:
                steps = luck.randrange(4)
                their.ledger.record_steps(steps)
                our.ledger.record_steps(steps)
            case 1:
                cost = luck.choice([0.0, CENT, 3 * CENT, 0.25, 0.5, None])
                their.ledger.record_cost(cost)
                our.ledger.record_cost(cost)
            case 2:
                seconds = luck.choice([0.25, 0.5, 1.0, 2.75, 30.5])
                self.clock.now += seconds
                self.ours_clock.advance(seconds)
            case 3 if luck.random() < 0.15:
                reason = luck.choice(["the user left", "second thoughts", ""])
                their.ledger.cancel(reason)
                our.ledger.cancel(reason)
            case _ if len(self.contexts) < 8:
                one, two = self.budget()
                named = theirs.Subagent("s", "d", "m", one)
                self.contexts.append((their.for_child(named, "run"), PRESET.child_context(our, two, "run")))

    def check(self) -> None:
        for their, our in self.contexts:
            left = BudgetLeft.of(our.ledger, our.budget, rules=PRESET)
            assert our.ledger.exhaustion(our.budget) == their.ledger.exhaustion(their.budget)
            assert (our.budget.max_steps, our.budget.max_cost_usd, our.budget.max_seconds) == (
                their.budget.max_steps,
                their.budget.max_cost_usd,
                their.budget.max_seconds,
            )
            assert left.cost_usd == their.ledger.remaining_cost(their.budget)
            assert left.seconds == their.ledger.remaining_seconds(their.budget)
            assert (our.depth, our.too_deep(), our.is_child()) == (their.depth, their.too_deep(), their.is_child())
        our_ledger, their_ledger = self.contexts[0][1].ledger, self.contexts[0][0].ledger
        for name in ("steps", "cost_usd", "unmetered_runs", "cancelled"):
            assert getattr(our_ledger, name) == getattr(their_ledger, name)


def test_ten_thousand_random_ledgers_answer_as_prism_harness_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(theirs, "time", SimpleNamespace(monotonic=lambda: clock.now))
    for seed in range(LEDGERS):
        pair = Pair(_luck(seed), clock)
        for _ in range(pair.luck.randrange(3, 14)):
            pair.step()
        pair.check()


class Kept(MemorySessionStore):
    """A store that says it is durable."""

    def durability(self) -> Durability:
        return Durability.DURABLE


class Plan:
    """What every model says, by its own call count: the same for both."""

    def __init__(self, seed: int) -> None:
        luck = _luck(seed)
        self.budget = (luck.choice([1, 3, 6, 12]), luck.choice([None, None, 0.125, 1.0]))
        self.config = {"default": "m0", "modes": {f"m{i}": self._mode(i, luck) for i in range(5)}}
        self._lines = {f"m{i}": [self._line(luck) for _ in range(12)] for i in range(5)}
        self.said: list[str] = []
        self._count: dict[str, int] = defaultdict(int)

    @staticmethod
    def _mode(level: int, luck: random.Random) -> dict[str, Any]:
        declared: dict[str, Any] = {"mode": f"m{min(level + 1, 4)}"}
        if luck.random() < 0.7:
            declared["max_steps"] = luck.choice([0, 1, 2, 5])
        if luck.random() < 0.3:
            declared["max_cost_usd"] = luck.choice([CENT, 0.25])
        return {"system_prompt": f"m{level}", "max_steps": 3, "tools": ["echo", "sub"], "subagents": {"sub": declared}}

    @staticmethod
    def _line(luck: random.Random) -> tuple[str, float | None]:
        return luck.choice(["answer", "echo", "sub", "sub", "both", "down"]), luck.choice([CENT, 0.25, 0.0, None])

    def next(self, model: str) -> tuple[str, float | None]:
        self.said.append(model)
        line = self._lines[model][self._count[model] % 12]
        self._count[model] += 1
        return line


TOOLS = {"answer": (), "echo": ("echo",), "sub": ("sub",), "both": ("echo", "sub")}


def _theirs(plan: Plan) -> dict[str, Any]:
    """Run a plan on the package, with the context of each level handed on by hand."""
    outcomes: dict[str, list[str]] = defaultdict(list)
    levels: list[Any] = []

    class Runner(TheirRunner):
        def run(self, subagent: Any, parent: Any, context: Any, parent_run_id: str, task: str) -> Any:
            levels.append(context.for_child(subagent, parent_run_id))
            try:
                result = super().run(subagent, parent, context, parent_run_id, task)
            finally:
                levels.pop()
            outcomes[parent.scope].append(result.outcome)
            return result

    def client(request: Any) -> LlmResponse:
        kind, cost = plan.next(request.system_prompt)
        if kind == "down":
            raise ModelError("down", sent=False)
        asked = [LlmToolCall(id=name, name=name, arguments={"task": "go"}) for name in TOOLS[kind]]
        return LlmResponse(text=kind, finish_reason="stop", tool_calls=asked, cost_usd=cost)

    harness = prism.PrismHarness(drivers={"default": Kept})
    modes, tools = prism.ModeRegistry(plan.config), prism.ToolRegistry()
    tools.register(SimpleNamespace(name="echo", handle=lambda arguments: "echo"))
    runner = Runner(harness, prism.AgentRuntime(client, modes, tools))
    root = prism.RunContext.root("run", prism.RunBudget(*plan.budget))
    levels.append(root)
    tools.register_factory(
        "sub",
        lambda parent: runner.tool(modes.resolve(parent.mode()).subagents["sub"], parent, levels[-1], "run"),
    )
    session = harness.for_(prism.Participant("User", 1)).session("top").using_mode("m0")
    try:
        response = runner._runtime.send(session, "go", context=root)
        end: tuple[Any, ...] = (response.finish_reason, response.stopped_because, response.text, response.tool_calls)
    except ModelError:
        end = ("failed",)
    return _seen(plan, end, root.ledger, outcomes)


def _ours(plan: Plan) -> dict[str, Any]:
    """Run a plan on ours, under the preset."""

    class Client:
        async def complete(self, request: Any) -> ModelResponse:
            kind, cost = plan.next(request.system_prompt)
            if kind == "down":
                raise ModelError("down", sent=False)
            asked = [ToolCall(id=name, name=name, arguments={"task": "go"}) for name in TOOLS[kind]]
            return ModelResponse(text=kind, finish_reason="stop", tool_calls=asked, cost_usd=cost)

    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    runtime = AgentRuntime(Client(), ModeRegistry(plan.config), tools, rules="prism-py")
    root = RunContext.root("run", RunBudget(*plan.budget), clock=ManualClock())
    session = runtime.sessions.session("top").using_mode("m0")
    try:
        response = asyncio.run(runtime.send(session, "go", context=root))
        called = list(response.tool_calls)
        end: tuple[Any, ...] = (response.finish_reason, response.stopped_because, response.text, called)
    except ModelError:
        end = ("failed",)
    outcomes: dict[str, list[str]] = defaultdict(list)
    for scope in ["top" + "::sub::sub" * depth for depth in range(5)]:
        for message in runtime.sessions.session(scope).messages:
            for result in message.get("results", ()):
                if result["name"] == "sub":
                    outcomes[scope].append(json.loads(result["result"])["outcome"])
    return _seen(plan, end, root.ledger, outcomes)


def _seen(plan: Plan, end: tuple[Any, ...], ledger: Any, outcomes: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "end": end,
        "calls": plan.said,
        "ledger": (ledger.steps, ledger.cost_usd, ledger.unmetered_runs),
        "outcomes": {scope: found for scope, found in outcomes.items() if found},
    }


def test_random_run_trees_take_the_same_course_in_both() -> None:
    seen: set[str] = set()
    for seed in range(TREES):
        their, our = _theirs(Plan(seed)), _ours(Plan(seed))
        assert our == their, f"seed {seed}"
        seen |= {outcome for found in our["outcomes"].values() for outcome in found}
    assert seen == {"completed", "exhausted", "denied", "failed"}
