"""Public cases of prices: cache writes (A-50), tiers (A-51, A-52), a batch discount (A-53)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from harness_lab.errors import InputError
from harness_lab.pricing import CallTerms, Price, PriceTable
from harness_lab.usage import TokenCounts, nusd


def test_a50_long_lived_cache_writes_have_a_rate_of_their_own() -> None:
    terms = CallTerms(tiers=(Price.usd_per_million(input=3, output=15, cache_write=3.75, cache_write_1h=6),))
    split = TokenCounts(input_fresh=0, output=0, cache_write=100_000, cache_write_1h=80_000)
    assert terms.cost_nusd(split) == nusd(0.555)
    assert terms.cost_nusd(TokenCounts(input_fresh=0, output=0, cache_write=100_000, cache_write_1h=None)) is None


@pytest.mark.parametrize(
    ("tokens", "output", "cost"), [(200_000, 1000, 0.615), (200_001, 1000, 1.222506), (150_000, 0, 0.45)]
)
def test_a51_a_tier_reprices_the_whole_request(tokens: int, output: int, cost: float) -> None:
    tiers = (
        Price.usd_per_million(input=3, output=15),
        Price.usd_per_million(input=6, output=22.5, above_input_tokens=200_000),
    )
    assert PriceTable({"m": tiers}).cost("m", TokenCounts(input_fresh=tokens, output=output)) == nusd(cost)


def test_a52_tiers_ascend_and_a_contradiction_is_an_error_that_names_both() -> None:
    cheap, dear = (
        Price.usd_per_million(input=0.2, output=0),
        Price.usd_per_million(input=0.4, output=0, above_input_tokens=272_000),
    )
    table = PriceTable({"m": (cheap, dear)})
    sizes = {199_000: "0.0398", 200_001: "0.0400002", 271_999: "0.0543998", 272_000: "0.0544", 272_001: "0.1088004"}
    for tokens, cost in sizes.items():
        assert table.cost("m", TokenCounts(input_fresh=tokens, output=0)) == nusd(Decimal(cost))
    old = Price.usd_per_million(input=0.4, output=0, above_input_tokens=200_000)
    with pytest.raises(InputError, match="272000, 200000"):
        PriceTable({"m": (cheap, dear, old)})


def test_a53_a_batch_factor_applies_once() -> None:
    price, usage = (Price.usd_per_million(input=3, output=15),), TokenCounts(input_fresh=1_200, output=340)
    listed, batch = CallTerms(tiers=price), CallTerms(tiers=price, multiplier_ppm=500_000)
    assert (listed.cost_nusd(usage), batch.cost_nusd(usage)) == (nusd(0.0087), nusd(0.00435))
