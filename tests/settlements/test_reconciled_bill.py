"""A provider's own figures against the records, by day and model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import BILLS, Settlements, reconcile
from harness_lab.settlements.readers.flat import check_map


def at(day: int, hour: int = 12) -> int:
    return int(datetime(2026, 1, day, hour, tzinfo=UTC).timestamp()) * 10**9


def records(*rows: tuple[int | None, str, float | None], calls: bool = False) -> Settlements:
    columns: dict[str, Any] = {
        "run": [f"r{n}" for n in range(len(rows))],
        "node": "0",
        "start_ns": [row[0] for row in rows],
        "model": [row[1] for row in rows],
        "cost_nusd": [None if row[2] is None else round(row[2] * 1e9) for row in rows],
    }
    return Settlements.from_columns(columns, columns if calls else None)


def test_what_was_billed_beyond_the_records_is_missing_by_day_and_model() -> None:
    mine = records((at(1), "m", 1.0), (at(1), "m", 0.5), (at(2), "m", 2.0), (at(2), "n", 1.0))
    bill = records((at(1), "m", 2.0), (at(2), "m", 2.0), (at(2), "n", 0.75), (at(3), "m", 1.0))
    found = reconcile(mine, bill)
    missing = found.table.set_index(["day", "model"])["missing_nusd"] / 1e9
    assert missing.to_dict() == {
        ("2026-01-01", "m"): 0.5, ("2026-01-02", "m"): 0.0, ("2026-01-02", "n"): 0.0, ("2026-01-03", "m"): 1.0,
    }  # fmt: skip
    assert (found.billed_usd, found.missing_usd, found.days, found.days_missing) == (5.75, 1.5, 4, 2)
    assert found.covered == pytest.approx(1 - 1.5 / 5.75)


def test_too_much_on_one_day_pays_for_no_other() -> None:
    found = reconcile(records((at(1), "m", 9.0)), records((at(1), "m", 1.0), (at(2), "m", 1.0)))
    assert found.missing_usd == 1.0


def test_calls_stand_on_their_own_day_and_model() -> None:
    nodes = {"run": ["r"], "node": "0", "start_ns": at(1), "model": "m", "cost_nusd": 3 * 10**9}
    calls = {
        "run": ["r"] * 2,
        "node": "0",
        "start_ns": [at(1, 23), at(2, 1)],
        "served_model": ["m", "n"],
        "cost_nusd": 10**9,
    }
    bill = records((at(1), "m", 1.0), (at(2), "n", 1.0))
    assert reconcile(Settlements.from_columns(nodes, calls), bill).missing_usd == 0.0


def test_records_outside_the_bill_or_without_a_day_are_compared_with_none() -> None:
    mine = records((at(1), "m", 1.0), (at(20), "m", 5.0), (None, "m", 5.0))
    found = reconcile(mine, records((at(1), "m", 1.0), (at(2), "m", 1.0)))
    assert found.undated == 1
    assert found.table["day"].tolist() == ["2026-01-01", "2026-01-02"]
    assert "1 record(s) have no start" in found.summary()


def test_records_without_a_cost_are_counted_not_taken_as_free() -> None:
    found = reconcile(records((at(1), "m", None)), records((at(1), "m", 1.0)))
    assert found.table["rows_without_cost"].tolist() == [1]
    assert found.table["recorded_nusd"].isna().all()
    assert "recompute(settlements).fill() first" in found.summary()


def test_names_on_the_bill_can_be_told_to_be_names_of_the_records() -> None:
    found = reconcile(
        records((at(1), "claude-x", 1.0)), records((at(1), "Claude X", 1.0)), models={"Claude X": "claude-x"}
    )
    assert found.covered == 1.0


def test_an_export_is_read_through_a_column_map(tmp_path) -> None:
    (tmp_path / "bill.csv").write_text(
        "Day,SKU,Amount,Tokens in,Tokens out\n2026-01-01,m,2.50,100,20\n2026-01-02,m,1,1,1\n"
    )
    columns = {"start": "Day", "model": "SKU", "cost_usd": "Amount", "input_total": "Tokens in", "output": "Tokens out"}
    found = reconcile(records((at(1), "m", 2.0)), tmp_path / "bill.csv", columns=columns)
    assert (found.billed_usd, found.missing_usd) == (3.5, 1.5)
    assert found.table["billed_tokens"].tolist() == [120, 2]
    assert found.tokens_covered == 0.0
    assert found.by_model()["missing_usd"].tolist() == [1.5]


def test_tokens_are_compared_where_the_bill_counts_tokens_only(tmp_path) -> None:
    rows = (
        "start_time,model,input_tokens,input_cached_tokens,output_tokens,num_model_requests\n1767268800,m,100,40,20,2\n"
    )
    (tmp_path / "usage.csv").write_text(rows)
    mine = Settlements.from_columns(
        {"run": ["r"], "node": "0", "start_ns": at(1), "model": "m", "input_total": 50, "output": 10}
    )
    found = reconcile(mine, tmp_path / "usage.csv", columns="openai-usage")
    assert (found.covered, found.tokens_covered) == (None, 0.5)
    assert "of the billed tokens the records cover 50.0%" in found.summary()


def test_cache_writes_of_both_lifetimes_are_on_the_bill(tmp_path) -> None:
    names = "usage_input_tokens_no_cache,usage_input_tokens_cache_read,usage_output_tokens"
    names += ",usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h"
    (tmp_path / "usage.csv").write_text(f"usage_date_utc,model_version,{names}\n2026-01-01,m,10,200,5,30,7\n")
    found = reconcile(records((at(1), "m", 2.0)), tmp_path / "usage.csv", columns="anthropic-usage")
    assert found.table["billed_tokens"].tolist() == [252]


def test_every_named_export_maps_fields_of_the_table() -> None:
    for columns in BILLS.values():
        check_map(columns)
        assert {"start", "model"} <= set(columns)


def test_an_export_that_does_not_fit_is_refused(tmp_path) -> None:
    mine = records((at(1), "m", 1.0))
    with pytest.raises(InputError, match=r"^columns: expected a column map or one of anthropic-costs"):
        reconcile(mine, tmp_path / "x.csv", columns="aws")
    (tmp_path / "bill.csv").write_text("day,model\n2026-01-01,m\n")
    with pytest.raises(InputError, match=r"expected columns that exist \(day, model\), got 'cost_usd'"):
        reconcile(mine, tmp_path / "bill.csv", columns="day-model-cost")
    with pytest.raises(ReadError):
        reconcile(mine, tmp_path / "none.csv", columns="day-model-cost")
    with pytest.raises(InputError, match=r"^bill: expected a start"):
        reconcile(mine, records((None, "m", 1.0)))


def test_an_empty_bill_has_nothing_to_compare() -> None:
    found = reconcile(records((at(1), "m", 1.0)), Settlements.from_columns({}))
    assert (found.covered, found.span) == (None, None)
    assert found.summary() == "the bill has no rows: nothing to compare"
    assert isinstance(found.to_frame(), pd.DataFrame)
    assert found.explain()
    assert found._repr_html_()
