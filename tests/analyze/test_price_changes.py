"""Prices of several dates: what becomes of a ceiling, a flat price and a budget that were set before."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from matplotlib.figure import Figure

from harness_lab.analyze import period_budget, price_changes
from harness_lab.analyze.period_budget import budget_of_costs
from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import Settlements


def table(day: str | None, *, factor: float = 1.0, output: float = 10.0) -> PriceTable:
    return PriceTable({"m": (Price.usd_per_million(input=factor, output=output * factor),)}, date=day)


def runs(n: int = 200) -> pd.DataFrame:
    """Make runs that cost about a dollar at input 1 and output 10 dollars a million, half of it for output."""
    tokens = np.random.default_rng(0).lognormal(13, 0.4, n).astype(np.int64)
    return pd.DataFrame({
        "run": [f"r{k}" for k in range(n)], "node": "0", "agent": np.where(np.arange(n) % 2, "a", "b"), "model": "m",
        "outcome": "completed", "input_total": tokens, "input_fresh": tokens, "cache_read": 0, "cache_write": 0,
        "output": tokens // 10, "cost_nusd": tokens * 2000,
    })  # fmt: skip


@pytest.fixture(scope="module")
def doubled():
    tables = [table("2026-01-01"), table("2026-03-01", factor=2)]
    return price_changes(runs(), tables, target=0.8, margin=0.2, budget_usd=110, period_runs=100, fee_usd=50)


def test_prices_that_double_double_what_a_run_costs_and_what_it_needs(doubled) -> None:
    first, second = doubled.dates
    assert second.cost.value == pytest.approx(2 * first.cost.value, rel=1e-6)
    assert second.change.value == pytest.approx(first.cost.value, rel=1e-6)
    assert second.ceiling.high == pytest.approx(2 * first.ceiling.high, rel=1e-6)
    assert second.flat_price_usd == pytest.approx(2 * first.flat_price_usd, rel=1e-6)
    assert first.break_even_runs.value == pytest.approx(2 * second.break_even_runs.value, rel=1e-6)


def test_what_was_set_before_the_change_no_longer_holds(doubled) -> None:
    first, second = doubled.dates
    assert first.within.value >= 0.8 > second.within.value
    assert first.margin.value > 0.2
    assert second.margin.value < 0 < second.loss_month.value
    assert second.exceeded.value > 0.99 > first.exceeded.value
    assert "2026-03-01" in doubled.summary()


def test_the_break_even_says_how_far_prices_may_rise(doubled) -> None:
    first, second = doubled.dates
    assert doubled.price_usd / first.cost.value - 1 == pytest.approx(first.may_rise.value)
    assert first.may_rise.low < first.may_rise.value < first.may_rise.high
    assert second.may_rise.value < 0  # passed
    alone = doubled.may_rise_alone()
    assert alone["share"].sum() == pytest.approx(1.0)


def test_a_single_price_may_rise_further_than_all_of_them() -> None:
    found = price_changes(runs(), [table("2026-01-01"), table("2026-02-01", output=10.1)], margin=0.3, target=0.8)
    alone = found.may_rise_alone()
    assert (alone["may_rise"] > found.dates[-1].may_rise.value).all()
    last = found.dates[-1].cost.value
    output = alone[alone["kind"] == "output"].iloc[0]
    assert last * (1 + output["share"] * output["may_rise"]) == pytest.approx(found.price_usd)


def test_a_period_in_which_prices_change_lies_between_the_two() -> None:
    tables = [table("2026-01-01"), table("2026-01-16", factor=2)]
    asked = {"target": 0.8, "period_runs": 40, "budget_usd": 60.0}
    found = price_changes(runs(), tables, period=("2026-01-01", "2026-01-30"), **asked)
    before, after = (one.exceeded.value for one in found.dates)
    assert before < found.over_period.value < after
    later = price_changes(runs(), tables, period=("2026-02-01", "2026-02-28"), **asked)
    assert later.over_period.value == after


def test_prices_that_change_half_way_are_paid_half_way() -> None:
    cost = np.asarray([np.ones(40), 3 * np.ones(40)])
    half = np.asarray([0.0, 0.5])
    enough, short = (
        budget_of_costs(cost, half, None, budget_usd=usd, period_runs=10, confidence=0.95) for usd in (20.0, 19.9)
    )
    assert (enough.exceeded.value, short.exceeded.value) == (0.0, 1.0)  # 5 x $1 + 5 x $3
    assert short.at.min() == short.at.max() == 0.9


def test_one_price_for_the_period_is_the_period_budget() -> None:
    nodes = runs()
    whole = period_budget(nodes, budget_usd=110, period_runs=100, cluster=None)
    again = budget_of_costs(
        nodes["cost_nusd"].to_numpy(float)[None] * 1e-9, np.zeros(1), None, budget_usd=110, period_runs=100,
        confidence=0.95,
    )  # fmt: skip
    assert again.exceeded == whole.exceeded


def test_groups_are_asked_apart() -> None:
    found = price_changes(runs(), [table("2026-01-01"), table("2026-02-01", factor=3)], target=0.5, by="agent")
    assert set(found.to_frame()["group"]) == {"a", "b"}
    assert "b:\n" in found.summary()


@pytest.mark.parametrize("days", [("2026-01-01", None), ("2026-02-01", "2026-01-01"), ("2026-01-01",)])
def test_tables_without_dates_in_order_are_refused(days) -> None:
    with pytest.raises(InputError, match=r"^tables: expected"):
        price_changes(runs(), [table(day) for day in days])


def test_a_period_before_the_first_prices_is_refused() -> None:
    with pytest.raises(InputError, match=r"^period: expected first and last day, from 2026-01-01 on"):
        price_changes(
            runs(), [table("2026-01-01"), table("2026-02-01")], period=("2025-12-01", "2026-01-30"), budget_usd=1.0,
            period_runs=10,
        )  # fmt: skip


def test_the_picture_has_the_price_that_stays(doubled) -> None:
    ax = doubled.plot(Figure().subplots())
    assert ax.get_ylabel() == r"dollars a run, \$"
    assert any("flat price" in str(line.get_label()) for line in ax.lines)


def test_one_command_prices_records_by_several_tables(tmp_path, capsys) -> None:
    Settlements.from_columns(runs()).to_parquet(tmp_path / "runs.parquet")
    files = []
    for day, factor in (("2026-01-01", 1.0), ("2026-02-01", 2.0)):
        files += ["--table", tmp_path / f"{day}.json"]
        files[-1].write_text(json.dumps(table(day, factor=factor).to_dict()))
    assert run("price-changes", tmp_path / "runs.parquet", *files, "--target", "0.8", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert {row["day"] for row in answer["figures"]} == {"2026-01-01", "2026-02-01"}
    assert {row["kind"] for row in answer["may_rise_alone"]} == {"input_fresh", "output"}
