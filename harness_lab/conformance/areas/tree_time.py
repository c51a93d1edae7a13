"""Cases of tree limits about time: a child whose time is up, and that heeds it at once, later, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.clock import NS_PER_S
from harness_lab.conformance.areas.tree_play import MS, Tree
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from harness_lab.agents.groups import Agents
    from harness_lab.conformance.shapes import Answer, Case

STOPPED: Final = "Stopped"
"""How TanStack AI tells a parent's model that a child's time was up."""


def timed(case: Case) -> Answer:
    """Run one child past its time and see when its parent goes on and when its slot is free."""
    given = case["given"]
    child, tree = given.get("child", {}), Tree(given["limits"])
    ends = child.get("first_yield_ms", child.get("duration_ms", 0)) if child.get("ignores_abort") else 0
    seen: dict[str, Any] = {}

    async def stubborn(_below: Agents, _task: Any) -> str:
        try:
            await tree.runtime.sleep(NS_PER_S)
        except BaseException:  # it ignores the signal until it yields, and then resolves
            await tree.runtime.sleep(max(0, ends - tree.now()) * MS)
        seen["work"] = tree.now()
        return "resolved"

    async def body(root: Agents) -> None:
        operation = root.start("child")
        how = await operation.settled()
        late = operation.end is not None and operation.end.outcome is Outcome.TIMED_OUT
        seen["told"] = STOPPED if late and not how.ok else how.value
        seen["at"] = tree.now()
        seen["free"] = tree.policy.modules[0].running == 0  # type: ignore[attr-defined]

    tree.play(body, child=stubborn)
    return {
        "tool_result_error": seen["told"],
        "seen_by_model": seen["told"],
        "abort_reason": f"subagent timed out after {given['limits']['timeoutMs']} ms" if seen["told"] else None,
        "result_at_ms": seen["at"],
        "slot_free_at_ms": seen["at"] if seen["free"] else None,
        "underlying_work_finishes_at_ms": seen["work"],
    }
