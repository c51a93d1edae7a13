"""Cases of token floors: what a path was seen to need, and asks below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents.groups import Agents
from harness_lab.clock import Time
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import INPUT, Refusal
from harness_lab.policies import Grant, SpawnAsk, reservation_pool
from harness_lab.simulate import SimRuntime
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case

NOW: Final = Time(0)
MODEL: Final = "glm-5.2"
INLINE: Final = "inline"
"""The backend of an ask that names none: nothing was measured for it."""
MEASURED: Final = {"pi": 31211}
"""The table of a case that gives none."""
ROOMY: Final = 10**6
"""Tokens of a pool that a case does not describe."""


def floor(case: Case, _preset: str | None) -> Answer:
    """Look a floor up, list what was measured, or ask to start a child."""
    given, (when, *more) = case["given"], case["when"]
    if not more and when["op"] == "spawn" and when.get("factory") == "raises" and "floor" not in given:
        return _thrown(given, when.get("budget"))
    if more or "factory" in when or when["op"] not in ("lookup", "lookup_effective", "scan_table", "spawn"):
        raise UnknownShape(f"a floor's operation {when['op']} with {', '.join(sorted(set(when) - {'op'}))}")
    if when["op"] == "spawn":
        return _spawned(given, when["budget"])
    table = _table(given.get("table", MEASURED))
    if when["op"] == "scan_table":
        return {
            "non_null_backends": [row.key.backend for row in table.rows if row.floor is not None],
            "all_non_null_positive": all(row.floor > 0 for row in table.rows if row.floor is not None),
        }
    backend = when["backend"] if when["op"] == "lookup" else given["spec_backend"] or given["profile_backend"]
    row = table.lookup(_path(backend))
    return {"floor": None if row is None else row.floor, "raises": False}


def _spawned(given: Mapping[str, Any], budget: Mapping[str, Any]) -> dict[str, Any]:
    root, table = given.get("root", {}), _table({given["backend"]: given["floor"]})
    calls = root.get("maxIterations")
    policy = reservation_pool(input=root.get("maxTokens", ROOMY), calls=calls, floors=table).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    ask = amounts(input=budget["maxTokens"], calls=budget.get("maxIterations"))
    answer = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), ask, _path(given["backend"])), NOW)
    granted = isinstance(answer, Grant)
    if not isinstance(answer, Refusal):
        return {"ok": granted}
    return {
        "ok": False,
        "reason": str(answer.code),
        "deficit": preflight(table, _path(given["backend"]), budget["maxTokens"]).shortfall,
        **_left(policy),
        "live_workers": int(granted),
        "executor_constructed": granted,
        "journal_events": len(list(policy.outbox())),
    }


def _thrown(given: Mapping[str, Any], budget: Mapping[str, Any] | None) -> dict[str, Any]:
    """Start a child whose making raises, and read what is then held."""
    root = given["root"]
    policy = reservation_pool(input=root["maxTokens"], calls=root["maxIterations"]).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    if not isinstance(top, Grant):
        raise UnknownShape("a root that may not start")
    runtime = SimRuntime()

    async def child(_below: Agents, _task: Any) -> None:
        raise ValueError("factory boom")

    asked = budget or {"maxIterations": 1, "maxTokens": root["maxTokens"] // 2}
    budgets = {"child": amounts(input=asked["maxTokens"], calls=asked.get("maxIterations"))}
    agents = Agents(runtime, policy, top.ticket, {"child": child}, budgets=budgets)
    raised: list[str] = []

    async def main() -> None:
        try:
            await agents.run("child")
        except ValueError as error:
            raised.append(str(error))

    runtime.kernel.spawn(main(), "main")
    runtime.kernel.run()
    return {"raises": ", ".join(raised), **_left(policy)}


def _left(policy: Any) -> dict[str, Any]:
    pool = next(module.pool for module in policy.modules if hasattr(module, "pool"))
    readout = {"tokensLeft": pool.free()[INPUT], "reservedTokens": pool.held()[INPUT]}
    return {"readout": readout, "open_tickets": sum(1 for held in pool.held() if held)}


def _table(floors: Mapping[str, int]) -> FloorTable:
    return FloorTable(tuple(FloorRow(key=_path(backend), floor=tokens, n=6) for backend, tokens in floors.items()))


def _path(backend: str | None) -> FloorKey:
    return FloorKey(backend=backend or INLINE, model=MODEL)
