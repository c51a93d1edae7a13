from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze import floors
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey

KEYS = [
    "agent", "backend", "model", "context", "unit", "floor", "second_lowest", "startup_cost", "n", "clusters",
    "coverage_at_95", "p_next_below", "needs_n", "age", "stale", "evidence_id", "note",
]  # fmt: skip
DAY = 86_400 * 10**9


def rows(values: list[int], **columns: object) -> pd.DataFrame:
    base = {"run": [f"r{k}" for k in range(len(values))], "node": "0", "backend": "pi", "model": "m"}
    return pd.DataFrame({**base, "outcome": "completed", "input_total": values, **columns})


def six() -> pd.DataFrame:
    """Return the six published settlements; the lowest is recorded as down and counts by decision."""
    values = [31_211, 32_296, 47_365, 47_965, 48_253, 62_616]
    decided = pd.array([True, None, None, None, None, None], dtype="boolean")
    return rows(
        values, outcome=["unknown", *["completed"] * 5], source_status=["down", *[None] * 5], eligible=decided,
        eligible_reason=["published as floor evidence", *[None] * 5],
    )  # fmt: skip


def test_the_six_published_settlements_give_the_published_floor_and_what_it_is_worth() -> None:
    found = floors(six()).records()[0]
    assert list(found) == KEYS
    assert (found["floor"], found["second_lowest"], found["n"], found["needs_n"]) == (31_211, 32_296, 6, 59)
    assert found["coverage_at_95"] == pytest.approx(0.607, abs=5e-4)
    assert found["p_next_below"] == 1 / 7
    assert found["note"] == "lowest row recorded as down; without that row 32,296, n = 5"
    assert (found["startup_cost"], found["context"], found["clusters"]) == (None, None, None)


def test_the_file_of_the_six_gives_the_same() -> None:
    path = Path(__file__).parents[2] / "data" / "six_settlements.csv"
    if not path.exists():
        pytest.skip("data/six_settlements.csv is not at hand")
    frame = pd.read_csv(path)
    frame["eligible"] = frame["eligible"].map({"yes": True, "no": False}).astype("boolean")
    found = floors(frame.assign(usage_known=pd.NA)).records()[0]
    assert (found["floor"], found["n"], found["needs_n"]) == (31_211, 6, 59)
    assert found["note"] == "lowest row recorded as down; without that row 32,296, n = 5"


def test_the_report_says_all_of_it() -> None:
    said = floors(six()).summary()
    for part in ("31,211", "n = 6", "60.7 %", "14.3%", "n >= 59", "context unknown", "without that row 32,296, n = 5"):
        assert part in said


def test_a_run_that_a_limit_stopped_is_no_evidence() -> None:
    found = floors(rows([500, 900], outcome=["exhausted", "completed"])).records()[0]
    assert (found["floor"], found["n"]) == (900, 1)


def test_a_run_that_did_not_deliver_is_no_evidence_and_one_of_unknown_delivery_is() -> None:
    delivered = pd.array([False, None, True], dtype="boolean")
    frame = rows([500, 700, 900], delivered=delivered)
    assert floors(frame).records()[0]["floor"] == 700
    assert floors(frame, delivered_only=True).records()[0]["floor"] == 900


def test_a_person_may_also_take_a_row_out() -> None:
    decided = pd.array([False, None], dtype="boolean")
    assert floors(rows([500, 900], eligible=decided)).records()[0]["floor"] == 900


def test_rows_of_unknown_usage_are_left_out_and_counted() -> None:
    frame = rows([500, 900], usage_known=pd.array([False, True], dtype="boolean"))
    found = floors(frame).records()[0]
    assert found["floor"] == 900
    assert "1 eligible row(s) of unknown usage left out" in found["note"]


def test_a_floor_that_hangs_on_one_row_says_so() -> None:
    assert (
        "rests on one row: the next is 43,000, 61.7 % higher"
        in floors(rows([26_600, 43_000, 44_000])).records()[0]["note"]
    )
    assert floors(rows([40_000, 43_000])).records()[0]["note"] == ""


def test_paths_are_never_merged_and_an_unknown_context_is_its_own() -> None:
    frame = rows([100, 200, 300], context=["c1", None, None], backend=["pi", "pi", "codex"])
    found = floors(frame)
    assert [(r["context"], r["backend"], r["floor"]) for r in found.records()] == [
        ("c1", "pi", 100), (None, "pi", 200), (None, "codex", 300),
    ]  # fmt: skip
    assert floors(frame, by=("backend", "model")).records()[0]["n"] == 2


def test_each_served_model_has_its_floor_and_the_lowest_applies() -> None:
    found = floors(rows([100, 110, 90, 300], served_model=["x", "x", "y", "y"]))
    assert found.records()[0]["floor"] == 90
    assert "lowest of 2 served models: y 90 (n = 2), x 100 (n = 2)" in found.records()[0]["note"]
    table = found.to_table()
    assert [row.served_model for row in table] == ["y", "x"]
    assert table.lookup(FloorKey(backend="pi", model="m")) is not None


def test_start_up_cost_comes_from_first_calls_alone() -> None:
    nodes = rows([74_081, 80_000])
    calls = pd.DataFrame({
        "run": ["r0", "r0", "r1"], "node": "0", "call": [1, 0, 0], "attempt": 0, "kind": "model",
        "input_total": pd.array([500, 1_321, 1_600], dtype="Int64"),
    })  # fmt: skip
    found = floors(SimpleNamespace(nodes=nodes, calls=calls)).records()[0]
    assert found["startup_cost"] == 1_321
    assert "measures tasks, not set-up: 56 times the start-up cost of 1,321" in found["note"]


@pytest.mark.parametrize(("unit", "floor"), [("input-total", 100), ("total", 130), ("newly-presented", 70)])
def test_a_floor_is_in_its_unit(unit: str, floor: int) -> None:
    frame = rows([100], output=[30], cache_read=[60])
    assert floors(frame, unit=unit).records()[0]["floor"] == floor  # type: ignore[arg-type]


def test_age_and_staleness_come_from_the_newest_row_and_the_given_instant() -> None:
    frame = rows([100, 200], start_ns=[1 * DAY, 3 * DAY])
    fresh = floors(frame, now_ns=5 * DAY, stale_after=timedelta(days=7)).records()[0]
    assert (fresh["age"], fresh["stale"]) == (2.0, False)
    old = floors(frame, now_ns=13 * DAY, stale_after=timedelta(days=7))
    assert old.records()[0]["stale"] is True
    assert "STALE" in old.summary()
    row = next(iter(old.to_table()))
    assert row.is_stale(13 * DAY)
    assert floors(rows([100])).records()[0]["stale"] is None


def test_coverage_counts_clusters_where_rows_share_one() -> None:
    found = floors(rows(list(range(100, 160)), session=[f"s{k % 6}" for k in range(60)])).records()[0]
    assert (found["n"], found["clusters"], found["needs_n"]) == (60, 6, 59)
    assert found["coverage_at_95"] == pytest.approx(0.607, abs=5e-4)
    assert floors(rows(list(range(100, 160)))).records()[0]["needs_n"] is None


@settings(max_examples=25)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.integers(0, 999))
def test_the_evidence_id_depends_on_the_rows_and_not_on_their_order(values: list[int], seed: int) -> None:
    frame = rows(values)
    mixed = frame.iloc[np.random.default_rng(seed).permutation(len(frame))]
    one, other = (floors(it).records()[0]["evidence_id"] for it in (frame, mixed))
    assert one == other
    assert floors(rows([*values, 7])).records()[0]["evidence_id"] != one


def test_the_evidence_id_is_the_same_wherever_the_rows_were_put_together_from() -> None:
    frame = rows([7, 5, 6]).astype({"run": "string"})
    lines = ["r0|0|||completed||7", "r1|0|||completed||5", "r2|0|||completed||6"]
    wanted = hashlib.sha256("\n".join([str(floors(frame).paths[0].key), *lines]).encode()).hexdigest()[:16]
    parts = pd.concat([frame.iloc[2:], frame.iloc[:2]], ignore_index=True)  # a column in several chunks
    assert [floors(it).records()[0]["evidence_id"] for it in (frame, parts)] == [wanted, wanted]


def test_a_path_without_evidence_has_no_floor_and_says_why() -> None:
    found = floors(rows([500], outcome=["failed"]))
    assert found.records()[0]["floor"] is None
    assert "no floor (no eligible settlement among 1 row(s))" in found.summary()
    assert next(iter(found.to_table())).floor is None


def test_no_rows_give_no_floors() -> None:
    assert floors(rows([])).summary() == "No settlements, so no floor."


def test_the_frame_has_typed_columns() -> None:
    frame = floors(six()).to_frame()
    assert list(frame.columns) == KEYS
    assert str(frame["floor"].dtype) == "Int64"
    assert frame["startup_cost"].isna().all()


@pytest.mark.parametrize(("arguments", "name"), [({"unit": "tokens"}, "unit"), ({"by": ("repo",)}, "by")])
def test_a_wrong_question_is_refused(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected"):
        floors(six(), **arguments)  # type: ignore[arg-type]
