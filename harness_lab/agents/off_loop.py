"""Policies that do I/O are asked in a thread, one question after the other: the event loop never waits for a disk."""

from __future__ import annotations

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from harness_lab.agents.ports import withdraw
from harness_lab.errors import AccountUnavailable
from harness_lab.outcome import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import End, Grant, Policy, Ticket, Use, Wait

RETRIES_S = (0.05, 0.5, 2.0)
"""How long to wait before a settlement that could not be written is tried again, seconds."""


class OffLoop:
    """Asks one policy in a thread.

    Parameters
    ----------
    policy : Policy
        Who is asked; one of an :class:`~harness_lab.policies.OpenPolicy` is asked in that one's thread, since its runs
        share state that has no locks.
    loop : AbstractEventLoop
        Who waits.
    now : callable
        The runtime's clock.
    """

    __slots__ = ("_loop", "_now", "_policy", "_thread")

    def __init__(self, policy: Policy, loop: asyncio.AbstractEventLoop, now: Callable[[], Time]) -> None:
        opened = getattr(policy, "opened", None)
        self._policy = policy
        self._loop = loop
        self._now = now
        self._thread: Executor = ThreadPoolExecutor(max_workers=1) if opened is None else opened.thread

    async def ask(self, question: Callable[[Any, Time], Grant | Wait | Refusal], ask: Any) -> Grant | Wait | Refusal:
        """Ask a question; whoever is cancelled meanwhile gives back what was granted."""
        answer, stopped = await self._through(lambda: question(ask, self._now()))
        if stopped is None:
            return answer  # type: ignore[no-any-return]
        if not isinstance(answer, Refusal):
            await self.withdraw(answer.ticket)
        raise stopped

    async def withdraw(self, ticket: Ticket) -> None:
        """Give a ticket back that came to nothing."""
        await self._through(lambda: withdraw(self._policy, ticket, self._now()))

    async def tick(self) -> Time | None:
        """Tell that time went by."""
        when, _ = await self._through(lambda: self._policy.tick(self._now()))
        return when  # type: ignore[no-any-return]

    async def tell(self, ticket: Ticket, use: Use, end: End | None) -> None:
        """Settle a step, or close a node; what cannot be written is tried again, and then left to expire by rule."""
        told = asyncio.ensure_future(self._tell(ticket, use, end))
        stopped = await _outlast(told)
        told.result()
        if stopped is not None:
            raise stopped

    async def _tell(self, ticket: Ticket, use: Use, end: End | None) -> None:
        for wait_s in (*RETRIES_S, None):
            try:
                await self._loop.run_in_executor(self._thread, self._told, ticket, use, end)
            except AccountUnavailable as error:
                if wait_s is not None:
                    await asyncio.sleep(wait_s)
                    continue
                words = f"{ticket} could not be settled, its hold expires by rule: {error}"
                warnings.warn(words, RuntimeWarning, stacklevel=2)
                give_up: Any = getattr(self._policy, "give_up", None)
                if give_up is not None:
                    await self._loop.run_in_executor(self._thread, give_up, ticket, use, self._now())
            return

    def _told(self, ticket: Ticket, use: Use, end: End | None) -> None:
        if end is None:
            self._policy.settle(ticket, use, self._now())
        else:
            self._policy.close(ticket, use, end, self._now())

    async def _through(self, job: Callable[[], Any]) -> tuple[Any, asyncio.CancelledError | None]:
        """Run a job in the thread; return what it returned, and the cancellation that it outlasted."""
        future = self._loop.run_in_executor(self._thread, job)
        stopped = await _outlast(future)
        return future.result(), stopped


async def _outlast(future: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait until a future is done whatever happens meanwhile; return the cancellation that came, for later."""
    stopped: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            stopped = error
    return stopped
