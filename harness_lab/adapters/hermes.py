"""hermes-agent's ``IterationBudget``: one counter an agent, taken from when a turn starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No, NotApplicable
from harness_lab.adapters.watched import watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Child, Used

CHILD_ITERATIONS = 50
"""``delegation.max_iterations`` where a config does not say."""


class Hermes(Adapter):
    """Each agent has a counter of its own, so a tree may take more turns than its root is allowed.

    This is the counter alone. The agent's loop counts turns a second time, and no refund lowers that count.
    """

    name = "hermes-agent"
    package = "hermes-agent"
    requires = "hermes-agent==0.19.0"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "IterationBudget(max_iterations): turns of one agent; a child has delegation.max_iterations (50) of "
        "its own; the loop's own count, which no refund lowers, is not in it"
    }
    areas: ClassVar[tuple[str, ...]] = ("iteration-budget",)

    def __init__(self, *, calls: int | None = 90) -> None:
        if calls is None:
            raise NotApplicable("an agent always has a counter: there is no way to have no limit")
        from agent.iteration_budget import IterationBudget  # type: ignore[import-not-found]

        needs = "from agent.iteration_budget import IterationBudget"
        self.budget: Any = watched(IterationBudget(calls), "budget", made=f"IterationBudget({calls!r})", needs=needs)

    @classmethod
    def answer(cls, case: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out a case of the counter and of roles on the package's own objects."""
        from harness_lab.adapters.hermes_cases import answer

        return answer(case)

    def before_call(self, call: Call) -> No | None:
        """Consume a unit."""
        return None if self.budget.consume() else No("the iteration budget is used up", "calls")

    def after_call(self, call: Call, used: Used) -> None:
        """Give a programmatic turn's unit back."""
        if used.programmatic:
            self.budget.refund()

    def not_sent(self, call: Call) -> None:
        """Give the unit back."""
        self.budget.refund()

    def child(self, child: Child) -> Hermes:
        """Give a child a counter of its own."""
        return Hermes(calls=CHILD_ITERATIONS if child.calls is None else child.calls)


ADAPTER = Hermes
