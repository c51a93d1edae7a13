"""What a run hands back to its caller, and how its end is read off what the loop wrote down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.agents.envelope import NOTHING, RunUsage, SubagentResult, outcome_of_refusal, reason_of
from harness_lab.agents.errors import VERDICTS, AgentError
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from harness_lab.agents.approvals import PendingApproval
    from harness_lab.agents.conversation import Conversation
    from harness_lab.agents.record import NodeRecord
    from harness_lab.agents.subagents import Subagent
    from harness_lab.outcome import Refusal

_CUT = frozenset({Outcome.EXHAUSTED, Outcome.TIMED_OUT, Outcome.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse:
    """One run's result.

    Parameters
    ----------
    run_id : str
        The run.
    text : str
        The model's last text. No finished answer where `stopped_because` says something.
    outcome : Outcome
        completed, exhausted, timed_out, cancelled or awaiting_approval; failed where an account could not be asked.
    finish_reason : str
        The provider's own, ``budget_exhausted``, ``cancelled`` or ``awaiting_approval``.
    stopped_because : str or None
        Which limit cut the run off, with its figures; None: none did.
    tool_calls : tuple of str
        Names of the tools that were called, in order.
    pending_approvals : tuple of PendingApproval
        Calls that wait for a person.
    usage : RunUsage
        Of this run and all that it started.
    tree : RunUsage
        Of the whole tree so far.
    warnings : tuple of str
        What its start and its last call were granted with: a floor whose evidence is stale; which limits are full
        beyond the share of ``AtLimit(warn_at=...)``.
    """

    run_id: str
    text: str
    outcome: Outcome
    finish_reason: str
    stopped_because: str | None
    tool_calls: tuple[str, ...]
    pending_approvals: tuple[PendingApproval, ...]
    usage: RunUsage
    tree: RunUsage
    warnings: tuple[str, ...] = ()

    @property
    def cut_off(self) -> bool:
        """Whether a limit or a cancellation ended it before its answer was finished."""
        return self.stopped_because is not None

    @property
    def steps(self) -> int:
        """Model calls of the whole tree so far, as prism-harness has it; the run's own are in `usage`."""
        return self.tree.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How a run ended, in the words of its record.

    Parameters
    ----------
    outcome : Outcome
        How it ended.
    finish_reason : str or None
        The provider's reason, or ours; None: failed.
    stopped_because : str or None
        Which limit cut it off; None: none did.
    failure : str or None
        What made it fail: an error's code or class, or the code of who could not be asked; None: it did not fail.
    """

    outcome: Outcome
    finish_reason: str | None
    stopped_because: str | None
    failure: str | None = None


def closing_of(conversation: Conversation, record: NodeRecord) -> Closing:
    """Read off how a run ended."""
    outcome = Outcome.UNKNOWN if record.end is None else record.end.outcome
    error = conversation.error or record.error
    if error is not None:
        return Closing(outcome=outcome, finish_reason=None, stopped_because=None, failure=failure_of(error))
    if outcome is Outcome.AWAITING_APPROVAL and record.refusal is not None:
        why = _reason(conversation, record.refusal)
        return Closing(outcome=outcome, finish_reason="awaiting_approval", stopped_because=why)
    if outcome is Outcome.FAILED and record.refusal is not None:
        why, code = _reason(conversation, record.refusal), str(record.refusal.code)
        return Closing(outcome=outcome, finish_reason=None, stopped_because=why, failure=code)
    if outcome not in _CUT:
        return Closing(outcome=outcome, finish_reason=conversation.finish_reason, stopped_because=None)
    spoken = conversation.place.service.rules.cancel_inside == "cancelled"
    word = "cancelled" if outcome is Outcome.CANCELLED and spoken else "budget_exhausted"
    if record.refusal is not None:
        return Closing(outcome=outcome, finish_reason=word, stopped_because=_reason(conversation, record.refusal))
    why = "the time limit was reached" if outcome is Outcome.TIMED_OUT else "the run was cancelled"
    return Closing(outcome=outcome, finish_reason=word, stopped_because=why)


def _reason(conversation: Conversation, refusal: Refusal) -> str:
    return reason_of(refusal, depth=conversation.place.tree.depth)


def response_of(conversation: Conversation, record: NodeRecord) -> AgentResponse:
    """Return a root's response."""
    place, closing = conversation.place, closing_of(conversation, record)
    return AgentResponse(
        run_id=place.run_id,
        text=conversation.text,
        outcome=closing.outcome,
        finish_reason=closing.finish_reason or "",
        stopped_because=closing.stopped_because,
        tool_calls=tuple(conversation.called),
        pending_approvals=tuple(conversation.pending) if closing.outcome is Outcome.AWAITING_APPROVAL else (),
        usage=place.tree.usage(place.path),
        tree=RunUsage.of_tree(place.tree.ledger.ledger),
        warnings=record.all_warnings,
    )


def result_of(subagent: Subagent, conversation: Conversation, record: NodeRecord) -> SubagentResult:
    """Return a child's result, however it ended."""
    place = conversation.place
    outcome, reason = _verdict(conversation, record)
    denied = record.end is not None and record.end.outcome is Outcome.DENIED
    return SubagentResult(
        subagent=subagent.name,
        run_id=place.run_id,
        parent_run_id=place.parent_run_id or "",
        outcome=outcome,
        content=conversation.text,
        reason=reason,
        usage=NOTHING if denied else place.tree.usage(place.path),
        tree=RunUsage.of_tree(place.tree.ledger.ledger),
        started=not denied,
        error=conversation.error or record.error,
        warnings=record.all_warnings,
    )


def failure_of(error: BaseException) -> str:
    """Return what may be said of an error: its code, else its class; its text may hold anything."""
    return error.code if isinstance(error, AgentError) else type(error).__name__


def _verdict(conversation: Conversation, record: NodeRecord) -> tuple[Outcome, str | None]:
    rules = conversation.place.service.rules
    error = conversation.error or record.error
    if error is not None:
        verdict = isinstance(error, AgentError) and error.code in VERDICTS
        return (Outcome.DENIED if verdict else Outcome.FAILED), failure_of(error)
    closing = closing_of(conversation, record)
    if closing.outcome is Outcome.DENIED and record.refusal is not None:
        return outcome_of_refusal(record.refusal), _reason(conversation, record.refusal)
    if closing.outcome is Outcome.AWAITING_APPROVAL:
        waits = rules.approval == "awaiting_approval"
        return (Outcome.AWAITING_APPROVAL, "it waits for a person's approval") if waits else (Outcome.COMPLETED, None)
    if closing.outcome is Outcome.CANCELLED and rules.cancel_inside == "cancelled":
        return Outcome.CANCELLED, closing.stopped_because
    if closing.outcome in _CUT:
        return Outcome.EXHAUSTED, closing.stopped_because
    return closing.outcome, closing.stopped_because
