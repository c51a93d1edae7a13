"""The worst case of a request: its figures by hand, and each reason why it can have none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.outcome import Code
from harness_lab.pricing import (
    CallTerms,
    CapPrices,
    Price,
    PricePin,
    PriceTable,
    RequestSize,
    from_genai_prices,
    measure,
)
from harness_lab.usage import TokenCounts, nusd

ENTRY = {
    "inputPerMTok": 3.0,
    "outputPerMTok": 15.0,
    "cacheWritePerMTok": 3.75,
    "cacheReadPerMTok": 0.30,
    "toolOverheadTokens": 346,
    "imageTokenBound": 1600,
}
TEXT = RequestSize(text_bytes=10_000)


def prices(**changes: Any) -> CapPrices:
    return CapPrices({"a/m": {k: v for k, v in {**ENTRY, **changes}.items() if v is not None}})


def codes(bound: Any) -> list[Code]:
    return [short.code for short in bound.shortfalls]


@pytest.mark.parametrize(
    ("size", "worst_usd"),
    [
        (TEXT, 0.0989400),
        (RequestSize(text_bytes=10_000, tools=True), 0.1002375),
        (RequestSize(text_bytes=10_000, tools=True, images=2), 0.1122375),
    ],
)
def test_every_byte_is_priced_at_the_dearest_input_rate_and_the_answer_at_its_ceiling(
    size: RequestSize, worst_usd: float
) -> None:
    bound = prices().bound("m", size, output_ceiling=4096, provider="a")
    assert bound.worst_nusd == nusd(worst_usd)
    assert bound.shortfalls == ()
    assert bound.prompt[-1] == nusd(worst_usd) - nusd(0.06144)


def test_a_tier_that_the_request_could_reach_counts_and_one_that_it_cannot_does_not() -> None:
    book = prices(tiers=[{"aboveInputTokens": 200_000, "inputPerMTok": 6.0, "outputPerMTok": 22.5}])
    below, above = (
        book.bound("m", RequestSize(text_bytes=n), output_ceiling=1000, provider="a") for n in (200_000, 200_001)
    )
    assert below.worst_nusd == nusd(0.75 + 0.015)
    assert above.worst_nusd == nusd(200_001 * 6 / 1e6 + 0.0225)


def test_the_dearest_rate_may_be_the_cache_read_of_a_lower_tier() -> None:
    book = prices(cacheReadPerMTok=9.0, tiers=[{"aboveInputTokens": 10, "inputPerMTok": 6.0, "outputPerMTok": 1.0}])
    assert book.bound("m", RequestSize(text_bytes=100), output_ceiling=0, provider="a").worst_nusd == 900_000


def test_a_multiplier_is_one_factor_on_the_whole_call_and_holds_round_up() -> None:
    book = prices(multiplier=1.1, cacheWritePerMTok=None)
    assert book.bound("m", TEXT, output_ceiling=4096, provider="a").worst_nusd == nusd(0.0914400 * 1.1)
    tiny = CapPrices({"m": {"inputPerMTok": 0.0001, "outputPerMTok": 0}})
    assert tiny.bound("m", RequestSize(text_bytes=1), output_ceiling=0).worst_nusd == 1


@pytest.mark.parametrize(
    ("size", "code"),
    [
        (RequestSize(text_bytes=1, documents=1), Code.COST_CAP_DOCUMENT_UNBOUNDED),
        (RequestSize(text_bytes=1, audio=1), Code.COST_CAP_AUDIO_UNBOUNDED),
        (RequestSize(text_bytes=1, video=1), Code.COST_CAP_VIDEO_UNBOUNDED),
        (RequestSize(text_bytes=1, unknown=1), Code.COST_CAP_MEDIA_UNKNOWN),
    ],
)
def test_what_is_no_text_and_no_picture_cannot_be_bounded(size: RequestSize, code: Code) -> None:
    bound = prices().bound("m", size, output_ceiling=10, provider="a")
    assert codes(bound) == [code]
    assert bound.worst_nusd is None


def test_each_missing_figure_has_its_own_code_and_all_are_reported() -> None:
    book = prices(toolOverheadTokens=None, imageTokenBound=None)
    size = RequestSize(text_bytes=1, tools=True, images=1)
    bound = book.bound("m", size, output_ceiling=None, provider="a", summarising_compaction=True)
    assert codes(bound) == [
        Code.COST_CAP_COMPACTION_CONFLICT,
        Code.COST_CAP_OUTPUT_CEILING_MISSING,
        Code.COST_CAP_TOOL_OVERHEAD_MISSING,
        Code.COST_CAP_IMAGE_BOUND_MISSING,
    ]


def test_figures_that_a_request_does_not_need_may_be_missing() -> None:
    book = prices(toolOverheadTokens=None, imageTokenBound=None)
    assert codes(book.bound("m", TEXT, output_ceiling=1, provider="a")) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"inputPerMTok": -1},
        {"inputPerMTok": float("nan")},
        {"inputPerMTok": "three"},
        {"outputPerMTok": None},
        {"multiplier": float("inf")},
        {"multiplier": -1},
        {"toolOverheadTokens": -5},
        {"perMTok": 3},
        {"tiers": [{"aboveInputTokens": 9, "inputPerMTok": 1}]},
        {
            "tiers": [
                {"aboveInputTokens": 9, "inputPerMTok": 1, "outputPerMTok": 1},
                {"aboveInputTokens": 9, "inputPerMTok": 1, "outputPerMTok": 1},
            ]
        },
        {"billing": "guess"},
    ],
)
def test_a_malformed_entry_refuses_the_calls_of_its_model_and_of_no_other(broken: dict[str, Any]) -> None:
    entry = {k: v for k, v in {**ENTRY, **broken}.items() if v is not None}
    book = CapPrices({"a/m": entry, "a/fine": ENTRY})
    assert codes(book.bound("m", TEXT, output_ceiling=1, provider="a")) == [Code.COST_CAP_PRICE_INVALID]
    assert codes(book.bound("fine", TEXT, output_ceiling=1, provider="a")) == []
    assert list(book.invalid) == ["a/m"]


def test_a_model_without_a_price_is_refused_and_a_free_one_is_not() -> None:
    book = CapPrices({"free": {"inputPerMTok": 0, "outputPerMTok": 0}})
    assert codes(book.bound("other", TEXT, output_ceiling=1)) == [Code.COST_CAP_PRICE_MISSING]
    assert book.bound("free", TEXT, output_ceiling=1).worst_nusd == 0


def test_bundled_prices_count_only_when_pinned_and_the_refusal_says_how() -> None:
    table = from_genai_prices(["claude-sonnet-4-5"])
    refused = CapPrices.from_table(table).bound("claude-sonnet-4-5", TEXT, output_ceiling=1)
    assert codes(refused) == [Code.COST_CAP_PRICE_UNTRUSTED]
    pin = PricePin.of(table)
    assert f"trust=PricePin(models={pin.models!r})" in refused.shortfalls[0].detail
    assert codes(CapPrices.from_table(table, trust=pin).bound("claude-sonnet-4-5", TEXT, output_ceiling=1)) == []


def test_a_pin_holds_for_the_models_whose_prices_stayed_whatever_the_day_and_whatever_else_is_known() -> None:
    def listed(date: str, **prices: int) -> PriceTable:
        models = {model: (Price.usd_per_million(input=usd, output=2 * usd),) for model, usd in prices.items()}
        return PriceTable(models, source="a list", date=date)

    pin = PricePin.of(listed("2026-01-02", m=1, dearer=2))
    later = CapPrices.from_table(listed("2027-03-04", m=1, dearer=3, new=1), trust=pin)
    assert codes(later.bound("m", TEXT, output_ceiling=1)) == []
    assert later.date == "2027-03-04"
    for model, why in [("dearer", "are no longer those that the pin names"), ("new", "are not among those")]:
        (short,) = later.bound(model, TEXT, output_ceiling=1).shortfalls
        assert short.code is Code.COST_CAP_PRICE_UNTRUSTED
        assert f"prices of a list for {model} {why}" in short.detail
        assert f"trust=PricePin(models={{{model!r}: '" in short.detail


def test_a_pin_names_some_models_of_a_table_and_only_those_it_has() -> None:
    table = PriceTable({"m": (Price.usd_per_million(input=1, output=2),)}, source="a list")
    assert PricePin.of(table, ["m"]) == PricePin.of(table)
    with pytest.raises(InputError, match=r"^models of a pin: expected some of \['m'\], got \['n'\]$"):
        PricePin.of(table, ["n"])
    with pytest.raises(InputError, match=r"^models of a pin: expected digests of prices by model"):
        PricePin(models={"m": 5})  # type: ignore[dict-item]


def test_a_table_by_hand_is_trusted() -> None:
    table = PriceTable({"m": (Price.usd_per_million(input=1, output=2),)})
    assert CapPrices.from_table(table).bound("m", TEXT, output_ceiling=0).worst_nusd == nusd(0.01)


def test_every_byte_of_prompt_history_schemas_and_results_is_counted() -> None:
    empty = measure("", []).text_bytes
    assert empty == 0
    history = [{"type": "user", "content": "héllo"}, {"type": "tool_result", "results": [{"result": "日本"}]}]
    with_all = measure("sys", history, [{"name": "t", "parameters": {"type": "object"}}])
    assert with_all.text_bytes >= 3 + 6 + 6 + len('{"name": "t", "parameters": {"type": "object"}}')
    assert with_all.tools


def test_pictures_are_taken_out_of_the_bytes_and_counted() -> None:
    part = {"type": "image", "data": "x" * 100_000}
    size = measure("", [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}])
    assert size.images == 1
    assert size.text_bytes < 200


@pytest.mark.parametrize(
    ("part", "counted"),
    [("input_audio", "audio"), ("video", "video"), ("file", "documents"), ("hologram", "unknown")],
)
def test_other_media_are_seen_in_tool_results_too(part: str, counted: str) -> None:
    inner = {"type": "tool_result", "content": [{"type": part, "url": "u"}]}
    assert getattr(measure("", [{"content": [inner]}]), counted) == 1


def test_raw_bytes_and_lone_surrogates_are_no_way_around() -> None:
    assert measure("", [{"content": "x", "blob": b"1234"}]).unknown == 1
    assert measure("\ud800", []).text_bytes == 3


def test_arguments_that_look_like_a_picture_are_text() -> None:
    call = {"tool_calls": [{"arguments": {"type": "image", "data": "y" * 5000}}]}
    assert measure("", [call]).text_bytes > 5000
    assert measure("", [call]).images == 0


@pytest.mark.parametrize(
    ("usage", "charged"),
    [
        (TokenCounts(input_fresh=1000, cache_read=2000, cache_write=4000, output=100), 0.0201),
        (None, None),
        (TokenCounts(input_fresh=None, output=5), None),
    ],
)
def test_an_answer_is_charged_by_its_tokens(usage: TokenCounts | None, charged: float | None) -> None:
    terms = CallTerms.from_config(ENTRY)
    assert terms.charge_nusd(usage, 123) == (None if charged is None else nusd(charged))


def test_a_complete_report_of_the_provider_counts_where_the_entry_says_so() -> None:
    terms = CallTerms.from_config(ENTRY, provider="openrouter")
    assert terms.billing == "reported-complete"
    assert terms.charge_nusd(TokenCounts(input_fresh=1, output=1), 77) == 77
    assert terms.charge_nusd(TokenCounts(input_fresh=1, output=1), None) is None


def test_the_tier_of_a_charge_is_that_of_the_real_prompt() -> None:
    terms = CallTerms.from_config(
        {**ENTRY, "tiers": [{"aboveInputTokens": 200_000, "inputPerMTok": 6.0, "outputPerMTok": 22.5}]}
    )
    assert terms.cost_nusd(TokenCounts(input_fresh=200_000, output=1000)) == nusd(0.615)
    assert terms.cost_nusd(TokenCounts(input_fresh=200_001, output=1000)) == nusd(1.222506)


def test_a_one_hour_write_without_its_split_is_unknown_where_the_rates_differ() -> None:
    terms = CallTerms.from_config({**ENTRY, "cacheWrite1hPerMTok": 6.0})
    split = TokenCounts(input_fresh=0, output=0, cache_write=100_000, cache_write_1h=80_000)
    assert terms.cost_nusd(split) == nusd(0.555)
    unsplit = TokenCounts(input_fresh=0, output=0, cache_write=100_000, cache_write_1h=None)
    assert terms.cost_nusd(unsplit) is None


def test_terms_need_tiers_that_ascend_from_zero() -> None:
    with pytest.raises(InputError):
        CallTerms(tiers=())


RATE = st.integers(0, 80_000_000)
TIERS = st.lists(st.tuples(st.integers(1, 5000), RATE, RATE, RATE, RATE), max_size=3, unique_by=lambda t: t[0])


@given(
    base=st.tuples(RATE, RATE, RATE, RATE),
    tiers=TIERS,
    split=st.tuples(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 3000)),
    unused=st.integers(0, 500),
    output=st.tuples(st.integers(0, 500), st.integers(0, 500)),
    ppm=st.integers(0, 3_000_000),
)
def test_no_bill_lies_above_the_bound(
    base: Any, tiers: Any, split: tuple[int, int, int], unused: int, output: tuple[int, int], ppm: int
) -> None:
    made = [Price(input=a, output=b, cache_read=c, cache_write=d, above_input_tokens=0) for a, b, c, d in [base]]
    for above, a, b, c, d in sorted(tiers):
        made.append(Price(input=a, output=b, cache_read=c, cache_write=d, above_input_tokens=above))
    terms = CallTerms(tiers=tuple(made), multiplier_ppm=ppm)
    fresh, read, write = split
    billed = terms.cost_nusd(TokenCounts(input_fresh=fresh, cache_read=read, cache_write=write, output=min(output)))
    assert billed is not None
    assert billed <= terms.worst_nusd(sum(split) + unused, max(output))


def test_a_model_without_a_trusted_price_is_refused_with_how_to_trust_one() -> None:
    (short,) = (
        CapPrices({"m": {"inputPerMTok": 1.0, "outputPerMTok": 2.0}}).bound("n", TEXT, output_ceiling=1).shortfalls
    )
    assert short.code == "cost-cap-price-missing"
    assert short.detail.startswith("no price for 'n' among those that are trusted (by hand). Name its price")
    assert "CapPrices.from_table(table, trust=PricePin.of(table))" in short.detail


@pytest.mark.parametrize("models", [5, {"m": 5}, {5: ()}, {"m": (3,)}, {"m": ()}, [("m", ())]])
def test_what_is_no_price_table_is_one_line(models: Any) -> None:
    with pytest.raises(InputError, match=r"^(models of the price table|tiers of m): expected "):
        PriceTable(models)


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_price_names_what_goes_in_and_what_comes_out(kind: str) -> None:
    with pytest.raises(InputError, match=f"^{kind}: expected a whole number"):
        Price(**{"input": 1, "output": 1, kind: None})  # type: ignore[arg-type]
