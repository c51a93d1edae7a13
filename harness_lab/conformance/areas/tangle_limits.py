"""Cases of tangle about depth, deadlines and slots."""

from __future__ import annotations

from asyncio import CancelledError
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import Agents
from harness_lab.clock import NS_PER_S, Time
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.limits import SubagentBudget, SubagentLimits
from harness_lab.policies import Grant, Granted, SpawnAsk, Use, Wait, tree_limits
from harness_lab.policies.protocol import COMPLETED
from harness_lab.simulate import SimRuntime
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.policies.protocol import Ticket

NOW: Final = Time(0)
MS: Final = NS_PER_S // 1000
DEEPEST: Final = 1000
LATE: Final = Time(2**60)
"""Until when an ask that may wait does."""


def _op(case: Case, *names: str) -> Any:
    (when, *more) = case["when"]
    if more or when["op"] not in names:
        raise UnknownShape(f"nothing answers {case['area']} / {', '.join(op['op'] for op in case['when'])} yet")
    return when


def deadline(case: Case, _preset: str | None) -> Answer:
    """Bound a child's deadline by its parent's (0 is none there), or let time go by until one."""
    operations = {"bound": _bound, "finish_early": _finished_early, "teardown": _torn_down}
    names = {op["op"] for op in case["when"]}
    if names == {"advance"}:
        return _advanced(case)
    name = names.pop() if len(case["when"]) == 1 else ""
    if name not in operations:
        raise UnknownShape(f"nothing answers deadline / {', '.join(op['op'] for op in case['when'])}")
    return operations[name](case)


def _bound(case: Case) -> Answer:
    given = case["given"]
    lasts, above = given["child_duration"], given["parent_abs"]
    limits = SubagentLimits(timeout_s=None if lasts is None else lasts / 1000)
    parent = SubagentBudget(limits, deadline=Time(above * MS) if above else None)
    until = parent.child_deadline(Time(given["now"] * MS))
    return {"absolute": None if until is None else until // MS}


def _finished_early(case: Case) -> Answer:
    lasts = case["given"]["child"]["deadlineMs"]
    told, _, now = _child(lasts, sleeps_ms=lasts // 2)
    return {"kind": "done" if told == "what it made" else "down", "timers_left": int(now >= lasts * MS)}


def _advanced(case: Case) -> Answer:
    """Let time go by in steps; after each a child's deadline has come, or has not."""
    delay, now, names = case["given"]["delay_ms"], 0, ("first", "second", "third", "fourth")
    _, ended, _ = _child(delay, sleeps_ms=2 * delay)
    fired = {}
    for name, step in zip(names, case["when"], strict=False):
        now += step["ms"]
        fired[f"fired_after_{name}"] = ended <= now * MS
    return fired


def _torn_down(case: Case) -> Answer:
    """Let the time of a child be over that does not answer when it is told to end."""
    lasts = case["given"]["deadline_in_ms"]
    told, ended, _ = _child(lasts, sleeps_ms=100 * lasts, deaf=True)
    return {"raises": told, "parent_told_at_ms": ended // MS}


def _child(lasts_ms: int, *, sleeps_ms: int, deaf: bool = False) -> tuple[str, int, int]:
    """Run a child under a time limit: what its parent was told, when, and when everything was over."""
    runtime = SimRuntime()
    policy = tree_limits(timeout_s=lasts_ms / 1000, on_timeout="detach" if deaf else "cancel").start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    told: list[tuple[str, int]] = []

    async def child(_below: Agents, _task: Any) -> str:
        await _asleep(runtime, sleeps_ms, deaf=deaf)
        return "what it made"

    agents = Agents(runtime, policy, top.ticket, {"child": child})

    async def main() -> None:
        operation = agents.start("child")
        how = await operation.settled()
        told.append((str(how.error) if how.error is not None else str(how.value), runtime.now()))

    runtime.kernel.spawn(main(), "main")
    runtime.kernel.run()
    return told[0][0], told[0][1], runtime.now()


async def _asleep(runtime: SimRuntime, ms: int, *, deaf: bool) -> None:
    """Sleep; whoever is deaf goes on sleeping when it is told to end."""
    try:
        await runtime.sleep(ms * MS)
    except CancelledError:
        if not deaf:
            raise
        await runtime.sleep(ms * MS)


def admission(case: Case, _preset: str | None) -> Answer:
    """Ask to start a child at a depth."""
    _op(case, "spawn")
    policy = tree_limits(max_depth=case["given"]["maxDepth"]).start()
    node: Ticket | None = None
    for level in range(min(case["given"]["depth"], DEEPEST) + 2):
        answer = policy.spawn(SpawnAsk(node, tuple((0, 0, 0) for _ in range(level)), amounts()), NOW)
        if not isinstance(answer, Grant):
            reached = level == case["given"]["maxDepth"] + 1
            short = "shortfalls" if not hasattr(answer, "code") else str(answer.code)
            return {"ok": False, "reason": "depth-exceeded" if reached and short == "max-depth" else short}
        node = answer.ticket
    return {"ok": True}


def concurrency(case: Case, _preset: str | None) -> Answer:
    """Ask for slots: down a chain of managers, in line behind one that is taken, or for work that a restart found."""
    operations = {"acquire_chain": _chain, "release_repeatedly": _released}
    names = [op["op"] for op in case["when"]]
    if set(names) == {"acquire"}:
        return _acquired(case)
    if len(names) != 1 or names[0] not in operations:
        raise UnknownShape(f"nothing answers concurrency / {', '.join(names)}")
    return operations[names[0]](case)


def _chain(case: Case) -> Answer:
    """Let managers that only wait lend their slots down a chain."""
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


def _acquired(case: Case) -> Answer:
    """Take slots; what a restart found running asks like any other."""
    policy = tree_limits(max_concurrent=case["given"]["slots"]).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    for slot in range(len(case["when"])):
        policy.spawn(SpawnAsk(top.ticket, ((0, slot, 0),), amounts(), wait_until=LATE), NOW)
    return {"working": policy.modules[0].running}  # type: ignore[attr-defined]


def _released(case: Case) -> Answer:
    """Let waiters stand in line in the order given, those called deep below a manager, and give slots back in turn."""
    given = case["given"]
    policy = tree_limits(max_concurrent=given["slots"], lend=True).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    holders = [policy.spawn(SpawnAsk(top.ticket, ((0, i, 0),), amounts()), NOW) for i in range(given["slots"])]  # type: ignore[union-attr]
    manager = holders[0].ticket  # type: ignore[union-attr]
    inner = policy.spawn(SpawnAsk(manager, ((0, 0, 0), (0, 0, 0)), amounts(), awaited=True), NOW)
    names: dict[int, str] = {}
    for i, name in enumerate(given["waiting"], start=1):
        above = manager if name.startswith("deep") else top.ticket  # type: ignore[union-attr]
        path = (*above.path, (0, given["slots"] + i, 0))
        answer = policy.spawn(SpawnAsk(above, path, amounts(), wait_until=LATE), NOW)
        if not isinstance(answer, Wait):
            raise UnknownShape("a waiter that need not wait")
        names[id(answer.ticket)] = name
    order: list[str] = []
    ending = [manager, inner.ticket]  # type: ignore[union-attr]
    while ending and len(order) < len(names):
        policy.close(ending.pop(), Use(amounts()), COMPLETED, NOW)
        granted = [news.ticket for news in policy.outbox() if isinstance(news, Granted)]
        order += [names[id(ticket)] for ticket in granted]
        ending += granted
    return {"order": order}
