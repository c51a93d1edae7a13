"""A case that is odd is that case's failure, and a field of an answer is compared or fails."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness_lab.conformance import run, shipped

CASES = {case["id"]: case for case in shipped()}
SPENT = {"iterations": 1, "tokens": {"input": 10, "output": 0}, "usd": 0, "ms": 0}
NO = {"ok": False, "reason": "usd-unbudgeted"}


def _word(name: str, **changes: Any) -> str:
    return run([{**copy.deepcopy(CASES[name]), **changes}]).results[0].word


@pytest.mark.parametrize("era", ["x", None, 5, [], {}, "", "e1"])
def test_a_bad_era_fails_its_case_and_the_file_goes_on(era: Any) -> None:
    good = CASES["pool-refund-unspent"]
    assert [r.word for r in run([good, {**good, "era": era}, good]).results] == ["passed", "failed", "passed"]


@pytest.mark.parametrize("era", ["E1", "E2", "E3"])
def test_a_case_that_stumbles_under_our_defaults_is_tried_under_its_preset(era: str) -> None:
    asks = [{"maxIterations": 1, "maxTokens": 80, "maxUsd": 1}, {"maxIterations": 1, "maxTokens": 80}]
    ops = [{"op": "reserve", "as": name, "budget": ask} for name, ask in zip("ab", asks, strict=True)]
    ops.append({"op": "reconcile", "ticket": "b", "spent": SPENT})
    then = {"op_results": [NO, {"ok": True}, {}], "readout": {"tokensLeft": 90}}
    given = {"root": {"maxIterations": 9, "maxTokens": 100}}
    assert _word("short-usd-unbudgeted-has-none", era=era, given=given, when=ops, then=then) == "passed"


def test_to_reconcile_an_unknown_ticket_throws() -> None:
    when = [{"op": "reconcile", "ticket": "ghost", "spent": SPENT}]
    assert _word("pool-refund-unspent", when=when, then={"op_results": [{"throws": ""}]}) == "passed"
    assert _word("pool-refund-unspent", when=when, then={"op_results": [{}]}) == "failed"


def test_depth_deadline_and_siblings_answer_with_other_figures() -> None:
    assert _word("depth-exceeded", given={"depth": 4, "maxDepth": 2}) == "passed"
    late = {"parent_abs": 50, "child_duration": 10, "now": 60}
    assert _word("deadline-bound-20-100", given=late, then={"absolute": 50}) == "passed"
    when = {**CASES["NEST-20"]["when"], "record_steps": [1, 1]}
    assert _word("NEST-20", when=when) == "passed"


@pytest.mark.parametrize("asked", [-4, 0, 1])
def test_a_session_keeps_at_least_one_step(asked: int) -> None:
    assert _word("RUN-25", given={"using_max_steps": asked}) == "passed"


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("a-agent-code-start-refused-throws", "runs_created", ["lead", "w"]),
        ("b-audit-hmac-scheme2", "preimage", "other"),
    ],
)
def test_each_field_is_compared(name: str, field: str, value: Any) -> None:
    assert _word(name) == "passed"
    assert _word(name, then={**CASES[name]["then"], field: value}) == "failed"
