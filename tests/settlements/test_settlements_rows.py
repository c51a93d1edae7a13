from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness_lab.settlements import CALL_COLUMNS, NODE_COLUMNS, CallRow, NodeRow
from harness_lab.settlements.rows import OUTCOME_WORDS, shown, why_not

ONE = {"run": "r", "node": "0"}


def reason(**fields: object) -> str:
    with pytest.raises(ValidationError) as caught:
        NodeRow.model_validate({**ONE, **fields})
    return why_not(caught.value)


def test_the_row_models_have_the_tables_columns() -> None:
    assert list(NodeRow.model_fields) == [column.name for column in NODE_COLUMNS]
    assert list(CallRow.model_fields) == [column.name for column in CALL_COLUMNS]
    assert NodeRow.model_json_schema()["properties"]["cost_nusd"]["description"].startswith(
        "what it cost, nano-dollars"
    )


def test_numbers_may_be_text_and_ids_may_be_numbers() -> None:
    row = NodeRow.model_validate(
        {"run": 17, "node": 0, "output": " 12 ", "calls": 3.0, "delivered": "yes", "score": "0.5"}
    )
    assert (row.run, row.node, row.output, row.calls, row.delivered, row.score) == ("17", "0", 12, 3, True, 0.5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"output": -1}, "output: should be greater than or equal to 0, got -1"),
        ({"output": "many"}, "output: should be a valid integer, got 'many'"),
        ({"output": float("nan")}, "output: should be a finite number, got nan"),
        ({"output": True}, "output: should be a number, not true or false, got True"),
        ({"reasoning": 5, "output": 4}, "reasoning 5 exceeds output 4"),
        ({"input_total": 3, "cache_read": 5, "cache_write": 0}, "cache_read 5 + cache_write 0 exceed input_total 3"),
    ],
)
def test_a_value_that_does_not_fit_says_why(fields: dict[str, object], expected: str) -> None:
    assert reason(**fields) == expected


def test_an_outcome_is_known_by_its_usual_spellings_and_never_guessed() -> None:
    for word, outcome in OUTCOME_WORDS.items():
        row = NodeRow.model_validate({**ONE, "outcome": word.upper()})
        assert row.outcome == outcome.value  # type: ignore[attr-defined]
    assert reason(outcome="went well").startswith("outcome: should be one of completed, exhausted")


def test_what_follows_from_known_parts_is_filled_in() -> None:
    row = NodeRow.model_validate({**ONE, "input_total": 100, "cache_read": 60, "cache_write": 10})
    assert row.input_fresh == 30  # type: ignore[attr-defined]
    row = NodeRow.model_validate({**ONE, "input_fresh": 30, "cache_read": 60, "cache_write": 10})
    assert row.input_total == 100  # type: ignore[attr-defined]


def test_a_field_that_the_table_does_not_have_is_refused() -> None:
    assert reason(prompt="text").startswith("prompt: Extra inputs are not permitted") or "prompt" in reason(prompt="x")


def test_long_text_is_measured_and_not_shown() -> None:
    assert shown("my private prompt, which is long") == "a text of 32 characters"
    assert "private" not in reason(output="my private prompt, which is long")
    assert shown({"a": 1}) == "a dict of 1"
