"""Cases of the conserved pool with other figures and names than those that come with the package."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness_lab.conformance import differing, run, shipped

CASES = {case["id"]: case for case in shipped("tangle-pool-and-floors")}
ROOT = {"maxIterations": 9, "maxTokens": 1000, "maxUsd": 3}
COMMITTED = {"iterations": 2, "tokens": {"input": 100, "output": 20}, "usd": 0.5, "ms": 0}
UNCERTAIN = {"maxIterations": 1, "maxTokens": 300, "maxUsd": 1}

VARIANTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "pool-restore-uncertain-charged-at-ceiling",
        {"root": ROOT, "restore": {"committed": COMMITTED, "uncertainReservations": [UNCERTAIN]}},
        {"op_results": [], "readout": {"tokensLeft": 580, "iterationsLeft": 6, "usdLeft": 1.5}},
    ),
    (
        "pool-restore-uncertain-charged-at-ceiling",
        {"root": {"maxIterations": 2, "maxTokens": 1000, "maxUsd": 3, "deadlineMs": 500}},
        {"op_results": [], "readout": {"tokensLeft": 500, "usdLeft": 0, "deadlineMs": 500}},
    ),
    (
        "pool-restore-malformed-committed",
        {"restore": {"committed": {**COMMITTED, "usd": -2}}},
        {"throws": "restore committed.usd"},
    ),
    (
        "settle-unknown-resource-down",
        {"spent": "500 tokens, gpu amount 3 known=true"},
        {
            "kind": "done",
            "budgetViolation": {
                "overspent": [
                    {"channel": "tokens", "reserved": 100, "spent": 500},
                    {"channel": "resource:gpu", "reserved": 2, "spent": 3},
                ]
            },
        },
    ),
    (
        "settle-overspend-stream-done",
        {"events": ["tokens 1/1", "iteration"]},
        {"kind": "done", "budgetViolation": None, "journal": {"status": "done", "budgetViolation": False}},
    ),
    ("settle-thrown-plain-error-not-infra", {"error": "ValidationError"}, {"kind": "down", "infra": True}),
    ("drv-token-guard", {"turn": "50/50"}, {"turns": 6, "kind": "no-winner"}),
    ("drv-usd-guard", {"turn": "$0.02"}, {"turns": 5, "kind": "no-winner"}),
    ("drv-nested-reservation-charged-once", {"leaf_spends": "50/0"}, {"tokensLeft_at_root": 50}),
    (
        "drv-nested-rolls-up-once",
        {"root_turns": "1/2 $0.5", "mid_turns": "3/4", "leaf": "5/6"},
        {"driverInference": {"input": 4, "output": 6, "usd": 0.5}, "spentTotal": {"input": 9, "output": 12}},
    ),
    ("key-conflict", {"second": "same profile/task"}, {"ok": True, "prior": "done"}),
    ("key-down-retries-explicitly", {"first": "down: disk full"}, {"ok": True, "reason_contains": "disk full"}),
    (
        "slots-deepest-then-oldest",
        {"waiting": ["deep-a", "shallow-1", "deep-b", "shallow-2"]},
        {"order": ["deep-a", "deep-b", "shallow-1", "shallow-2"]},
    ),
    (
        "resume-sigkill",
        {"children": ["x in flight", "y done", "z down: broken"]},
        {"rehydrated": ["y"], "re_executed": ["x", "z"], "old_x_status": "pending", "kind": "winner"},
    ),
    (
        "resume-budget-queue-cancel",
        {"children": "three retained managers, 3 tokens each, 1 slot"},
        {"during": {"reservedTokens": 9, "tokensLeft": 1, "second_status": "running"}, "settled": 0},
    ),
    ("cost-mixed-label", {"events": ["receipt 1", "receipt 2"]}, {"usd": 3, "provenance": "reported"}),
    (
        "perworker-too-large-1",
        {"budget": {"maxIterations": 9, "maxTokens": 9, "maxUsd": 1}, "perWorker": {"maxTokens": 1, "maxUsd": 2}},
        {"raises_synchronously": "perWorker.maxUsd (2) exceeds budget.maxUsd (1)", "pool_created": False},
    ),
    (
        "refusal-tokens-hedged",
        {"shortfall": {"channel": "tokens", "requested": 50, "free": 33}},
        {"mentions": ["well under 33"], "must_not_mention": ["at most 33 fits"]},
    ),
    (
        "sup-one-down-does-not-sink",
        {"children": ["0.1 valid", "0.9 valid", "0.5 valid"]},
        {"kind": "winner", "best": "0.9", "spent_input": 30},
    ),
]


def _case(name: str, given: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    case = copy.deepcopy(CASES[name])
    return {**case, "id": "another", "given": {**case["given"], **given}, "then": then}


@pytest.mark.parametrize(("name", "given", "then"), VARIANTS)
def test_a_case_with_other_figures_is_answered_by_what_happens(name: str, given: Any, then: Any) -> None:
    assert differing(_case(name, given, then))[0] == {}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("drv-token-guard", {"turn": "50/50"}),
        ("drv-breakdown", {"worker": "11/5"}),
        ("resume-sigkill", {"children": ["a done", "b done", "c done"]}),
        ("never-settled-released", {"release": "no receipts"}),
        ("late-spawn-refused", {"run": "still open"}),
        ("settle-unknown-usd-under-cap-down", {"events": ["tokens 900000/0"]}),
        ("pool-restore-uncertain-charged-at-ceiling", {"restore": {"uncertainReservations": []}}),
        ("perworker-too-large-1", {"perWorker": {"maxIterations": 4, "maxTokens": 3}}),
    ],
)
def test_the_old_answer_to_other_figures_fails(name: str, given: dict[str, Any]) -> None:
    assert run([_case(name, given, CASES[name]["then"])]).results[0].word == "failed"
