"""The runner computes: names of cases do not matter, wrong answers are found, foreign shapes fail."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.conformance import DEVIATIONS, WORDS, differing, read_cases, run, shipped
from harness_lab.errors import InputError, ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _case(name: str) -> dict[str, Any]:
    return next(case for case in shipped() if case["id"] == name)


def _word(case: Any) -> str:
    return run([case]).results[0].word


def test_cases_that_exchange_their_names_get_the_same_words() -> None:
    cases = shipped()
    names = [case["id"] for case in cases]
    random.Random(7).shuffle(names)  # noqa: S311 - an order, not a secret
    renamed = [{**case, "id": name} for case, name in zip(cases, names, strict=True)]
    assert [r.word for r in run(renamed).results] == [r.word for r in run(cases).results]


def test_a_case_with_another_limit_and_the_right_answer_passes_and_with_the_old_answer_fails() -> None:
    case = _case("a-reserve-concurrent-zero")
    more = {**case, "given": {"limits": {"maxConcurrent": 1}}}
    assert _word(more) == "failed"
    assert _word({**more, "then": {"results": [None], "calls": 1}}) == "passed"


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("RUN-01", ("then", "client_calls"), 3),
        ("NEST-02", ("given", "child", "max_steps"), 3),
        ("LEDG-06", ("given", "ledger", "cost_usd"), 1.25),
        ("LEASE-02", ("given", "budget", "max_seconds"), 40),
        ("pool-refund-unspent", ("when", 1, "spent", "tokens", "output"), 201),
        ("floor-refuses-8000", ("given", "floor"), 31212),
        ("a-group-cancel-siblings", ("given", "children", 1, "duration_ms"), 20),
        ("c-loop-plain-tools", ("given", "max_iterations"), 4),
        ("c-deleg-three", ("given", "config"), {"max_iterations": 60}),
        ("b-ledger-no-caps", ("when", "costs"), [99.0]),
    ],
)
def test_a_changed_number_fails(name: str, where: tuple[Any, ...], value: Any) -> None:
    case = copy.deepcopy(_case(name))
    assert _word(case) == "passed"
    inner: Any = case
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    assert _word(case) == "failed"


def test_a_case_that_deviates_for_a_known_reason_does_so_with_other_numbers_too() -> None:
    case = copy.deepcopy(_case("LEDG-16"))
    case["id"], case["when"]["values"], case["then"]["cost_usd"] = "new", [0.25, -1.0, 0.5], 0.75
    assert _word(case) == "deviating"


@pytest.mark.parametrize("value", [float("nan"), "inf", -3.0])
def test_a_cost_that_is_no_amount_deviates_whatever_it_is(value: Any) -> None:
    case = copy.deepcopy(_case("LEDG-16"))
    case["when"]["values"] = [0.5, value]
    assert _word(case) == "deviating"


def test_a_worker_that_does_not_hold_the_lease_is_told_so() -> None:
    case = copy.deepcopy(_case("LEASE-01"))
    case["when"]["worker"], case["then"] = "worker-2", {"error_code": "task_lease_not_held"}
    assert _word(case) == "passed"


def test_a_child_that_ends_in_time_is_not_stopped() -> None:
    case = copy.deepcopy(_case("a-tool-timeout-promise-child-detached"))
    case["given"]["limits"]["timeoutMs"] = 100
    case["then"] = {"tool_result_error": None, "result_at_ms": 80, "slot_free_at_ms": 80}
    assert _word(case) == "passed"


def test_a_case_that_a_row_covers_fails_where_it_differs_in_something_else() -> None:
    case = copy.deepcopy(_case("RUN-12"))
    case["then"]["events"] = ["run.started"]
    assert _word(case) == "failed"


def test_a_row_about_a_refusal_covers_no_other_answer() -> None:
    row = next(row for row in DEVIATIONS if row.id == "LEDG-16")
    assert row.how({"raises": "InputError: cost_usd: expected a finite number of dollars"})
    assert not row.how({"cost_usd": 0.75})
    assert not row.how({"raises": "InputError: max_steps: expected a whole number"})
    assert not row.how({"steps": -2})


def test_a_case_that_a_row_covers_passes_where_ours_agrees() -> None:
    case = copy.deepcopy(_case("RUN-18"))
    case["then"]["run_status"] = "exhausted"
    assert _word(case) == "passed"


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _numbers(inner, (*path, key))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def test_a_case_whose_expected_number_is_changed_never_passes() -> None:
    stories = [case for case in shipped("public-cases") if "steps" in case["when"]]
    for case in shipped("tree-limits") + shipped("iteration-budget") + stories:
        for path in _numbers(case["then"]):
            wrong = copy.deepcopy(case)
            inner: Any = wrong["then"]
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] += 1
            assert _word(wrong) != "passed", (case["id"], path)


@pytest.mark.parametrize(
    "case",
    [
        None,
        [],
        "x",
        {},
        {"id": "x", "area": "elsewhere", "given": {}, "when": {}, "then": {}},
        {"id": "x", "area": ["pool"], "given": {}, "when": [], "then": {}},
        {"id": "x", "area": "ledger", "given": {}, "when": {"op": "exhaustion"}, "then": {"exhaustion": None}},
        {"id": "x", "area": "mode", "given": {"config": {}}, "when": {"op": "sing"}, "then": {"ok": True}},
        {"id": "x", "area": "tree-limits", "given": {}, "when": {"op": "sing"}, "then": {"ran": 1}},
        {"id": "x", "area": "delegation", "given": {}, "when": {}, "then": {"hash": ""}},
    ],
)
def test_an_unknown_shape_fails_and_says_so(case: Any) -> None:
    (result,) = run([case]).results
    assert (result.word, result.reason.startswith("unknown shape: ")) == ("failed", True)


def test_a_case_that_expects_nothing_does_not_pass() -> None:
    assert _word({**_case("RUN-01"), "then": {}}) == "failed"
    assert _word({**_case("RUN-01"), "then": {"note": "nothing to compare"}}) == "failed"


@settings(max_examples=60, deadline=None)
@given(which=st.integers(0, 388), key=st.sampled_from(["given", "when", "then", "area", "runtimes"]), value=ANYTHING)
def test_a_damaged_case_is_answered_with_a_word_and_never_with_an_error(which: int, key: str, value: Any) -> None:
    case = {**shipped()[which], key: value}
    (result,) = run([case]).results
    assert result.word in WORDS


def test_another_system_is_asked_through_an_adapter() -> None:
    case = _case("c-budget-exhaust")
    assert run([case], lambda c: c["then"]).to_dict()["iteration-budget"]["passed"] == 1
    wrong = run([case], lambda c: {**c["then"], "used": 2})
    assert (wrong.results[0].word, wrong.results[0].reason) == ("failed", "used: 2, expected 3")


def test_the_area_of_a_case_that_belongs_to_none_is_the_callers() -> None:
    assert run([{}], area="mine").to_dict() == {"mine": {"passed": 0, "deviating": 0, "not_applicable": 0, "failed": 1}}


def test_a_report_tells_its_counts_its_rows_and_what_they_mean() -> None:
    report = run([_case("c-budget-exhaust"), _case("c-budget-negative"), _case("c-loop-refund-sites"), {}])
    assert report.summary().splitlines()[-1] == "1 of 4 cases failed"
    assert list(report.to_frame()["word"]) == ["passed", "deviating", "not_applicable", "failed"]
    assert "on purpose" in report.explain()
    assert report._repr_html_().startswith("<pre>area")


def test_there_is_no_such_area() -> None:
    with pytest.raises(InputError, match="area: expected one of prism-budgets"):
        shipped("prism")
    with pytest.raises(InputError, match="expected an area of"):
        differing({"area": "elsewhere"})


@pytest.mark.parametrize("text", ["", "{}", '{"cases": []}', "[" * 200_000, "\ud800"])
def test_a_file_that_holds_no_list_is_one_clear_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cases.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ReadError, match="expected a JSON list of cases"):
        read_cases(file)


def test_a_file_of_the_same_shapes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps([_case("NEST-02")]))
    assert run(read_cases(file)).to_dict()["prism-budgets"]["passed"] == 1
