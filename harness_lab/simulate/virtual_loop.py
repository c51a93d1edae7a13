"""An asyncio loop in virtual time: runs ordinary asyncio agents, and shows that both runtimes agree.

Timers are ordered by (time in nanoseconds, rank, sequence), so equal times are first come first served, which stock
asyncio does not promise. There is no selector: real I/O, executors and signals do not work here and say so.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from harness_lab.agents.ports import COMPLETION
from harness_lab.clock import NS_PER_S
from harness_lab.errors import Deadlock, Livelock
from harness_lab.simulate.kernel import MAX_EVENTS_AT_ONE_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


if TYPE_CHECKING:
    _Loop = asyncio.BaseEventLoop  # the stubs call the plain base abstract
else:
    _Loop = asyncio.AbstractEventLoop


class VirtualLoop(_Loop):
    """An event loop whose clock jumps to the next timer.

    Examples
    --------
    >>> loop = VirtualLoop()
    >>> loop.run_until_complete(asyncio.sleep(3600, "an hour later"))
    'an hour later'
    >>> loop.time()
    3600.0
    """

    def __init__(self) -> None:
        self._now = 0
        self._seq = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, int, asyncio.Handle]] = []
        self._failure: BaseException | None = None

    def time(self) -> float:
        """Return the current instant, seconds."""
        return self._now / NS_PER_S

    def now_ns(self) -> int:
        """Return the current instant, nanoseconds."""
        return self._now

    def call_at_ns(self, when: int, rank: int, callback: Callable[[], None]) -> asyncio.Handle:
        """Call `callback` at an instant, at its rank there."""
        handle = asyncio.Handle(callback, (), self, contextvars.copy_context())
        self._seq += 1
        heappush(self._timers, (max(when, self._now), rank, self._seq, handle))
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at an instant in seconds."""
        handle = asyncio.TimerHandle(when, callback, args, self, context or contextvars.copy_context())
        self._seq += 1
        heappush(self._timers, (max(round(when * NS_PER_S), self._now), COMPLETION, self._seq, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call after a delay in seconds."""
        return self.call_at((self._now + round(delay * NS_PER_S)) / NS_PER_S, callback, *args, context=context)

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Call at this instant, before any timer."""
        handle = asyncio.Handle(callback, args, self, context or contextvars.copy_context())
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], *, name: Any = None, context: Any = None
    ) -> asyncio.Task[T]:
        """Start a coroutine."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """Return False: the debug mode of asyncio measures real time."""
        return False

    def is_running(self) -> bool:
        """Whether the loop runs in this thread."""
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        """Return False: there is nothing to close."""
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: generators end with their coroutines."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when its instant comes."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the first failure of a callback; the run raises it."""
        if self._failure is None:
            self._failure = context.get("exception") or RuntimeError(context.get("message", "a callback failed"))

    def run_until_complete(self, future: Any) -> Any:
        """Run a coroutine, jumping from one instant to the next.

        Raises
        ------
        Deadlock
            If it waits and nothing is left to happen.
        Livelock
            If a million callbacks pass at one instant.
        """
        previous = events._get_running_loop()
        events._set_running_loop(self)
        try:
            main = asyncio.ensure_future(future, loop=self)
            while not main.done():
                self._run_ready()
                if not main.done() and not self._next_timer():
                    raise Deadlock(("the main coroutine",))
            self._run_ready()
            return main.result()
        finally:
            events._set_running_loop(previous)

    def run_on(self) -> None:
        """Run until nothing is left to happen: what was started and nobody waits for."""
        previous = events._get_running_loop()
        events._set_running_loop(self)
        try:
            self._run_ready()
            while self._next_timer():
                self._run_ready()
        finally:
            events._set_running_loop(previous)

    def _run_ready(self) -> None:
        passed = 0
        while self._ready:
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()
            passed += 1
            if passed > MAX_EVENTS_AT_ONE_INSTANT:
                raise Livelock(passed, self._now, repr(handle))
            self._raise_failure()

    def _next_timer(self) -> bool:
        """Move to the next timer and run it; False when there is none."""
        while self._timers:
            when, _, _, handle = heappop(self._timers)
            if not handle.cancelled():
                self._now = when
                handle._run()
                self._raise_failure()
                return True
        return False

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
