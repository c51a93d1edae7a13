"""One subagent call: what has to hold before a child is asked for, the child's conversation, and the call's result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.agents.envelope import RunUsage, SubagentResult
from harness_lab.agents.errors import AgentError
from harness_lab.agents.place import Place, new_run_id
from harness_lab.agents.ports import Child
from harness_lab.agents.response import failure_of, result_of
from harness_lab.outcome import FRESH, INPUT, Outcome
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.agents.conversation import Conversation
    from harness_lab.agents.modes import AgentMode
    from harness_lab.agents.runner import SubagentRunner
    from harness_lab.agents.session import Session
    from harness_lab.agents.subagent_tool import SubagentTool
    from harness_lab.agents.subagents import Subagent
    from harness_lab.budget import RunBudget, RunLedger
    from harness_lab.usage import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentCall:
    """A prepared call.

    Parameters
    ----------
    move : Child or None
        What the loop is asked for; None: it cannot be asked, and the result stands.
    result : callable
        Returns how the call ended, once it has.
    """

    move: Child | None
    result: Callable[[], SubagentResult]


def prepare(parent: Conversation, tool: SubagentTool, task: str, slot: int) -> SubagentCall:
    """Prepare a call of a running conversation; the child joins the tree of its caller."""
    above, subagent = parent.place, tool.subagent
    service, tree = tool.runner.runtime, above.tree
    try:
        mode = service.modes.resolve(subagent.mode)
    except AgentError as error:
        found = never_ran(subagent, above.run_id, tree.ledger.ledger, Outcome.FAILED, failure_of(error), error=error)
        return SubagentCall(move=None, result=lambda: found)
    call = parent.turn - 1
    declared = subagent.budget_in(mode.max_steps, rules=service.rules)
    model, model_from = (mode.model, "mode") if mode.model is not None else (above.model, "parent")
    place = Place(
        tree=tree,
        service=service,
        path=(*above.path, (call, slot, 0)),
        run_id=new_run_id(),
        parent_run_id=above.run_id,
        agent=subagent.name,
        mode=mode,
        provider=above.provider,
        model=model,
        model_from=model_from,
    )
    child = parent.beside(place, opener(tool.runner, parent.session, subagent), task)
    tree.adopt(child, declared)
    key = subagent.floor_key(backend=above.provider, model=model, context=mode.context)
    asked = ask_of(declared, subagent)
    move = Child(agent=subagent.name, budget=asked, call=call, slot=slot, brain=child.think, floor_key=key)
    return SubagentCall(move=move, result=lambda: result_of(subagent, child, tree.records[place.path]))


def opener(runner: SubagentRunner, parent: Session, subagent: Subagent) -> Callable[[], Session]:
    """Return what opens the child's session: its own address, its own mode, nothing of its parent's conversation."""

    def open_session() -> Session:
        harness = runner.harness
        scope = subagent.scope_under(parent.scope)
        return harness.session(scope, participant=parent.participant).using_mode(subagent.mode)

    return open_session


def ask_of(declared: RunBudget, subagent: Subagent | None = None) -> Amounts:
    """Return a declaration as an ask by channel, with the tokens that a subagent asks for; time is the ledger's."""
    calls, *_, cost = amounts(calls=declared.max_steps, cost_usd=declared.max_cost_usd)
    tokens = (None, None, None) if subagent is None else subagent.ask[INPUT : FRESH + 1]
    return (calls, *tokens, cost)


def may_start(mode: AgentMode, subagent: Subagent) -> str | None:
    """Say why a mode cannot start a subagent, None when it can. Authority is declared, never made by hand."""
    if mode.declares(subagent):
        return None
    return f"mode [{mode.name}] does not declare a subagent [{subagent.name}] in mode [{subagent.mode}]"


def never_ran(
    subagent: Subagent,
    parent_run_id: str,
    ledger: RunLedger,
    outcome: Outcome,
    reason: str,
    *,
    error: Exception | None = None,
) -> SubagentResult:
    """Return the result of a call whose child never ran."""
    return SubagentResult(
        subagent=subagent.name,
        run_id=new_run_id(),
        parent_run_id=parent_run_id,
        outcome=outcome,
        reason=reason,
        tree=RunUsage.of_tree(ledger),
        error=error,
    )
