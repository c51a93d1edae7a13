"""The floor table: one row per path, looked up by everything that makes a path, and stored as plain values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import UNITS

WORD = st.sampled_from(["a", "b", "c"])
KEY = st.builds(
    FloorKey, backend=WORD, model=WORD, agent=st.none() | WORD, context=st.none() | WORD, unit=st.sampled_from([*UNITS])
)
COUNT = st.none() | st.integers(0, 10**6)
ROW = st.builds(
    FloorRow,
    key=KEY,
    floor=COUNT,
    n=st.integers(0, 99),
    second_lowest=COUNT,
    startup_cost=COUNT,
    served_model=st.none() | WORD,
    measured_ns=COUNT,
    stale_after_ns=COUNT,
    evidence_id=WORD,
    sources=st.lists(WORD, max_size=3).map(tuple),
    note=st.sampled_from(["", "without that row 32,296, n = 5"]),
)
TABLES = st.lists(ROW, max_size=6, unique_by=lambda row: (row.key, row.served_model)).map(
    lambda rows: FloorTable(tuple(rows))
)


def a_row(floor: int | None, **key: Any) -> FloorRow:
    served = key.pop("served_model", None)
    return FloorRow(key=FloorKey(**({"backend": "pi", "model": "m"} | key)), floor=floor, served_model=served)


@given(TABLES)
@settings(max_examples=100, deadline=None)
def test_a_table_survives_the_way_through_json(table: FloorTable) -> None:
    assert FloorTable.from_dicts(json.loads(json.dumps(table.to_dicts()))) == table


def test_a_row_without_a_floor_is_an_unmeasured_path() -> None:
    assert FloorTable.from_dicts([{"backend": "pi", "model": "m"}]) == FloorTable((a_row(None),))


@given(TABLES, KEY)
@settings(max_examples=200, deadline=None)
def test_the_row_that_applies_is_the_lowest_of_the_path(table: FloorTable, key: FloorKey) -> None:
    floors = [row.floor for row in table.matching(key) if row.floor is not None]
    found = table.lookup(key)
    assert (None if found is None else found.floor) == min(floors, default=None)


def test_where_several_models_served_one_request_the_lowest_applies_and_says_so() -> None:
    table = FloorTable((a_row(500, served_model="m-big"), a_row(300, served_model="m-small")))
    found = table.lookup(FloorKey(backend="pi", model="m"))
    assert found is not None
    assert (found.floor, found.served_model) == (300, "m-small")
    assert found.note == "lowest of 2 floors (m-big: 500, m-small: 300)"


def test_an_unknown_context_is_a_key_of_its_own() -> None:
    table = FloorTable((a_row(500, context="ab12"),))
    assert table.lookup(FloorKey(backend="pi", model="m")) is None
    assert table.lookup(FloorKey(backend="pi", model="m", context="ab12")) is not None
    assert str(FloorKey(backend="pi", model="m")) == "pi / m (context unknown, input-total)"


def test_an_ask_without_an_agent_meets_every_agents_row_and_a_named_one_its_own() -> None:
    table = FloorTable((a_row(500, agent="coder"), a_row(300, agent="reviewer")))
    asked = {agent: table.lookup(FloorKey(backend="pi", model="m", agent=agent)) for agent in (None, "coder", "tester")}
    assert {agent: row.floor if row else None for agent, row in asked.items()} == {
        None: 300,
        "coder": 500,
        "tester": None,
    }


def test_the_paths_that_an_ask_meets_come_cheapest_first_and_in_its_unit() -> None:
    table = FloorTable((a_row(300, backend="x"), a_row(100, backend="y"), a_row(50, backend="z", unit="total")))
    assert [row.floor for row in table.met_by(300, unit="input-total")] == [100, 300]
    assert [row.floor for row in table.met_by(299, unit="input-total")] == [100]


def test_evidence_has_an_age_and_may_be_stale_and_both_may_be_unknown() -> None:
    row = FloorRow(key=FloorKey(backend="pi", model="m"), floor=1, measured_ns=100, stale_after_ns=200)
    assert (row.age_ns(150), row.is_stale(200), row.is_stale(201)) == (50, False, True)
    assert (a_row(1).age_ns(150), a_row(1).is_stale(150)) == (None, None)


def test_two_rows_for_one_path_are_refused() -> None:
    with pytest.raises(InputError, match=r"^floor table: expected one row per path"):
        FloorTable((a_row(1), a_row(2)))


@pytest.mark.parametrize(
    "rows",
    [
        [{"backend": "pi", "floor": 1}],
        [{"backend": "pi", "model": "m", "floor": 1, "colour": "red"}],
        [{"backend": "pi", "model": "m", "floor": -1}],
        [{"backend": "pi", "model": "m", "floor": float("nan")}],
        [{"backend": "pi", "model": "m", "floor": 1, "n": True}],
        [{"backend": "pi", "model": "m", "floor": 1, "unit": "miles"}],
        ["pi"],
        {"backend": "pi"},
        7,
    ],
    ids=str,
)
def test_a_bad_table_is_refused_in_one_line(rows: Any) -> None:
    with pytest.raises(InputError) as caught:
        FloorTable.from_dicts(rows)
    assert "\n" not in str(caught.value)
