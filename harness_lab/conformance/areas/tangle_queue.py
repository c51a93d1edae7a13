"""Cases of the conserved pool in which asks wait, or their parent keeps a part: children of one scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Child, Scope, Spend
from harness_lab.conformance.areas.tangle_readout import checked, readout
from harness_lab.conformance.areas.tangle_values import (
    ask_of,
    era_of,
    overspent,
    pool_of,
    resources_of,
    shortfall,
    spend_of,
    token_channel,
)
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.outcome import CALLS, COST, Refusal
from harness_lab.usage import Amounts, nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case

STANDS: Final = {"running": "granted", "waiting": "waiting"}


def queue(case: Case, preset: str | None) -> Answer:
    """Carry out reservations of which some may wait."""
    world = _World(case, preset)
    return {"op_results": [world.do(op) for op in case["when"]], "readout": world.readout()}


class _World:
    """A scope, its children by name, and how each stands."""

    def __init__(self, case: Case, preset: str | None) -> None:
        self.era = era_of(case)
        self.scope = Scope(pool_of(case["given"]["root"], self.era, preset))
        self.children: dict[str, Child] = {}

    def do(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry one operation out."""
        operations = {
            "reserve": self._reserve,
            "reconcile": self._reconcile,
            "check": self._check,
            "assertNoOpenTickets": self._no_open_tickets,
        }
        if op["op"] not in operations:
            raise UnknownShape(f"the queue's operation {op['op']!r}")
        return operations[op["op"]](op)

    def _reserve(self, op: Mapping[str, Any]) -> dict[str, Any]:
        options = op.get("options", {})
        if set(options) - {"wait", "keep"}:
            raise UnknownShape(f"a reservation with {', '.join(sorted(set(options) - {'wait', 'keep'}))}")
        answer = self.scope.spawn(
            op["as"],
            ask_of(op["budget"], self.era),
            resources=resources_of(op["budget"]),
            keep=self._keep(options.get("keep")),
            wait=options.get("wait", False),
        )
        if isinstance(answer, Child):
            self.children[op["as"]] = answer
            return {"ok": True}
        held = dict(zip(self.scope.pool.channels, self.scope.pool.held(), strict=True))
        shorts = [shortfall(short, held[short.channel]) for short in answer.shortfalls]
        return {"ok": False, "reason": str(answer.code), "shortfalls": shorts}

    def _keep(self, keep: Mapping[str, Any] | None) -> Amounts | None:
        if keep is None:
            return None
        if set(keep) - {"tokens", "iterations", "usd"}:
            raise UnknownShape("a share that is kept in another channel")
        kept: list[int | None] = [None] * 5
        kept[CALLS], kept[token_channel(self.era)] = keep.get("iterations"), keep.get("tokens")
        kept[COST] = nusd(keep["usd"]) if "usd" in keep else None
        return tuple(kept)

    def _reconcile(self, op: Mapping[str, Any]) -> dict[str, Any]:
        child, spent = self.children.get(op["ticket"]), spend_of(op["spent"])
        if child is None:
            return {"throws": "unknown or closed ticket"}
        if child.state == "running":
            facts = overspent(self.scope.settle(child, spent).overspent)
            return {"returns": facts} if facts else {}
        if spent != Spend():
            raise UnknownShape("a use of what was never granted")
        if child.state == "waiting":
            self.scope.cancel(child)
        return {}

    def _check(self, op: Mapping[str, Any]) -> dict[str, Any]:
        stands = {name: _stands(child) for name, child in self.children.items()}
        return checked(op, self.readout(), stands, len(self.scope.open_reservations()))

    def _no_open_tickets(self, _op: Mapping[str, Any]) -> dict[str, Any]:
        return {"throws": "reservations are still open"} if self.scope.open_reservations() else {}

    def readout(self) -> dict[str, Any]:
        """Return what is left and held."""
        return readout(self.scope.pool, token_channel(self.era))


def _stands(child: Child) -> str:
    return "refused" if isinstance(child.refusal, Refusal) else STANDS.get(child.state, child.state)
