"""Cases of tangle about how one child ends, and what its scope writes down of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Child, Event, ExecutionRetained, NotDelivered, Scope, Spend, WorkFailed
from harness_lab.conformance.areas.tangle_readout import readout
from harness_lab.conformance.areas.tangle_values import (
    ask_of,
    era_of,
    overspent,
    pool_of,
    reason_text,
    resources_of,
    spend_of,
    token_channel,
)
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.budget import Settlement
    from harness_lab.conformance.shapes import Answer, Case

    Work = Callable[[Callable[[Spend], None]], Any]

EVENT: Final = re.compile(r"(?:(\d+)x )?(iteration|tokens (\d+)/(\d+)|cost ([\d.]+))( usdKnown=false)?")
WORDS: Final = re.compile(r"(\d+) tokens(?:, (\w+) amount (\d+) known=(true|false))?")
ROOT: Final = {"maxIterations": 100, "maxTokens": 1_000_000}
CHILD: Final = {"maxIterations": 10, "maxTokens": 1_000}
"""Budgets of a case that tells only how its child ended."""
ENDS: Final = {"done": None, "down": "it went down"}


def settlement(case: Case, preset: str | None) -> Answer:
    """Let children of a scope end."""
    (when, *more) = case["when"]
    operations = {
        "run_child": _run_child,
        "cancel_after_usage": _run_child,
        "adapt_to_iteration": _adapted,
        "drain": _drained,
    }
    if more or when["op"] not in operations:
        raise UnknownShape(f"nothing answers settlement / {when['op']}")
    return operations[when["op"]](case, preset)


def _run_child(case: Case, preset: str | None) -> Answer:
    given, era = case["given"], era_of(case)
    budget = given["child"] if isinstance(given.get("child"), dict) else CHILD
    scope = Scope(pool_of(given.get("root", ROOT), era, preset))
    child = scope.spawn("child", ask_of(budget, era), resources=resources_of(budget))
    if not isinstance(child, Child):
        return {"kind": "refused"}
    if case["when"][0]["op"] == "cancel_after_usage":
        _play(given["events"], lambda spend: scope.meter(child, spend))
        ended = scope.cancel(child)
    else:
        ended = scope.run(child, _work(given, budget))
    if ended is None:
        raise UnknownShape("a child that never began")
    return {**_told(ended), **_books(scope, era)}


def _told(ended: Settlement) -> dict[str, Any]:
    causes = {Cause.INFRASTRUCTURE: True, Cause.MODEL: False}
    return {
        "kind": "done" if ended.completed else "down",
        "infra": None if ended.cause is None else causes.get(ended.cause),
        "reason": reason_text(ended.reason),
        "has_out": ended.output is not None,
        "outRef": ended.output,
        "budgetViolation": overspent(ended.overspent),
        "retainedExecution": ended.retained or None,
        "spent": _flags(ended.spent),
    }


def _flags(spent: Spend) -> dict[str, Any]:
    return {
        "iterations": spent.calls,
        "input": spent.input,
        "output": spent.output,
        "tokensKnown": spent.tokens_known,
        "usdKnown": spent.cost_known,
    }


def _books(scope: Scope, era: str) -> dict[str, Any]:
    """Return what the journal says, and whether books made from it again, by way of text, are the same."""
    last = scope.journal[-1]
    lines = [json.dumps(event.to_dict()) for event in scope.journal]
    again = Scope.restore([Event.from_dict(json.loads(line)) for line in lines])
    same = again.pool.free() == scope.pool.free() and again.accounting() == scope.accounting()
    return {
        "journal_event": last.kind,
        "journal": {
            **counts(scope),
            "status": "done" if last.data.get("outcome") == "completed" else "down",
            "budgetViolation": last.data.get("overspent"),
        },
        "replay_same": same and _ends(again) == _ends(scope),
        "readout": readout(scope.pool, token_channel(era)),
    }


def _ends(scope: Scope) -> list[tuple[Any, ...]]:
    ended = [child.settlement for child in scope.children if child.settlement is not None]
    return [(s.outcome, s.cause, s.reason, s.spent, s.overspent, s.retained) for s in ended]


def counts(scope: Scope) -> dict[str, int]:
    """Return how many events of each kind a scope's journal has."""
    kinds = [event.kind for event in scope.journal]
    return {kind: kinds.count(kind) for kind in ("settled", "cancelled", "reconciled", "metered")} | {
        "environment_teardown": kinds.count("teardown")
    }


def _work(given: Mapping[str, Any], budget: Mapping[str, Any]) -> Work:
    """Return work that does what a case says of its child."""

    def work(meter: Callable[[Spend], None]) -> Any:
        if isinstance(given.get("spent"), dict):
            meter(spend_of(given["spent"]))
        elif isinstance(given.get("spent"), str):
            meter(_in_words(given["spent"], budget))
        _play(given.get("events", []), meter)
        _finish(given, budget, meter)
        return "what it made"

    return work


def _finish(given: Mapping[str, Any], budget: Mapping[str, Any], meter: Callable[[Spend], None]) -> None:
    if given.get("outcome", {}).get("success") is False:
        raise WorkFailed(given["outcome"]["error"])
    if isinstance(error := given.get("error"), str):
        raise InputError("work", expected="sound", got=error) if "alidation" in error else RuntimeError(error)
    if isinstance(told := given.get("child"), str):
        if "threw" in told:
            raise RuntimeError("it threw")
        if "more than reserved" not in told:
            raise UnknownShape(f"a child that {told}")
        meter(Spend(calls=1, input=2 * budget["maxTokens"]))


def _play(events: list[str], meter: Callable[[Spend], None]) -> None:
    """Report the use that each event tells of, until one of them stops the work."""
    for event in events:
        if event == "block":
            return
        if event == "raise RetainedExecutionPending":
            raise ExecutionRetained(event)
        found = EVENT.fullmatch(event)
        if found is None:
            raise UnknownShape(f"the event {event!r}")
        times, kind, read, written, usd, unknown = found.groups()
        many = int(times or 1)
        meter(
            Spend.reported(
                calls=many * (kind == "iteration"),
                input=many * int(read or 0),
                output=many * int(written or 0),
                cost_usd=None if unknown else many * float(usd or 0),
            )
        )


def _in_words(told: str, budget: Mapping[str, Any]) -> Spend:
    found = WORDS.fullmatch(told)
    if found is None:
        raise UnknownShape(f"a use of {told!r}")
    tokens, name, amount, known = found.groups()
    resources = {}
    if name:
        unit = budget["resources"][name]["unit"]
        resources = {name: {"unit": unit, "amount": int(amount), "known": known == "true"}}
    counted = {"input": int(tokens), "output": 0}
    return spend_of({"iterations": 0, "tokens": counted, "usd": 0, "resources": resources})


def _adapted(case: Case, preset: str | None) -> Answer:
    """Take the result of a child that has settled."""
    scope = Scope(pool_of(ROOT, era_of(case), preset))
    child = scope.spawn("child", ask_of(CHILD, era_of(case)))
    how = case["given"]["settled"]
    if how not in ENDS or not isinstance(child, Child):
        raise UnknownShape(f"a child that is {how}")

    def work(_meter: Callable[[Spend], None]) -> Any:
        if ENDS[how] is not None:
            raise WorkFailed(ENDS[how])
        return "what it made"

    ended = scope.run(child, work)
    try:
        return {"adapted": ended.result()}
    except NotDelivered as error:
        return {"raises": f"cannot adapt a '{_told(ended)['kind']}': {error}"}


def _drained(case: Case, preset: str | None) -> Answer:
    """Let a number of children end, and read in which order that was told."""
    scope = Scope(pool_of(ROOT, era_of(case), preset))
    ended = []
    for ordinal in range(case["given"]["children"]):
        child = scope.spawn(f"child {ordinal}", ask_of({"maxIterations": 1, "maxTokens": 1}, era_of(case)))
        if not isinstance(child, Child):
            raise UnknownShape("more children than the pool has room for")
        ended.append(scope.run(child, lambda _meter: "what it made"))
    patterns = {s.id.replace(scope.name, "{parent}").replace(f"s{i}", "s{ordinal}") for i, s in enumerate(ended)}
    return {"seqs": [s.seq for s in ended], "id_pattern": patterns.pop() if len(patterns) == 1 else sorted(patterns)}
