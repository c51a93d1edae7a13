"""The runtime of production: asyncio. On a virtual loop the same code runs in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lab.agents.off_loop import OffLoop
from harness_lab.agents.ports import COMPLETION, DEADLINE, HANDOVER, START, withdraw
from harness_lab.clock import NS_PER_S, Time
from harness_lab.policies.locked import Locked
from harness_lab.policies.protocol import Granted, Refused, Ticket, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End, Grant, Policy, Use


WOKEN = DEADLINE - 1
"""Rank of a parent whose children have ended: before all else at that instant, but after every cancellation."""


class _Gathering:
    """Jobs that somebody waits for: how many are left, and how the others ended."""

    __slots__ = ("_finished", "_wake", "left", "results")

    def __init__(self, size: int, wake: Callable[[asyncio.Future[None]], None]) -> None:
        self.left = size
        self.results: list[Any] = [None] * size
        self._wake = wake
        self._finished: asyncio.Future[None] | None = None

    def waits(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Return what is resolved once nothing is left."""
        self._finished = loop.create_future()
        return self._finished

    def ended(self, i: int, end: End | None) -> None:
        """Take note of an end."""
        self.results[i] = end
        self.left -= 1
        if self.left == 0 and self._finished is not None:
            self._wake(self._finished)


class AsyncioJob:
    """A job on asyncio that was started and may be waited for."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    def cancel(self) -> None:
        """Raise CancelledError where it stands."""
        self._task.cancel()

    async def ended(self) -> None:
        """Wait until it has ended, however that was."""
        await asyncio.wait([self._task])


class AsyncioRuntime:
    """Runs a harness on an asyncio loop.

    Parameters
    ----------
    loop : AbstractEventLoop, optional
        The running loop if None. A loop that has ``call_at_ns(when_ns, rank, callback)`` and ``now_ns()``, as the
        virtual loop does, is asked to keep the order of things at one instant; an ordinary loop has none.
    """

    __slots__ = ("_early", "_gathered", "_loop", "_polls", "_threads", "_ticking", "_virtual", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop if loop is not None else asyncio.get_running_loop()
        self._virtual: Any = self._loop if hasattr(self._loop, "call_at_ns") else None
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._early: dict[Ticket, Grant | Refusal] = {}  # answers to those who have yet to begin to wait
        self._threads: dict[Policy, OffLoop] = {}
        self._ticking: set[asyncio.Task[Time | None]] = set()
        self._polls: dict[Policy, asyncio.Handle] = {}
        self._gathered: dict[asyncio.Task[Any] | None, Callable[[End | None], None]] = {}

    def now(self) -> Time:
        """Return the loop's current instant, nanoseconds."""
        if self._virtual is not None:
            return Time(self._virtual.now_ns())
        return Time(round(self._loop.time() * NS_PER_S))

    async def sleep(self, ns: int) -> None:
        """Let time pass."""
        await self._event(Time(self.now() + ns), COMPLETION)

    async def ask(self, policy: Policy, question: Callable[[Any, Time], Any], ask: Any) -> Grant | Refusal:
        """Ask a policy, in a thread if it does I/O, and wait in its queue if it says so."""
        off = self._off(policy)
        answer: Grant | Refusal | Wait = question(ask, self.now()) if off is None else await off.ask(question, ask)
        self.drain(policy)
        if not isinstance(answer, Wait):
            return answer
        return await self.answered(policy, answer)

    async def answered(self, policy: Policy, answer: Wait) -> Grant | Refusal:
        """Wait in a policy's queue for the final answer."""
        ticket = answer.ticket
        if isinstance(policy, Locked):  # another thread's question may let us go on
            policy.on_news(lambda: self._loop.call_soon_threadsafe(self.drain, policy))
        if ticket in self._early:
            return self._early.pop(ticket)
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[ticket] = answered
        timer = None if answer.until is None else self._at(answer.until, DEADLINE, lambda: self._tick(policy))
        self._poll_again(policy, None)
        try:
            found: Grant | Refusal = await answered
        except asyncio.CancelledError:
            self._waiting.pop(ticket, None)
            await self._withdraw(policy, ticket)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return found

    async def tell(self, policy: Policy, ticket: Ticket, use: Use, end: End | None = None) -> None:
        """Settle a step, or with `end` close a node, of a policy that does I/O: in its thread."""
        off = self._off(policy)
        if off is not None:
            try:
                await off.tell(ticket, use, end)
            finally:
                self.drain(policy)
            return
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
                answered = self._waiting.pop(news.ticket, None)
                if answered is not None:
                    self._at(self.now(), HANDOVER, _resolver(answered, answer))
                else:
                    self._early[news.ticket] = answer

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, End]]) -> list[End]:
        """Run jobs side by side, started in order; cancelling it cancels them in that order and waits for all."""
        gathering = _Gathering(len(jobs), self._wake)
        tasks = [self._loop.create_task(self._started(job)) for job in jobs]
        for i, task in enumerate(tasks):
            self._gathered[task] = partial(gathering.ended, i)
            task.add_done_callback(self._tell)
        try:
            if tasks:
                await gathering.waits(self._loop)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            while gathering.left:  # a second cancellation must not leave children behind
                with contextlib.suppress(asyncio.CancelledError):
                    await gathering.waits(self._loop)
            raise
        for task in tasks:
            if task.done():
                task.result()  # raises what it raised
        return gathering.results

    def start(self, job: Coroutine[Any, Any, Any]) -> AsyncioJob:
        """Start a job that nobody waits for yet."""
        return AsyncioJob(self._loop.create_task(self._started(job)))

    async def until(self, deadline: Time, job: Coroutine[Any, Any, End]) -> End | None:
        """Run a job that must end before `deadline`; None when it was stopped there."""
        task = asyncio.current_task(self._loop)
        fired = False

        def expire() -> None:
            nonlocal fired
            fired = True
            if task is not None:
                task.cancel()

        timer = self._at(deadline, DEADLINE, expire)
        try:
            end = await job
        except asyncio.CancelledError:
            if not fired or task is None or task.cancelling() > 1:
                if fired and task is not None:
                    task.uncancel()  # this deadline's cancel has been heard; the other one goes on
                raise
            end = None
        finally:
            timer.cancel()
        if fired and task is not None:  # a job that ends normally after it was stopped was stopped all the same
            task.uncancel()
            return None
        return end

    async def leave_at(self, deadline: Time, told: End, job: Coroutine[Any, Any, End]) -> End:
        """Run a job; at `deadline` whoever gathers it is told `told`, and the job goes on until it ends by itself."""
        task = asyncio.current_task(self._loop)
        timer = self._at(deadline, DEADLINE, lambda: self._gathered.pop(task, _nobody)(told))
        try:
            return await job
        finally:
            timer.cancel()

    def _wake(self, waiting: asyncio.Future[None]) -> None:
        self._at(self.now(), WOKEN, _resolver(waiting, None))

    def _tell(self, task: asyncio.Task[End]) -> None:
        """Tell whoever gathers a task that it has ended, unless it was told before."""
        tell = self._gathered.pop(task, _nobody)
        tell(None if task.cancelled() or task.exception() is not None else task.result())

    async def _started(self, job: Coroutine[Any, Any, End]) -> End:
        """Run a job from its turn at this instant on: after completions and hand-overs."""
        if self._virtual is not None:
            try:
                await self._event(self.now(), START)
            except asyncio.CancelledError:
                job.close()
                raise
        return await job

    async def _event(self, when: Time, rank: int) -> None:
        happened: asyncio.Future[None] = self._loop.create_future()
        timer = self._at(when, rank, _resolver(happened, None))
        try:
            await happened
        finally:
            timer.cancel()

    def _at(self, when: Time, rank: int, callback: Callable[[], None]) -> asyncio.Handle:
        if self._virtual is not None:
            handle: asyncio.Handle = self._virtual.call_at_ns(when, rank, callback)
            return handle
        if when <= self.now():
            return self._loop.call_soon(callback)
        return self._loop.call_at(when / NS_PER_S, callback)

    async def _withdraw(self, policy: Policy, ticket: Ticket) -> None:
        off = self._off(policy)
        if off is None:
            withdraw(policy, ticket, self.now())
        else:
            await off.withdraw(ticket)
        self.drain(policy)

    def _off(self, policy: Policy) -> OffLoop | None:
        """Return the thread of a policy that does I/O, None in virtual time: it waits for no thread."""
        if self._virtual is not None or not getattr(policy, "blocking", False):
            return None
        if policy not in self._threads:
            self._threads[policy] = OffLoop(policy, self._loop, self.now)
        return self._threads[policy]

    def _tick(self, policy: Policy) -> None:
        off = self._off(policy)
        if off is None:
            when = policy.tick(self.now())
            self.drain(policy)
            self._poll_again(policy, when)
            return
        ticking = self._loop.create_task(off.tick())
        self._ticking.add(ticking)
        ticking.add_done_callback(partial(self._ticked, policy))

    def _ticked(self, policy: Policy, ticking: asyncio.Task[Time | None]) -> None:
        self._ticking.discard(ticking)
        self.drain(policy)
        self._poll_again(policy, None if ticking.cancelled() else ticking.result())

    def _poll_again(self, policy: Policy, when: Time | None) -> None:
        """Arm the next look at what other runs and other processes gave back, while anybody waits for it."""
        every_ns = getattr(policy, "poll_ns", None)
        if every_ns is None or not self._waiting or policy in self._polls:
            return
        next_ns = self.now() + every_ns
        self._polls[policy] = self._at(
            Time(next_ns if when is None else min(when, next_ns)), DEADLINE, partial(self._poll, policy)
        )

    def _poll(self, policy: Policy) -> None:
        del self._polls[policy]
        if self._waiting:
            self._tick(policy)


def _nobody(_end: End | None) -> None:
    """Nobody waits for it."""


def _resolver(future: asyncio.Future[Any], value: Any) -> Callable[[], None]:
    def resolve() -> None:
        if not future.done():
            future.set_result(value)

    return resolve
