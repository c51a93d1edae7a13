"""Cases of prism-harness: budgets, ledgers, configs, contexts, declarations, addresses and leases.

Runs of agents are in :mod:`harness_lab.conformance.areas.prism_runs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import RULES, AgentError, ModeRegistry, Participant, Sessions, Subagent
from harness_lab.agents.readout import BudgetLeft
from harness_lab.budget import RunBudget, RunContext
from harness_lab.budget.lease import LeasedTask, LeaseGrant, extend_lease
from harness_lab.clock import ManualClock
from harness_lab.conformance.areas import prism_hard_cap, prism_runs
from harness_lab.conformance.areas.prism_values import budget_of, ledger_of
from harness_lab.conformance.shapes import Area, UnknownShape, differences, operation
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.conformance.shapes import Answer, Case

READS: Final = ("exhaustion", "remaining_steps", "remaining_cost", "remaining_seconds", "elapsed_seconds")
LEASE_SECONDS = 1e6
"""How long the lease runs that is there before it is extended."""


def nested(case: Case, preset: str) -> Answer:
    """Nest one child's budget in its parent's, or two siblings', and record what they use."""
    given, when, rules = case["given"], case["when"], RULES[preset]
    ledger, parent = ledger_of(given["ledger"]), budget_of(given["parent"])
    if "children" in given:
        one, two = (rules.nested_budget(budget_of(child), parent, ledger) for child in given["children"])
        for steps in when["record_steps"]:
            ledger.record_steps(steps)
        answer = {"sibling_1_max_steps": one.max_steps, "sibling_2_max_steps": two.max_steps}
        return {
            **answer,
            "sibling_1_exhaustion_after": ledger.exhaustion(one),
            "sibling_2_exhaustion_after": ledger.exhaustion(two),
        }
    budget = rules.nested_budget(budget_of(given["child"]), parent, ledger)
    before, headroom = ledger.exhaustion(budget), budget.max_steps - ledger.steps
    for steps in when.get("record_steps", ()):
        ledger.record_steps(steps)
    for cost in when.get("record_cost", ()):
        ledger.record_cost(cost)
    read = {"headroom_steps": headroom, "exhaustion": before, "exhaustion_before": before}
    return _limits(budget) | read | {"exhaustion_after": ledger.exhaustion(budget)}


def charged(case: Case, preset: str) -> Answer:
    """Charge steps or costs to a ledger, cancel it, and read it."""
    given, when = case["given"], case["when"]
    ledger, name = ledger_of(given["ledger"]), operation(case)
    if name not in (*READS, "record_steps", "record_cost", "cancel"):
        raise UnknownShape(f"a ledger's operation {name!r}")
    for value in when.get("values", ()):
        ledger.record_steps(value) if name == "record_steps" else ledger.record_cost(value)
    for reason in when.get("reasons", ()):
        ledger.cancel() if reason is None else ledger.cancel(reason)
    found = {
        "steps": ledger.steps,
        "cost_usd": ledger.cost_usd,
        "unmetered_runs": ledger.unmetered_runs,
        "cancelled": ledger.cancelled,
    }
    if "budget" not in given:
        return found
    budget = budget_of(given["budget"])
    left = BudgetLeft.of(ledger, budget, rules=RULES[preset])
    read = {"remaining_steps": left.steps, "remaining_cost": left.cost_usd, "remaining_seconds": left.seconds}
    return found | read | {"exhaustion": ledger.exhaustion(budget)}


def config(case: Case, _preset: str) -> Answer:
    """Read a budget from a config."""
    return _limits(RunBudget.from_config(case["given"]["config"], case["when"]["default_steps"]))


def context(case: Case, preset: str) -> Answer:
    """Make a child's context and record on it."""
    given = case["given"]
    root = RunContext.root(given["root_run_id"], budget_of(given["root_budget"]), clock=ManualClock())
    child = RULES[preset].child_context(root, budget_of(given["child"]), given["root_run_id"])
    for steps in case["when"].get("record_steps", ()):
        child.ledger.record_steps(steps)
    return {
        "root_ledger_steps": root.ledger.steps,
        "child_root_run_id": child.root_run_id,
        "child_is_child": child.is_child(),
        "root_is_child": root.is_child(),
        "child_depth": child.depth,
    }


def declaration(case: Case, preset: str) -> Answer:
    """Read a subagent's declaration."""
    given = case["given"]
    subagent = Subagent.from_config(given["name"], given["config"])
    budget = subagent.budget_in(99, rules=RULES[preset])  # a mode's own limit that is no declaration's default
    return _limits(budget) | {
        "name": subagent.name,
        "mode": subagent.mode,
        "scope": subagent.scope_under(case["when"]["parent_scope"]),
        "description": subagent.description,
    }


def address(case: Case, _preset: str) -> Answer:
    """Address a session."""
    given = case["given"]
    who = Participant(given["participant_type"], given["participant_id"])
    return {"key": Sessions().session(given["scope"], participant=who).key}


def mode(case: Case, _preset: str) -> Answer:
    """Resolve modes, list them, or check them all."""
    when = case["when"]
    try:
        modes = ModeRegistry(case["given"]["config"])
        return MODES[operation(case)](modes, when)
    except AgentError as error:
        return {"error_code": error.code, "message": error.message}
    except KeyError as error:
        if error.args != (when["op"],):
            raise
        raise UnknownShape(f"a mode's operation {when['op']!r}") from error


def _checked(modes: ModeRegistry, _when: Any) -> Answer:
    report = modes.check()
    failing = [f"mode:{name}" for name in report.failing]
    return {"ok": report.ok, "failing_checks": failing, "passing_checks": [f"mode:{n}" for n in report.passing]}


def _resolved(modes: ModeRegistry, when: Any) -> Answer:
    found = modes.resolve(when["mode"])
    lists = {key: list(getattr(found, key)) for key in ("tools", "skills", "subagents", "requires_approval")}
    return {"name": found.name, "system_prompt": found.system_prompt, "max_steps": found.max_steps} | lists


MODES: Final[dict[str, Callable[[ModeRegistry, Any], Answer]]] = {
    "default": lambda modes, _when: {"default": modes.default},
    "diagnose": _checked,
    "all": lambda modes, _when: {"names": sorted(modes.all())},
    "subagent_names": lambda modes, when: {name: list(modes.resolve(name).subagents) for name in when["modes"]},
    "resolve": _resolved,
}


def lease(case: Case, _preset: str) -> Answer:
    """Extend a worker's lease, or try lengths that are none."""
    given = case["given"]
    if isinstance(given["lease_seconds"], list):
        return {"error_code": _lease_error(given["lease_seconds"])}
    ledger, task = ledger_of(given["ledger"]), LeasedTask("task")
    task.claim(given["holder"], ledger.started, LEASE_SECONDS)
    budget, seconds = budget_of(given["budget"]), given["lease_seconds"]
    try:
        answer = extend_lease(task, case["when"]["worker"], ledger, budget, seconds)
    except InputError as error:
        return {"error_code": "task_lease_invalid", "message": str(error)}
    if isinstance(answer, LeaseGrant):
        return {"granted_seconds": answer.granted_seconds}
    return {"error_code": answer.code.replace("-", "_"), "message": answer.reason}


def _lease_error(lengths: list[Any]) -> str:
    for length in lengths:
        try:
            LeasedTask("task").claim("worker", ManualClock().now(), float(length))
        except InputError:
            continue
        return f"a lease of {length} was accepted"
    return "task_lease_invalid"


def _limits(budget: RunBudget) -> dict[str, Any]:
    return {"max_steps": budget.max_steps, "max_cost_usd": budget.max_cost_usd, "max_seconds": budget.max_seconds}


ANSWERS: Final[dict[str, Callable[[Case, str], Answer]]] = {
    "nested_budget": nested,
    "nested_budget_superseded": nested,
    "ledger": charged,
    "budget_config": config,
    "context": context,
    "subagent_declaration": declaration,
    "address": address,
    "mode": mode,
    "lease": lease,
    "runtime": prism_runs.runtime,
    "subagent_run": prism_runs.subagent_run,
    "outcome": prism_runs.outcome,
    "tree": prism_runs.tree,
    "hard_cap_doc": prism_hard_cap.hard_cap_doc,
}


def _answer(case: Case, preset: str | None) -> Answer:
    return ANSWERS[case["area"]](case, preset or "prism-py")


def _presets(case: Case) -> tuple[str | None, ...]:
    """Return the preset that a case's runtimes name; Python's where it holds for several."""
    named = case.get("runtimes")
    runtimes = [str(name) for name in named] if isinstance(named, list) and named else ["py"]
    return (f"prism-{'py' if 'py' in runtimes else runtimes[0].partition('<')[0]}",)


AREA: Final = Area(
    name="prism-budgets",
    parts=frozenset(ANSWERS),
    answer=_answer,
    presets=_presets,
    compare=differences,
)
