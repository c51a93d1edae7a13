"""Cases of tangle about what a refusal tells whoever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import ReservationPool, Scope, advice
from harness_lab.clock import Time
from harness_lab.conformance.areas.tangle_pool import REASONS
from harness_lab.conformance.areas.tangle_settle import ROOT
from harness_lab.conformance.areas.tangle_values import ask_of, era_of, pool_of
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, COST, Refusal
from harness_lab.policies import Grant, SpawnAsk, tree_limits
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.policies import PolicySpec

CHANNEL: Final = {"iterations": "calls", "tokens": "fresh", "usd": "cost"}
FIELDS: Final = {"calls": "budget.maxIterations", "fresh": "budget.maxTokens", "cost": "budget.maxUsd"}
"""What the parameters of tangle's spawn tool are called."""
NOW: Final = Time(0)


def refusal_text(case: Case, preset: str | None) -> Answer:
    """Say in words what a refusal means."""
    (when, *more) = case["when"]
    given = case["given"]
    if more or when["op"] not in ("explain", "spawn_worker"):
        raise UnknownShape(f"nothing answers refusal-text / {when['op']}")
    if "shortfall" in given:
        return {"texts": [advice(_short(given["shortfall"]), fields=FIELDS)]}
    if "reasons" in given:
        return {"texts": [_reason(name, era_of(case), preset) for name in given["reasons"]]}
    if given.get("scope") != "pool refuses":
        raise UnknownShape(f"a worker under {given}")
    scope = Scope(pool_of(ROOT, era_of(case), preset))
    refused = scope.spawn("worker", ask_of({"maxIterations": 1, "maxTokens": ROOT["maxTokens"] + 1}, era_of(case)))
    if not isinstance(refused, Refusal):
        raise UnknownShape("a pool that does not refuse")
    code = REASONS.get(refused.code, str(refused.code))
    return {"error": code, "texts": [advice(refused, fields=FIELDS)]}


def _short(fact: Mapping[str, Any]) -> Refusal:
    """Return the refusal of a pool that has what a case says is free, when it is asked for what the case says."""
    channel = CHANNEL[fact["channel"]]
    place = CHANNELS.index(channel)
    money = place == COST
    free, asked = (nusd(fact[name]) if money else fact[name] for name in ("free", "requested"))
    pool = ReservationPool(tuple(free if i == place else None for i in range(len(CHANNELS))))
    if fact.get("closedByUnknownSpend"):
        pool.observe(tuple(None if i == place else 0 for i in range(len(CHANNELS))))
    answer = pool.reserve(tuple(asked if i == place else None for i in range(len(CHANNELS))))
    if not isinstance(answer, Refusal):
        raise UnknownShape("a shortfall of nothing")
    return answer


def _reason(name: str, era: str, preset: str | None) -> str:
    """Return what is said where something else than the budget refuses."""
    scope = Scope(pool_of(ROOT, era, preset))
    ask = ask_of({"maxIterations": 1, "maxTokens": 1}, era)
    if name in ("max-live-workers", "depth-exceeded"):
        return advice(
            _limited(tree_limits(max_concurrent=1) if name == "max-live-workers" else tree_limits(max_depth=0))
        )
    if name == "scope-aborted":
        return advice(_stopped())
    if name == "invalid-identity":
        try:
            scope.spawn("", ask)
        except InputError as error:
            return str(error)
    if name not in ("duplicate-key", "key-conflict"):
        raise UnknownShape(f"a refusal for {name}")
    scope.spawn("first", ask, key="key", task="a task")
    second = scope.spawn("second", ask, key="key", task="a task" if name == "duplicate-key" else "another")
    return advice(second) if isinstance(second, Refusal) else ""


def _limited(limits: PolicySpec) -> Refusal:
    policy = limits.start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    answers = [policy.spawn(SpawnAsk(top.ticket, ((0, slot, 0),), amounts()), NOW) for slot in range(2)]
    return next(answer for answer in answers if isinstance(answer, Refusal))


def _stopped() -> Refusal:
    policy = tree_limits().start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    policy.cancel(top.ticket, "stopped by its user", NOW)
    answer = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), amounts()), NOW)
    if not isinstance(answer, Refusal):
        raise UnknownShape("a stopped run that starts a child")
    return answer
