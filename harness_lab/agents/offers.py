"""What a run is offered, and how one call of a tool is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.agents.client import ToolCall, ToolSpec
from harness_lab.agents.errors import not_authorized
from harness_lab.agents.stops import as_failure, is_stop, words_of
from harness_lab.agents.subagent_tool import SubagentTool
from harness_lab.agents.tools import invoke, narrowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.agents.conversation import Conversation
    from harness_lab.agents.tools import AgentTool

Offer = Literal["automatic", "by-hand"]


def offered_to(conversation: Conversation, requested: Sequence[str] | None) -> dict[str, AgentTool]:
    """Return a run's tools: the mode's list as the caller narrowed it, and the mode's subagents, as far as authorised.

    A subagent that the mode does not declare is never among them, whoever registered it.
    """
    place, session = conversation.place, conversation.session
    service, mode = place.service, place.mode
    subagents = _subagent_tools(conversation, requested) if service.offer == "automatic" else {}
    automatic = mode.subagents if service.offer == "automatic" else {}
    names = [name for name in narrowed(requested, mode.tools) if name not in automatic]
    tools = {**service.tools.resolve(names, session), **subagents}
    tools = {n: t for n, t in tools.items() if not isinstance(t, SubagentTool) or mode.declares(t.subagent)}
    return tools if service.authorizer is None else service.authorizer.allowed(session, tools)


def _subagent_tools(conversation: Conversation, requested: Sequence[str] | None) -> dict[str, AgentTool]:
    place = conversation.place
    everything = requested is None or "*" in requested
    return {
        name: SubagentTool(place.service.runner, subagent, conversation.session, None, place.run_id)
        for name, subagent in place.mode.subagents.items()
        if everything or name in (requested or ())
    }


def authorized(conversation: Conversation, tool: AgentTool, call: ToolCall) -> None:
    """Ask the call policy.

    Raises
    ------
    AgentError
        ``call_not_authorized``.
    """
    authorizer = conversation.place.service.authorizer
    if authorizer is not None and not authorizer.allows_call(conversation.session, tool, call.arguments):
        raise not_authorized(call.name)


async def result_text(tool: AgentTool, arguments: Mapping[str, Any]) -> str:
    """Call a tool and return its result as text; a failure is a result too, since the model can often recover."""
    try:
        result = await invoke(tool, arguments)
    except BaseException as error:
        if is_stop(error):
            raise
        return failed_text(words_of(as_failure(error)))
    try:
        text = result if isinstance(result, str) else json.dumps(result)
    except Exception as error:  # it has done its work: as a failure, a model would have it done again
        return f"The tool ran, and its result cannot be written as JSON: {words_of(error)}"
    return _sendable(text)


def failed_text(why: object) -> str:
    """Return the result of a call that failed, for the model."""
    return _sendable(f"The tool failed: {why}")


def _sendable(text: str) -> str:
    """Return a text without halves of characters, which could be sent to no provider."""
    return text.encode(errors="replace").decode()


def spec_of(tool: AgentTool) -> ToolSpec:
    """Return a tool as the model sees it."""
    description = getattr(tool, "description", "")
    parameters = getattr(tool, "parameters", None)
    if parameters is None:
        return ToolSpec(name=tool.name, description=description)
    return ToolSpec(name=tool.name, description=description, parameters=parameters)
