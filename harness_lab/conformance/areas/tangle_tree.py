"""Cases of tangle about keys, restarts, children that never settle, and starts that come too late."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Child, Event, ReservationsOpen, Scope, Spend, WorkFailed
from harness_lab.conformance.areas.tangle_readout import readout
from harness_lab.conformance.areas.tangle_settle import CHILD, ROOT, counts
from harness_lab.conformance.areas.tangle_values import ask_of, era_of, pool_of, token_channel
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.outcome import Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.conformance.shapes import Answer, Case

REASONS: Final = {
    Code.KEY_CONFLICT: "key-conflict",
    Code.KEY_IN_USE: "duplicate-key",
    Code.KEY_IN_DOUBT: "in-doubt",
    Code.PARENT_ENDED: "scope-settled",
}
HEARD: Final = {"environment destroyed": True, "destroyed=true": True, "destroyed=false": False, "no receipts": None}
"""What a release sweep hears of an environment."""
BAD_SPEND: Final = re.compile(r"terminal spend input=(-?\d+)\b.*")
RETAINED: Final = re.compile(r"(\w+) retained managers, (\d+) tokens each.*")
PLACES: Final = ("first", "second", "third", "fourth")
NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4}
STANDS: Final = {"waiting": "queued", "running": "running", "pending": "pending"}


def _again(scope: Scope) -> Scope:
    """Make a scope again from its journal, by way of text, as after a restart."""
    lines = [json.dumps(event.to_dict()) for event in scope.journal]
    return Scope.restore([Event.from_dict(json.loads(line)) for line in lines])


def _start(scope: Scope, name: str, era: str, **more: Any) -> Child:
    child = scope.spawn(name, ask_of(CHILD, era), **more)
    if not isinstance(child, Child):
        raise UnknownShape("a child that may not start")
    return child


def _end(scope: Scope, child: Child, told: str) -> None:
    how, _, reason = told.partition(": ")

    def work(meter: Callable[[Spend], None]) -> Any:
        meter(Spend(calls=1, input=10))
        if how == "down":
            raise WorkFailed(reason)
        return "what it made"

    if how not in ("done", "down"):
        raise UnknownShape(f"a child that is {told}")
    scope.run(child, work)


def keys(case: Case, preset: str | None) -> Answer:
    """Ask a second time for work with a key."""
    if [op["op"] for op in case["when"]] != ["spawn_again"]:
        raise UnknownShape("keys without a second spawn")
    given, era = case["given"], era_of(case)
    scope = Scope(pool_of(ROOT, era, preset))
    first = _start(scope, "first", era, key=given["key"], task="a task")
    if "in flight" not in given["first"]:
        _end(scope, first, given["first"])
    before = scope.pool.free()
    task = "another task" if "different" in given.get("second", "") else "a task"
    second = scope.spawn("second", ask_of(CHILD, era), key=given["key"], task=task)
    if isinstance(second, Child):
        return {"ok": True, "prior": second.prior or None, "reason": second.prior_reason}
    return {"ok": False, "reason": REASONS[second.code], "pool_unchanged": scope.pool.free() == before}


def resume(case: Case, preset: str | None) -> Answer:
    """Restart in the middle."""
    if [op["op"] for op in case["when"]] != ["restart"]:
        raise UnknownShape("a resume without a restart")
    given = case["given"]
    return _killed(case, preset) if isinstance(given["children"], list) else _queued(case, preset)


def _killed(case: Case, preset: str | None) -> Answer:
    era = era_of(case)
    scope = Scope(pool_of(ROOT, era, preset))
    told = [child.partition(" ")[::2] for child in case["given"]["children"]]
    for key, how in told:
        child = _start(scope, key, era, key=key)
        if how != "in flight":
            _end(scope, child, how)
    after = _again(scope)
    states = {child.key: child.state for child in after.children}
    answers = [after.spawn(key, ask_of(CHILD, era), key=key, again=era == "E1") for key, _ in told]
    done = [child for child in answers if isinstance(child, Child)]
    again = [child for child in done if child.prior != "done"]
    for child in again:
        _end(after, child, "done")
    best = after.best()
    leaks = after.finish(delivered=best is not None)
    return {
        "rehydrated": [child.key for child in done if child.prior == "done"],
        "re_executed": [child.key for child in again],
        "kind": "winner" if best is not None and not leaks else "no-winner",
        "reasons": [REASONS[answer.code] for answer in answers if not isinstance(answer, Child)],
        **{f"old_{key}_status": state for key, state in states.items()},
    }


def _queued(case: Case, preset: str | None) -> Answer:
    """Let managers whose execution was let go of come back after a restart: they stand in line for their shares."""
    given, era = case["given"], era_of(case)
    found = RETAINED.fullmatch(given["children"])
    if found is None or case["when"][0].get("outcome") != "cancel":
        raise UnknownShape(f"a restart with {given['children']!r}")
    number = NUMBERS.get(found[1]) or int(found[1])
    if number > len(PLACES):
        raise UnknownShape(f"{number} managers")
    scope = Scope(pool_of(given["root"], era, preset))
    for i in range(number):
        child = scope.spawn(f"manager {i}", ask_of({"maxIterations": 1, "maxTokens": int(found[2])}, era))
        if not isinstance(child, Child):
            raise UnknownShape("a manager that may not start")
        scope.retain(child)
    after = _again(scope)
    back = [after.resume(child, wait=True) for child in after.children]
    waiting = [child for child in back if isinstance(child, Child)]
    during = readout(after.pool, token_channel(era))
    stands = {f"{place}_status": STANDS[child.state] for place, child in zip(PLACES, waiting, strict=False)}
    for child in reversed(waiting):
        after.cancel(child)
    return {
        "during": during | stands,
        "spent_input": after.accounting().total.input,
        "settled": counts(after)["settled"],
        "fresh_runs_repeated": sum(child.begun for child in waiting),
    }


def never_settled(case: Case, preset: str | None) -> Answer:
    """Let a child go, or its scope end without it."""
    (when, *more) = case["when"]
    operations = {"release_sweep": _swept, "run": _leaked, "spawn": _late}
    if more or when["op"] not in operations:
        raise UnknownShape(f"nothing answers never-settled / {when['op']}")
    return operations[when["op"]](case, preset)


def _swept(case: Case, preset: str | None) -> Answer:
    heard, era = case["given"]["release"], era_of(case)
    if heard not in HEARD or "pending" not in case["given"]["child"]:
        raise UnknownShape(f"a sweep that hears {heard!r}")
    scope = Scope(pool_of(ROOT, era, preset))
    child = _start(scope, "child", era)
    scope.retain(child)
    if "not destroyed" in case["given"]["child"]:
        scope.release(child, destroyed=None)
    before = counts(scope)
    scope.release(child, destroyed=HEARD[heard])
    ended = child.settlement
    match = (
        None
        if ended is None
        else {"status": "done" if ended.completed else "down", "retainedExecution": ended.retained}
    )
    return {"before": before, "after": {**counts(scope), "settled_match": match}}


def _leaked(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    found = BAD_SPEND.fullmatch(given["child"])
    if found is None:
        raise UnknownShape(f"a child with {given['child']!r}")
    scope = Scope(pool_of(ROOT, era, preset))
    child = _start(scope, "child", era)
    child.begun = True
    with suppress(InputError):  # it then stays open: nobody can say what it used
        scope.settle(child, {"input": int(found[1])}, output="what it made")
    delivered = given["root_result"] == "winner"
    try:
        leaks = scope.finish(delivered=delivered)
    except ReservationsOpen as error:
        return {"raises": f"conserved-pool invariant violated: {error}"}
    facts = [
        {"assignment": leak.name, "stage": leak.stage, "has": _has(leak.ticket, leak.child, leak.name)}
        for leak in leaks
    ]
    return {
        "kind": "winner" if delivered else "no-winner",
        "tree_nodes": len(scope.children),
        "leakedReservations": len(leaks),
        "leak": facts[0] if facts else None,
    }


def _has(ticket: int | None, child: str, label: str) -> list[str]:
    named = {"ticketId": ticket, "childId": child, "label": label}
    return [name for name, value in named.items() if value is not None]


def _late(case: Case, preset: str | None) -> Answer:
    """Ask to start a child when its scope has ended."""
    if "drained" not in case["given"]["run"]:
        raise UnknownShape(f"a run whose {case['given']['run']}")
    era = era_of(case)
    scope = Scope(pool_of(ROOT, era, preset))
    _end(scope, _start(scope, "child", era), "done")
    best = scope.best()
    scope.finish(delivered=best is not None)
    entered: list[str] = []
    late = scope.spawn("late", ask_of(CHILD, era))
    if isinstance(late, Child):
        scope.run(late, lambda _meter: entered.append("entered"))
        return {"ok": True, "executor_entered": bool(entered)}
    kind = "no-winner" if best is None else "winner"
    return {"ok": False, "reason": REASONS[late.code], "executor_entered": bool(entered), "run_kind": kind}
