"""What a model is told is left always agrees with the budget that decides."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.agents import RULES, AgentRuntime, BudgetLeft, ModeRegistry, Tool, ToolRegistry
from harness_lab.agents.scripted import ScriptedClient, calls
from harness_lab.budget import RunBudget, RunContext, RunLedger
from harness_lab.clock import ManualClock
from harness_lab.outcome import Outcome
from harness_lab.policies import (
    call_holds,
    compose,
    iteration_budget,
    period_budget,
    reservation_pool,
    shared_ledger,
)
from harness_lab.usage import TokenCounts, amounts

BUDGETS = st.builds(
    RunBudget,
    st.integers(0, 6),
    st.none() | st.sampled_from([0.0, 0.25, 1.0]),
    st.none() | st.integers(0, 60),
)


@given(
    budget=BUDGETS,
    steps=st.integers(0, 6),
    costs=st.lists(st.none() | st.sampled_from([0.0, 0.25, 0.5]), max_size=3),
    elapsed=st.sampled_from([0.0, 0.4, 1.0, 59.5, 60.0]),
    rules=st.sampled_from(["default", "prism-php"]),
)
def test_a_step_is_allowed_exactly_when_the_readout_says_so(
    budget: RunBudget, steps: int, costs: list[float | None], elapsed: float, rules: str
) -> None:
    clock = ManualClock()
    ledger = RunLedger("run", clock=clock)
    ledger.record_steps(steps)
    for cost in costs:
        ledger.record_cost(cost)
    clock.advance(elapsed)
    left = BudgetLeft.of(ledger, budget, rules=RULES[rules])
    assert left.may_go_on is (ledger.exhaustion(budget) is None)
    if left.may_go_on:
        assert left.steps > 0
        assert left.cost_usd is None or left.cost_usd > 0
        assert left.seconds is None or left.seconds > 0
    assert ("No further step is allowed" in left.text()) is not left.may_go_on


def test_every_request_tells_what_the_ledger_and_the_budget_in_force_say_at_that_moment() -> None:
    told: list[tuple[int, float | None, str]] = []

    class Client(ScriptedClient):
        async def complete(self, request: Any) -> Any:
            told.append((request.budget.steps, request.budget.cost_usd, request.system_prompt.splitlines()[-1]))
            assert request.budget == replace(BudgetLeft.of(context.ledger, context.budget), seconds=None)
            return await super().complete(request)

    context = RunContext.root("run", RunBudget(3, 1.0), clock=ManualClock())
    modes = ModeRegistry({"modes": {"chat": {"system_prompt": "Be brief.", "tools": ["echo"]}}})
    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    client = Client([calls("echo", cost_usd=0.25)], repeat_last=True)
    runtime = AgentRuntime(client, modes, tools, tell_budget=True)
    asyncio.run(runtime.send(runtime.sessions.session("s"), "go", context=context))
    assert [(steps, cost) for steps, cost, _ in told] == [(3, 1.0), (2, 0.75), (1, 0.5)]
    assert told[2][2] == "Budget left for you and all you start: 1 model call, 0.5000 USD."


LIMITS = {
    "pool": reservation_pool(calls=3, tokens=100),
    "cap": call_holds(calls=3, tokens=100),
    "window": period_budget(calls=3, tokens=100, every="day"),
    "iterations": iteration_budget(3),
    "ledger": shared_ledger(3),
    "all": compose(shared_ledger(9), reservation_pool(calls=5, tokens=60), call_holds(calls=3, tokens=100)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_other_limits_than_the_ledgers_are_in_the_readout_and_the_last_call_is_told_as_the_last(name: str) -> None:
    told: list[BudgetLeft] = []

    class Client(ScriptedClient):
        async def complete(self, request: Any) -> Any:
            told.append(request.budget)
            return await super().complete(request)

    modes = ModeRegistry({"modes": {"chat": {"system_prompt": "Be brief.", "tools": ["echo"], "max_steps": 20}}})
    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    line = replace(calls("echo", cost_usd=0.0), usage=TokenCounts(input_fresh=15, output=5))
    bound = amounts(calls=1, input=15, tokens=20, fresh=20, cost_usd=0)
    client = Client([line], repeat_last=True)
    runtime = AgentRuntime(client, modes, tools, policy=LIMITS[name], bound=lambda request: bound)
    end = asyncio.run(runtime.send(runtime.sessions.session("s"), "go"))
    assert (end.outcome, [left.steps for left in told]) == (Outcome.EXHAUSTED, [3, 2, 1])
    if name not in ("iterations", "ledger"):
        assert [left.tokens for left in told] == ([60, 40, 20] if name == "all" else [100, 80, 60])
    assert all(left.may_go_on for left in told)


def test_tokens_and_a_deadline_are_told() -> None:
    left = BudgetLeft.of(RunLedger("run"), RunBudget(8)).within([("tokens", 200, 1500), ("time", 10**9, 31 * 10**9)])
    assert left.text() == "Budget left for you and all you start: 8 model calls, 1,300 tokens, 30 s."
    gone = left.within([("cost", 5, 5)])
    assert gone.text().endswith("No further step is allowed (budget-exhausted).")
