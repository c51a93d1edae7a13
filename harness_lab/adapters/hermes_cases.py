"""The cases of iteration budgets and of the gate before delegation on hermes-agent itself."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

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
    raise NotApplicable(f"the case is about {op}, which needs a running agent")


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


class _Allowed(Exception):
    """Everything was checked; the children would be built now."""


def _allow() -> float:
    raise _Allowed


def _gated(case: Case) -> dict[str, Any]:
    """Ask the gate for children; its last check done, it asks for the time, and goes no further here."""
    gate: Any = import_module("tools.delegate_tool")

    given, asks = case["given"], case["when"]["delegate_task"]
    paused = "pause is checked" in str(given.get("note", ""))
    parent = SimpleNamespace(_delegate_depth=given["caller_depth"])
    stand_ins: dict[str, Any] = {
        "_load_config": lambda: given["config"],
        "_resolve_delegation_credentials": lambda *_: {},
    }
    with patch.multiple(gate, time=SimpleNamespace(monotonic=_allow), **stand_ins):
        gate.set_spawn_paused(paused)
        try:
            told = gate.delegate_task(**asks, parent_agent=parent)
        except _Allowed:
            raise NotApplicable("the gate lets it through; what the children do needs a running agent") from None
        finally:
            gate.set_spawn_paused(False)
    return {"error": json.loads(told)["error"], "children_built": 0}


def _stripped(case: Case) -> dict[str, Any]:
    return {"kept": _theirs("_strip_blocked_tools", case["given"]["toolsets"])}


def _theirs(name: str, value: Any) -> Any:
    line = f'__import__("tools.delegate_tool", fromlist=["{name}"]).{name}({value!r})'
    return tried(line, lambda: getattr(import_module("tools.delegate_tool"), name)(value))


_BY_FIELD: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {
    "ops": _counted,
    "each_thread": _threads,
    "roles": _roles,
    "delegate_task": _gated,
}
_BY_OPERATION: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {"strip for child": _stripped}
