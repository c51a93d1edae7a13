"""The quality report: what is odd in a table, how much of it, and what it does to which analysis."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.cli.output import plain
from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import ReadReport, SetAside, Settlements, quality, recompute, reconcile
from harness_lab.settlements._shape import LEAST, _shift, piles, shifts

DAY = 86_400 * 10**9
START = 1_767_225_600 * 10**9


def table(rows: int = 4, **columns: Any) -> Settlements:
    base = {
        "run": [f"r{n}" for n in range(rows)], "node": "0", "outcome": "completed", "input_fresh": 90, "cache_read": 0,
        "cache_write": 0, "output": 10, "cost_nusd": 1_000, "delivered": True, "start_ns": START, "context": "c",
        "context_inferred": False,
    }  # fmt: skip
    return Settlements.from_columns({**base, **columns})


def codes(settlements: Settlements, **more: Any) -> dict[str, int]:
    return {found.code: found.rows for found in quality(settlements, **more).findings}


def test_a_table_without_flaws_has_no_findings() -> None:
    report = quality(table())
    assert report.findings == ()
    assert "nothing odd was found" in report.summary()


@pytest.mark.parametrize(
    ("code", "columns"),
    [
        ("unknown-usage", {"input_fresh": [None, 90, 90, 90]}),
        ("unknown-usage", {"usage_known": [False, True, True, True]}),
        ("unknown-cost", {"cost_nusd": [None, 1, 1, 1]}),
        ("unknown-outcome", {"outcome": ["unknown", "completed", "failed", "completed"]}),
        ("unknown-delivery", {"delivered": [None, True, True, False]}),
        ("unknown-start", {"start_ns": [None, START, START, START]}),
        ("absurd-cost", {"cost_nusd": [100_000_001, 1, 1, 1]}),
        ("cost-zero", {"cost_nusd": [0, 1, 1, 1]}),
        ("prompt-without-output", {"output": [0, 1, 1, 1]}),
        ("placeholder-output", {"placeholder_calls": [3, 0, None, 0]}),
        ("impossible-time", {"start_ns": [1_767_225_600, START, START, START]}),
        ("impossible-time", {"start_ns": [START * 3, START, START, START]}),
        ("absurd-duration", {"duration_ns": [31 * DAY, DAY, DAY, None]}),
        ("inferred-context", {"context_inferred": [True, False, None, False]}),
        ("unknown-context", {"context": [None, "c", "c", "c"]}),
        ("overspent", {"overspent": [True, False, None, False]}),
    ],
)
def test_each_flaw_is_found_in_the_row_that_has_it_and_says_what_it_does(code: str, columns: dict[str, Any]) -> None:
    found = quality(table(**columns)).finding(code)
    assert found is not None
    assert (found.rows, found.of, found.share) == (1, 4, 0.25)
    assert len(found.effect) > 30
    assert codes(table(**columns)) == {code: 1}


def test_delivery_is_asked_of_runs_and_the_rest_of_what_started() -> None:
    tree = table(run=["a", "a", "b", "b"], node=["0", "1", "0", "1"], parent=[None, "0", None, "0"],
                 delivered=[None, None, True, None], outcome=["completed", "denied", "completed", "completed"],
                 cost_nusd=[None, None, 1, 1])  # fmt: skip
    report = quality(tree)
    shares = {finding.code: (finding.rows, finding.of) for finding in report.findings}
    assert shares["unknown-delivery"] == (1, 2)
    assert shares["unknown-cost"] == (1, 3)
    by_outcome = report.by_outcome.set_index("outcome")
    assert by_outcome.loc["completed", "unknown_delivery_share"] == 0.5
    assert by_outcome["unknown_delivery_share"].isna()["denied"]


def test_what_never_started_is_unknown_for_a_reason() -> None:
    columns = {"start_ns": [None, START], "context": [None, "c"], "input_fresh": [None, 90], "cost_nusd": [None, 1_000]}
    assert codes(table(2, outcome=["denied", "completed"], **columns)) == {}


def test_what_is_missing_for_a_reason_is_said() -> None:
    outcome = ["timed_out"] * 6 + ["completed"] * 14
    found = quality(table(20, outcome=outcome, cost_nusd=[None] * 6 + [1] * 14)).finding("unknown-cost")
    assert found.detail == "100% of them timed_out, 0% of the others"


def test_unknown_shares_are_told_by_outcome() -> None:
    frame = quality(table(outcome=["failed", "failed", "completed", "completed"], cost_nusd=[None, 1, 1, 1])).by_outcome
    assert frame.set_index("outcome")["unknown_cost_share"].to_dict() == {"completed": 0.0, "failed": 0.5}
    assert frame["rows"].sum() == 4


def test_reading_is_part_of_the_report() -> None:
    aside = (SetAside("a.jsonl", 7, "output: should be at least 0, got '-5'"),)
    report = ReadReport(files=1, read=8, kept=4, duplicates=3, set_aside=aside, notes=("a: 2 times without a zone",))
    given_ = Settlements(nodes=table().nodes, report=report)
    assert codes(given_) == {"set-aside": 1, "duplicates": 3, "naive-times": 1}
    assert "a.jsonl:7: output" in quality(given_).summary()
    assert quality(given_).to_dict()["read"]["set_aside"] == [["a.jsonl", 7, "output: should be at least 0, got '-5'"]]


def test_mixed_units_and_mixed_contexts_are_told_with_their_counts() -> None:
    found = quality(table(record_unit=["turn", "turn", "turn", "session"], context=["c", "d", "c", "e"], agent="a"))
    assert found.finding("mixed-units").detail == "turn 3, session 1"
    assert found.finding("mixed-contexts").detail == "up to 3 contexts on one path"


def test_rows_that_pile_up_at_a_value_show_a_ceiling_that_no_record_names() -> None:
    rng = np.random.default_rng(5)
    need = rng.lognormal(0, 1, 2_000)
    cost = np.minimum(need, 3.0) * 1e9
    found = quality(table(2_000, cost_nusd=cost.astype(np.int64))).finding("visible-ceiling")
    assert found.rows == pytest.approx((need >= 3.0).sum(), abs=20)
    assert "rows pile up at cost_nusd $3" in found.what
    assert found.detail.endswith("a limit that the records do not name")


def test_a_ceiling_that_the_records_name_is_told_apart() -> None:
    calls = np.minimum(np.random.default_rng(1).geometric(0.02, 1_000), 100)
    (pile,) = piles(table(1_000, calls=calls, ceiling_calls=100).nodes)
    assert (pile.column, pile.value, pile.declared) == ("calls", 100, True)


@pytest.mark.parametrize("seed", range(20))
def test_figures_that_nothing_stopped_show_no_ceiling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = {
        "cost_nusd": (rng.lognormal(0, 1.2, 500) * 1e8).astype(np.int64),
        "calls": rng.geometric(0.1, 500),
        "duration_ns": (rng.exponential(60, 500) * 1e9).astype(np.int64),
        "output": np.full(500, 7),
    }
    assert piles(table(500, **columns).nodes) == []


def test_a_shift_between_the_halves_is_found_with_its_size_and_interval() -> None:
    rng = np.random.default_rng(3)
    cost = np.concatenate((rng.lognormal(0, 0.5, 200), rng.lognormal(0.7, 0.5, 200))) * 1e9
    moved = table(400, cost_nusd=cost.astype(np.int64), start_ns=[START + n * DAY for n in range(400)])
    (shift,) = [one for one in shifts(moved.nodes) if one.column == "cost_nusd"]
    assert shift.low > 0.5
    assert shift.later_is_larger == pytest.approx(0.839, abs=0.05)  # Phi(0.7 / (0.5 sqrt 2))
    assert (shift.n_earlier, shift.n_later) == (200, 200)
    assert (
        "cost_nusd: median $"
        in quality(table(400, cost_nusd=cost.astype(int), start_ns=moved.nodes["start_ns"])).finding("drift").detail
    )


def test_the_interval_of_no_shift_holds_the_middle_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    moved = sum(_shift("cost_nusd", rng.lognormal(size=40), rng.lognormal(size=40)).moved for _ in range(1_000))
    assert moved <= 74  # more has a chance below 0.1 % where the interval leaves out 5 %


def test_few_rows_say_nothing_of_drift() -> None:
    assert shifts(table(2 * LEAST - 1, start_ns=START).nodes) == []


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 10**12) | st.none(), min_size=0, max_size=80))
def test_any_column_of_figures_can_be_looked_at(values: list[int | None]) -> None:
    given_ = table(len(values), cost_nusd=values or None, start_ns=START) if values else Settlements.from_columns({})
    report = quality(given_)
    json.dumps(plain(report.to_dict()), allow_nan=False)
    assert report.summary()
    assert all(0 <= found.rows <= max(found.of, found.rows) for found in report.findings)


def test_what_cannot_be_priced_and_prices_that_disagree_are_findings() -> None:
    prices = PriceTable({"m": (Price.usd_per_million(input=1, output=1),)})
    given_ = table(model=["m", "m", "m", "other"], cost_nusd=200_000)
    found = quality(given_, costs=recompute(given_, prices))
    assert found.finding("unpriced").detail == "no price for other"
    assert found.finding("prices-differ").what == "m: recorded over recomputed cost 2.000"


def test_what_the_records_miss_is_a_figure_of_the_report() -> None:
    bill = table(1, model="m", cost_nusd=10_000)
    mine = table(4, model="m")
    found = quality(mine, bill=reconcile(mine, bill)).finding("missing-spend")
    assert (found.rows, found.of) == (1, 1)
    assert "the records cover 40.0% of the bill" in found.detail


def test_a_report_is_read_in_a_notebook_as_a_table_with_its_names_escaped() -> None:
    report = ReadReport(read=1, set_aside=(SetAside("<b>x</b>", 1, "bad"),))
    shown = quality(Settlements(nodes=table(cost_nusd=None).nodes, report=report))._repr_html_()
    assert "cost unknown" in shown
    assert "<b>x</b>" not in shown


def test_the_picture_shows_the_findings_largest_on_top() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert quality(table(cost_nusd=[0, 1, 1, 1], delivered=None)).plot(ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["delivery unknown", "cost 0 with tokens used"]
    assert [patch.get_width() for patch in ax.patches] == [1.0, 0.25]
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["100 %: 4 of 4", "25 %: 1 of 4"]


def test_a_picture_of_nothing_says_so() -> None:
    from matplotlib.figure import Figure

    ax = quality(table()).plot(ax=Figure().add_subplot())
    assert "nothing odd" in ax.texts[0].get_text().replace("\n", " ")


def test_the_report_explains_itself() -> None:
    text = quality(table()).explain()
    assert re.search(r"Next: .*labels=FILE", text)


def test_something_else_is_refused() -> None:
    with pytest.raises(InputError, match=r"^quality: expected Settlements, got 'DataFrame'"):
        quality(pd.DataFrame())  # type: ignore[arg-type]
