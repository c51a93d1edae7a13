"""Cases of the conserved pool: reserve, reconcile, observe, read out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Allocation, ReservationPool
from harness_lab.conformance.areas import tangle_queue
from harness_lab.conformance.areas.tangle_values import NAMES, ask_of, spent_of, told
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.limits import SubagentLimits
from harness_lab.outcome import CALLS, COST, FRESH, Code
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget import Overspend
    from harness_lab.conformance.shapes import Answer, Case

OURS: Final = {"maxIterations": "calls", "maxTokens": "fresh", "maxUsd": "cost", "deadlineMs": "timeout_s"}
"""What the limits of a pool are called here, as errors name them."""
NEGATIVE: Final = "must be non-negative"


def pool(case: Case) -> Answer:
    """Make a pool, carry out the operations, and read it out."""
    given = case["given"]
    unknown = set(given) - {"root", "derived_from", "note"}
    if unknown:
        raise UnknownShape(f"a pool has no {', '.join(sorted(unknown))} yet")
    if any("options" in op for op in case["when"]):
        return tangle_queue.queue(case)
    try:
        root = dict(given["root"])
        if (deadline := root.pop("deadlineMs", None)) is not None:
            SubagentLimits(timeout_s=deadline / 1000)  # a pool has no deadline of its own: its tree has a time limit
        world = _World(root, case.get("era", "E3"))
    except InputError as error:
        return {"throws": NEGATIVE, "field": _field(error)}
    results = [world.do(op) for op in case["when"] if op["op"] != "construct"]
    return {"op_results": results, "readout": world.readout()}


class _World:
    """A pool, its tickets, and its answers in the words of the cases."""

    def __init__(self, root: Mapping[str, Any], era: str) -> None:
        self.pool = ReservationPool(ask_of(root))
        self.tickets: dict[str, Allocation] = {}
        self.raises_overspend = era == "E1"

    def do(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry one operation out."""
        operations = {
            "reserve": self._reserve,
            "reconcile": self._reconcile,
            "observe": self._observe,
            "assertNoOpenTickets": self._no_open_tickets,
        }
        if op["op"] not in operations or "partial" in op:
            raise UnknownShape(f"the pool's operation {op['op']}")
        return operations[op["op"]](op)

    def _reserve(self, op: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer = self.pool.reserve(ask_of(op["budget"]))
        except InputError:
            return {"throws": NEGATIVE}
        if isinstance(answer, Allocation):
            self.tickets[op["as"]] = answer
            return {"ok": True}
        short = [
            {"channel": NAMES[s.channel], "requested": told(s.channel, s.asked), "free": told(s.channel, s.free)}
            for s in answer.shortfalls
        ]
        code = Code.BUDGET_EXHAUSTED if answer.code is Code.SPEND_UNKNOWN else answer.code
        return {"ok": False, "reason": str(code), "shortfalls": short}

    def _reconcile(self, op: Mapping[str, Any]) -> dict[str, Any]:
        ticket = self.tickets[op["ticket"]]
        try:
            self.pool.charge(ticket, spent_of(op["spent"]))
        except InputError as error:
            return {"throws": str(error)}
        over = self.pool.reconcile(ticket)
        if self.raises_overspend and over:
            return {"throws": "; ".join(map(_spelled, over))}
        facts = [
            {"channel": NAMES[o.channel], "reserved": told(o.channel, o.held), "spent": told(o.channel, o.spent)}
            for o in over
        ]
        return {"returns": {"overspent": facts}} if facts else {}

    def _observe(self, op: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self.pool.observe(spent_of(op["spent"]))
        except InputError as error:
            return {"throws": str(error)}
        return {}

    def _no_open_tickets(self, _op: Mapping[str, Any]) -> dict[str, Any]:
        return {"throws": "reservations are still open"} if any(self.pool.held()) else {}

    def readout(self) -> dict[str, Any]:
        """Return what is left, held and known."""
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
            "usdLeft": (self.pool.free()[COST] or 0) / NUSD_PER_USD if capped else 0,
        }


def _field(error: InputError) -> str:
    return next((field for field, name in OURS.items() if name in error.what), error.what)


def _spelled(over: Overspend) -> str:
    held, spent = told(over.channel, over.held), told(over.channel, over.spent)
    if over.channel == "cost":
        return f"spent ${spent} > reserved ${held}"
    return f"spent {spent} {NAMES[over.channel]} > reserved {held}"
