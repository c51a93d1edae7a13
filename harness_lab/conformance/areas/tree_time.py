"""Cases of tree limits about time: a child whose time is up, and that heeds it at once, later, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.areas.tree_play import MS, Tree
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from harness_lab.agents.groups import Agents
    from harness_lab.conformance.shapes import Answer, Case

LONG_MS: Final = 1_000_000
"""How long a child works of which the case does not say it."""
STOPPED: Final = "Stopped"
"""How TanStack AI tells a parent's model that a child's time was up."""


def timed(case: Case) -> Answer:
    """Run one child past its time and see when its parent goes on and when its slot is free."""
    given = case["given"]
    child, seen = given.get("child", {}), _Seen()
    goes_on = child.get("kind") == "promise" and child.get("ignores_abort", False)
    choices = {"on_timeout": "detach"} if goes_on else {}
    tree = Tree(given["limits"], case.get("preset"), **choices)
    works = child.get("duration_ms", LONG_MS)
    ends = child.get("first_yield_ms", works) if child.get("ignores_abort") else 0

    async def stubborn(_below: Agents, _task: Any) -> str:
        try:
            await tree.runtime.sleep(works * MS)
        except BaseException:  # it ignores the signal until it yields, and then resolves
            await tree.runtime.sleep(max(0, ends - tree.now()) * MS)
        seen.work = tree.now()
        return "resolved"

    async def body(root: Agents) -> None:
        operation = root.start("child")
        how = await operation.settled()
        seen.late = not how.ok and operation.end is not None and operation.end.outcome is Outcome.TIMED_OUT
        seen.result = tree.now()
        await operation.over()
        seen.free = tree.now() if tree.policy.modules[0].running == 0 else None  # type: ignore[attr-defined]

    tree.play(body, child=stubborn)
    return seen.told(given["limits"]["timeoutMs"])


@dataclass(slots=True)
class _Seen:
    """What was seen of one child, times in milliseconds."""

    late: bool = False
    result: int | None = None
    free: int | None = None
    work: int | None = None

    def told(self, timeout_ms: int) -> dict[str, Any]:
        """Return it in the words of the cases."""
        text = STOPPED if self.late else None
        return {
            "tool_result_error": text,
            "seen_by_model": text,
            "abort_reason": f"subagent timed out after {timeout_ms} ms" if self.late else None,
            "result_at_ms": self.result,
            "slot_free_at_ms": self.free,
            "underlying_work_finishes_at_ms": self.work,
        }
