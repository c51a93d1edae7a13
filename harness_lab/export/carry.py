"""From a policy to a target's knobs: what fits is carried, what does not is listed with what it loses."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness_lab.export.targets.amounts import Unfit
from harness_lab.export.targets.base import Carried, Draft, Loss, Target
from harness_lab.export.values import ABOUT, SCOPES, Value, childless, same_scopes, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.export.document import Evidence
    from harness_lab.export.targets.base import Knob
    from harness_lab.export.values import Scope
    from harness_lab.policies import PolicySpec

    StandIns = Mapping[str, "StandIn"]
    Derive = Callable[[Knob, Value], tuple[Value, Evidence] | str]
    """Derives a value again for a knob's scope, with what stands behind it; a text says why it cannot."""

_PARTS: dict[Scope, tuple[Scope, ...]] = {"node": ("root", "child")}
"""A value for each node bounds the root, and each child."""

_RECORDED = ("calls", "cost", "input", "tokens", "time")
"""What records tell of every agent, so that a value can be derived again for another scope."""
AGAIN = ": derive it again for that from records, or leave it"
_SAID_BY_SCOPE = ("iteration_budget.whose", "iteration_budget.counts", "tree_limits.concurrency")
"""A value is carried only where the target counts so."""
_HOLDS = {
    "reservation_pool": "what a child asks for is not set aside before it starts, so siblings may spend each other's",
    "call_holds": "the worst case of a call is not held before it is sent, so the calls in flight may go past the cap",
    "durable_account": "is not shared by processes, and does not survive them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """An amount that a knob is told in place of a value which the target cannot express.

    Parameters
    ----------
    value : str
        ``module.parameter`` that it stands in for.
    amount : float
        In the knob's quantity, in our units.
    """

    value: str
    amount: float


def carry(
    draft: Draft, target: Target, derive: Derive | None = None, stand_ins: StandIns = MappingProxyType({})
) -> None:
    """Carry every value of the draft's policy that the target has a knob for, and list the others as lost.

    How a module answers (its axes) is listed where something of it is carried; else the loss of its amounts says it.
    """
    policy = draft.config.policy
    values = values_of(policy)
    covered: dict[str, set[Scope]] = {}
    refused: dict[str, str] = {}
    for knob in target.knobs:
        _turn(draft, knob, values, covered, refused, derive)
        if knob.key in stand_ins and draft.values.get(knob.key) is None:
            _stand_in(draft, knob, stand_ins[knob.key], refused)
    target.rest(draft)
    written = {one.value.partition(".")[0] for one in draft.carried}
    said = {value.name.partition(".")[0] for value in values if value.quantity is not None} - written
    for value in values:
        if value.name not in draft.done and not _kept(value, draft, target, said):
            why = refused.get(value.name) or _why(policy, value, covered.get(value.name, set()), target)
            if why:
                draft.losses.append(Loss(str(value), why))
    if not target.holds:
        draft.losses += [Loss(kind, means) for kind, means in _HOLDS.items() if kind in written]
    money = {value.name for value in values if value.quantity == "cost"} & {one.value for one in draft.carried}
    if money and "prices" not in draft.done and draft.config.prices is not None and draft.config.prices.models:
        draft.losses.append(Loss("prices", "money is counted there by the target's own prices, not by the config's"))
    budget = policy.module("iteration_budget")
    if "iteration_budget" in written and not target.holds and budget.max_refunds != 0:
        draft.losses.append(Loss("iteration_budget", "programmatic turns are not given back"))


def _kept(value: Value, draft: Draft, target: Target, said: set[str]) -> bool:
    """Whether an axis needs no word: the target answers so too, or the loss of its module's amounts says it."""
    if value.quantity is not None:
        return False
    kind, _, parameter = value.name.rpartition(".")
    if kind == "at_limit" or not kind:
        return target.at_limit is not None and getattr(target.at_limit, parameter, None) == value.amount
    lost = value.name in ABOUT and f"{kind}.{ABOUT[value.name]}" not in {one.value for one in draft.carried}
    if kind in said or lost or value.name in _SAID_BY_SCOPE:
        return True
    if value.name == "iteration_budget.max_refunds":
        return bool(value.amount == 0)
    there = next((module for module in target.model(draft.values) if module.kind == kind), None)
    return there is not None and getattr(there, parameter) == value.amount


def _turn(
    draft: Draft, knob: Knob, values: tuple[Value, ...], covered: dict[str, set[Scope]], refused: dict[str, str],
    derive: Derive | None,
) -> None:  # fmt: skip
    policy = draft.config.policy
    mine = [value for value in values if value.quantity == knob.quantity]
    fitting = [(value, _bound(policy, knob, value)) for value in mine]
    found = [(value, scope) for value, scope in fitting if scope is not None]
    if not found and mine and derive is not None:
        found = _derived(draft, knob, mine, refused, derive)
    if not found:
        if knob.none == "null":
            draft.values[knob.key] = None
        return
    tightest = min((value for value, _ in found), key=lambda value: value.amount)
    try:
        written, adjusted = knob.amount.write(tightest.amount)
    except Unfit as reason:
        refused.update({value.name: f"{knob.key} {reason}" for value, _ in found})
        if knob.none == "null":
            draft.values[knob.key] = None
        return
    for value, scope in found:
        covered.setdefault(value.name, set()).add(scope)
    draft.values[knob.key] = written
    draft.carried.append(
        Carried(
            value=tightest.name, key=knob.key, written=written, unit=knob.unit, scope=knob.scope, note=knob.note,
            adjusted=adjusted, reported=knob.reported,
        )
    )  # fmt: skip


def _stand_in(draft: Draft, knob: Knob, one: StandIn, refused: dict[str, str]) -> None:
    refused[one.value] = f"is not bounded there; {knob.key} stands in for it, counted over {knob.scope}"
    written, adjusted = knob.amount.write(one.amount)
    draft.values[knob.key] = written
    draft.carried.append(
        Carried(
            value=one.value, key=knob.key, written=written, unit=knob.unit, scope=knob.scope, reported=knob.reported,
            adjusted="; ".join(text for text in (adjusted, "stands in for it") if text), note=knob.note,
        )
    )  # fmt: skip


def _bound(policy: PolicySpec, knob: Knob, value: Value) -> Scope | None:
    """Return the scope in which a knob bounds a value exactly; None: in none."""
    if value.scope is None:
        return None
    alike = same_scopes(policy, value.scope)
    for scope in knob.bounds:
        if scope in alike:
            return value.scope
        if scope in _PARTS.get(value.scope, ()):
            return scope
    return None


def _derived(
    draft: Draft, knob: Knob, mine: list[Value], refused: dict[str, str], derive: Derive
) -> list[tuple[Value, Scope]]:
    for value in mine:
        again = derive(knob, value)
        if not isinstance(again, str):
            draft.done.add(value.name)
            draft.evidence.append(again[1])
            scope = SCOPES[value.scope or "tree"]
            loss = Loss(str(value), f"{scope} is not bounded; {knob.key} holds the same promise over {knob.scope}")
            draft.losses.append(loss)
            return [(again[0], knob.bounds[0])]
        refused[value.name] = again
    return []


def _why(policy: PolicySpec, value: Value, covered: set[Scope], target: Target) -> str:
    """Say why a value is lost, or only held in part; empty: it is not."""
    scope = value.scope
    if scope in covered or (scope == "node" and (covered >= {"root", "child"} or (covered and childless(policy)))):
        return ""
    if covered:
        return f"holds there for {SCOPES[next(iter(covered))]} only"
    knobs = [knob for knob in target.knobs if knob.quantity == value.quantity]
    if scope is not None and knobs:
        there = ", ".join(f"{knob.key} is counted over {knob.scope}" for knob in knobs)
        recorded = value.quantity in _RECORDED and scope != "period"
        again = AGAIN if recorded else ""
        return f"is counted over {SCOPES[scope]}; {there}{again}"
    return f"{target.title} has no such setting"
