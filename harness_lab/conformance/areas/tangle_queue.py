"""Cases of the conserved pool in which asks wait: children of one root under a policy that queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.clock import Time
from harness_lab.conformance.areas.tangle_values import NAMES, ask_of, spent_of, told
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.outcome import CALLS, COST, FRESH, Cause, Outcome
from harness_lab.policies import Grant, Granted, Refused, SpawnAsk, StepAsk, Use, Wait, reservation_pool
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.usage import NUSD_PER_USD, amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import Ticket

NOW: Final = Time(0)
LATE: Final = Time(2**60)
"""Until when an ask that may wait does."""
WITHDRAWN: Final = End(Outcome.CANCELLED, None, Cause.USER)


def queue(case: Case) -> Answer:
    """Carry out reservations of which some may wait."""
    world = _World(case["given"]["root"])
    return {"op_results": [world.do(op) for op in case["when"]], "readout": world.readout()}


class _World:
    """A root under a policy with a pool, its children by name, and how each stands."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        limits = ask_of(root)
        cost = limits[COST]
        usd = None if cost is None else cost / NUSD_PER_USD
        self.policy = reservation_pool(calls=limits[CALLS], fresh=limits[FRESH], cost_usd=usd, inside="record").start()
        top = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        if not isinstance(top, Grant):
            raise UnknownShape("a root that may not start")
        self.top = top.ticket
        self.pool = self.policy.modules[0].pool  # type: ignore[attr-defined]
        self.tickets: dict[str, Ticket] = {}
        self.stands: dict[str, str] = {}

    def do(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry one operation out, and take the news."""
        operations = {
            "reserve": self._reserve,
            "reconcile": self._reconcile,
            "check": self._check,
            "assertNoOpenTickets": self._no_open_tickets,
        }
        if op["op"] not in operations:
            raise UnknownShape(f"the queue's operation {op['op']!r}")
        answer = operations[op["op"]](op)
        named = {id(ticket): name for name, ticket in self.tickets.items()}
        for news in self.policy.outbox():
            if isinstance(news, (Granted, Refused)):
                self.stands[named[id(news.ticket)]] = "granted" if isinstance(news, Granted) else "refused"
        return answer

    def _reserve(self, op: Mapping[str, Any]) -> dict[str, Any]:
        options = op.get("options", {})
        if set(options) - {"wait"}:
            raise UnknownShape(f"a reservation with {', '.join(sorted(set(options) - {'wait'}))}")
        path = ((0, len(self.tickets), 0),)
        until = LATE if options.get("wait") else None
        answer = self.policy.spawn(SpawnAsk(self.top, path, ask_of(op["budget"]), wait_until=until), NOW)
        if isinstance(answer, (Grant, Wait)):
            self.tickets[op["as"]] = answer.ticket
            self.stands[op["as"]] = "granted" if isinstance(answer, Grant) else "waiting"
            return {"ok": True}
        return {"ok": False, "reason": str(answer.code), "shortfalls": self._shortfalls(answer)}

    def _shortfalls(self, refusal: Refusal) -> list[dict[str, Any]]:
        held = dict(zip(("calls", "input", "tokens", "fresh", "cost"), self.pool.held(), strict=True))
        return [
            {
                "channel": NAMES[short.channel],
                "requested": told(short.channel, short.asked),
                "free": told(short.channel, short.free),
                "held": told(short.channel, held[short.channel]),
            }
            for short in refusal.shortfalls
        ]

    def _reconcile(self, op: Mapping[str, Any]) -> dict[str, Any]:
        ticket, spent = self.tickets[op["ticket"]], spent_of(op["spent"])
        stands = self.stands[op["ticket"]]
        if stands == "waiting":
            self.policy.close(ticket, Use(spent, "unsent"), WITHDRAWN, NOW)
        elif stands == "granted":
            if any(spent):
                step = self.policy.admit(StepAsk(ticket, 0, 0, amounts()), NOW)
                if isinstance(step, Grant):
                    self.policy.settle(step.ticket, Use(spent), NOW)
            self.policy.close(ticket, Use(amounts()), COMPLETED, NOW)
        self.stands[op["ticket"]] = "ended"
        return {}

    def _check(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing where everything is as the case says, else what is otherwise."""
        unknown = set(op) - {"op", "readout", "waiters", "openReservations"}
        if unknown:
            raise UnknownShape(f"a check of {', '.join(sorted(unknown))}")
        read = self.readout()
        wrong = {name: read.get(name) for name, value in op.get("readout", {}).items() if read.get(name) != value}
        wrong |= {who: self.stands[who] for who, how in op.get("waiters", {}).items() if self.stands[who] != how}
        held = sum(stands == "granted" for stands in self.stands.values())
        if op.get("openReservations", held) != held:
            wrong["openReservations"] = held
        return {"check": wrong} if wrong else {}

    def _no_open_tickets(self, _op: Mapping[str, Any]) -> dict[str, Any]:
        return {"throws": "reservations are still open"} if any(self.pool.held()) else {}

    def readout(self) -> dict[str, Any]:
        """Return what is left and held."""
        free, held = self.pool.free(), self.pool.held()
        return {"tokensLeft": free[FRESH], "reservedTokens": held[FRESH], "iterationsLeft": free[CALLS]}
