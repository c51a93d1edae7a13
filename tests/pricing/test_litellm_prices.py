"""Prices in the form of LiteLLM's price file."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.errors import InputError
from harness_lab.pricing import from_litellm
from harness_lab.usage import TokenCounts

LONG: dict[str, Any] = {
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_creation_input_token_cost": 3.75e-06,
    "input_cost_per_token_above_200k_tokens": 6e-06,
    "output_cost_per_token_above_200k_tokens": 2.25e-05,
    "litellm_provider": "anthropic",
}
FILE = {
    "sample_spec": {"input_cost_per_token": 0, "output_cost_per_token": 0},
    "long": LONG,
    "image": {"mode": "image"},
}


def test_a_call_costs_what_the_file_says_and_the_tier_holds_for_the_whole_call() -> None:
    table = from_litellm(FILE, source="a file", date="2026-01-01")
    assert (table.source, table.date, list(table.models)) == ("a file", "2026-01-01", ["long"])
    assert table.cost("long", TokenCounts(input_fresh=200_000, output=1000)) == 615_000_000
    assert table.cost("long", TokenCounts(input_fresh=200_001, output=1000)) == 1_222_506_000
    assert table.cost("long", TokenCounts(input_fresh=0, cache_read=1000, cache_write=100, output=0)) == 675_000


def test_a_price_that_a_tier_does_not_name_is_that_of_the_tier_before() -> None:
    first, second = from_litellm(FILE).models["long"]
    assert (first.cache_read, second.cache_read, second.above_input_tokens) == (300_000, 300_000, 200_000)


def test_a_model_without_a_price_is_absent_and_never_free() -> None:
    table = from_litellm(FILE, ["long", "image", "unheard-of"])
    assert list(table.models) == ["long"]
    assert table.cost("image", TokenCounts(input_fresh=1, output=1)) is None


@pytest.mark.parametrize("price", [-1e-06, float("nan"), float("inf"), "3e-06", True, 3])
def test_an_odd_price_is_told_in_one_line(price: object) -> None:
    with pytest.raises(InputError, match=r"^input_cost_per_token of m: expected dollars per token") as error:
        from_litellm({"m": {"input_cost_per_token": price, "output_cost_per_token": 1e-06}})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", [[], None, {"m": 3}])
def test_a_file_of_something_else_is_told(file: Any) -> None:
    with pytest.raises(InputError, match="LiteLLM prices: expected an object"):
        from_litellm(file)
