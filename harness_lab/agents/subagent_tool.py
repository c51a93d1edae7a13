"""A subagent dressed as a tool that its parent's model can call, with one text argument, ``task``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.agents.arguments import misfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.agents.runner import SubagentRunner
    from harness_lab.agents.session import Session
    from harness_lab.agents.subagents import Subagent
    from harness_lab.budget import RunContext

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What the subagent shall do; all that it will know."}},
    "required": ["task"],
}


class SubagentTool:
    """What :meth:`SubagentRunner.tool` makes.

    Within a run the conversation starts the child in the tree that calls, whichever context the tool was made with: so
    one registry can serve many parents at once, and each call is charged to its own run.
    """

    __slots__ = ("context", "parent", "parent_run_id", "runner", "subagent")

    def __init__(
        self,
        runner: SubagentRunner,
        subagent: Subagent,
        parent: Session,
        context: RunContext | None,
        parent_run_id: str,
    ) -> None:
        self.runner = runner
        self.subagent = subagent
        self.parent = parent
        self.context = context
        self.parent_run_id = parent_run_id

    @property
    def name(self) -> str:
        """The subagent's name."""
        return self.subagent.name

    @property
    def description(self) -> str:
        """What the parent's model is told about it."""
        return self.subagent.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of the arguments."""
        return PARAMETERS

    async def handle(self, arguments: Mapping[str, Any]) -> str:
        """Run the child by hand, outside of a running conversation."""
        wrong = no_task(self, arguments)
        if wrong is not None:
            return f"The tool failed: {wrong}"
        if self.context is None:
            return "The tool failed: it was made for a running conversation only."
        result = await self.runner.run(self.subagent, self.parent, self.context, self.parent_run_id, arguments["task"])
        return result.to_tool_result()


def no_task(tool: SubagentTool, arguments: Mapping[str, Any]) -> str | None:
    """Say why a call has no task that a child could be started with, None when it has one."""
    wrong = misfit(tool, arguments)
    if wrong is None and not arguments["task"].strip():
        return "argument [task] is empty: say what the subagent shall do"
    return wrong
