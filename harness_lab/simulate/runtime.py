"""The runtime of the simulator: the agent loop's port on the virtual-time kernel."""

from __future__ import annotations

import types
from asyncio import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lab.agents.ports import DEADLINE, withdraw
from harness_lab.clock import Time
from harness_lab.policies.protocol import Granted, Refused, Wait
from harness_lab.simulate.kernel import PARK, Kernel, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence

    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End, Grant, Policy, Ticket, Use


@types.coroutine
def _sleep(ns: int) -> Generator[int, None, None]:
    yield ns


@types.coroutine
def _park() -> Generator[object, Any, Any]:
    return (yield PARK)


class SimJob:
    """A job in virtual time that was started and may be waited for."""

    __slots__ = ("_kernel", "_process", "_waiting")

    def __init__(self, kernel: Kernel, job: Coroutine[Any, Any, Any]) -> None:
        self._kernel = kernel
        self._waiting: list[Process] = []
        self._process = kernel.spawn(job, "job", self._ended)

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._process.done

    def cancel(self) -> None:
        """Raise CancelledError where it stands."""
        self._kernel.cancel(self._process)

    async def ended(self) -> None:
        """Wait until it has ended, however that was."""
        if not self._process.done:
            self._waiting.append(self._kernel.current)
            await _park()

    def _ended(self, _process: Process) -> None:
        for waiting in self._waiting:
            self._kernel.wake(waiting)


class SimRuntime:
    """Runs a harness in virtual time.

    Parameters
    ----------
    kernel : Kernel, optional
        The world; a new one if None.
    """

    __slots__ = ("_early", "_polled", "_waiting", "kernel")

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.kernel = kernel if kernel is not None else Kernel()
        self._waiting: dict[Ticket, Process] = {}
        self._early: dict[Ticket, Grant | Refusal] = {}  # answers to those who have yet to begin to wait
        self._polled: set[Policy] = set()

    sleep = staticmethod(_sleep)

    def now(self) -> Time:
        """Return the current instant, nanoseconds."""
        return self.kernel.now

    async def ask(self, policy: Policy, question: Callable[[Any, Time], Any], ask: Any) -> Grant | Refusal:
        """Ask a policy, and wait in its queue if it says so."""
        answer: Grant | Refusal | Wait = question(ask, self.kernel.now)
        self.drain(policy)
        if type(answer) is not Wait:
            return answer  # type: ignore[return-value]
        return await self.answered(policy, answer)

    async def answered(self, policy: Policy, answer: Wait) -> Grant | Refusal:
        """Wait in a policy's queue for the final answer."""
        ticket = answer.ticket
        if ticket in self._early:
            return self._early.pop(ticket)
        self._waiting[ticket] = self.kernel.current
        timer = None if answer.until is None else self.kernel.at(answer.until, DEADLINE, lambda: self._tick(policy))
        self._poll_again(policy, None)
        try:
            found: Grant | Refusal = await _park()
        except CancelledError:
            self._waiting.pop(ticket, None)
            withdraw(policy, ticket, self.now())
            self.drain(policy)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return found

    async def tell(self, policy: Policy, ticket: Ticket, use: Use, end: End | None = None) -> None:
        """Settle a step, or with `end` close a node, of a policy that does I/O: virtual time waits for it."""
        if end is None:
            policy.settle(ticket, use, self.now())
        else:
            policy.close(ticket, use, end, self.now())
        self.drain(policy)

    def drain(self, policy: Policy) -> None:
        """Hand out the policy's answers to those who wait."""
        for news in policy.outbox():
            if isinstance(news, (Granted, Refused)):
                answer = news.grant if isinstance(news, Granted) else news.refusal
                process = self._waiting.pop(news.ticket, None)
                if process is not None:
                    self.kernel.hand_over(process, answer)
                else:
                    self._early[news.ticket] = answer

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, End]]) -> list[End]:
        """Run jobs side by side, started in order; cancelling it cancels them in that order and waits for all."""
        kernel = self.kernel
        me = kernel.current
        left = len(jobs)
        results: list[Any] = [None] * left

        def ended(i: int, process: Process) -> None:
            nonlocal left
            results[i] = process.result
            left -= 1
            if left == 0:
                kernel.wake(me)

        processes = [kernel.spawn(job, f"{me.name}.{i}", partial(ended, i)) for i, job in enumerate(jobs)]
        try:
            if left:
                await _park()
        except CancelledError:
            for process in processes:
                kernel.cancel(process)
            while left:  # a second cancellation must not leave children behind
                try:
                    await _park()
                except CancelledError:
                    continue
            raise
        return results

    def start(self, job: Coroutine[Any, Any, Any]) -> SimJob:
        """Start a job that nobody waits for yet."""
        return SimJob(self.kernel, job)

    async def until(self, deadline: Time, job: Coroutine[Any, Any, End]) -> End | None:
        """Run a job that must end before `deadline`; None when it was stopped there."""
        kernel = self.kernel
        me = kernel.current
        fired = False

        def expire() -> None:
            nonlocal fired
            fired = True
            kernel.cancel(me)

        timer = kernel.at(deadline, DEADLINE, expire)
        try:
            end = await job
        except CancelledError:
            if not fired or me.cancelling > 1:
                me.cancelling -= fired  # this deadline's cancel has been heard; the other one goes on
                raise
            end = None
        finally:
            timer.cancel()
        if fired:  # a job that ends normally after it was stopped was stopped all the same
            me.cancelling -= 1
            return None
        return end

    async def leave_at(self, deadline: Time, told: End, job: Coroutine[Any, Any, End]) -> End:
        """Run a job; at `deadline` whoever gathers it is told `told`, and the job goes on until it ends by itself."""
        kernel = self.kernel
        me = kernel.current
        timer = kernel.at(deadline, DEADLINE, lambda: kernel.detach(me, told))
        try:
            return await job
        finally:
            timer.cancel()

    def _tick(self, policy: Policy) -> None:
        when = policy.tick(self.now())
        self.drain(policy)
        self._poll_again(policy, when)

    def _poll_again(self, policy: Policy, when: Time | None) -> None:
        """Arm the next look at what other runs gave back, while anybody waits for it."""
        every_ns = getattr(policy, "poll_ns", None)
        if every_ns is None or not self._waiting or policy in self._polled:
            return
        self._polled.add(policy)
        next_ns = self.kernel.now + every_ns
        at = Time(next_ns if when is None else min(when, next_ns))
        self.kernel.at(at, DEADLINE, lambda: self._poll(policy))

    def _poll(self, policy: Policy) -> None:
        self._polled.discard(policy)
        if self._waiting:
            self._tick(policy)
