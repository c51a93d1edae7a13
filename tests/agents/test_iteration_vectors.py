"""Every behaviour case of iteration budgets and delegation gates through the public API, or a row in the docs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents.delegating import (
    DELEGATION_TOOLS,
    LEAF_BLOCKED,
    LEAF_BLOCKED_SETS,
    DelegatedTask,
    DelegationRules,
    get_subagent_tool_set,
    normal_role,
)
from harness_lab.budget.iteration import IterationBudget
from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import BudgetExhausted, InputError
from harness_lab.outcome import Outcome, Refusal
from harness_lab.policies import (
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    iteration_budget,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
VECTORS = ROOT.parent / "shared" / "vectors" / "iteration-budget.json"
CASES = {case["id"]: case for case in json.loads(VECTORS.read_text())} if VECTORS.is_file() else {}
DEVIATING = {
    "c-budget-negative",
    "c-skill-last-unit-raises",
    "c-skill-budget-of-one",
    "c-turn-cap-on-delegate-calls",
    "c-deleg-child-hit-cap-with-summary",
}
NOT_APPLICABLE = {"c-code-sandbox-limits", "c-loop-refund-sites"}  # lists of constants of another system
CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {}
ONE = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)

pytestmark = pytest.mark.skipif(not CASES, reason="the behaviour cases are not here")


def check(*ids: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        CHECKS.update({name: function for name in ids if name not in DEVIATING})
        return function

    return register


@check(*(n for n in CASES if n.startswith("c-budget") and n != "c-budget-threads"))
def _budget(case: dict[str, Any]) -> None:
    budget = IterationBudget(case["given"]["max_total"])
    results: list[Any] = []
    for op in case["when"]["ops"]:
        if isinstance(op, dict):
            budget.max_total = op["set_max_total"]
            results.append(None)
        else:
            results.append(getattr(budget, op)())
    then = case["then"]
    assert (results, budget.used, budget.remaining) == (then["results"], then["used"], then["remaining"])


@check("c-budget-threads")
def _threads(case: dict[str, Any]) -> None:
    budget = IterationBudget(case["given"]["max_total"])
    with ThreadPoolExecutor(case["given"]["threads"]) as pool:
        taken = list(pool.map(lambda _: budget.consume(), range(2 * case["given"]["max_total"])))
    assert (sum(taken), budget.used) == (case["then"]["successful_consumes"], case["then"]["used"])


@check(*(n for n in CASES if n.startswith("c-loop") and "turns" in CASES[n]["given"]))
def _loops(case: dict[str, Any]) -> None:
    cap = case["given"]["max_iterations"]
    free = iteration_budget(cap, max_refunds="unbounded")
    presets = {"refund_budget_only_v0_19": compose(shared_ledger(cap), free), "refund_both_counters": free}
    for name, spec in presets.items():
        calls, used = _loop(spec, case["given"]["turns"])
        then = case["then"][name]
        assert (calls, used) == (then["model_calls"], then["budget_used"]), name


def _loop(spec: PolicySpec, turns: list[Any]) -> tuple[int, int]:
    policy = spec.start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    assert isinstance(top, Grant)
    budget: IterationBudget = top.ticket.memory[-1]
    for calls in range(501):
        turn = turns[min(calls, len(turns) - 1)]
        answer = policy.admit(StepAsk(top.ticket, calls, 0, amounts()), Time(0))
        if isinstance(answer, Refusal):
            return calls, budget.used
        assert isinstance(answer, Grant)
        script = isinstance(turn, list) and set(turn) == {"execute_code"}
        policy.settle(answer.ticket, Use(ONE, turn="programmatic" if script else "interactive"), Time(0))
        if turn == "text":
            return calls + 1, budget.used
    return 501, budget.used


@check("c-loop-budget-reset-per-turn")
def _per_turn(case: dict[str, Any]) -> None:
    cap, wanted = case["given"]["max_iterations"], case["given"]["model_calls_per_user_turn"]
    calls = 0
    for _ in range(case["given"]["user_turns"]):
        calls += _loop(iteration_budget(cap), [["x"]] * (wanted - 1) + ["text"])[0]
    assert calls == case["then"]["model_calls_total"]


@check(*(n for n in CASES if n.startswith("c-deleg")))
def _delegate(case: dict[str, Any]) -> None:
    config = case["given"]["config"] | {"paused": case["id"] == "c-deleg-paused-first"}
    rules, then = DelegationRules.hermes(config), case["then"]
    request = case["when"]["delegate_task"]
    if "error_contains" in then:
        with pytest.raises(InputError) as told:
            rules.decide(request, depth=case["given"]["caller_depth"])
        assert then["error_contains"] in str(told.value)
        return
    tasks = rules.decide(request, depth=case["given"]["caller_depth"])
    assert len(tasks) == then["children_built"]
    assert [task.role for task in tasks] == then["roles"]
    assert [task.depth for task in tasks] == then["child_depth"]
    assert [task.tools(["terminal", "file", "delegation"]) for task in tasks] == then["child_toolsets"]
    assert [task.max_iterations for task in tasks] == then["child_max_iterations"]


@check("c-tools-blocked", "c-tools-strip-toolsets", "c-role-normalise")
def _tools(case: dict[str, Any]) -> None:
    then = case["then"]
    if "blocked" in then:
        assert sorted(LEAF_BLOCKED) == then["blocked"]
        boss = DelegatedTask(goal="x", role="orchestrator", depth=1, max_iterations=1)
        assert boss.tools(list(LEAF_BLOCKED), blocked=LEAF_BLOCKED) == then["orchestrator_regains"]
    elif "kept" in then:
        assert get_subagent_tool_set(case["given"]["toolsets"], blocked=LEAF_BLOCKED_SETS) == then["kept"]
    else:
        assert [normal_role(role) for role in case["when"]["roles"]] == then["normalised"]


@check("c-child-timeout-detaches")
def _detaches(case: dict[str, Any]) -> None:
    limit = case["given"]["child_timeout_seconds"]
    policy = tree_limits(timeout_s=limit, on_timeout="detach").start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    assert isinstance(top, Grant)
    child = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), amounts()), Time(0))
    assert isinstance(child, Grant)
    assert (child.deadline, child.ticket.detach) == (limit * NS_PER_S, True)
    assert case["then"]["status"] == "timeout"
    assert Outcome.TIMED_OUT == "timed_out"


@check("c-skill-programmatic-free")
def _skill(case: dict[str, Any]) -> None:
    budget = IterationBudget(case["given"]["remaining"], max_refunds="unbounded")
    told = []
    for source in case["when"]["charge"]:
        try:
            budget.charge(source)
            told.append("free" if source == "programmatic" else "ok")
        except BudgetExhausted:
            told.append("raises BudgetExhausted")
    assert (told, budget.remaining) == (case["then"]["results"], case["then"]["remaining"])


@pytest.mark.parametrize("name", sorted(set(CASES) - DEVIATING - NOT_APPLICABLE))
def test_the_case_passes(name: str) -> None:
    CHECKS[name](CASES[name])


def test_every_case_passes_or_is_a_row_of_the_deviations() -> None:
    docs = (ROOT / "docs" / "deviations.md").read_text("utf-8")
    assert set(CHECKS) | DEVIATING | NOT_APPLICABLE == set(CASES)
    assert all(name in docs for name in DEVIATING | NOT_APPLICABLE)
    assert len(DEVIATING) <= 0.15 * len(CASES)


def test_the_names_of_delegation_tools_are_kept() -> None:
    assert DELEGATION_TOOLS == ("delegate_task", "spawn_agent", "create_subagent")
