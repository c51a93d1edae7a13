"""The cases of iteration budgets and of the gate before delegation on hermes-agent itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from harness_lab.adapters.protocol import NotApplicable
from harness_lab.adapters.watched import tried, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Case = Mapping[str, Any]

BUDGET: Final = "from agent.iteration_budget import IterationBudget"


def answer(case: Case) -> Mapping[str, Any]:
    """Carry a case out.

    Raises
    ------
    NotApplicable
        If it is about the loop, the children's runs or another system.
    """
    when = case["when"]
    for field, carried_out in _BY_FIELD.items():
        if field in when:
            return carried_out(case)
    op = when.get("op", next(iter(when), ""))
    if op in _BY_OPERATION:
        return _BY_OPERATION[op](case)
    raise NotApplicable(f"the case is about {op}, which needs a running agent; its gate is held side by side in tests")


def _budget(case: Case) -> Any:
    from agent.iteration_budget import IterationBudget  # type: ignore[import-not-found]

    most = case["given"]["max_total"]
    return watched(IterationBudget(most), "budget", made=f"IterationBudget({most})", needs=BUDGET)


def _counted(case: Case) -> dict[str, Any]:
    budget = _budget(case)
    results: list[Any] = []
    for op in case["when"]["ops"]:
        if isinstance(op, dict):
            budget.max_total = op["set_max_total"]
            results.append(None)
        else:
            results.append(getattr(budget, op)())
    return {"results": results, "used": budget.used, "remaining": budget.remaining}


def _threads(case: Case) -> dict[str, Any]:
    from agent.iteration_budget import IterationBudget

    budget = IterationBudget(case["given"]["max_total"])

    def until_false(_thread: int) -> int:
        taken = 0
        while budget.consume():
            taken += 1
        return taken

    threads = case["given"]["threads"]
    with ThreadPoolExecutor(threads) as pool:
        taken = sum(pool.map(until_false, range(threads)))
    return {"successful_consumes": taken, "used": budget.used}


def _roles(case: Case) -> dict[str, Any]:
    return {"normalised": [_theirs("_normalize_role", role) for role in case["when"]["roles"]]}


def _stripped(case: Case) -> dict[str, Any]:
    return {"kept": _theirs("_strip_blocked_tools", case["given"]["toolsets"])}


def _theirs(name: str, value: Any) -> Any:
    from tools import delegate_tool  # type: ignore[import-not-found]

    line = f'__import__("tools.delegate_tool", fromlist=["{name}"]).{name}({value!r})'
    return tried(line, lambda: getattr(delegate_tool, name)(value))


_BY_FIELD: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {
    "ops": _counted,
    "each_thread": _threads,
    "roles": _roles,
}
_BY_OPERATION: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {"strip for child": _stripped}
