"""The behaviour cases of tangle's conserved pool (reserve, reconcile, observe, readout), through the public API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.budget import Allocation, ReservationPool
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, COST, FRESH, Code
from harness_lab.usage import Amounts, amounts, nusd

CASES = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "tangle-pool-and-floors.json"
KEYS = {"maxIterations", "maxTokens", "maxUsd"}
OWN_CEILING = "an ask in a channel in which the pool has no limit becomes the child's own ceiling"
CLOSED = "what is known is charged and money is closed from then on: an answer, not an error"
ONE_FLAG = "a token count without its split counts as unknown in the channel of new tokens; it is not charged in full"
DEVIATIONS = {
    "pool-root-invalid-4": "whole numbers are exact beyond 2^53 here",
    "pool-usd-unbudgeted-any-amount": OWN_CEILING,
    "short-usd-unbudgeted-has-none": OWN_CEILING,
    "pool-unknown-usd-under-cap-taints": CLOSED,
    "pool-observe-unknown-usd-under-cap-refused-before-mutation": CLOSED,
    "charge-unknown-count-is-not-unknown-composition": ONE_FLAG,
    "charge-bad-partition-refused": "token counts are disjoint here, so a split that does not add up cannot be said",
    "charge-malformed-spend-3": "token counts are disjoint here, so a split that does not add up cannot be said",
}
NAMES = {"tokens": "fresh", "iterations": "calls", "usd": "cost"}


def _cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the folder with the cases is absent"))]
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["id"]) for case in cases if _maps(case)]


def _maps(case: dict[str, Any]) -> bool:
    """Whether a case is about reserving, charging and reading: no restarts, named resources, queues or flags."""
    root = case["given"].get("root", {})
    plain = case["area"] == "pool" and set(case["given"]) == {"root"} and set(root) <= KEYS
    budgets = [op["budget"] for op in case["when"] if "budget" in op] if plain else []
    queued = any("options" in op for op in case["when"]) if plain else True
    malformed = case["id"] in ("charge-malformed-spend-1", "charge-malformed-spend-2")
    return plain and not queued and not malformed and all(set(budget) <= KEYS for budget in budgets)


def _ask(budget: dict[str, Any]) -> Amounts:
    usd = budget.get("maxUsd")
    cost = None if usd is None else nusd(usd)
    return (budget["maxIterations"], None, None, budget["maxTokens"], cost)


def _spend(spent: dict[str, Any]) -> Amounts:
    tokens = spent["tokens"]
    known = spent.get("tokensKnown", True) and tokens.get("cacheBreakdownKnown", True)
    fresh = tokens["input"] - tokens.get("cacheRead", 0) + tokens["output"]
    cost = nusd(spent["usd"]) if spent.get("usdKnown", True) else None
    return (spent["iterations"], 0, 0, fresh if known else None, cost)


class _World:
    """Runs the operations of a case and writes its answers in the words of the case."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.pool = ReservationPool(_ask(root))
        self.tickets: dict[str, Allocation] = {}

    def do(self, op: dict[str, Any]) -> dict[str, Any]:
        return getattr(self, f"_{op['op']}")(op)  # type: ignore[no-any-return]

    def _reserve(self, op: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self.pool.reserve(_ask(op["budget"]))
        except InputError:
            return {"throws": "non-negative"}
        if isinstance(answer, Allocation):
            self.tickets[op["as"]] = answer
            return {"ok": True}
        short = [(s.channel, s.asked, s.free) for s in answer.shortfalls]
        closed = answer.code is Code.SPEND_UNKNOWN
        return {"ok": False, "reason": str(Code.BUDGET_EXHAUSTED) if closed else str(answer.code), "shortfalls": short}

    def _reconcile(self, op: dict[str, Any]) -> dict[str, Any]:
        ticket = self.tickets[op["ticket"]]
        self.pool.charge(ticket, _spend(op["spent"]))
        over = self.pool.reconcile(ticket)
        return {"overspent": {o.channel for o in over}} if over else {}

    def _observe(self, op: dict[str, Any]) -> dict[str, Any]:
        self.pool.observe(_spend(op["spent"]))
        return {}

    def _assertNoOpenTickets(self, _op: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - the case's word
        return {"throws": "still open"} if any(self.pool.held()) else {}

    def readout(self) -> dict[str, Any]:
        fresh, cost = self.pool.root.accounts[FRESH], self.pool.root.accounts[COST]
        capped = cost.limit >= 0
        return {
            "tokensLeft": self.pool.free()[FRESH],
            "reservedTokens": self.pool.held()[FRESH],
            "tokensKnown": not fresh.unknown,
            "cacheBreakdownKnown": not fresh.unknown,
            "iterationsLeft": self.pool.free()[CALLS],
            "usdCapped": capped,
            "usdKnown": not cost.unknown,
            "usdLeft": (self.pool.free()[COST] or 0) / 1e9 if capped else 0,
        }


def _agrees(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether an answer is the same; where the first era raises after an overspend, ours is the later era's record."""
    if "throws" in theirs:
        return ("overspent" if "reserved" in theirs["throws"] else "throws") in ours
    if "returns" in theirs:
        return {NAMES[o["channel"]] for o in theirs["returns"]["overspent"]} == ours.get("overspent")
    if "shortfalls" in theirs:
        told = [(NAMES[s["channel"]], s["requested"], s["free"]) for s in theirs["shortfalls"]]
        told = [(c, int(a * 1e9), int(f * 1e9)) if c == "cost" else (c, a, f) for c, a, f in told]
        return sorted(told) == sorted(ours["shortfalls"]) and theirs["reason"] == ours["reason"]
    return {key: ours.get(key) for key in theirs} == theirs and "overspent" not in ours


def _agreement(case: dict[str, Any]) -> bool:
    if case["when"] == [{"op": "construct"}]:
        with pytest.raises(InputError):
            _World(case["given"]["root"])
        return True
    world, then = _World(case["given"]["root"]), case["then"]
    answers = [world.do(op) for op in case["when"]]
    same = all(_agrees(*pair) for pair in zip(then["op_results"], answers, strict=True))
    readout = world.readout()
    return same and all(readout[key] == value for key, value in then.get("readout", {}).items())


@pytest.mark.parametrize("case", _cases())
def test_a_case_of_tangles_pool_is_answered_as_there_unless_the_table_says_why_not(case: dict[str, Any]) -> None:
    if case["id"] == "pool-root-invalid-4":
        assert ReservationPool(amounts(tokens=case["given"]["root"]["maxTokens"])).free()[2] == 2**53
        return
    assert _agreement(case) == (case["id"] not in DEVIATIONS)
