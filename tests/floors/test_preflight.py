"""Floors: an ask below what its path was seen to need is refused before it starts, and never told to shrink."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError, UnitMismatch
from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import UNITS, Unit

PI = FloorKey(backend="pi", model="tangle-router/glm-5.2")
SIX = FloorRow(key=PI, floor=31_211, n=6, second_lowest=32_296, evidence_id="e1", sources=("six settlements",))
OTHER = FloorRow(key=FloorKey(backend="inline", model="glm-5.2"), floor=900, n=9)
TABLE = FloorTable((SIX, OTHER))
DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(("ask", "short"), [(2_000, 29_211), (8_000, 23_211), (12_000, 19_211), (20_000, 11_211)])
def test_each_authored_budget_is_refused_with_its_shortfall_and_told_what_helps(ask: int, short: int) -> None:
    answer = preflight(TABLE, PI, ask)
    assert (answer.admitted, answer.floor, answer.shortfall, answer.helps) == (False, 31_211, short, "larger")
    assert answer.reason == "below-runtime-floor"
    text = str(answer)
    assert "the floor is 31,211 (n = 6)" in text
    assert f"{short:,} are missing" in text
    assert "A larger ask helps" in text
    assert text.count("smaller") == 1
    assert text.endswith("a smaller one never does")


def test_another_measured_path_is_named_only_where_the_ask_would_meet_it() -> None:
    assert preflight(TABLE, PI, 2_000).other_paths == ("inline / glm-5.2 (context unknown, input-total)",)
    assert "another path that this ask would meet: inline / glm-5.2" in str(preflight(TABLE, PI, 2_000))
    assert preflight(TABLE, PI, 800).other_paths == ()
    assert "another path" not in str(preflight(TABLE, PI, 800))


def test_the_floor_itself_is_admitted_and_that_predicts_no_success() -> None:
    answer = preflight(TABLE, PI, 31_211)
    assert (answer.admitted, answer.shortfall, answer.helps) == (True, 0, "nothing")
    assert "does not predict success" in answer.reason
    assert "does not predict success" in str(answer)
    assert not preflight(TABLE, PI, 31_210).admitted


@pytest.mark.parametrize(
    "key",
    [
        FloorKey(backend="never-heard-of", model="tangle-router/glm-5.2"),
        FloorKey(backend="pi", model="another"),
        FloorKey(backend="pi", model="tangle-router/glm-5.2", context="ab12"),
    ],
)
def test_a_path_without_evidence_has_no_floor_and_is_admitted(key: FloorKey) -> None:
    answer = preflight(TABLE, key, 1)
    assert (answer.admitted, answer.floor, answer.row, answer.shortfall) == (True, None, None, 0)
    assert "no evidence for this path" in answer.reason


def test_the_worked_example_refuses_one_ask_and_admits_three() -> None:
    a, b, c = (FloorKey(backend=name, model="m") for name in "abc")
    table = FloorTable((FloorRow(key=a, floor=240, n=3), FloorRow(key=b, floor=None), FloorRow(key=c, floor=None)))
    answers = [preflight(table, key, ask) for key, ask in ((a, 120), (a, 240), (b, 1), (c, 1))]
    assert [answer.floor for answer in answers] == [240, 240, None, None]
    assert [answer.admitted for answer in answers] == [False, True, True, True]


@given(ask=st.integers(0, 100_000), floor=st.none() | st.integers(0, 100_000))
@settings(max_examples=200, deadline=None)
def test_an_ask_is_refused_exactly_below_the_floor(ask: int, floor: int | None) -> None:
    answer = preflight(FloorTable((FloorRow(key=PI, floor=floor),)), PI, ask)
    assert answer.admitted == (floor is None or ask >= floor)
    assert answer.shortfall == (0 if answer.admitted else (floor or 0) - ask)


@given(ask=st.integers(0, 1000), floors=st.lists(st.integers(0, 1000), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_refusal_never_advises_a_path_that_would_refuse_too(ask: int, floors: list[int]) -> None:
    keys = [FloorKey(backend=f"b{i}", model="m") for i in range(len(floors))]
    table = FloorTable(tuple(FloorRow(key=key, floor=floor) for key, floor in zip(keys, floors, strict=True)))
    named = {str(key): key for key in keys}
    for path in preflight(table, keys[0], ask).other_paths:
        assert preflight(table, named[path], ask).admitted


@pytest.mark.parametrize("asked_in", [unit for unit in UNITS if unit != "input-total"])
def test_a_floor_in_another_unit_is_an_error_that_names_both(asked_in: Unit) -> None:
    key = FloorKey(backend="pi", model="tangle-router/glm-5.2", unit=asked_in)
    for ask in (lambda: preflight(TABLE, key, 5), lambda: preflight(TABLE, PI, 5, unit=asked_in)):
        with pytest.raises(UnitMismatch) as caught:
            ask()
        assert "input-total" in str(caught.value)
        assert asked_in in str(caught.value)


def test_a_row_without_a_floor_or_of_another_agent_is_no_measurement_in_another_unit() -> None:
    empty = FloorRow(key=FloorKey(backend="pi", model="m", unit="total"), floor=None)
    coder = FloorRow(key=FloorKey(backend="pi", model="m", unit="total", agent="coder"), floor=500)
    asked = FloorKey(backend="pi", model="m", agent="reviewer")
    assert preflight(FloorTable((empty, coder)), asked, 5).admitted


@pytest.mark.parametrize("bad", [-1, 1.5, float("nan"), float("inf"), True, "8000", None], ids=repr)
def test_a_bad_ask_is_refused_by_name(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^asked tokens: expected a whole number"):
        preflight(TABLE, PI, bad)


def test_the_plain_form_says_what_the_answer_rests_on() -> None:
    row = FloorRow(key=PI, floor=31_211, n=6, measured_ns=0, stale_after_ns=DAY_NS, evidence_id="e1")
    answer = preflight(FloorTable((row,)), PI, 8_000).to_dict(now_ns=2 * DAY_NS)
    assert answer == {
        "admitted": False,
        "reason": "below-runtime-floor",
        "floor": 31_211,
        "unit": "input-total",
        "n": 6,
        "evidence_id": "e1",
        "stale": True,
        "age": 2.0,
        "backend": "pi",
        "model": "tangle-router/glm-5.2",
        "context": None,
        "shortfall": 23_211,
        "helps": "larger",
        "other_paths": [],
    }
    assert preflight(TABLE, PI, 8_000).to_dict()["age"] is None
