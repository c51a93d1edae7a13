"""An ordinary asyncio agent in virtual time, under our limits and under somebody else's limiter."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd
import pytest
from pages import run_page

from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import Limiter, Refused, Seat, explain_agent, simulate_agent
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

S = 10**9
SECOND = MockProvider(
    models={"m": ModelProfile(output_tokens=Distribution.constant(10), latency_s=Distribution.constant(1))},
    prices=PriceTable({"m": (Price.usd_per_million(input=1, output=1),)}),
)


async def three_calls(seat: Seat) -> str:
    for _ in range(3):
        await seat.call(100)
    return "done"


async def family(seat: Seat) -> list[Any]:
    await seat.call(100)
    kids = [seat.child(three_calls, name="kid", budget=amounts(tokens=330)) for _ in range(3)]
    return [(end.outcome, result) for end, result in await asyncio.gather(*kids)]


def rows(agent: Any, *policies: PolicySpec, runs: int = 1) -> Any:
    return simulate_agent(agent, provider=SECOND, policies=policies, runs=runs).settlements.nodes


def test_an_agent_takes_virtual_time_and_its_rows_are_those_of_any_experiment() -> None:
    nodes = rows(family, unlimited())
    root = nodes[nodes["parent"].isna()].iloc[0]
    assert (root["outcome"], root["duration_ns"], root["starts"]) == ("completed", 4 * S, 3)
    kids = nodes[nodes["agent"] == "kid"]
    assert kids["calls"].tolist() == [3, 3, 3]
    assert kids["node"].tolist() == ["0.0.0", "0.1.0", "0.2.0"]
    assert kids["cost_nusd"].tolist() == [330_000] * 3


def test_a_limit_stops_an_agent_that_does_not_catch_it_and_tells_one_that_does() -> None:
    async def careful(seat: Seat) -> str:
        try:
            return await three_calls(seat)
        except Refused as refused:
            return f"stopped: {refused.refusal.code}"

    nodes = rows(three_calls, shared_ledger(2))
    assert nodes[["outcome", "stopped_by", "calls"]].to_numpy().tolist() == [["exhausted", "steps-exhausted", 2]]
    nodes = rows(careful, shared_ledger(2))
    assert nodes[["outcome", "calls"]].to_numpy().tolist() == [["completed", 2]]


def test_children_are_held_denied_and_timed_out_as_any_others() -> None:
    pool = rows(family, reservation_pool(tokens=800))
    assert sorted(pool["outcome"]) == ["completed", "completed", "completed", "denied"]
    late = rows(family, tree_limits(timeout_s=2))
    assert late[late["depth"] == 1]["outcome"].tolist() == ["timed_out"] * 3
    assert late[late["depth"] == 0]["duration_ns"].tolist() == [3 * S]


def test_asyncio_is_used_as_it_is() -> None:
    seen: list[float] = []

    async def busy(seat: Seat) -> None:
        gate = asyncio.Semaphore(1)

        async def one() -> None:
            async with gate:
                await asyncio.sleep(5)
                seen.append(seat.now_s)

        async with asyncio.timeout(60):
            await asyncio.gather(one(), one())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(9), timeout=2)
        seen.append(seat.now_s)

    assert rows(busy, unlimited())["outcome"].tolist() == ["completed"]
    assert seen == [5, 10, 12]


def test_the_luck_of_an_agent_is_its_own_and_the_same_under_every_policy() -> None:
    luck: dict[int, list[float]] = {0: [], 1: []}

    async def child(seat: Seat) -> float:
        return seat.random.random()

    async def draw(seat: Seat) -> None:
        for _ in range(2):
            _, value = await seat.child(child)
            luck[len(luck[0]) >= 4].append(value)

    rows(draw, unlimited(name="a"), unlimited(name="b"), runs=2)
    assert luck[0] == luck[1]
    assert len(set(luck[0])) == 4


class Alternating:
    """Somebody's limiter with the four questions and nothing else."""

    def __init__(self) -> None:
        self.base, self.asked = Limiter(), 0
        self.spawn, self.settle, self.close = self.base.spawn, self.base.settle, self.base.close

    def admit(self, ask: Any, now: Any) -> Any:
        self.asked += 1
        return self.base.yes(ask, now) if self.asked % 2 else self.base.no("every other call")


def test_any_object_with_the_four_questions_limits_an_agent() -> None:
    result = simulate_agent(three_calls, provider=SECOND, policies={"odd": lambda _run: Alternating()}, runs=2)
    assert result.settlements.nodes["calls"].tolist() == [1, 1]
    assert result.settlements.nodes["stopped_by"].tolist() == ["call-refused"] * 2


def test_a_run_of_ones_own_agent_is_explained_under_any_limiter() -> None:
    story = explain_agent(family, provider=SECOND, policy=shared_ledger(5), run=3)
    pd.testing.assert_frame_equal(story.nodes, rows(family, shared_ledger(5), runs=4).tail(4).reset_index(drop=True))
    assert (story.events["answer"] == "refused").sum() == 3
    assert story.chrome_trace()["traceEvents"]
    odd = explain_agent(three_calls, provider=SECOND, policy=lambda _run: Alternating())
    assert odd.events["reason"].str.contains("every other call").any()


def test_an_object_that_lacks_a_question_is_refused_with_the_next_step() -> None:
    with pytest.raises(InputError, match=r"^limiter: expected an object with spawn, admit, .*, got \['spawn'"):
        simulate_agent(three_calls, provider=SECOND, policies={"none": lambda _run: object()})
    with pytest.raises(InputError, match=r"^policies and models: expected at least one of each"):
        simulate_agent(three_calls, provider=SECOND, policies=[])


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_page("own-agent.md")
    said = capsys.readouterr().out
    assert "tight differs from unlimited" in said
    assert "bucket" in said
