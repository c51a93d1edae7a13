"""agentbudget: a session's dollars; a charge that does not fit is refused after the call, and not booked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No, NotApplicable
from harness_lab.adapters.watched import tried, unwatched, watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Child, Used

NEEDS = "from agentbudget import AgentBudget"
ENDLESS = 10**9
"""Calls of one name within a minute of the machine's clock that are no loop: that detector is left out."""


class AgentBudget(Adapter):
    """A session for the root, and a child session for each child, whose spend its parent is charged at its end."""

    name = "agentbudget"
    package = "agentbudget"
    requires = "agentbudget>=0.4"
    knobs: ClassVar[Mapping[str, str]] = {
        "cost_usd": "max_spend: dollars of a session; a charge above what is left raises, and is not booked"
    }

    def __init__(self, *, cost_usd: float | None) -> None:
        import agentbudget  # type: ignore[import-not-found]

        if cost_usd is None:
            raise NotApplicable("a session always has a budget: there is no way to have none")
        made = f"AgentBudget(max_spend={cost_usd!r}, max_repeated_calls={ENDLESS}).session()"
        session = agentbudget.AgentBudget(max_spend=cost_usd, max_repeated_calls=ENDLESS).session()
        self.session: Any = watched(session, "session", made=made, needs=NEEDS)
        self.refused: No | None = None

    def before_call(self, call: Call) -> No | None:
        """Refuse once a charge was refused: the exception ends the session."""
        return self.refused

    def after_call(self, call: Call, used: Used) -> None:
        """Charge what is known; a response without usage is passed over."""
        if used.cost_usd is None:
            self.session.wrap(None)
            return
        try:
            self.session.track(None, cost=used.cost_usd)
        except _exhausted() as error:
            self.refused = No(str(error), "cost_usd")

    def child(self, child: Child) -> AgentBudget:
        """Open a child session on what the parent has left, or on less where that is declared."""
        most = self.session.remaining if child.asked.cost_usd is None else child.asked.cost_usd
        session = unwatched(self.session).child_session(max_spend=most)
        below = _ChildSession.__new__(_ChildSession)
        below.session = watched(session, "child", made=f"{self.session!r}.child_session(max_spend={most!r})")
        below.refused, below.parent = self.refused, self
        return below


class _ChildSession(AgentBudget):
    parent: AgentBudget

    def end(self) -> None:
        """Let the parent be charged."""
        session = self.session
        try:
            tried(f"{session!r}.__exit__(None, None, None)", lambda: unwatched(session).__exit__(None, None, None))
        except _exhausted() as error:
            self.parent.refused = No(str(error), "cost_usd")


def _exhausted() -> Any:
    from agentbudget import BudgetExhausted

    return BudgetExhausted


ADAPTER = AgentBudget
