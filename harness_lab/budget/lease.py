"""Leases: a worker keeps a task as long as it says so in time and the run may still spend.

A lease is a second reader of the run's ledger: it is extended only while another step would be allowed, and never
beyond the budget's time limit. The rules are those of prism-harness's task leases; where that raises an error, the
answer here is a value with the same code in this package's spelling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Literal

from harness_lab.clock import NS_PER_S, Time, instant, ns
from harness_lab.errors import InputError
from harness_lab.outcome import amount_text
from harness_lab.usage import count

if TYPE_CHECKING:
    from harness_lab.budget.run import RunBudget, RunLedger

DEFAULT_LEASE_SECONDS = 300.0

LeaseCode = Literal["run-not-permitted", "task-lease-not-held", "task-already-terminal"]


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """A lease was extended.

    Parameters
    ----------
    granted_seconds : float
        From now on; less than asked where the budget's time limit comes first.
    expires : Time
        The new expiry on the ledger's clock, nanoseconds; it may lie before the old one.
    """

    granted_seconds: float
    expires: Time


@dataclass(frozen=True, slots=True)
class LeaseRefusal:
    """A lease was not extended; the one in force stays as it is.

    Parameters
    ----------
    code : {"run-not-permitted", "task-lease-not-held", "task-already-terminal"}
        The run may not go on; another worker, or nobody, holds the task; the task has ended.
    reason : str
        In words, with figures.
    """

    code: LeaseCode
    reason: str


@dataclass(frozen=True, slots=True)
class _State:
    holder: str | None = None
    expires: Time | None = None
    outcome: str | None = None


class LeasedTask:
    """A task that one worker at a time may hold; safe for threads.

    Parameters
    ----------
    name : str
        For messages.
    """

    __slots__ = ("_lock", "_state", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = RLock()
        self._state = _State()

    @property
    def holder(self) -> str | None:
        """The worker that claimed it last; None before, and after its end."""
        return self._state.holder

    @property
    def expires(self) -> Time | None:
        """When its lease ends, nanoseconds on the ledger's clock."""
        return self._state.expires

    def claim(self, worker: str, now: Time, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> LeaseGrant | LeaseRefusal:
        """Take the task if it is free: never claimed, or its lease has run out.

        Raises
        ------
        InputError
            If the worker is not named, `now` is no whole number, or the lease not a finite number of seconds above 0.
        """
        length, now = _checked(worker, lease_seconds), instant("now", now)
        with self._lock:
            refusal = self._ended()
            if refusal is not None:
                return refusal
            held = self._state
            if held.expires is not None and now < held.expires and held.holder != worker:
                return LeaseRefusal("task-lease-not-held", f"{self.name} is held by {held.holder}")
            return self._grant(worker, now, length)

    def extend(self, worker: str, now: Time, length_ns: int) -> LeaseGrant | LeaseRefusal:
        """Set the expiry to `now` plus a length, for the worker that holds the task, in time.

        Raises
        ------
        InputError
            If `now` or the length is no whole number of nanoseconds, or the length is negative.
        """
        now, length_ns = instant("now", now), count("length_ns", instant("length_ns", length_ns))
        with self._lock:
            refusal = self._ended()
            if refusal is not None:
                return refusal
            held = self._state
            if held.holder != worker or held.expires is None or now >= held.expires:
                whose = "nobody" if held.expires is None or now >= held.expires else held.holder
                return LeaseRefusal("task-lease-not-held", f"{self.name} is held by {whose}, not by {worker}")
            return self._grant(worker, now, length_ns)

    def finish(self, worker: str, outcome: str) -> LeaseRefusal | None:
        """End the task; only the worker that claimed it last may. Returns why not, None when it is done."""
        with self._lock:
            refusal = self._ended()
            if refusal is None and self._state.holder != worker:
                refusal = LeaseRefusal("task-lease-not-held", f"{self.name} is held by {self._state.holder}")
            if refusal is None:
                self._state = _State(outcome=outcome)
            return refusal

    def _ended(self) -> LeaseRefusal | None:
        outcome = self._state.outcome
        return None if outcome is None else LeaseRefusal("task-already-terminal", f"{self.name} has ended: {outcome}")

    def _grant(self, worker: str, now: Time, length_ns: int) -> LeaseGrant:
        expires = Time(now + length_ns)
        self._state = replace(self._state, holder=worker, expires=expires)
        return LeaseGrant(length_ns / NS_PER_S, expires)


def extend_lease(
    task: LeasedTask,
    worker: str,
    ledger: RunLedger,
    budget: RunBudget,
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
) -> LeaseGrant | LeaseRefusal:
    """Extend a worker's lease on a task as far as the run's budget allows.

    Checked in this order: the arguments, the budget (any reason that would refuse a step), the whole seconds that its
    time limit leaves, and then, under the task's lock, who holds it. Granted is the lease or what is left of the run's
    time, whichever is shorter, counted from now, even if the lease in force ends later.

    Parameters
    ----------
    task : LeasedTask
        What is held.
    worker : str
        Who holds it.
    ledger : RunLedger
        The run's ledger; its clock is the lease's.
    budget : RunBudget
        The budget in force for the worker's run.
    lease_seconds : float
        How long, above 0.

    Raises
    ------
    InputError
        If the worker is not named, or the lease is not a finite number of seconds above 0.

    Examples
    --------
    >>> from harness_lab.budget import RunBudget, RunLedger
    >>> from harness_lab.clock import ManualClock
    >>> ledger = RunLedger("run", clock=ManualClock())
    >>> task = LeasedTask("index the repository")
    >>> _ = task.claim("worker-1", ledger.started)
    >>> extend_lease(task, "worker-1", ledger, RunBudget(8, None, 60)).granted_seconds
    60.0
    """
    length = _checked(worker, lease_seconds)
    reason = ledger.exhaustion(budget)
    if reason is not None:
        return LeaseRefusal("run-not-permitted", reason)
    left = ledger.remaining_seconds(budget)
    if left is not None and int(left) <= 0:
        whole = amount_text("time", ns(budget.max_seconds or 0))
        return LeaseRefusal("run-not-permitted", f"less than a second is left of {whole}")
    length = length if left is None else min(length, int(left) * NS_PER_S)
    return task.extend(worker, Time(ledger.started + ledger.elapsed_ns()), length)


def _checked(worker: str, lease_seconds: float) -> int:
    if not isinstance(worker, str) or not worker:
        raise InputError("worker", expected="a name", got=worker)
    length = ns(lease_seconds, what="lease_seconds")
    if length <= 0:
        raise InputError("lease_seconds", expected="a finite number above 0", got=lease_seconds)
    return length
