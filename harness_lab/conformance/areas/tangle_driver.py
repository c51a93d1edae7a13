"""Cases of tangle about drivers: their own turns beside their children's work, and when they stop."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import Driven, Turn, drive
from harness_lab.budget import UNREPORTED, BudgetFault, Child, ReservationPool, Scope, ScopeSpec, Spend, WorkFailed
from harness_lab.conformance.areas.tangle_settle import counts
from harness_lab.conformance.areas.tangle_values import ask_of, era_of, fault_text, pool_of, token_channel, told
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.conformance.shapes import Answer, Case

USE: Final = re.compile(r"(?:(\d+)/(\d+))?\s*(?:\$([\d.]+))?")
METERS: Final = re.compile(r"meters (.+) then crashes")
SCORED: Final = re.compile(r"([\d.]+) valid")
WORKER: Final = "10/5"
"""What a worker uses of which a case says nothing."""
ROOT: Final = {"maxIterations": 100, "maxTokens": 100_000}
MOST_TURNS: Final = 1000
REASONS: Final = {"failed": "driver-failed", "budget": "budget-exhausted"}


def driver(case: Case, preset: str | None) -> Answer:
    """Let a driver take turns."""
    if [op["op"] for op in case["when"]] != ["run"]:
        raise UnknownShape("a driver that does not run")
    given = case["given"]
    shapes: dict[str, Callable[[Case, str | None], Answer]] = {
        "driver_turns": _breakdown, "root_turns": _nested_turns, "nested": _nested_share, "turns": _unreported,
        "sub": _crashed, "turn": _guarded,
        "perWorker": _guarded,
    }  # fmt: skip
    found = next((shape for field, shape in shapes.items() if field in given), None)
    if found is None:
        raise UnknownShape(f"a driver with {', '.join(sorted(given))}")
    return found(case, preset)


def supervisor(case: Case, preset: str | None) -> Answer:
    """Let a driver take turns until it has delivered, or run children and take the best."""
    given = case["given"]
    if "turns" in given:
        scope = Scope(pool_of(ROOT, era_of(case), preset))

        async def turn(_scope: Scope, number: int) -> Turn:
            return Turn(spend=Spend(), delivered=given["turns"][number - 1] == "deliver")

        driven = asyncio.run(drive(scope, turn, max_turns=len(given["turns"])))
        return {"drives": driven.turns, "kind": _kind(driven)}
    scope = Scope(pool_of(ROOT, era_of(case), preset))

    async def once(scope: Scope, _number: int) -> Turn:
        for told_of in given["children"]:
            _child(scope, told_of, era_of(case))
        return Turn(spend=Spend(), delivered=scope.best() is not None)

    driven = asyncio.run(drive(scope, once, max_turns=1))
    best = None if driven.best is None or driven.best.score is None else f"{driven.best.score:g}"
    return {"kind": _kind(driven), "best": best, "spent_input": scope.accounting().total.input}


def _child(scope: Scope, told_of: str, era: str) -> None:
    scored = SCORED.fullmatch(told_of)
    if scored is None and told_of != "down":
        raise UnknownShape(f"a child that is {told_of}")
    child = _started(scope, told_of, era)
    if scored is None:
        scope.run(child, _crash)
    else:
        scope.settle(child, _use(WORKER, calls=1), output=told_of, score=float(scored[1]))


def _crash(_meter: Callable[[Spend], None]) -> Any:
    raise WorkFailed("it went down")


def _started(scope: Scope, name: str, era: str, budget: Mapping[str, Any] | None = None) -> Child:
    ask = ask_of(budget if budget is not None else {"maxIterations": 1, "maxTokens": 1_000}, era)
    child = scope.spawn(name, ask)
    if not isinstance(child, Child):
        raise UnknownShape("a child that may not start")
    return child


def _breakdown(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    scope = Scope(pool_of(given["root"], era, preset))
    worker = _use(given["worker"], calls=1)

    async def turn(scope: Scope, number: int) -> Turn:
        if number == 1:
            child = _started(scope, "worker", era, {"maxIterations": 1, "maxTokens": worker.total})
            scope.settle(child, worker, output="what it made")
        spent = _use(given["driver_turns"][number - 1])
        return Turn(spend=spent, delivered=number == len(given["driver_turns"]))

    driven = asyncio.run(drive(scope, turn, max_turns=len(given["driver_turns"])))
    return {"kind": _kind(driven), "turns": driven.turns, **_accounts(scope, era)}


def _nested_turns(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    scope = Scope(pool_of(ROOT, era, preset))
    scope.turn(_use(given["root_turns"]))
    middle = _started(scope, "middle", era, {"maxIterations": 10, "maxTokens": 10_000})
    below = scope.nested(middle)
    below.turn(_use(given["mid_turns"]))
    below.settle(_started(below, "leaf", era), _use(given["leaf"], calls=1))
    scope.settle(middle)
    return _accounts(scope, era)


def _nested_share(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    scope = Scope(pool_of(given["root"], era, preset))
    middle = _started(scope, "middle", era, given["nested"])
    below = scope.nested(middle)
    leaf = _use(given["leaf_spends"], calls=1)
    share = {"maxIterations": 1, "maxTokens": min(leaf.total, given["nested"]["maxTokens"])}
    below.settle(_started(below, "leaf", era, share), leaf)
    scope.settle(middle)
    return _accounts(scope, era)


def _unreported(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    scope = Scope(pool_of(given.get("root", ROOT), era, preset))

    async def turn(_scope: Scope, number: int) -> Turn:
        return Turn(spend=_use(given["turns"][number - 1]))

    driven = asyncio.run(drive(scope, turn, max_turns=len(given["turns"])))
    written = [event.data for event in scope.journal if event.kind == "metered"]
    unknown = [data for data in written if not data["tokens_known"]]
    shapes = [
        {"input": d["input"], "output": d["output"], "tokensKnown": d["tokens_known"], "usdKnown": d["cost_known"]}
        for d in unknown
    ]
    return {
        "kind": _kind(driven),
        "metered_records": len(written),
        "unknown_records": len(unknown),
        "unknown_shape": shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else None,
        "spentTotal_tokensKnown": scope.accounting().total.tokens_known,
    }


def _crashed(case: Case, preset: str | None) -> Answer:
    """Let a driver below another take a turn and crash: what it used stays in the journal, under its name."""
    found = METERS.fullmatch(case["given"]["sub"])
    if found is None:
        raise UnknownShape(f"a driver that {case['given']['sub']}")
    scope = Scope(pool_of(ROOT, era_of(case), preset))
    sub = _started(scope, "sub", era_of(case))

    def work(_meter: Callable[[Spend], None]) -> Any:
        scope.nested(sub).turn(_use(found[1]))
        raise RuntimeError("it crashed")

    scope.run(sub, work)
    written = [event.data for event in scope.journal if event.kind == "metered" and event.by == sub.id]
    tokens = {name: sum(data[name] for data in written) for name in ("input", "output")}
    return {"metered_for_sub": len(written), "tokens": tokens}


def _guarded(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    share = ask_of(given["perWorker"], era) if "perWorker" in given else None
    scope = Scope(pool_of(given["root"], era, preset), share=share)

    async def turn(_scope: Scope, _number: int) -> Turn:
        return Turn(spend=_use(given.get("turn", "no usage")))

    driven = asyncio.run(drive(scope, turn, max_turns=given.get("maxTurns") or MOST_TURNS))
    error = fault_text(driven.error) if isinstance(driven.error, BudgetFault) else str(driven.error or "")
    return {
        "turns": driven.turns,
        "kind": _kind(driven),
        "reason": REASONS.get(driven.stopped),
        "error": error,
        **_accounts(scope, era),
    }


def _kind(driven: Driven) -> str:
    return "winner" if driven.stopped == "delivered" else "no-winner"


def _accounts(scope: Scope, era: str) -> dict[str, Any]:
    books = scope.accounting()
    return {
        "childWork": _sums(books.work),
        "driverInference": _sums(books.inference),
        "spentTotal": _sums(books.total),
        "spentTotal_input": books.total.input,
        "spentTotal_tokensKnown": books.total.tokens_known,
        "tokensLeft_at_root": scope.pool.free()[token_channel(era)],
        "metered_records": counts(scope)["metered"],
    }


def _sums(spent: Spend) -> dict[str, Any]:
    return {
        "input": spent.input,
        "output": spent.output,
        "usd": told("cost", spent.cost_nusd),
        "iterations": spent.calls,
        "tokensKnown": spent.tokens_known,
        "usdKnown": spent.cost_known,
    }


def _use(told_of: str, *, calls: int = 0) -> Spend:
    if told_of == "no usage":
        return UNREPORTED
    found = USE.fullmatch(told_of)
    if found is None:
        raise UnknownShape(f"a use of {told_of!r}")
    read, written, usd = found.groups()
    return Spend.reported(calls=calls, input=int(read or 0), output=int(written or 0), cost_usd=float(usd or 0))


def per_worker(case: Case, _preset: str | None) -> Answer:
    """Split a budget into shares, of which none may be larger than the whole."""
    given, era = case["given"], era_of(case)
    made: list[ReservationPool] = []
    try:
        share = ask_of(given["perWorker"], era) if "perWorker" in given else None
        scope = ScopeSpec(limits=ask_of(given["budget"], era), share=share).start()
        made.append(scope.pool)
    except InputError as error:
        return {"raises_synchronously": _too_large(error, given), "pool_created": bool(made)}
    return {"raises_synchronously": None, "pool_created": bool(made), "share": _shared(scope, era)}


def _shared(scope: Scope, era: str) -> dict[str, Any]:
    share = scope.share if scope.share is not None else amounts()
    return {"maxIterations": share[0], "maxTokens": share[token_channel(era)]}


def _too_large(error: InputError, given: Mapping[str, Any]) -> str:
    field = {"calls": "maxIterations", "cost": "maxUsd"}.get(error.what[7:-1], "maxTokens")
    asked = told("cost", error.got) if field == "maxUsd" and isinstance(error.got, int) else error.got
    over = f"perWorker.{field} ({asked}) exceeds budget.{field} ({given['budget'].get(field)})"
    return f"ValidationError: {over if error.what.startswith('share') else error}"
