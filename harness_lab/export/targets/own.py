"""A policy that was read back from a target, in our own modules: a meter is no module that a file of ours can hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness_lab.export.meter import MeterSpec
from harness_lab.policies import ReservationPoolSpec, SharedLedgerSpec
from harness_lab.policies.iteration_budget import IterationBudgetSpec
from harness_lab.policies.spec import MODULES
from harness_lab.usage import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.policies import ModuleSpec, PolicySpec

Losses = list[tuple[str, str]]
_POOLED = ("input", "tokens", "fresh")
_ITERATIONS = {"root": "max_iterations", "child": "max_child_iterations"}


def as_own(policy: PolicySpec) -> tuple[PolicySpec, Losses]:
    """Return a policy whose modules are all ours, and what that loses, by value.

    Calls and dollars of a tree go to a shared ledger, its tokens to a reservation pool, calls of single agents to an
    iteration budget; beside a module of that kind the tighter limit holds.
    """
    if all(module.kind in MODULES for module in policy.modules):
        return policy, []
    modules: dict[str, ModuleSpec] = {module.kind: module for module in policy.modules if module.kind in MODULES}
    losses: Losses = []
    for module in policy.modules:
        if isinstance(module, MeterSpec):
            for channel, limit in _limits(module):
                losses += _meter(modules, module, channel, limit)
        elif module.kind not in MODULES:
            losses.append((module.kind, "no module of ours answers so"))
    return replace(policy, modules=tuple(modules.values())), losses


def _limits(module: MeterSpec) -> Iterator[tuple[str, Any]]:
    for channel in ("calls", "cost_usd", *_POOLED):
        limit = getattr(module, channel)
        if limit is not None:
            yield channel, limit


def _meter(modules: dict[str, ModuleSpec], module: MeterSpec, channel: str, limit: Any) -> Losses:
    """Put one limit of a meter where it belongs."""
    name = f"meter:{module.whose}.{channel} = {limit}"
    if module.whose == "tree" and channel in ("calls", "cost_usd"):
        _tighten(
            modules, SharedLedgerSpec(max_steps=MAX_COUNT), f"max_{'steps' if channel == 'calls' else channel}", limit
        )
    elif module.whose == "tree":
        _tighten(modules, ReservationPoolSpec(), channel, limit)
    elif channel == "calls":
        for whose in ("root", "child") if module.whose == "node" else (module.whose,):
            budget = IterationBudgetSpec(max_iterations=MAX_COUNT, max_child_iterations=MAX_COUNT, max_refunds=0)
            _tighten(modules, budget, _ITERATIONS[whose], limit)
    else:
        return [(name, "no module of ours counts it for single agents")]
    return []


def _tighten(modules: dict[str, ModuleSpec], usual: Any, name: str, limit: Any) -> None:
    module: Any = modules.get(usual.kind, usual)
    before = getattr(module, name)
    modules[usual.kind] = replace(module, **{name: limit if before is None else min(before, limit)})
