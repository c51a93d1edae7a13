"""Cases of iteration budgets and of the gate before delegation: hermes-agent 0.19.0 and the cost-integrity skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from harness_lab.agents.delegating import (
    LEAF_BLOCKED,
    LEAF_BLOCKED_SETS,
    DelegatedTask,
    DelegationRules,
    get_subagent_tool_set,
    normal_role,
)
from harness_lab.budget.iteration import IterationBudget
from harness_lab.clock import NS_PER_S, Time
from harness_lab.conformance.areas.iteration_loop import UNLIMITED, child_result, run_loop
from harness_lab.conformance.shapes import Area, UnknownShape, differences, dispatched, ours_only
from harness_lab.errors import BudgetExhausted, InputError
from harness_lab.policies import Grant, SpawnAsk, compose, iteration_budget, shared_ledger, tree_limits
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case

PARENT_SETS: Final = ("terminal", "file", "delegation")
"""Tool sets of the parent in the cases of delegation."""
ENDLESS: Final = [["x"]]
MOST_THREADS: Final = 64
MOST_UNITS: Final = 1_000_000


def counted(case: Case) -> Answer:
    """Consume and refund units of one budget."""
    budget = IterationBudget(case["given"]["max_total"])
    results: list[bool | None] = []
    for op in case["when"]["ops"]:
        if isinstance(op, Mapping):
            budget.max_total = op["set_max_total"]
            results.append(None)
        elif op == "consume":
            results.append(budget.consume())
        elif op == "refund":
            budget.refund()
            results.append(None)
        else:
            raise UnknownShape(f"a budget's operation {op!r}")
    return {"results": results, "used": budget.used, "remaining": budget.remaining}


def threads(case: Case) -> Answer:
    """Consume one budget from several threads until it says no."""
    given = case["given"]
    if not (0 < given["threads"] <= MOST_THREADS and given["max_total"] <= MOST_UNITS):
        raise UnknownShape(f"more than {MOST_THREADS} threads or {MOST_UNITS} units")
    budget = IterationBudget(given["max_total"])

    def until_false(_thread: int) -> int:
        taken = 0
        while budget.consume():
            taken += 1
        return taken

    with ThreadPoolExecutor(given["threads"]) as pool:
        taken = sum(pool.map(until_false, range(given["threads"])))
    return {"successful_consumes": taken, "used": budget.used, "remaining": budget.remaining}


def loops(case: Case) -> Answer:
    """Run a loop under both ways of giving units back: of the budget alone, and of the loop's counter too."""
    cap, turns = case["given"]["max_iterations"], case["given"]["turns"]
    free = iteration_budget(cap, max_refunds=UNLIMITED)
    presets = {"refund_budget_only_v0_19": compose(shared_ledger(cap), free), "refund_both_counters": free}
    return {name: run_loop(spec, turns).to_dict() for name, spec in presets.items()}


def user_turns(case: Case) -> Answer:
    """Run several turns of a user, each with a budget of its own."""
    given = case["given"]
    turns = [*ENDLESS * (given["model_calls_per_user_turn"] - 1), "text"]
    spec = iteration_budget(given["max_iterations"])
    return {"model_calls_total": sum(run_loop(spec, turns).model_calls for _ in range(given["user_turns"]))}


def delegated(case: Case) -> Answer:
    """Ask the gate for children, and run those that it lets through."""
    given, request = case["given"], case["when"]["delegate_task"]
    paused = "paused" in str(given.get("note", "")) or "pause is checked" in str(given.get("note", ""))
    rules = DelegationRules.hermes({**given["config"], "paused": paused or given["config"].get("paused", False)})
    try:
        tasks = rules.decide(request, depth=given["caller_depth"])
    except InputError as error:
        return {"error": str(error), "children_built": 0}
    results, cost, shares = child_result(tasks, given.get("child_result"))
    return {
        "children_built": len(tasks),
        "roles": [task.role for task in tasks],
        "child_depth": [task.depth for task in tasks],
        "child_toolsets": [task.tools(list(PARENT_SETS)) for task in tasks],
        "child_max_iterations": [task.max_iterations for task in tasks],
        "child_shares_parent_budget": shares,
        "results": results,
        "parent_cost_after": cost,
    }


def batch(case: Case) -> Answer:
    """Ask for as many children as one reply calls for; more than may run are refused whole."""
    calls = case["when"]["tool_calls_in_one_reply"]
    tasks = [{"goal": f"{i}"} for i, call in enumerate(calls) if call == "delegate_task"]
    if tasks:
        DelegationRules.hermes(case["given"]).decide({"tasks": tasks}, depth=0)
    return {"kept": list(calls), "dropped_silently": 0}


def blocked(_case: Case) -> Answer:
    """Read what a leaf child does not get, and what an orchestrator gets back of it."""
    boss = DelegatedTask(goal="x", role="orchestrator", depth=1, max_iterations=1)
    regains = boss.tools(list(LEAF_BLOCKED), blocked=LEAF_BLOCKED)
    return {"blocked": sorted(LEAF_BLOCKED), "orchestrator_regains": regains}


def stripped(case: Case) -> Answer:
    """Take from a parent's tool sets what a child does not get."""
    return {"kept": get_subagent_tool_set(case["given"]["toolsets"], blocked=LEAF_BLOCKED_SETS)}


def roles(case: Case) -> Answer:
    """Read roles as they are written."""
    return {"normalised": [normal_role(role) for role in case["when"]["roles"]]}


def detached(case: Case) -> Answer:
    """Let a child's time limit pass while it goes on."""
    limit = case["given"]["child_timeout_seconds"]
    goes_on = case["given"]["child_ignores_interrupt"]
    policy = tree_limits(timeout_s=limit, on_timeout="detach" if goes_on else "cancel").start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    child = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), amounts()), Time(0)) if isinstance(top, Grant) else top
    late = isinstance(child, Grant) and child.deadline == limit * NS_PER_S
    status = "timeout" if late else "running"
    free = isinstance(child, Grant) and child.ticket.detach
    kept = "abandoned, keeps running until it notices" if free else "ended"
    return {"status": status, "exit_reason": status, "child_gets_interrupt_flag": late, "worker_thread": kept}


def charges(case: Case) -> Answer:
    """Charge turns of each kind to one budget."""
    budget, told = IterationBudget(case["given"]["remaining"], max_refunds=UNLIMITED), []
    for source in case["when"]["charge"]:
        try:
            budget.charge(source)
        except BudgetExhausted:
            told.append("raises BudgetExhausted")
        else:
            told.append("free" if source == "programmatic" else "ok")
    return {"results": told, "remaining": budget.remaining}


BY_FIELD: Final[dict[str, Callable[[Case], Answer]]] = {
    "ops": counted,
    "each_thread": threads,
    "delegate_task": delegated,
    "tool_calls_in_one_reply": batch,
    "roles": roles,
    "charge": charges,
}
BY_OPERATION: Final[dict[str, Callable[[Case], Answer]]] = {
    "run_loop": loops,
    "run two user turns": user_turns,
    "blocked tools for a leaf child": blocked,
    "strip for child": stripped,
    "timeout fires": detached,
}


def _answer(case: Case, _preset: str | None) -> Answer:
    return dispatched(case, BY_FIELD, BY_OPERATION)


AREA: Final = Area(
    name="iteration-budget",
    parts=frozenset({"iteration-budget"}),
    answer=_answer,
    presets=ours_only,
    compare=differences,
)
