"""Approvals: asked for in the conversation, answered in the conversation, acted on by the next run.

Source: prism-harness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.agents.client import ToolCall
from harness_lab.agents.errors import AgentError
from harness_lab.errors import check_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.agents.session import Session

UNANSWERED = "No approval response provided"
DENIED = "User denied tool execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that waits for a person.

    Parameters
    ----------
    id : str
        What :func:`record_approval` answers; not the call's own id.
    tool : str
        The tool.
    arguments : mapping
        As the model wrote them.
    tool_call_id : str
        The provider's name of the call.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]
    tool_call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A call that stopped a run, with what became of it: `refusal` None says that it may run now.

    Parameters
    ----------
    call : ToolCall
        The call.
    refusal : str or None
        Why it must not run, for the model; None: it may.
    """

    call: ToolCall
    refusal: str | None


def record_approval(session: Session, approval_id: str, *, approved: bool, reason: str | None = None) -> None:
    """Write a person's answer into the conversation; the next run of the session acts on it.

    The first answer is final, a yes as well as a no. Who may approve what is the application's to decide, before it
    calls this.

    Raises
    ------
    InputError
        If `approved` is not True or False, or `reason` is no text: the words "no" and "false" are no yes.
    AgentError
        ``approval_not_pending`` if nothing waits under this id: the call has run, was answered, or never was.
    """
    check_kind("approved", approved, bool, expected="True or False")
    check_kind("reason", reason, (str, type(None)), expected="text or None")
    at, asked = _last_asked(session.messages)
    waits = any(request["approval_id"] == approval_id for request in asked)
    if not waits or approval_id in _answers(session.messages[at:]):
        raise AgentError("approval_not_pending", f"No call waits for approval [{approval_id}].")
    answer = {"type": "approval", "approval_id": approval_id, "approved": approved, "reason": reason}
    session.messages.append(answer)


def decided(session: Session) -> list[Decided]:
    """Return the calls that stopped the last run, each with its answer; one without an answer does not run."""
    at, asked = _last_asked(session.messages)
    answers = _answers(session.messages[at:])
    calls = {c["id"]: c for c in session.messages[at]["tool_calls"]} if asked else {}
    return [_decide(calls[request["tool_call_id"]], answers.get(request["approval_id"])) for request in asked]


def _answers(messages: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the answers by id; of two that were written side by side, the first one stands."""
    found: dict[str, Mapping[str, Any]] = {}
    for message in messages:
        if message["type"] == "approval":
            found.setdefault(message["approval_id"], message)
    return found


def _decide(call: Mapping[str, Any], answer: Mapping[str, Any] | None) -> Decided:
    found = ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"])
    if answer is None:
        return Decided(call=found, refusal=UNANSWERED)
    return Decided(call=found, refusal=None if answer["approved"] is True else answer["reason"] or DENIED)


def _last_asked(messages: Sequence[Mapping[str, Any]]) -> tuple[int, list[Mapping[str, Any]]]:
    """Return where the last turn with calls is, and its requests that have no result yet."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["type"] == "assistant" and messages[at]["tool_calls"]:
            break
    else:
        return 0, []
    results = [r["tool_call_id"] for m in messages[at:] if m["type"] == "tool_result" for r in m["results"]]
    return at, [r for r in messages[at]["approval_requests"] if r["tool_call_id"] not in results]
