"""The cases of prism's budgets on prism-ai-harness itself: what it answers today, not what was written down of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from harness_lab.adapters import prism_agents
from harness_lab.adapters.protocol import NotApplicable
from harness_lab.adapters.watched import note, noted, tried

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Case = Mapping[str, Any]

_ELSEWHERE: Final = "the case is about a {} of the package, which is no question to its limits"


def answer(case: Case) -> Mapping[str, Any]:
    """Carry a case out.

    Raises
    ------
    NotApplicable
        If it is about another language's runtime, or needs a model.
    """
    runtimes = case.get("runtimes", ["py"])
    if "py" not in runtimes:
        raise NotApplicable(f"the case is about another runtime: {', '.join(runtimes)}")
    if case["area"] not in _ANSWERS:
        raise NotApplicable(_ELSEWHERE.format(case["area"]))
    if case["area"] not in _RUNS:  # those have no lines of their own: the command shows them
        note("from prism_harness.subagents import RunBudget, RunContext, RunLedger, Subagent, subagent_from_config")
    return _ANSWERS[case["area"]](case)


def _budget(given: Mapping[str, Any], name: str) -> Any:
    from prism_harness.subagents import RunBudget

    budget = RunBudget(given["max_steps"], given.get("max_cost_usd"), given.get("max_seconds"))
    return noted(f"{name} = {budget!r}", budget)


def _ledger(given: Mapping[str, Any]) -> Any:
    from prism_harness.subagents import RunLedger

    elapsed = given.get("elapsed_seconds", 0)
    ledger = RunLedger("run", time.monotonic() - elapsed)
    note("import time")
    note(f'ledger = RunLedger("run", time.monotonic() - {elapsed})')
    _do(ledger, "record_steps", given["steps"])
    _do(ledger, "record_cost", given["cost_usd"])
    for _ in range(given.get("unmetered_runs", 0)):
        _do(ledger, "record_cost", None)
    if given.get("cancelled"):
        _do(ledger, "cancel", given["cancel_reason"])
    return ledger


def _do(ledger: Any, method: str, *given: Any) -> Any:
    told = ", ".join(map(repr, given))
    return tried(f"ledger.{method}({told})", lambda: getattr(ledger, method)(*given))


def _exhaustion(ledger: Any, budget: Any, name: str) -> str | None:
    found: str | None = tried(f"ledger.exhaustion({name})", lambda: ledger.exhaustion(budget), shown=True)
    return found


def _limits(budget: Any) -> dict[str, Any]:
    return {"max_steps": budget.max_steps, "max_cost_usd": budget.max_cost_usd, "max_seconds": budget.max_seconds}


def _nested(case: Case) -> dict[str, Any]:
    given, when = case["given"], case["when"]
    ledger, parent = _ledger(given["ledger"]), _budget(given["parent"], "parent")
    children = given.get("children", [given.get("child")])
    nested = []
    for i, child in enumerate(children):
        declared = _budget(child, f"child{i}")
        line = f"nested{i} = child{i}.nested_within(parent, ledger)"
        nested.append(noted(line, declared.nested_within(parent, ledger)))
    before = _exhaustion(ledger, nested[0], "nested0")
    headroom = nested[0].max_steps - ledger.steps
    for steps in when.get("record_steps", ()):
        _do(ledger, "record_steps", steps)
    for cost in when.get("record_cost", ()):
        _do(ledger, "record_cost", cost)
    after = [_exhaustion(ledger, budget, f"nested{i}") for i, budget in enumerate(nested)]
    told = _limits(nested[0]) | {"headroom_steps": headroom, "exhaustion": before, "exhaustion_before": before}
    siblings = {f"sibling_{i + 1}_max_steps": budget.max_steps for i, budget in enumerate(nested)}
    return (
        told
        | siblings
        | {f"sibling_{i + 1}_exhaustion_after": one for i, one in enumerate(after)}
        | {"exhaustion_after": after[0]}
    )


def _charged(case: Case) -> dict[str, Any]:
    given, when = case["given"], case["when"]
    ledger = _ledger(given["ledger"])
    for value in when.get("values", ()):
        _do(ledger, "record_cost", float(value) if isinstance(value, str) else value)
    for reason in when.get("reasons", ()):
        _do(ledger, "cancel", *([] if reason is None else [reason]))
    told: dict[str, Any] = {n: getattr(ledger, n) for n in ("steps", "cost_usd", "unmetered_runs", "cancelled")}
    shown = "(ledger.steps, ledger.cost_usd, ledger.unmetered_runs)"
    tried(shown, lambda: (ledger.steps, ledger.cost_usd, ledger.unmetered_runs))
    if "budget" not in given:
        return told
    budget = _budget(given["budget"], "budget")
    return told | {
        "remaining_steps": max(0, budget.max_steps - ledger.steps),
        "remaining_cost": ledger.remaining_cost(budget),
        "remaining_seconds": ledger.remaining_seconds(budget),
        "exhaustion": _exhaustion(ledger, budget, "budget"),
    }


def _config(case: Case) -> dict[str, Any]:
    from prism_harness.subagents import RunBudget

    config, steps = case["given"]["config"], case["when"]["default_steps"]
    return _limits(tried(f"RunBudget.from_config({config!r}, {steps})", lambda: RunBudget.from_config(config, steps)))


def _context(case: Case) -> dict[str, Any]:
    from prism_harness.subagents import RunContext, Subagent

    given, named = case["given"], case["given"]["root_run_id"]
    root = RunContext.root(named, _budget(given["root_budget"], "budget"))
    child = root.for_child(Subagent("child", "", "child", _budget(given["child"], "declared")), named)
    for steps in case["when"].get("record_steps", ()):
        child.ledger.record_steps(steps)
    return {
        "root_ledger_steps": root.ledger.steps,
        "child_root_run_id": child.root_run_id,
        "child_is_child": child.is_child(),
        "root_is_child": root.is_child(),
        "child_depth": child.depth,
    }


def _declared(case: Case) -> dict[str, Any]:
    from prism_harness.subagents import subagent_from_config

    name, config, scope = case["given"]["name"], case["given"]["config"], case["when"]["parent_scope"]
    found = noted(f"declared = subagent_from_config({name!r}, {config!r})", subagent_from_config(name, config))
    under = tried(f"declared.scope_under({scope!r})", lambda: found.scope_under(scope))
    return _limits(found.budget) | {
        "name": found.name,
        "mode": found.mode,
        "scope": under,
        "description": found.description,
    }


_RUNS: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {
    "mode": prism_agents.mode,
    "address": prism_agents.address,
    "runtime": prism_agents.sent,
    "subagent_run": prism_agents.subagent_run,
}
_ANSWERS: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {
    "nested_budget": _nested,
    "ledger": _charged,
    "budget_config": _config,
    "context": _context,
    "subagent_declaration": _declared,
    **_RUNS,
}
