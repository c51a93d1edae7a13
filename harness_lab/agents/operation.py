"""An agent that code started: whether it runs, how it ended, and how it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.errors import HarnessLabError
from harness_lab.policies.protocol import COMPLETED

if TYPE_CHECKING:
    from harness_lab.agents.groups import Agents
    from harness_lab.agents.ports import Job
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End


class StartRefused(HarnessLabError):
    """An agent was not started: a limit said no, and nothing was created.

    Attributes
    ----------
    agent : str
        Its name.
    refusal : Refusal
        Why.
    """

    def __init__(self, agent: str, refusal: Refusal) -> None:
        self.agent, self.refusal = agent, refusal
        super().__init__(agent, refusal)

    def __str__(self) -> str:
        return f"agent {self.agent} was not started: {self.refusal}"


class Cancelled(HarnessLabError):
    """An agent was stopped before it ended by itself, or its time was up."""

    def __str__(self) -> str:
        return "Cancelled."


@dataclass(frozen=True, slots=True)
class Settled:
    """How one child of a group ended: with a value, or with an error.

    Parameters
    ----------
    ok : bool
        Whether it ended with a value.
    value : object
        What it returned; None where it failed.
    error : BaseException or None
        What it raised, or why it did not run.
    """

    ok: bool
    value: Any = None
    error: BaseException | None = None


class Operation:
    """An agent that was started.

    Attributes
    ----------
    agent : str
        Its name.
    wake : bool
        Whether its end shall open a new turn of whoever started it; whoever runs the turns reads it.
    end : End or None
        How it ended; None while it runs. One whose time is up, and that may go on, has ended for whoever waits for it.
    value, error : object, BaseException or None
        What came of it.
    warnings : tuple of str
        Of the grant with which it started.

    Notes
    -----
    `job`, `work`, `below`, `begun` and `stopped` are for :class:`~harness_lab.agents.groups.Agents`, which runs it.
    """

    __slots__ = ("agent", "begun", "below", "end", "error", "job", "stopped", "value", "wake", "warnings", "work")

    def __init__(self, agent: str, *, wake: bool) -> None:
        self.agent = agent
        self.wake = wake
        self.end: End | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.warnings: tuple[str, ...] = ()
        self.job: Job | None = None
        self.work: Job | None = None  # what goes on by itself after its time, where it may
        self.below: Agents | None = None
        self.begun = False
        self.stopped = False

    @property
    def done(self) -> bool:
        """Whether it has ended: one whose time is up may have told so, and still work."""
        return all(job is None or job.done for job in (self.work, self.job)) and self.job is not None

    def begin(self) -> bool:
        """Take note that it runs; False when it was stopped before its turn came, and must not."""
        self.begun = True
        return not self.stopped

    def cancel(self) -> None:
        """Stop it, its children first; if it then ends normally all the same, it was still stopped."""
        self.stopped = True
        if self.below is not None:
            self.below.cancel()
        job = self.job if self.work is None else self.work
        if self.begun and job is not None and not job.done:
            job.cancel()

    async def settled(self) -> Settled:
        """Wait until it has ended, and say how."""
        if self.job is not None:
            await self.job.ended()
        error = self.error if self.error is not None or self.end is COMPLETED else Cancelled()
        return Settled(error is None, self.value, error)

    async def over(self) -> None:
        """Wait until it works no more; after its time was up that may be later than it said so."""
        if self.job is not None:
            await self.job.ended()
        if self.work is not None:  # made while the other one ran
            await self.work.ended()

    async def result(self) -> Any:
        """Wait for its value.

        Raises
        ------
        Cancelled
            If it was stopped.
        Exception
            What it raised.
        """
        how = await self.settled()
        if how.error is not None:
            raise how.error
        return how.value
