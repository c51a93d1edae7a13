"""A child of a scope, and what its work may raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from harness_lab.budget.spend import NOTHING
from harness_lab.errors import HarnessLabError
from harness_lab.outcome import Cause

if TYPE_CHECKING:
    from harness_lab.budget.allocation import Allocation
    from harness_lab.budget.scope import Scope
    from harness_lab.budget.scope_journal import Leak, Settlement
    from harness_lab.clock import Time
    from harness_lab.outcome import Refusal
    from harness_lab.usage import Amounts

State = Literal["waiting", "running", "pending", "ended"]
Prior = Literal["", "done", "retried", "lost"]


class ReservationsOpen(HarnessLabError):
    """A run has a result and somebody in it still holds a part of its pool: its books cannot be closed.

    Attributes
    ----------
    leaks : tuple of Leak
        Who.
    """

    def __init__(self, leaks: tuple[Leak, ...]) -> None:
        self.leaks = leaks
        super().__init__(leaks)

    def __str__(self) -> str:
        return f"{len(self.leaks)} reservation(s) are still open: {', '.join(leak.name for leak in self.leaks)}"


class ExecutionRetained(HarnessLabError):
    """Raised by work that was let go of while it may still run elsewhere."""


class WorkFailed(HarnessLabError):
    """Raised by work that reports that it failed; nobody knows whose fault that is."""


class Child:
    """One child of a scope.

    Attributes
    ----------
    id, name, key : str
        Its place in the tree, what its driver calls it, and the key under which it is never done twice (or None).
    ask : tuple of int or None
        What it asked for, by channel.
    deadline : Time or None
        When its work must have ended: never later than its scope's.
    state : {"waiting", "running", "pending", "ended"}
        In line for its share; at work; of unknown state after a restart, or retained elsewhere; over.
    spent : Spend
        What it has reported so far, of this stay.
    before : Spend
        What was charged for it when it was let go of earlier.
    settlement : Settlement or None
        How it ended; of one that is retained, what it was reconciled at.
    prior : {"", "done", "retried", "lost"}
        What became of the child that had its key before.
    prior_reason : str
        Why that one has to be done again.
    """

    __slots__ = (
        "allocation", "ask", "before", "begun", "deadline", "id", "key", "name", "prior", "prior_reason", "refusal",
        "scope", "settlement", "spent", "state", "task",
    )  # fmt: skip

    def __init__(self, id: str, name: str, key: str | None, task: str | None, ask: Amounts) -> None:
        self.id, self.name, self.key, self.task, self.ask = id, name, key, task, ask
        self.state: State = "running"
        self.spent = NOTHING
        self.before = NOTHING
        self.begun = False
        self.allocation: Allocation | None = None
        self.deadline: Time | None = None
        self.refusal: Refusal | None = None
        self.scope: Scope | None = None
        self.settlement: Settlement | None = None
        self.prior: Prior = ""
        self.prior_reason = ""


def whose_fault(error: Exception) -> Cause | None:
    """Return what brought an end by an exception about; None: nobody can say."""
    if isinstance(error, WorkFailed):
        return None
    return Cause.INFRASTRUCTURE if isinstance(error, HarnessLabError) else Cause.MODEL
