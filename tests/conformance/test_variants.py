"""Other figures, names and orders than those of the shipped cases, answered by our own reckoning of the rules."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.conformance import run

CASES = json.loads((Path(__file__).parent / "variants.json").read_text(encoding="utf-8"))
DEVIATE = {"variant-led-neg-steps", "variant-led-nan"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_variant_is_answered_as_reckoned(case: dict[str, Any]) -> None:
    (result,) = run([case]).results
    wanted = "deviating" if case["id"] in DEVIATE else "passed"
    assert result.word == wanted, result.reason


def _otherwise(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}?"
    return [value] if value is None else None


def test_no_variant_passes_with_another_answer() -> None:
    wrong = []
    for case in CASES:
        for name in case["then"]:
            changed = copy.deepcopy(case)
            changed["then"][name] = _otherwise(changed["then"][name])
            wrong.append(changed)
    passed = [result.id for result in run(wrong).results if result.word == "passed"]
    assert passed == []


def test_an_operation_that_no_ledger_has_is_no_pass() -> None:
    case = {"id": "reset", "area": "ledger", "runtimes": ["py"], "when": {"op": "reset"}, "then": {"steps": 0}}
    ledger = {"steps": 0, "cost_usd": 0.0, "unmetered_runs": 0, "elapsed_seconds": 0.0, "cancelled": False}
    (result,) = run([case | {"given": {"ledger": ledger | {"cancel_reason": None}}}]).results
    assert (result.word, "unknown shape" in result.reason) == ("failed", True)
