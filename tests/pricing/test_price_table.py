"""Prices: exact, per call, by the tier that the whole prompt reaches; without a price a cost is unknown."""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable, per_million
from harness_lab.pricing import _rules as rules
from harness_lab.usage import TokenCounts

PLAIN = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3, cache_write=3.75),)})
TIERED = PriceTable(
    {
        "m": (
            Price.usd_per_million(input=1.25, output=10),
            Price.usd_per_million(input=2.5, output=15, above_input_tokens=200_000),
        )
    }
)
RATE = st.integers(0, 50_000_000)
PRICE = st.builds(
    Price,
    input=RATE,
    output=RATE,
    cache_read=st.none() | RATE,
    cache_write=st.none() | RATE,
    cache_write_1h=st.none() | RATE,
)
TABLE = st.lists(st.tuples(PRICE, st.integers(1, 1000)), min_size=1, max_size=4, unique_by=lambda tier: tier[1]).map(
    lambda tiers: _table(sorted(tiers, key=lambda tier: tier[1]))
)


def _table(tiers: list[tuple[Price, int]]) -> PriceTable:
    prices = [
        Price(
            input=price.input,
            output=price.output,
            cache_read=price.cache_read,
            cache_write=price.cache_write,
            cache_write_1h=price.cache_write_1h,
            above_input_tokens=above if i else 0,
        )
        for i, (price, above) in enumerate(tiers)
    ]
    return PriceTable({"m": tuple(prices)})


def test_every_kind_of_token_has_its_own_price() -> None:
    tokens = TokenCounts(input_fresh=1000, cache_read=2000, cache_write=400, output=100)
    assert PLAIN.cost("m", tokens) == 3_000_000 + 600_000 + 1_500_000 + 1_500_000


def test_a_write_for_an_hour_has_its_price_and_an_unknown_part_makes_the_cost_unknown() -> None:
    hour = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_write=3.75, cache_write_1h=6),)})
    tokens = {"input_fresh": 0, "cache_write": 1000, "output": 0}
    assert hour.cost("m", TokenCounts(**tokens, cache_write_1h=400)) == 600 * 3_750 + 400 * 6_000
    assert hour.cost("m", TokenCounts(**tokens, cache_write_1h=None)) is None
    assert PLAIN.cost("m", TokenCounts(**tokens, cache_write_1h=None)) == 3_750_000  # one price for both


@pytest.mark.parametrize(("prompt", "expected"), [(200_000, 250_000_000), (200_001, 500_002_500)])
def test_the_threshold_itself_is_the_lower_tier_and_one_more_token_reprices_the_whole_call(
    prompt: int, expected: int
) -> None:
    assert TIERED.cost("m", TokenCounts(input_fresh=prompt, output=0)) == expected
    split = TokenCounts(input_fresh=0, cache_read=prompt, output=0)
    assert TIERED.cost("m", split) == expected  # what a cache gave counts for the tier


def test_a_total_is_the_sum_of_priced_calls_and_not_the_price_of_the_sum() -> None:
    one = TokenCounts(input_fresh=150_000, output=0)
    both = TokenCounts(input_fresh=300_000, output=0)
    assert 2 * (TIERED.cost("m", one) or 0) == 375_000_000
    assert TIERED.cost("m", both) == 750_000_000


@pytest.mark.parametrize("name", ["input_fresh", "cache_read", "cache_write", "output"])
def test_an_unknown_count_or_model_makes_the_cost_unknown_and_never_zero(name: str) -> None:
    counts = {"input_fresh": 1, "cache_read": 1, "cache_write": 1, "output": 1}
    assert PLAIN.cost("m", TokenCounts(**counts | {name: None})) is None
    assert PLAIN.cost("another", TokenCounts(**counts)) is None
    assert PLAIN.worst_case("another", input_tokens=1, output_ceiling=1) is None


@given(TABLE, st.integers(0, 1500), st.integers(0, 500), st.data())
@settings(max_examples=300, deadline=None)
def test_no_split_of_a_prompt_costs_more_than_the_worst_case(
    table: PriceTable, prompt: int, ceiling: int, data: st.DataObject
) -> None:
    sent = data.draw(st.integers(0, prompt))
    read = data.draw(st.integers(0, sent))
    write = data.draw(st.integers(0, sent - read))
    hour = data.draw(st.integers(0, write))
    output = data.draw(st.integers(0, ceiling))
    tokens = TokenCounts(
        input_fresh=sent - read - write, cache_read=read, cache_write=write, cache_write_1h=hour, output=output
    )
    cost, worst = table.cost("m", tokens), table.worst_case("m", input_tokens=prompt, output_ceiling=ceiling)
    assert cost is not None
    assert worst is not None
    assert cost <= worst


@given(st.integers(0, 10**12), st.integers(1, 10**6))
@settings(max_examples=200, deadline=None)
def test_settlements_round_half_to_even_and_holds_round_up(numerator: int, denominator: int) -> None:
    with decimal.localcontext(prec=60):
        exact = Decimal(numerator) / Decimal(denominator)
        assert rules.half_even(numerator, denominator) == int(exact.to_integral_value(decimal.ROUND_HALF_EVEN))
        assert rules.up(numerator, denominator) == int(exact.to_integral_value(decimal.ROUND_CEILING))


def test_halves_go_to_the_even_nano_dollar() -> None:
    table = PriceTable({"m": (Price(input=500, output=0),)})  # half a nano-dollar a token
    costs = [table.cost("m", TokenCounts(input_fresh=n, output=0)) for n in (1, 2, 3, 4, 5)]
    assert costs == [0, 1, 2, 2, 2]


def test_prices_do_not_depend_on_the_callers_decimal_context() -> None:
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP):
        assert per_million(1.2345678) == 1_234_568


def test_a_table_survives_the_way_through_json() -> None:
    for table in (PLAIN, TIERED, PriceTable({}, source="a list", date="2026-11-30")):
        again = PriceTable.from_dict(json.loads(json.dumps(table.to_dict())))
        assert (again.models, again.source, again.date) == (table.models, table.source, table.date)


@pytest.mark.parametrize("bad", [-1, 1001, float("nan"), float("inf"), True, "dear", None], ids=repr)
def test_a_bad_price_is_refused_by_name(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^output: expected dollars per million tokens from 0 to 1,000"):
        Price.usd_per_million(input=1, output=bad)


def test_whole_floats_become_prices_so_that_money_stays_exact() -> None:
    assert type(Price(input=3e6, output=15e6).input) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("starts", [[], [5], [0, 0], [0, 9, 5]])
def test_tiers_ascend_from_zero(starts: list[int]) -> None:
    with pytest.raises(InputError, match=r"^tiers of m: expected ascending above_input_tokens from 0"):
        PriceTable({"m": tuple(Price(input=1, output=1, above_input_tokens=start) for start in starts)})


@pytest.mark.parametrize(
    "data",
    [{}, {"models": 3}, {"models": {"m": [{"input": 1}]}}, {"models": {"m": [{"input": 1, "output": 1, "x": 1}]}}],
)
def test_a_bad_stored_table_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^(price table|tier of m): expected"):
        PriceTable.from_dict(data)


def test_a_cost_beyond_all_bounds_is_refused() -> None:
    dear = PriceTable({"m": (Price.usd_per_million(input=1000, output=1000),)})
    big = TokenCounts(input_fresh=10**9, cache_read=10**9, output=10**9)
    assert dear.cost("m", big) == 3_000_000 * 10**9
    with pytest.raises(InputError, match=r"^price: expected one of input, output"):
        Price.usd_per_million(input=1, output=1, tokens=5)
