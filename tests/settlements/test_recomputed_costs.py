"""Recorded cost beside the cost at list prices: per call, at the price of its date, never of a sum."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import Settlements, read, recompute
from harness_lab.settlements.model_usage import packed
from harness_lab.usage import TokenCounts

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
TIERED = PriceTable(
    {
        "m": (
            Price.usd_per_million(input=1, output=10, cache_read=0.1, cache_write=1.25, cache_write_1h=2),
            Price.usd_per_million(input=2, output=15, cache_read=0.2, above_input_tokens=1_000),
        )
    }
)


def ns(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 10**9


def one(calls: list[dict], **node: object) -> Settlements:
    names = {name for call in calls for name in call}
    columns = {name: [call.get(name) for call in calls] for name in names}
    return Settlements.from_columns(
        {"run": ["r"], "node": "0", **node}, {"run": ["r"] * len(calls), "node": "0", **columns} if calls else None
    )


def call(fresh: int, output: int = 0, **other: object) -> dict:
    return {"model": "m", "input_fresh": fresh, "cache_read": 0, "cache_write": 0, "output": output, **other}


def test_each_call_is_priced_at_the_tier_of_its_own_prompt() -> None:
    found = recompute(one([call(1_000), call(1_001)]), TIERED)
    assert found.rows["recomputed_nusd"].tolist() == [1_000_000, 2_002_000]
    assert found.nodes["recomputed_nusd"].tolist() == [3_002_000]


def test_a_node_without_calls_is_priced_on_its_totals_at_the_first_tier_and_says_so() -> None:
    found = recompute(one([], model="m", input_fresh=2_001, cache_read=0, cache_write=0, output=0), TIERED)
    assert found.rows["basis"].tolist() == ["node totals, first tier"]
    assert found.rows["recomputed_nusd"].tolist() == [2_001_000]
    assert not found.to_frame()["exact"].any()
    assert "a lower bound" in found.summary()


def test_a_price_is_the_one_of_the_calls_own_day() -> None:
    calls = [call(10**6, start_ns=ns(2025, 6, day)) | {"model": "o3"} for day in (9, 11)]
    found = recompute(one(calls))
    assert found.rows["recomputed_nusd"].tolist() == [10 * 10**9, 2 * 10**9]
    assert found.rows["price_date"].tolist() == ["2025-06-09", "2025-06-11"]


def test_what_has_no_price_is_unknown_and_named_with_its_reason() -> None:
    calls = [call(5), call(5) | {"model": "zz-unheard-of"}, call(5) | {"model": None}, call(5) | {"output": None}]
    found = recompute(one(calls), TIERED)
    assert found.rows["recomputed_nusd"].tolist() == [5_000, pd.NA, pd.NA, pd.NA]
    assert found.unpriced_models == ("zz-unheard-of",)
    assert found.nodes["recomputed_nusd"].isna().all()
    assert "not priced: 1 x zz-unheard-of, no price for this model" in found.summary()


def test_a_cache_write_of_unknown_lifetime_takes_the_default_and_is_counted() -> None:
    unknown = call(0) | {"cache_write": 100}
    found = recompute(one([unknown, unknown | {"cache_write_1h": 40}]), TIERED)
    assert found.rows["recomputed_nusd"].tolist() == [100 * 1_250, 60 * 1_250 + 40 * 2_000]
    assert found.assumed == 1
    assert "1 row(s) do not say how long cache writes live: priced as five minutes" in found.summary()


def test_one_figure_for_several_models_is_not_priced_as_one_of_them() -> None:
    models = "claude-opus-4-5 + claude-sonnet-4-5"
    found = recompute(one([], served_model=models, input_fresh=5, cache_read=0, cache_write=0, output=5))
    assert found.rows["reason"].tolist() == ["several models in one figure"]


def test_a_call_without_tokens_costs_nothing_whatever_its_model() -> None:
    assert recompute(one([call(0) | {"model": "<synthetic>"}])).rows["recomputed_nusd"].tolist() == [0]


def test_the_ratio_is_recorded_over_recomputed_on_the_rows_where_both_are_known() -> None:
    found = recompute(one([call(1_000, cost_nusd=1_100_000), call(1_000)]), TIERED)
    assert found.ratio == pytest.approx(1.1)
    (line,) = found.to_frame().to_dict("records")
    assert (line["rows"], line["priced"], line["compared"], line["level"]) == (2, 2, 1, "call")


def test_where_only_the_node_has_a_cost_the_sum_of_its_calls_is_held_against_it() -> None:
    found = recompute(one([call(500), call(500)], cost_nusd=1_000_000, model="m"), TIERED)
    assert found.ratio == 1.0
    assert found.to_frame()["level"].tolist() == ["node"]


def test_filling_leaves_recorded_costs_alone_and_marks_the_new_ones() -> None:
    given_ = one([call(1_000, cost_nusd=7, cost_source="recorded"), call(1_000)])
    filled = recompute(given_, TIERED).fill()
    assert filled.calls["cost_nusd"].tolist() == [7, 1_000_000]
    assert filled.calls["cost_source"].tolist() == ["recorded", "computed"]
    assert filled.nodes["cost_nusd"].tolist() == [2_000_000]


def test_a_call_without_a_time_is_counted_as_priced_at_todays_prices() -> None:
    found = recompute(one([call(10) | {"model": "claude-sonnet-4-5"}]))
    assert found.undated == 1
    assert "have no time and are priced at today's prices" in found.summary()


def test_names_with_a_gateway_a_region_or_a_context_window_find_their_price() -> None:
    names = ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929[1m]", "openai/gpt-5"]
    found = recompute(one([call(1_000, start_ns=ns(2025, 11, 1)) | {"model": name} for name in names]))
    assert found.unpriced_models == ()


def test_an_empty_table_has_nothing_to_price() -> None:
    found = recompute(Settlements.from_columns({}))
    assert (found.ratio, len(found.to_frame())) == (None, 0)
    assert found.summary().startswith("0 of 0")


def test_prices_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match=r"^prices: expected a PriceTable or None, got 'dict'"):
        recompute(one([call(1)]), {})  # type: ignore[arg-type]


COUNTS = st.integers(0, 5_000)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), min_size=1, max_size=20))
def test_arrays_price_as_the_price_table_does(counts) -> None:
    rows = [call(a, d) | {"cache_read": b, "cache_write": c, "cache_write_1h": c // 2} for a, b, c, d in counts]
    wanted = [
        TIERED.cost("m", TokenCounts(input_fresh=a, cache_read=b, cache_write=c, cache_write_1h=c // 2, output=d))
        for a, b, c, d in counts
    ]
    assert recompute(one(rows), TIERED).rows["recomputed_nusd"].tolist() == wanted


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sets are not on this computer")
def test_recorded_calls_of_a_tiered_model_cost_to_the_nano_dollar_what_was_recorded() -> None:
    calls = pd.read_csv(DATA / "mini-swe-agent-traj" / "calls.csv").dropna(subset=["cost"])
    table = Settlements.from_columns(
        {"run": calls["instance_id"].unique(), "node": "0"},
        {
            "run": calls["instance_id"],
            "node": "0",
            "model": "google/gemini-3-pro-preview",
            "input_fresh": calls["prompt_tokens"] - calls["cached_tokens"],
            "cache_read": calls["cached_tokens"],
            "cache_write": 0,
            "output": calls["completion_tokens"],
            "cost_nusd": (calls["cost"] * 1e9).round().astype("Int64"),
            "start_ns": (calls["created"] * 10**9).astype("Int64"),
        },
    )
    found = recompute(table)
    assert len(found.rows) == 8_983
    assert (found.rows["recorded_nusd"] == found.rows["recomputed_nusd"]).all()


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sets are not on this computer")
def test_recorded_sessions_of_pi_cost_what_was_recorded() -> None:
    found = recompute(read(DATA / "pi-session", ids="kept"))
    (line,) = found.to_frame().query("compared > 0").to_dict("records")
    assert (line["compared"], line["level"]) == (439, "call")
    assert line["ratio"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sets are not on this computer")
def test_recorded_totals_of_headless_runs_cost_what_was_recorded_but_for_a_regional_surcharge() -> None:
    found = recompute(read(DATA / "claude-code-result-json" / "runs", ids="kept"))
    assert found.nodes["recomputed_nusd"].notna().sum() == 93
    frame = found.to_frame().set_index("model")
    assert frame.loc[frame.index.str.startswith("global.", na=False), "ratio"].tolist() == pytest.approx(
        [1.0], abs=1e-6
    )
    assert frame.loc[frame.index.str.startswith("us.", na=False), "ratio"].tolist() == pytest.approx(
        [1 / 1.1], abs=1e-3
    )


def test_a_node_of_several_models_is_priced_model_by_model() -> None:
    used = packed(
        {
            "big": {"input_fresh": 100, "cache_read": 0, "cache_write": 0, "output": 10, "cost_nusd": 9},
            "small": {"input_fresh": 50, "cache_read": 0, "cache_write": 0, "output": 5},
        }
    )
    node = {"run": ["r"], "node": "0", "served_model": "big + small", "model_usage": used, "cost_nusd": 1_000_000}
    prices = {name: (Price.usd_per_million(input=usd, output=usd),) for name, usd in (("big", 4.0), ("small", 1.0))}
    found = recompute(Settlements.from_columns(node), PriceTable(prices))
    assert found.rows[["model", "recorded_nusd", "recomputed_nusd"]].to_numpy(na_value=-1).tolist() == [
        ["big", 9, 440_000],
        ["small", -1, 55_000],
    ]
    assert found.nodes["recomputed_nusd"].tolist() == [495_000]


def test_runs_under_several_policies_are_priced_one_policy_at_a_time() -> None:
    with pytest.raises(InputError, match=r"^settlements: expected each run once.*where\(policy="):
        recompute(Settlements.from_columns({"run": ["r", "r"], "node": "0", "policy": ["a", "b"]}))
