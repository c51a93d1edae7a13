"""Cases of tangle about depth, deadlines, slots, and of children that run inside their reservation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Allocation, ReservationPool
from harness_lab.clock import NS_PER_S, Time
from harness_lab.conformance.areas.tangle_values import NAMES, ask_of, spent_of, told
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.limits import SubagentBudget, SubagentLimits
from harness_lab.outcome import COST, FRESH
from harness_lab.policies import Grant, SpawnAsk, tree_limits
from harness_lab.usage import NUSD_PER_USD, amounts

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.policies.protocol import Ticket

NOW: Final = Time(0)
MS: Final = NS_PER_S // 1000
DEEPEST: Final = 1000
EVENT: Final = re.compile(r"(?:(\d+)x )?(iteration|tokens (\d+)/(\d+)|cost ([\d.]+))( usdKnown=false)?")


def _op(case: Case, *names: str) -> Any:
    (when, *more) = case["when"]
    if more or when["op"] not in names:
        raise UnknownShape(f"nothing answers {case['area']} / {', '.join(op['op'] for op in case['when'])} yet")
    return when


def deadline(case: Case) -> Answer:
    """Bound a child's deadline by its parent's; 0 is none there."""
    _op(case, "bound")
    given = case["given"]
    lasts, above = given["child_duration"], given["parent_abs"]
    limits = SubagentLimits(timeout_s=None if lasts is None else lasts / 1000)
    parent = SubagentBudget(limits, deadline=Time(above * MS) if above else None)
    until = parent.child_deadline(Time(given["now"] * MS))
    return {"absolute": None if until is None else until // MS}


def admission(case: Case) -> Answer:
    """Ask to start a child at a depth."""
    _op(case, "spawn")
    policy = tree_limits(max_depth=case["given"]["maxDepth"]).start()
    node: Ticket | None = None
    for level in range(min(case["given"]["depth"], DEEPEST) + 2):
        answer = policy.spawn(SpawnAsk(node, tuple((0, 0, 0) for _ in range(level)), amounts()), NOW)
        if not isinstance(answer, Grant):
            reached = level == case["given"]["depth"] + 1
            short = "shortfalls" if not hasattr(answer, "code") else str(answer.code)
            return {"ok": False, "reason": "depth-exceeded" if reached and short == "max-depth" else short}
        node = answer.ticket
    return {"ok": True}


def concurrency(case: Case) -> Answer:
    """Let managers that only wait lend their slots down a chain."""
    _op(case, "acquire_chain")
    given = case["given"]
    policy = tree_limits(max_concurrent=given["slots"], lend=True).start()
    chain: list[Ticket] = []
    for level in range(min(given["depth"], DEEPEST) + 1):
        ask = SpawnAsk(chain[-1] if chain else None, tuple((0, 0, 0) for _ in range(level)), amounts(), awaited=True)
        answer = policy.spawn(ask, NOW)
        if not isinstance(answer, Grant):
            break
        chain.append(answer.ticket)
    sibling = policy.spawn(SpawnAsk(chain[0], ((0, 1, 0),), amounts()), NOW)
    return {
        "all_granted": len(chain) == given["depth"] + 1,
        "working": policy.modules[0].running,  # type: ignore[attr-defined]
        "sibling_granted": isinstance(sibling, Grant),
    }


def settlement(case: Case) -> Answer:
    """Run one child inside its reservation and read how it ended and what is left."""
    _op(case, "run_child")
    given = case["given"]
    if "root" not in given or isinstance(given.get("spent", {}), str):
        raise UnknownShape("a child whose use is told in words")
    pool = ReservationPool(ask_of(given["root"]))
    child = pool.reserve(ask_of(given["child"]))
    if not isinstance(child, Allocation):
        return {"kind": "refused"}
    for spent in [given["spent"]] if "spent" in given else _spends(given["events"]):
        pool.charge(child, spent_of(spent))
    over = [
        {"channel": NAMES[o.channel], "reserved": told(o.channel, o.held), "spent": told(o.channel, o.spent)}
        for o in pool.reconcile(child)
    ]
    failed = given.get("outcome", {}).get("success") is False
    violation: Any = {"overspent": over} if over else None
    if isinstance(case["then"].get("budgetViolation"), bool):
        violation = bool(over)
    return {
        "kind": "down" if failed else "done",
        "reason": given.get("outcome", {}).get("error"),
        "budgetViolation": violation,
        "readout": _readout(pool),
    }


def _readout(pool: ReservationPool) -> dict[str, Any]:
    cost = pool.root.accounts[COST]
    left = pool.free()[COST]
    return {
        "tokensLeft": pool.free()[FRESH],
        "reservedTokens": pool.held()[FRESH],
        "tokensKnown": not pool.root.accounts[FRESH].unknown,
        "usdKnown": not cost.unknown,
        "usdLeft": 0 if left is None else left / NUSD_PER_USD,
    }


def _spends(events: list[str]) -> list[dict[str, Any]]:
    """Return the use that each event tells of."""
    spends: list[dict[str, Any]] = []
    for event in events:
        found = EVENT.fullmatch(event)
        if found is None:
            raise UnknownShape(f"the event {event!r}")
        times, kind, read, written, usd, unknown = found.groups()
        tokens = {"input": int(read or 0), "output": int(written or 0)}
        spend = {"iterations": int(kind == "iteration"), "tokens": tokens, "usd": float(usd or 0)}
        spends += [spend | ({"usdKnown": False} if unknown else {})] * min(int(times or 1), DEEPEST)
    return spends
