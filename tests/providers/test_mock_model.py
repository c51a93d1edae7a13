"""The mock provider: bills what the price table says, reports what it should, and stays within its bound."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab import draws
from harness_lab.agents import Call, Reply
from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockModel, MockProvider, ModelProfile
from harness_lab.simulate import SimRuntime
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import TokenCounts

SHARE = st.sampled_from([0.0, 0.3, 1.0])
RATE = st.integers(0, 20_000_000)
PRICE = st.builds(Price, input=RATE, output=RATE, cache_read=st.none() | RATE, cache_write=st.none() | RATE)


def a_provider(prices: Any = None, **profile: Any) -> MockProvider:
    values = {"output_tokens": Distribution.of("uniform", loc=0, scale=90), "latency_s": Distribution.constant(2)}
    model = ModelProfile(**(values | {"max_output_tokens": 60, "seconds_per_output_token": 0.5} | profile))
    return MockProvider(models={"m": model}, prices=prices if prices is not None else PriceTable())


def a_call(key: int = 1, prompt: int = 100, resent: int = 0) -> Call:
    return Call("m", draws.run_key(key, 0), 0, 0, prompt, resent)


def answer(model: MockModel, call: Call) -> tuple[Reply, int]:
    """Return the reply and how long it took, nanoseconds."""
    runtime, replies = SimRuntime(), []

    async def main() -> None:
        replies.append(await model.complete(runtime, call))

    runtime.kernel.spawn(main())
    runtime.kernel.run()
    return replies[0], runtime.kernel.now


@given(
    base=PRICE,
    above=PRICE,
    threshold=st.integers(1, 300),
    prompt=st.integers(0, 400),
    key=st.integers(0, 99),
    read=SHARE,
    write=SHARE,
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_call_is_billed_by_the_price_table_and_never_above_its_bound(
    base: Price, above: Price, threshold: int, prompt: int, key: int, read: float, write: float, data: st.DataObject
) -> None:
    high = Price(
        input=above.input,
        output=above.output,
        cache_read=above.cache_read,
        cache_write=above.cache_write,
        above_input_tokens=threshold,
    )
    prices = PriceTable({"m": (base, high)})
    flat = Distribution.constant(data.draw(st.integers(0, 90)))
    model = a_provider(prices, cache_share=read, cache_write_share=write, output_tokens=flat).compile()
    call = a_call(key, prompt, data.draw(st.integers(0, prompt)))
    reply, _ = answer(model, call)
    tokens = TokenCounts(
        input_fresh=reply.input_fresh, cache_read=reply.cache_read, cache_write=reply.cache_write, output=reply.output
    )
    assert tokens.input_total == prompt
    assert reply.cost_nusd == reply.billed_nusd == prices.cost("m", tokens)
    used = (1, prompt, tokens.total, tokens.newly_presented, reply.cost_nusd)
    assert all(spent <= most for spent, most in zip(used, model.bound(call), strict=True))  # type: ignore[operator]
    assert model.bound(call)[4] == prices.worst_case("m", input_tokens=prompt, output_ceiling=60)


def test_an_answer_is_cut_at_the_ceiling_and_takes_its_time() -> None:
    model = a_provider(output_tokens=Distribution.constant(500)).compile()
    reply, took = answer(model, a_call())
    assert (reply.output, took) == (60, (2 + 60 * 0.5) * 10**9)


def test_a_failing_attempt_is_quick_and_bills_nothing_and_the_next_may_succeed() -> None:
    model = a_provider(error_rate=0.5, output_tokens=Distribution.constant(10)).compile()
    statuses = set()
    for attempt in range(20):
        call = Call("m", 7, 0, attempt, 100)
        reply, took = answer(model, call)
        statuses.add((reply.status, reply.billed_nusd if reply.status == "failed" else "-", took))
    assert statuses == {("failed", 0, 200_000_000), ("completed", "-", 7_000_000_000)}


def test_what_is_not_reported_is_billed_all_the_same() -> None:
    prices = PriceTable({"m": (Price.usd_per_million(input=1, output=1),)})
    reply, _ = answer(a_provider(prices, unreported_rate=1.0).compile(), a_call())
    assert (reply.reported, reply.cost_nusd) == (False, None)
    assert (reply.billed_nusd or 0) >= 100_000


def test_without_a_price_cost_and_bill_are_unknown() -> None:
    model = a_provider().compile()
    reply, _ = answer(model, a_call())
    assert (reply.cost_nusd, reply.billed_nusd, model.bound(a_call())[4]) == (None, None, None)
    assert model.abandoned(a_call(), 10**9) is None


def test_a_dropped_call_is_billed_its_prompt_and_what_had_come_of_the_answer() -> None:
    prices = PriceTable({"m": (Price.usd_per_million(input=1, output=1),)})
    model = a_provider(prices, output_tokens=Distribution.constant(40)).compile()
    _, whole = answer(model, a_call())
    bills = [model.abandoned(a_call(), whole * tenth // 10) for tenth in range(12)]
    assert bills[:11] == [100_000 + tenth * 4_000 for tenth in range(11)]
    assert bills[11] == bills[10]


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_rates_hold_over_many_calls(rate: float) -> None:
    model = a_provider(error_rate=rate, unreported_rate=rate, seconds_per_output_token=0).compile()
    replies = [answer(model, a_call(key))[0] for key in range(3_000)]
    failed = sum(reply.status == "failed" for reply in replies)
    dark = sum(not reply.reported for reply in replies if reply.status == "completed")
    sd = (rate * (1 - rate) / 3_000) ** 0.5
    assert failed / 3_000 == pytest.approx(rate, abs=4 * sd)
    assert dark / (3_000 - failed) == pytest.approx(rate, abs=5 * sd)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("error_rate", -0.1),
        ("error_rate", float("nan")),
        ("unreported_rate", 1.1),
        ("cache_share", 2),
        ("cache_write_share", -1),
        ("seconds_per_output_token", -1),
        ("seconds_per_output_token", float("inf")),
        ("max_output_tokens", -1),
        ("max_output_tokens", 1.5),
    ],
)
def test_a_bad_profile_is_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(InputError, match=rf"^{field}: expected"):
        a_provider(**{field: bad})


@given(rates=st.lists(st.integers(0, 20_000), min_size=4, max_size=4), prompt=st.integers(0, 400), read=SHARE)
@settings(max_examples=40, deadline=None)
def test_whole_nano_dollars_a_token_are_billed_without_rounding_as_by_the_price_table(
    rates: list[int], prompt: int, read: float
) -> None:
    price = Price(**dict(zip(("input", "output", "cache_read", "cache_write"), (1000 * r for r in rates), strict=True)))
    prices = PriceTable({"m": (price,)})
    model = a_provider(prices, cache_share=read, cache_write_share=0.3).compile()
    call = a_call(3, prompt, prompt // 2)
    reply, _ = answer(model, call)
    tokens = TokenCounts(
        input_fresh=reply.input_fresh, cache_read=reply.cache_read, cache_write=reply.cache_write, output=reply.output
    )
    assert model.answers("m").flat is not None
    assert reply.cost_nusd == prices.cost("m", tokens)
    assert model.bound(call)[4] == prices.worst_case("m", input_tokens=prompt, output_ceiling=60)


def test_what_is_told_beforehand_is_what_comes() -> None:
    model = a_provider(error_rate=0.3, unreported_rate=0.2).compile()
    for key in range(40):
        reply, slept = answer(model, a_call(key))
        duration, told = model.timed(a_call(key))
        assert duration == slept
        assert [getattr(told, name) for name in Reply.__slots__] == [getattr(reply, name) for name in Reply.__slots__]
