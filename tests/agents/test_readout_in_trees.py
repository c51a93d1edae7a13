"""In any tree whose agents run one after another, what is told to be left is what is left, call by call, to the end."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.agents import AgentRuntime, BudgetLeft, ModelResponse, ModeRegistry, ToolCall, ToolRegistry
from harness_lab.policies import (
    PolicySpec,
    call_holds,
    compose,
    iteration_budget,
    period_budget,
    reservation_pool,
    shared_ledger,
)
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.usage import TokenCounts, amounts, nusd

CENT, TOKENS, SECONDS = 0.01, 20, 2
BOUND = amounts(calls=1, input=15, tokens=TOKENS, fresh=TOKENS, cost_usd=CENT)
FIELDS = ("steps", "tokens", "cost", "seconds")


def figures(left: BudgetLeft) -> tuple[int | None, ...]:
    """Return what is left in whole units: calls, tokens, nano-dollars, nanoseconds."""
    cost = None if left.cost_usd is None else nusd(left.cost_usd)
    return left.steps, left.tokens, cost, None if left.seconds is None else round(left.seconds * 10**9)


@dataclass
class World:
    """Agents that never end of themselves, with children that never do, one at a time."""

    seed: int
    policy: PolicySpec | None
    own_steps: int
    max_cost_usd: float | None
    max_seconds: int | None
    told: dict[str, list[tuple[int, tuple[int | None, ...]]]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    calls: int = 0

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)  # noqa: S311
        names = ("one", "two")
        ask = {"tokens": self.luck.choice([40, 100])}
        declared = {
            name: {"mode": "agent", "max_steps": self.luck.randint(1, 4), "ask": ask}
            | self.luck.choice([{}, {"max_cost_usd": 0.03}, {"max_seconds": 7}])
            for name in names
        }
        self.runtime = AgentRuntime(
            self,
            ModeRegistry({"default": "agent", "modes": {"agent": {"subagents": declared}}}),
            ToolRegistry(),
            recorder=self,  # type: ignore[arg-type]
            policy=self.policy,
            max_cost_usd=self.max_cost_usd,
            max_seconds=self.max_seconds,
            max_steps_ceiling=25,
            bound=lambda request: BOUND,
        )

    async def complete(self, request: Any) -> ModelResponse:
        self.told.setdefault(request.run_id, []).append((self.calls, figures(request.budget)))
        assert request.budget.may_go_on
        self.calls += 1
        await asyncio.sleep(SECONDS)
        asked = [ToolCall(id="0", name=self.luck.choice(("one", "two")), arguments={"task": "x"})]
        used = TokenCounts(input_fresh=15, output=5)
        return ModelResponse(tool_calls=asked, cost_usd=CENT, usage=used)

    def node(self, conversation: Any, record: Any) -> None:
        self.ends[conversation.place.run_id] = "" if record.end.stopped_by is None else str(record.end.stopped_by)
        self.told.setdefault(conversation.place.run_id, []).append((self.calls, ()))

    def run(self) -> None:
        session = self.runtime.sessions.session("top").using_max_steps(self.own_steps)
        VirtualLoop().run_until_complete(self.runtime.send(session, "go"))


POLICIES: dict[str, Any] = {
    "ledger": None,
    "shared": shared_ledger(9, 0.2),
    "pool": reservation_pool(calls=12, tokens=200),
    "cap": call_holds(calls=11, cost_usd=0.15),
    "window": period_budget(calls=11, tokens=300, every="day"),
    "tree's iterations": iteration_budget(9, whose="tree"),
    "all": compose(
        reservation_pool(calls=14, tokens=300), call_holds(cost_usd=0.2), period_budget(calls=13, every="day")
    ),
}
PER_CALL = (1, TOKENS, nusd(CENT), SECONDS * 10**9)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(sorted(POLICIES)),
    own_steps=st.integers(1, 30),
    max_cost_usd=st.none() | st.sampled_from([0.05, 0.12]),
    max_seconds=st.none() | st.integers(3, 30),
)
def test_what_is_told_goes_down_by_what_was_used_and_is_gone_when_a_limit_stops(
    seed: int, policy: str, own_steps: int, max_cost_usd: float | None, max_seconds: int | None
) -> None:
    world = World(seed, POLICIES[policy], own_steps, max_cost_usd, max_seconds)
    world.run()
    for run_id, told in world.told.items():
        *requests, (calls_at_end, _) = told
        for (before, had), (after, has) in itertools.pairwise(requests):
            used = [(after - before) * each for each in PER_CALL]
            expected = [None if one is None else one - gone for one, gone in zip(had, used, strict=True)]
            assert list(has) == expected, (policy, run_id, FIELDS)
        if requests and world.ends[run_id]:
            at, had = requests[-1]
            rest = [
                one - (calls_at_end - at) * each for one, each in zip(had, PER_CALL, strict=True) if one is not None
            ]
            assert min(rest) <= 0, (policy, world.ends[run_id], had, rest)
