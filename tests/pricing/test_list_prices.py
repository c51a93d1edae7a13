"""List prices: what the installed price data say, tier by tier, and nothing is fetched."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from genai_prices import Usage, calc_price

from harness_lab.pricing import from_genai_prices
from harness_lab.usage import TokenCounts, nusd

AT = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize("prompt", [1, 200_000, 200_001, 900_000])
@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gpt-4o-mini", "claude-sonnet-4-5"])
def test_a_call_costs_what_the_price_data_themselves_say(model: str, prompt: int) -> None:
    usage = Usage(input_tokens=prompt, cache_read_tokens=prompt // 3, output_tokens=777)
    theirs = nusd(calc_price(usage, model, genai_request_timestamp=AT).total_price)
    tokens = TokenCounts(input_fresh=prompt - prompt // 3, cache_read=prompt // 3, output=777)
    assert from_genai_prices([model], at=AT).cost(model, tokens) == theirs


def test_a_prefix_names_the_provider_and_a_model_without_a_price_is_absent() -> None:
    table = from_genai_prices(["google/gemini-2.5-pro", "nobody/knows-this-one"], at=AT)
    assert set(table.models) == {"google/gemini-2.5-pro"}
    assert table.cost("nobody/knows-this-one", TokenCounts(input_fresh=1, output=1)) is None


def test_a_table_says_where_its_prices_come_from_and_of_which_day() -> None:
    table = from_genai_prices(["gpt-4o-mini"], at=datetime(2026, 6, 1))  # naive times are UTC
    assert table.source.startswith("genai-prices ")
    assert table.date == "2026-06-01"
