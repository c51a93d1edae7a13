"""What a model is told is left always agrees with the budget that decides."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness_lab.agents import RULES, AgentRuntime, BudgetLeft, ModeRegistry, Tool, ToolRegistry
from harness_lab.agents.scripted import ScriptedClient, calls
from harness_lab.budget import RunBudget, RunContext, RunLedger
from harness_lab.clock import ManualClock

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
