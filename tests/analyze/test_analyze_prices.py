"""Prices: repricing by hand, flat prices and period budgets against a truth that is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import break_even_runs, flat_price, period_budget, reprice
from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import Settlements
from harness_lab.usage import TokenCounts

TABLE = PriceTable({
    "m": (
        Price.usd_per_million(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_1h=6),
        Price.usd_per_million(input=6, output=30, cache_read=0.6, cache_write=7.5, above_input_tokens=1000),
    ),
    "cheap": (Price.usd_per_million(input=1, output=5),),
})  # fmt: skip


def tokens(n: int = 12) -> dict[str, object]:
    return {
        "run": [f"r{k}" for k in range(n)], "node": "0", "model": "m", "outcome": "completed", "input_fresh": 100,
        "cache_read": 600, "cache_write": 200, "cache_write_1h": 50, "input_total": 900, "output": 40,
        "cost_nusd": 1_000_000,
    }  # fmt: skip


def test_a_run_is_repriced_as_the_price_table_prices_a_call() -> None:
    counts = TokenCounts(input_fresh=100, cache_read=600, cache_write=200, cache_write_1h=50, output=40)
    found = reprice(pd.DataFrame(tokens()), TABLE)
    assert found.runs["repriced_usd"].tolist() == pytest.approx([TABLE.cost("m", counts) * 1e-9] * 12)
    assert found.change.value == pytest.approx(TABLE.cost("m", counts) * 1e-9 - 0.001)


def test_tiers_go_by_the_prompt_of_each_call_and_not_by_the_runs_total() -> None:
    calls = pd.DataFrame({
        "run": "r0", "node": "0", "call": range(3), "attempt": 0, "model": "m", "input_total": [900, 900, 1500],
        "input_fresh": [900, 900, 1500], "cache_read": 0, "cache_write": 0, "output": 0,
    })  # fmt: skip
    data = Settlements.from_columns(
        tokens(1) | {"input_fresh": 3300, "cache_read": 0, "cache_write": 0, "cache_write_1h": 0, "input_total": 3300},
        calls,
    )
    found = reprice(data, TABLE)
    assert found.runs["repriced_usd"].tolist() == pytest.approx([(1800 * 3 + 1500 * 6) * 1e-6])
    assert not any("tiers" in note for note in found.notes)
    assert any("tiers by prompt size could not be applied" in note for note in reprice(data.nodes, TABLE).notes)


def test_another_model_is_labelled_price_effect_only() -> None:
    found = reprice(pd.DataFrame(tokens()), TABLE, models={"m": "cheap"})
    assert found.runs["repriced_usd"].iloc[0] == pytest.approx(900e-6 + 40 * 5e-6)
    assert "Note: price effect only" in found.summary()


def test_batch_and_cache_hits_change_what_they_say() -> None:
    plain, batch = reprice(pd.DataFrame(tokens()), TABLE), reprice(pd.DataFrame(tokens()), TABLE, batch_share=0.5)
    assert batch.repriced.value == pytest.approx(0.75 * plain.repriced.value)
    cached = reprice(pd.DataFrame(tokens()), TABLE, models="cheap", cache_hit=1.0).runs["repriced_usd"].iloc[0]
    assert cached == pytest.approx(900e-6 + 200e-6)  # this model has no price of its own for cached tokens
    none = reprice(pd.DataFrame(tokens()), TABLE, cache_hit=0.0)
    assert set(none.shares["kind"]) == {"input_fresh", "cache_write", "cache_write_1h", "output"}


def test_the_shares_sum_to_one_and_answer_to_a_single_price() -> None:
    found = reprice(pd.DataFrame(tokens()), TABLE)
    assert found.shares["share"].sum() == pytest.approx(1)
    tiers = tuple(
        Price(**{**{f: getattr(t, f) for f in t.__slots__}, "output": round(t.output * 1.1)}) for t in TABLE.models["m"]
    )
    dearer = reprice(pd.DataFrame(tokens()), PriceTable({"m": tiers}))
    share = found.shares.set_index("kind").loc["output", "share"]
    assert dearer.repriced.value / found.repriced.value - 1 == pytest.approx(0.1 * share)


def test_what_has_no_price_or_no_tokens_is_left_out_and_counted() -> None:
    frame = pd.DataFrame(tokens(14))
    frame["model"] = ["m"] * 12 + ["other"] * 2
    found = reprice(frame, TABLE)
    assert any(note.startswith("2 of 14 run(s) left out") for note in found.notes)
    with pytest.raises(InputError, match=r"^settlements"):
        reprice(frame.assign(model="other"), TABLE)
    with pytest.raises(InputError, match=r"^cache_hit"):
        reprice(frame, TABLE, cache_hit=2)


def users(seed: int, count: int, each: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(count), each)
    usd = np.exp(rng.normal(0, 0.5, count)[user] + rng.normal(0, 0.7, user.size))
    frame = {"run": range(user.size), "outcome": "completed", "cost_nusd": (usd * 1e9).astype(np.int64)}
    return pd.DataFrame(frame | {"user": [f"u{u}" for u in user]})


MEAN = float(np.exp(0.5 * (0.25 + 0.49)))


def test_the_price_keeps_its_margin_as_often_as_promised() -> None:
    kept = sum(flat_price(users(s, 60), margin=0.2).price_usd * 0.8 >= MEAN for s in range(100))
    assert binomtest(kept, 100, 0.95, alternative="less").pvalue > 0.01


def months(repeats: int) -> tuple[int, int]:
    """Count how often the intervals of a month's loss hold the truth, which a large sample gives."""
    usd = users(10**6, 200_000)["cost_nusd"].to_numpy().reshape(-1, 25 * 8).sum(axis=1) * 1e-9
    loss = usd - 1.55 * 200
    truth = float((loss > 0).mean()), max(float(np.quantile(loss, 0.95)), 0.0)
    found = [flat_price(users(s, 80), price_usd=1.55, month_runs=200) for s in range(repeats)]
    return sum(bool(one.loss_month.holds(truth[0])) for one in found), sum(
        bool(one.month_loss.holds(truth[1])) for one in found
    )


@pytest.mark.parametrize("repeats", [80, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_risk_of_a_month_covers_when_users_resemble_themselves(repeats: int) -> None:
    for held in months(repeats):
        assert binomtest(held, repeats, 0.95, alternative="less").pvalue > 0.01


def test_taking_users_for_independent_understates_the_risk_of_a_month() -> None:
    data = users(1, 400)
    alone, together = (flat_price(data, price_usd=1.6, month_runs=200, cluster=c) for c in (None, "auto"))
    assert together.loss_month.value > 1.3 * alone.loss_month.value


def test_a_price_is_declined_without_enough_runs_or_clusters() -> None:
    assert flat_price(users(0, 2, each=5)).price_usd is None
    few = flat_price(users(0, 20))
    assert few.loss_month.needs_n == 40
    assert "needs clusters >= 40" in few.summary()
    assert "no price" in flat_price(users(0, 3, each=3)).summary()


def test_a_chance_of_loss_is_never_bounded_below_what_could_be_seen() -> None:
    assert flat_price(users(0, 100), price_usd=50.0).loss_month.high == 1e-3


def test_break_even_is_the_fee_over_the_mean() -> None:
    found = break_even_runs(users(0, 100), fee_usd=200)
    mean = users(0, 100)["cost_nusd"].mean() * 1e-9
    assert found.value == pytest.approx(200 / mean)
    assert found.low < 200 / MEAN < found.high


def test_a_period_budget_by_hand() -> None:
    data = pd.DataFrame({"run": range(40), "outcome": "completed", "cost_nusd": 10**9})
    short, enough = (period_budget(data, budget_usd=b, period_runs=10, periods=20, samples=10) for b in (6.0, 10.0))
    assert (short.exceeded.value, short.blocked.value, short.gone_at[0.5]) == (1.0, 0.4, 0.6)
    assert (enough.exceeded.value, enough.blocked.value, enough.gone_at) == (0.0, 0.0, {})


def test_the_chance_to_exceed_a_period_budget_covers() -> None:
    rng = np.random.default_rng(5)
    totals = np.exp(rng.normal(0, 0.8, (50_000, 30))).sum(axis=1)
    truth = float((totals > 45).mean())
    held = 0
    for seed in range(60):
        usd = np.exp(np.random.default_rng(seed).normal(0, 0.8, 150))
        data = pd.DataFrame({"run": range(150), "outcome": "completed", "cost_nusd": (usd * 1e9).astype(np.int64)})
        held += bool(period_budget(data, budget_usd=45, period_runs=30, periods=100, samples=60).exceeded.holds(truth))
    assert binomtest(held, 60, 0.95, alternative="less").pvalue > 0.01


def test_who_is_blocked_is_told_by_group() -> None:
    found = period_budget(users(0, 40), budget_usd=60, period_runs=50, by="user", periods=20, samples=10)
    assert found.groups["share_of_blocked"].sum() == pytest.approx(1)
    assert "of those blocked" in found.summary().replace("\n", " ")


def test_every_result_has_its_words_and_its_table() -> None:
    data = users(0, 60)
    period = period_budget(data, budget_usd=60, period_runs=50, periods=10, samples=5)
    for found in (flat_price(data, by="user"), period, reprice(pd.DataFrame(tokens()), TABLE, by="model")):
        assert "Next:" in found.explain()
        assert len(found.to_frame())
        assert found.summary()
    assert reprice(pd.DataFrame(tokens()), TABLE).plot().get_xlabel() == "share of spend"
