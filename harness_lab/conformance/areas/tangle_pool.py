"""Cases of the conserved pool: reserve, reconcile, observe, restore, read out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Allocation, BudgetFault, ReservationPool, ScopeSpec
from harness_lab.conformance.areas import tangle_queue
from harness_lab.conformance.areas.tangle_readout import checked, readout
from harness_lab.conformance.areas.tangle_values import (
    NEGATIVE,
    ask_of,
    complaint,
    era_of,
    fault_text,
    field_of,
    overspent,
    pool_of,
    resources_of,
    shortfall,
    spend_of,
    token_channel,
)
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.outcome import Refusal

REASONS: Final = {Code.SPEND_UNKNOWN: "budget-exhausted", Code.UNBUDGETED: "usd-unbudgeted"}
"""Codes that tangle spells otherwise."""
MS: Final = 1_000_000


def pool(case: Case, preset: str | None) -> Answer:
    """Make a pool, carry out the operations, and read it out."""
    given, era = case["given"], era_of(case)
    unknown = set(given) - {"root", "restore", "derived_from", "note"}
    if unknown:
        raise UnknownShape(f"a pool with {', '.join(sorted(unknown))}")
    if any("options" in op for op in case["when"]):
        return tangle_queue.queue(case, preset)
    try:
        until = _deadline(given["root"])
        made = _made(given, era, preset)
    except _Complaint as error:
        return {"throws": f"restore {error}"}
    except InputError as error:
        return {"throws": f"{field_of(error)} {NEGATIVE}", "field": field_of(error)}
    world = _World(made, era)
    results = [world.do(op) for op in case["when"] if op["op"] != "construct"]
    return {"op_results": results, "readout": {**readout(made, world.tokens), "deadlineMs": until}}


class _Complaint(Exception):
    """What is wrong with a restore, spelled."""


def _deadline(root: Mapping[str, Any]) -> int:
    lasts = root.get("deadlineMs")
    plain = {name: value for name, value in root.items() if name in ("maxIterations", "maxTokens")}
    spec = ScopeSpec(limits=ask_of(plain), lasts_s=None if lasts is None else lasts / 1000)
    until = spec.start().deadline
    return 0 if until is None else until // MS


def _made(given: Mapping[str, Any], era: str, preset: str | None) -> ReservationPool:
    fresh = pool_of(given["root"], era, preset)
    if "restore" not in given:
        return fresh
    restore = given["restore"]
    if set(restore) - {"committed", "uncertainReservations"}:
        raise UnknownShape("a restore with more than what was committed and what is uncertain")
    try:
        committed = spend_of(restore["committed"]) if "committed" in restore else None
    except InputError as error:
        raise _Complaint(f"committed.{complaint(error)}") from error
    uncertain = [fresh.ask(ask_of(ask, era), resources_of(ask)) for ask in restore.get("uncertainReservations", [])]
    return ReservationPool.restore(
        ask_of(given["root"], era),
        committed=committed,
        uncertain=uncertain,
        resources=resources_of(given["root"]),
        rules=preset,
    )


class _World:
    """A pool, its tickets, and its answers in the words of the cases."""

    def __init__(self, pool: ReservationPool, era: str) -> None:
        self.pool = pool
        self.era = era
        self.tokens = token_channel(era)
        self.tickets: dict[str, Allocation] = {}

    def do(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry one operation out."""
        operations = {
            "reserve": self._reserve,
            "reconcile": self._reconcile,
            "observe": self._observe,
            "check": self._check,
            "assertNoOpenTickets": self._no_open_tickets,
        }
        if op["op"] not in operations:
            raise UnknownShape(f"the pool's operation {op['op']}")
        try:
            return operations[op["op"]](op)
        except BudgetFault as fault:
            return {"throws": fault_text(fault)}
        except InputError as error:
            return {"throws": complaint(error)}
        except AlreadySettled as error:
            return {"throws": f"unknown or closed ticket: {error}"}

    def _reserve(self, op: Mapping[str, Any]) -> dict[str, Any]:
        ask, resources = ask_of(op["budget"], self.era), resources_of(op["budget"])
        answer = self.pool.reserve(self.pool.ask(ask, resources) if resources or self.pool.units else ask)
        if isinstance(answer, Allocation):
            self.tickets[op["as"]] = answer
            return {"ok": True}
        return refused(answer)

    def _reconcile(self, op: Mapping[str, Any]) -> dict[str, Any]:
        ticket = self.tickets.get(op["ticket"])
        if ticket is None:  # never asked for, or refused: there is nothing to hand to the pool
            return {"throws": "unknown or closed ticket"}
        facts = overspent(self.pool.reconcile(ticket, spend_of(op["spent"])))
        return {"returns": facts} if facts else {}

    def _observe(self, op: Mapping[str, Any]) -> dict[str, Any]:
        self.pool.observe(spend_of(op["spent"]), partial=op.get("partial", False))
        return {}

    def _check(self, op: Mapping[str, Any]) -> dict[str, Any]:
        return checked(op, readout(self.pool, self.tokens), {}, self._open())

    def _open(self) -> int:
        return sum(ticket.closed is None for ticket in self.tickets.values())

    def _no_open_tickets(self, _op: Mapping[str, Any]) -> dict[str, Any]:
        return {"throws": f"{self._open()} reservation(s) still open"} if self._open() else {}


def refused(answer: Refusal) -> dict[str, Any]:
    """Return a refusal in the words of the cases."""
    shorts = [shortfall(short) for short in answer.shortfalls if short.code is not Code.UNBUDGETED]
    return {"ok": False, "reason": REASONS.get(answer.code, str(answer.code)), "shortfalls": shorts}
