"""The provider with its troubles: limits, cold caches, broken streams, and reports that are late, partial or double."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from harness_lab.agents import Call, Reply
from harness_lab.agents.ports import LateReply, PartialReply, Throttled
from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.outcome import COST
from harness_lab.policies import PolicySpec, call_holds, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockModel, MockProvider, ModelProfile, RateLimits
from harness_lab.providers.limits import Bucket
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Workload
from harness_lab.stats.distributions import Distribution

CONSTANT = Distribution.constant
PRICES = PriceTable({"m": (Price.usd_per_million(input=1, output=10, cache_read=0.1, cache_write=2),)})


def a_provider(**profile: Any) -> MockProvider:
    values = {"output_tokens": CONSTANT(100), "latency_s": CONSTANT(2), "max_output_tokens": 100}
    return MockProvider(models={"m": ModelProfile(**(values | profile))}, prices=PRICES)


def play(provider: MockProvider, calls: list[tuple[float, Call]]) -> list[tuple[float, Reply]]:
    """Make each call at its second; return when each came back, seconds, and how."""
    runtime, model = SimRuntime(), provider.compile().fresh()
    found: dict[int, tuple[float, Reply]] = {}

    async def one(i: int, at: float, call: Call) -> None:
        await runtime.sleep(int(at * NS_PER_S))
        reply = await model.complete(runtime, call)
        found[i] = (runtime.now() / NS_PER_S, reply)

    for i, (at, call) in enumerate(calls):
        runtime.kernel.spawn(one(i, at, call))
    runtime.kernel.run()
    return [found[i] for i in range(len(calls))]


def a_call(key: int = 1, index: int = 0, prompt: int = 1_000, resent: int = 0) -> Call:
    return Call("m", key, index, 0, prompt, resent)


def test_a_profile_without_troubles_is_answered_by_the_plain_model() -> None:
    assert type(a_provider(error_rate=0.1).compile()) is MockModel
    assert type(a_provider(cutoff_rate=0.1).compile()) is not MockModel


def test_more_requests_than_a_minute_lets_through_are_told_when_to_try_again() -> None:
    limits = RateLimits(requests_per_minute=60, burst_s=2)
    came = play(a_provider(limits=limits), [(0.0, a_call(key)) for key in range(4)])
    assert [type(reply) for _, reply in came] == [Reply, Reply, Throttled, Throttled]
    assert [reply.retry_after_ns for _, reply in came if isinstance(reply, Throttled)] == [NS_PER_S, NS_PER_S]
    assert came[2][0] == 0.0
    later = play(a_provider(limits=limits), [(float(second), a_call(second)) for second in range(10)])
    assert all(type(reply) is Reply for _, reply in later)


@pytest.mark.parametrize(
    ("limits", "passes"),
    [
        ({"tokens_per_minute": 6_000}, 2),
        ({"input_tokens_per_minute": 4_500}, 1),
        ({"concurrent": 3}, 3),
        ({"tokens_per_minute": 100}, 1),
        ({}, 5),
    ],
)
def test_each_limit_lets_through_what_it_says(limits: dict[str, int], passes: int) -> None:
    came = play(a_provider(limits=RateLimits(**limits)), [(0.0, a_call(key, prompt=3_000)) for key in range(5)])
    assert sum(type(reply) is Reply for _, reply in came) == passes


def test_a_429_is_billed_nothing_and_is_an_attempt_but_no_call() -> None:
    workload = Workload(
        agents={"a": AgentProfile(model="m", calls=CONSTANT(2), startup_tokens=CONSTANT(100), max_attempts=8)}, root="a"
    )
    provider = a_provider(limits=RateLimits(requests_per_minute=1, burst_s=60), latency_s=CONSTANT(0))
    result = Experiment(workload=workload, provider=provider, policies=(unlimited(),), runs=1).run(calls=True)
    node = result.settlements.nodes.iloc[0]
    assert (node["calls"], node["attempts"] > 2, node["input_fresh"]) == (2, True, 100 + 200)
    assert node["cost_nusd"] == node["billed_nusd"]
    assert result.settlements.calls is not None
    assert set(result.settlements.calls["status"]) == {"completed", "unsent"}


def test_buckets_never_let_more_through_than_their_rate_and_depth() -> None:
    bucket, passed = Bucket(120, 10 * NS_PER_S), 0
    for tenth in range(600):
        now = tenth * NS_PER_S // 10
        if bucket.wait(now, 1) == 0:
            bucket.take(now, 1)
            passed += 1
    assert 120 <= passed <= 120 + 20 + 1


def test_a_prefix_is_read_only_while_it_is_warm_and_the_first_to_send_it_finds_nothing() -> None:
    provider = a_provider(cache_share=1.0, cache_ttl_s=300, cache_write_share=1.0)
    first = a_call(1, 0, 1_000, 400)
    calls = [(0.0, first), (10.0, a_call(2, 0, 1_000, 400)), (100.0, a_call(1, 1, 1_500, 1_000))]
    calls += [(500.0, a_call(1, 2, 2_000, 1_500)), (600.0, a_call(1, 3, 2_000, 2_000))]
    came = [(r.cache_read, r.cache_write) for _, r in play(provider, calls)]
    assert came == [(0, 1_000), (400, 600), (1_000, 500), (0, 2_000), (2_000, 0)]


def test_a_stream_that_breaks_off_bills_what_had_come_and_reports_the_prompt_alone() -> None:
    ((at, reply),) = play(a_provider(cutoff_rate=1.0, seconds_per_output_token=0.1), [(0.0, a_call())])
    assert isinstance(reply, PartialReply)
    assert (reply.status, reply.spent[1], reply.spent[COST]) == ("failed", 1_000, None)
    assert reply.billed_nusd is not None
    came = (reply.billed_nusd - 1_000_000) // 10_000
    assert 0 <= came < 100
    assert at == pytest.approx(2 + 0.1 * came)


@pytest.mark.parametrize(("rule", "bill"), [("free", 0), ("billed", 1_000_000)])
@pytest.mark.parametrize(("what", "took"), [("error_rate", 0.2), ("timeout_rate", 600.0)])
def test_who_pays_for_a_failed_attempt_is_a_stated_rule(rule: str, bill: int, what: str, took: float) -> None:
    ((at, reply),) = play(a_provider(**{what: 1.0, "failed_attempts": rule}), [(0.0, a_call())])
    assert (reply.status, reply.billed_nusd, reply.cost_nusd, at) == ("failed", bill, bill, took)


def test_recorded_answers_are_drawn_with_their_times() -> None:
    provider = a_provider(recorded=((10, NS_PER_S), (90, 9 * NS_PER_S)))
    came = {(at, reply.output) for at, reply in play(provider, [(0.0, a_call(key * 7919)) for key in range(40)])}
    assert came == {(1.0, 10), (9.0, 90)}


def test_time_for_each_token_may_be_drawn_once_a_call() -> None:
    provider = a_provider(output_token_s=Distribution.empirical([0.01, 0.03]))
    ends = {round(at, 6) for at, _ in play(provider, [(0.0, a_call(key * 7919)) for key in range(40)])}
    assert ends == {3.0, 5.0}


def drift(**profile: Any) -> Any:
    """One node of four calls whose reports have troubles: its row."""
    agent = AgentProfile(model="m", calls=CONSTANT(4), startup_tokens=CONSTANT(1_000), tool_s=CONSTANT(60))
    return _run(agent, unlimited(), **profile).iloc[0]


def _run(agent: AgentProfile, policy: PolicySpec, **profile: Any) -> Any:
    experiment = Experiment(
        workload=Workload(agents={"a": agent}, root="a"), provider=a_provider(**profile), policies=(policy,), runs=1
    )
    return experiment.run(backend="serial").settlements.nodes


def test_the_bill_is_the_same_whatever_is_reported_and_when() -> None:
    bills = {drift(**profile)["billed_nusd"] for profile in ({}, {"late_rate": 1.0}, {"twice_rate": 1.0},
             {"partial_rate": 1.0}, {"unreported_rate": 1.0})}  # fmt: skip
    assert len(bills) == 1


def test_late_usage_is_known_when_it_comes_in_time_and_unknown_when_the_node_has_ended() -> None:
    assert drift(late_rate=1.0, late_s=30)["usage_known"] == False  # noqa: E712 - the last call's comes too late
    agent = AgentProfile(model="m", calls=CONSTANT(1), startup_tokens=CONSTANT(1_000))
    assert _run(agent, unlimited(), late_rate=1.0, late_s=0)["cost_nusd"].tolist() == [2_000_000]
    assert _run(agent, unlimited(), late_rate=1.0, late_s=1)["cost_nusd"].isna().all()


def test_usage_that_is_reported_twice_counts_once() -> None:
    node = drift(twice_rate=1.0)
    assert (node["cost_nusd"], node["calls"]) == (node["billed_nusd"], 4)
    (reply,) = [reply for _, reply in play(a_provider(twice_rate=1.0), [(0.0, a_call())])]
    assert isinstance(reply, LateReply)
    assert reply.copies == 2


def test_partial_reports_leave_the_cost_unknown_and_the_prompt_counted() -> None:
    node = drift(partial_rate=1.0)
    assert pd.isna(node["cost_nusd"])
    assert (node["usage_known"], node["calls"]) == (False, 4)


def test_what_is_held_for_a_call_stays_held_until_its_usage_comes() -> None:
    agent = AgentProfile(model="m", calls=CONSTANT(3), startup_tokens=CONSTANT(1_000), tool_s=CONSTANT(1))
    cap = call_holds(cost_usd=0.0055)  # two calls cost 0.0041; the second's worst case is 0.0032, the first's 0.003
    assert _run(agent, cap)["calls"].tolist() == [2]
    assert _run(agent, cap, late_rate=1.0, late_s=50)["calls"].tolist() == [1]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("timeout_rate", 1.2),
        ("cutoff_rate", float("nan")),
        ("late_s", -1),
        ("timeout_s", float("inf")),
        ("cache_ttl_s", -1),
        ("failed_attempts", "maybe"),
    ],
)
def test_bad_troubles_are_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(InputError, match=rf"^{field}"):
        a_provider(**{field: bad})


def test_chances_that_exclude_each_other_cannot_exceed_one_together() -> None:
    with pytest.raises(InputError, match=r"^error_rate \+ timeout_rate \+ cutoff_rate: expected at most 1"):
        a_provider(error_rate=0.6, timeout_rate=0.6)
    with pytest.raises(InputError, match=r"^concurrent: expected at least 1"):
        RateLimits(concurrent=0)
