"""Subagents by hand: run one under a context, or make the tool that a parent's model can call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.context_ledger import child_stop
from harness_lab.agents.conversation import Conversation
from harness_lab.agents.errors import AgentError
from harness_lab.agents.place import Place, new_run_id
from harness_lab.agents.readout import reason
from harness_lab.agents.response import failure_of, result_of
from harness_lab.agents.runtime_limits import groups_of
from harness_lab.agents.subagent_call import ask_of, may_start, never_ran, opener
from harness_lab.agents.subagent_tool import SubagentTool
from harness_lab.agents.subagents import Subagent
from harness_lab.agents.tree import Tree
from harness_lab.budget import Ceiling, RunContext
from harness_lab.budget.run import MAX_LEVELS
from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from harness_lab.agents.envelope import SubagentResult
    from harness_lab.agents.modes import AgentMode
    from harness_lab.agents.service import AgentRuntime
    from harness_lab.agents.session import Session, Sessions


class SubagentRunner:
    """Runs declared subagents.

    Parameters
    ----------
    harness : Sessions
        Opens the children's sessions.
    runtime : AgentRuntime
        Runs them.
    """

    def __init__(self, harness: Sessions, runtime: AgentRuntime) -> None:
        self.harness = harness
        self.runtime = runtime

    def tool(self, subagent: Subagent, parent: Session, context: RunContext, root_run_id: str) -> SubagentTool:
        """Return the subagent as a tool; its one argument is the text ``task``.

        Parameters
        ----------
        subagent : Subagent
            The declaration, as in ``modes.resolve(name).subagents[tool_name]``.
        parent : Session
            Whose subagent it is.
        context : RunContext
            The parent's context, for calls outside of a running conversation.
        root_run_id : str
            The parent's run.
        """
        return SubagentTool(self, subagent, parent, context, root_run_id)

    async def run(
        self, subagent: Subagent, parent: Session, context: RunContext, parent_run_id: str, task: str
    ) -> SubagentResult:
        """Run a subagent under its parent's context; however it ends, that is the result and no error.

        A call without a task is none: that is a mistake of whoever calls, and an error.

        The order of what is looked at: the parent's budget, the depth, the child's mode, the parent's authority to
        start it, the child's budget. Nothing is opened or recorded before all of them allow it.

        Raises
        ------
        InputError
            If an argument is not of its kind, or the task is empty.
        """
        check_kind("subagent", subagent, Subagent, expected="a Subagent")
        check_kind("context", context, RunContext, expected="a RunContext, the parent's")
        if not isinstance(task, str) or not task.strip():
            raise InputError("task", expected="text that says what the subagent shall do", got=task)
        ledger = context.ledger
        stop = reason(ledger, Ceiling.of(context.budget))
        if stop is not None:
            outcome = Outcome.CANCELLED if ledger.cancelled else Outcome.EXHAUSTED
            return never_ran(subagent, parent_run_id, ledger, outcome, stop)
        if context.depth + 1 >= MAX_LEVELS:
            why = f"subagent nesting reached the maximum depth of {MAX_LEVELS}"
            return never_ran(subagent, parent_run_id, ledger, Outcome.DENIED, why)
        try:
            mode = self.runtime.modes.resolve(subagent.mode)
            above = self.runtime.modes.resolve(parent.mode)
        except AgentError as error:
            return never_ran(subagent, parent_run_id, ledger, Outcome.FAILED, failure_of(error), error=error)
        denied = may_start(above, subagent)
        if denied is not None:
            return never_ran(subagent, parent_run_id, ledger, Outcome.DENIED, denied)
        declared = subagent.budget_in(mode.max_steps, rules=self.runtime.rules)
        stop = child_stop(context, declared, self.runtime.rules)
        if stop is not None:
            return never_ran(subagent, parent_run_id, ledger, Outcome.EXHAUSTED, stop)
        depth, groups = context.depth + 1, groups_of(parent, None)
        tree = Tree(self.runtime, context, AsyncioRuntime(), depth=depth, declared=declared, groups=groups)
        child = self._conversation(tree, subagent, parent, (mode, above), parent_run_id, task)
        record = await tree.run(child, ask_of(declared, subagent))
        return result_of(subagent, child, record)

    def _conversation(
        self,
        tree: Tree,
        subagent: Subagent,
        parent: Session,
        modes: tuple[AgentMode, AgentMode],
        parent_run_id: str,
        task: str,
    ) -> Conversation:
        mode, above = modes
        model, model_from = (mode.model, "mode") if mode.model else (self.runtime.model_of(above, parent)[0], "parent")
        place = Place(
            tree=tree,
            service=self.runtime,
            path=(),
            run_id=new_run_id(),
            parent_run_id=parent_run_id,
            agent=subagent.name,
            mode=mode,
            provider=parent.provider or "unknown",
            model=model,
            model_from=model_from,
        )
        return Conversation(place, opener(self, parent, subagent), task)
