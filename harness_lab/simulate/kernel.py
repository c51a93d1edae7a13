"""A virtual-time kernel: coroutines, integer nanoseconds, and a total order of events.

Events are ordered by (time, rank, sequence). At one instant deadlines come first (work that ends at its deadline is
late), then completions, then hand-overs of what somebody waited for, then starts. Work that became ready runs before
time moves on, and a cancellation before everything else. Nothing is ordered by hash or address: same input, same order.

A coroutine yields an ``int`` to sleep that many nanoseconds (less than none is none: time never goes back), or
:data:`PARK` to wait until somebody wakes it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from contextlib import suppress
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from harness_lab.agents.ports import COMPLETION
from harness_lab.clock import Time
from harness_lab.errors import Deadlock, Livelock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PARK = object()
"""Yielded by a coroutine that waits to be woken."""

MAX_EVENTS_AT_ONE_INSTANT = 1_000_000


class Process:
    """A running coroutine.

    Attributes
    ----------
    epoch : int
        Grows with every step; a wake-up of an earlier epoch is stale.
    cancelling : int
        Cancellations that were delivered and not taken back.
    result : object
        What it returned; None while it runs and after it was cancelled.
    """

    __slots__ = ("cancelling", "coroutine", "done", "epoch", "error", "name", "on_done", "result", "send")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], name: str, on_done: Callable[[Process], None] | None
    ) -> None:
        self.coroutine = coroutine
        self.send = coroutine.send
        self.name = name
        self.on_done = on_done
        self.epoch = 0
        self.cancelling = 0
        self.error: BaseException | None = None
        self.done = False
        self.result: Any = None


class Timer:
    """A callback that may be cancelled before it is due."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None] | None) -> None:
        self.callback = callback

    def cancel(self) -> None:
        """Make it do nothing."""
        self.callback = None


class Kernel:
    """A world in virtual time.

    Attributes
    ----------
    now : int
        The current instant, nanoseconds.
    current : Process
        The process that runs.
    events : int
        Events processed so far.
    """

    __slots__ = ("_alive", "_handover", "_heap", "_ready", "_seq", "_starts", "_urgent", "current", "events", "now")

    def __init__(self) -> None:
        self.now = Time(0)
        self.events = 0
        self.current: Process
        self._seq = 0
        self._heap: list[tuple[Time, int, int, Any, int]] = []
        self._urgent: deque[tuple[Process, int, Any]] = deque()
        self._ready: deque[tuple[Process, int, Any]] = deque()
        self._handover: deque[tuple[Process, int, Any]] = deque()
        self._starts: deque[tuple[Process, int, Any]] = deque()
        self._alive: dict[Process, None] = {}

    def spawn(
        self, coroutine: Coroutine[Any, Any, Any], name: str = "", on_done: Callable[[Process], None] | None = None
    ) -> Process:
        """Start a coroutine at this instant, after what is already due."""
        process = Process(coroutine, name, on_done)
        self._alive[process] = None
        self._starts.append((process, 0, None))
        return process

    def wake(self, process: Process, value: Any = None) -> None:
        """Let a parked process go on at this instant."""
        self._ready.append((process, process.epoch, value))

    def hand_over(self, process: Process, value: Any) -> None:
        """Let a parked process go on at this instant, after completions: it gets what another gave back."""
        self._handover.append((process, process.epoch, value))

    def cancel(self, process: Process) -> None:
        """Raise CancelledError where the process waits, before anything else happens."""
        if process.done:
            return
        process.epoch += 1
        process.cancelling += 1
        process.error = CancelledError()
        self._urgent.append((process, process.epoch, None))

    def detach(self, process: Process, result: Any) -> None:
        """Tell whoever waits for a process that it has ended with `result`; it goes on by itself."""
        if process.done or process.on_done is None:
            return
        tell, process.on_done = process.on_done, None
        process.result = result
        tell(process)

    def at(self, when: int, rank: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` at an instant, at its rank there; an instant that is past is now."""
        timer = Timer(callback)
        self._seq += 1
        heappush(self._heap, (Time(max(when, self.now)), rank, self._seq, timer, -1))
        return timer

    def run(self) -> None:
        """Process events until nothing is left to happen.

        Raises
        ------
        Deadlock
            If somebody still waits then.
        Livelock
            If a million events pass at one instant.
        Exception
            Whatever a coroutine raises; the others are closed, the youngest first.
        """
        try:
            self._run()
        except BaseException:
            for process in reversed(list(self._alive)):
                with suppress(Exception):
                    process.coroutine.close()
            raise

    def _run(self) -> None:  # noqa: C901 - one loop, kept flat for speed
        heap, urgent, ready = self._heap, self._urgent, self._ready
        handover, starts = self._handover, self._starts
        instant, since, now = -1, 0, self.now
        while True:
            if urgent:
                process, epoch, value = urgent.popleft()
            elif ready:
                process, epoch, value = ready.popleft()
            elif heap and (heap[0][0] == now or not (handover or starts)):
                when, _, _, due, epoch = heappop(heap)
                if epoch < 0:
                    if due.callback is not None:
                        self.now = now = when
                        self.events += 1
                        due.callback()
                    continue
                if due.epoch != epoch:
                    continue
                self.now = now = when
                process, value = due, None
            elif handover:
                process, epoch, value = handover.popleft()
            elif starts:
                process, epoch, value = starts.popleft()
            else:
                break
            if process.epoch != epoch or process.done:
                continue
            if now != instant:
                instant, since = now, 0
            else:
                since += 1
                if since > MAX_EVENTS_AT_ONE_INSTANT:
                    raise Livelock(since, now, process.name)
            self.events += 1
            process.epoch = epoch = epoch + 1
            self.current = process
            try:
                if process.error is None:
                    wanted = process.send(value)
                else:
                    error, process.error = process.error, None
                    wanted = process.coroutine.throw(error)
            except StopIteration as finished:
                self._finish(process, finished.value)
            except CancelledError:
                self._finish(process, None)
            else:
                if wanted is not PARK:
                    self._seq = seq = self._seq + 1
                    heappush(heap, (now + wanted if wanted > 0 else now, COMPLETION, seq, process, epoch))
        if self._alive:
            raise Deadlock(tuple(process.name for process in self._alive))

    def _finish(self, process: Process, result: Any) -> None:
        process.done = True
        process.result = result
        del self._alive[process]
        if process.on_done is not None:
            process.on_done(process)
