"""Cases of the conserved pool: reserve, reconcile, observe, read out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Allocation, ReservationPool
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, COST, FRESH, Code
from harness_lab.usage import NUSD_PER_USD, Amounts, TokenCounts, nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget import Overspend
    from harness_lab.conformance.shapes import Answer, Case

FIELDS: Final = {"maxIterations": CALLS, "maxTokens": FRESH, "maxUsd": COST}
NAMES: Final = {"fresh": "tokens", "calls": "iterations", "cost": "usd"}
"""Channels, as tangle calls them; its tokens are the newly presented ones."""
NEGATIVE: Final = "must be non-negative"
FLAGS: Final = ("tokensKnown", "cacheBreakdownKnown")
SPLIT: Final = ("freshInput", "cacheRead", "cacheWrite")


def pool(case: Case) -> Answer:
    """Make a pool, carry out the operations, and read it out."""
    given = case["given"]
    unknown = set(given) - {"root", "derived_from", "note"}
    if unknown:
        raise UnknownShape(f"a pool has no {', '.join(sorted(unknown))} yet")
    try:
        world = _World(given["root"], case.get("era", "E3"))
    except InputError as error:
        return {"throws": NEGATIVE, "field": _field(error)}
    results = [world.do(op) for op in case["when"] if op["op"] != "construct"]
    return {"op_results": results, "readout": world.readout()}


class _World:
    """A pool, its tickets, and its answers in the words of the cases."""

    def __init__(self, root: Mapping[str, Any], era: str) -> None:
        self.pool = ReservationPool(_ask(root))
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
        if op["op"] not in operations or "options" in op or "partial" in op:
            raise UnknownShape(f"the pool's operation {op['op']} {op.get('options', '')}".rstrip())
        return operations[op["op"]](op)

    def _reserve(self, op: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer = self.pool.reserve(_ask(op["budget"]))
        except InputError:
            return {"throws": NEGATIVE}
        if isinstance(answer, Allocation):
            self.tickets[op["as"]] = answer
            return {"ok": True}
        short = [
            {"channel": NAMES[s.channel], "requested": _told(s.channel, s.asked), "free": _told(s.channel, s.free)}
            for s in answer.shortfalls
        ]
        code = Code.BUDGET_EXHAUSTED if answer.code is Code.SPEND_UNKNOWN else answer.code
        return {"ok": False, "reason": str(code), "shortfalls": short}

    def _reconcile(self, op: Mapping[str, Any]) -> dict[str, Any]:
        ticket = self.tickets[op["ticket"]]
        try:
            self.pool.charge(ticket, _spent(op["spent"]))
        except InputError as error:
            return {"throws": str(error)}
        over = self.pool.reconcile(ticket)
        if self.raises_overspend and over:
            return {"throws": "; ".join(map(_spelled, over))}
        facts = [
            {"channel": NAMES[o.channel], "reserved": _told(o.channel, o.held), "spent": _told(o.channel, o.spent)}
            for o in over
        ]
        return {"returns": {"overspent": facts}} if facts else {}

    def _observe(self, op: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self.pool.observe(_spent(op["spent"]))
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


def _ask(budget: Mapping[str, Any]) -> Amounts:
    unknown = set(budget) - set(FIELDS)
    if unknown:
        raise UnknownShape(f"a pool's budget has no {', '.join(sorted(unknown))} yet")
    usd = budget.get("maxUsd")
    return (budget["maxIterations"], None, None, budget["maxTokens"], None if usd is None else nusd(usd))


def _spent(spent: Mapping[str, Any]) -> Amounts:
    """Return what was used: newly presented tokens, unknown where their count or their split is."""
    tokens = spent["tokens"]
    if set(spent) - {"iterations", "tokens", "usd", "ms", "tokensKnown", "usdKnown"}:
        raise UnknownShape("use of a named resource")
    for flag in FLAGS:
        if tokens.get(flag, False) is not False:
            raise UnknownShape(f"tokens with {flag} {tokens[flag]!r}")
    known = spent.get("tokensKnown", True) and not any(flag in tokens for flag in FLAGS)
    fresh = _counts(tokens).newly_presented if known else None
    cost = nusd(spent["usd"]) if spent.get("usdKnown", True) else None
    return (spent["iterations"], 0, 0, fresh, cost)


def _counts(tokens: Mapping[str, Any]) -> TokenCounts:
    """Return disjoint counts; an input that its split does not add up to cannot be said in them."""
    read, written = tokens.get("cacheRead", 0), tokens.get("cacheWrite", 0)
    fresh = tokens.get("freshInput", tokens["input"])
    return TokenCounts(input_fresh=fresh, cache_read=read, cache_write=written, output=tokens["output"])


def _field(error: InputError) -> str:
    return next((field for field in FIELDS if NAMES_OF[field] in error.what), error.what)


NAMES_OF: Final = {"maxIterations": "calls", "maxTokens": "fresh", "maxUsd": "cost"}


def _told(channel: str, amount: int | None) -> float | int | None:
    if amount is None or channel != "cost":
        return amount
    whole, part = divmod(amount, NUSD_PER_USD)
    return amount / NUSD_PER_USD if part else whole


def _spelled(over: Overspend) -> str:
    held, spent = _told(over.channel, over.held), _told(over.channel, over.spent)
    if over.channel == "cost":
        return f"spent ${spent} > reserved ${held}"
    return f"spent {spent} {NAMES[over.channel]} > reserved {held}"
