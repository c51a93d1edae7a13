"""Counts and money: whole numbers, exact, and unknown is not zero."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.usage import (
    MAX_NUSD,
    MAX_TOKENS,
    NUSD_PER_USD,
    TokenCounts,
    amounts,
    count,
    nusd,
    optional_count,
    optional_nusd,
    usd,
)

NO_COUNTS = [-1, -0.5, 1.5, float("nan"), float("inf"), True, False, "3", None, 2**63]
NO_MONEY = [-0.01, float("nan"), float("inf"), -float("inf"), True, "money", None, 9_000_000_001, Decimal("NaN")]


@pytest.mark.parametrize("value", NO_COUNTS, ids=repr)
def test_what_is_no_count_is_refused_with_its_name(value: Any) -> None:
    with pytest.raises(InputError, match=r"^max_steps: expected a whole number from 0"):
        count("max_steps", value)


@pytest.mark.parametrize("value", NO_MONEY, ids=repr)
def test_what_is_no_money_is_refused_with_its_name(value: Any) -> None:
    with pytest.raises(InputError, match=r"^cap: expected a finite number of dollars"):
        nusd(value, what="cap")


def test_whole_floats_are_counts_because_tables_hold_them() -> None:
    assert count("n", 3.0) == 3
    assert type(count("n", 3.0)) is int


def test_none_stays_none_and_is_not_zero() -> None:
    assert optional_count("n", None) is None
    assert optional_nusd(None) is None
    assert amounts() == (None, None, None, None, None)
    assert amounts(calls=0, cost_usd=0.0) == (0, None, None, None, 0)


def test_ten_dimes_are_a_dollar_exactly() -> None:
    assert sum(nusd(0.1) for _ in range(10)) == nusd(1.0) == NUSD_PER_USD


def test_money_rounds_half_to_even() -> None:
    half = [nusd(Decimal(n) / Decimal(2 * NUSD_PER_USD)) for n in (1, 3, 5, 7)]
    assert half == [0, 2, 2, 4]


@given(st.integers(0, 10**15))
@settings(max_examples=200, deadline=None)
def test_nano_dollars_survive_the_way_through_dollars_and_back(money: int) -> None:
    assert nusd(usd(money)) == money


def test_the_largest_amounts_are_accepted_and_one_more_is_not() -> None:
    assert nusd(9_000_000_000) == MAX_NUSD < 2**63
    assert TokenCounts(input_fresh=MAX_TOKENS, output=0).input_total == MAX_TOKENS
    with pytest.raises(InputError, match=r"^input_fresh"):
        TokenCounts(input_fresh=MAX_TOKENS + 1, output=0)


def test_token_counts_are_disjoint_and_add_up() -> None:
    tokens = TokenCounts(input_fresh=7_000, cache_read=392_000, cache_write=1_000, output=3_000, reasoning=2_000)
    assert tokens.input_total == 400_000
    assert tokens.total == 403_000
    assert tokens.newly_presented == 11_000


@pytest.mark.parametrize("name", ["input_fresh", "cache_read", "cache_write"])
def test_a_sum_with_an_unknown_part_is_unknown(name: str) -> None:
    tokens = TokenCounts(**{"input_fresh": 1, "cache_read": 2, "cache_write": 3, "output": 4} | {name: None})
    assert tokens.input_total is None
    assert tokens.total is None
    assert tokens.newly_presented is None


@pytest.mark.parametrize(("part", "whole"), [("reasoning", "output"), ("cache_write_1h", "cache_write")])
def test_a_part_cannot_be_larger_than_its_whole(part: str, whole: str) -> None:
    counts = {"input_fresh": 1, "cache_write": 5, "output": 5} | {part: 6}
    with pytest.raises(InputError, match=rf"^{part}: expected at most {whole} = 5, got 6"):
        TokenCounts(**counts)
