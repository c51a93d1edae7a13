"""A run whose task is cancelled after any number of suspensions of any task in its tree."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from harness_lab.simulate.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine that tells of each of its suspensions."""

    def __init__(self, inner: Coroutine[Any, Any, Any], told: Callable[[], None]) -> None:
        self._inner, self._told = inner, told

    def send(self, value: Any) -> Any:
        found = self._inner.send(value)
        self._told()
        return found

    def throw(self, *args: Any) -> Any:
        found = self._inner.throw(*args)
        self._told()
        return found

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Any:
        return self._inner.__await__()


class _Loop(VirtualLoop):
    """A virtual loop whose tasks tell of their suspensions."""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__()
        self._told = told

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        return asyncio.Task(_Counted(coro, self._told), loop=self, name=name, context=context)


def run_cancelled(job: Coroutine[Any, Any, Any], after: int) -> tuple[Any, int]:
    """Run a job, and cancel it at the suspension of that number; return how it ended, and how many there were.

    Parameters
    ----------
    job : Coroutine
        The root.
    after : int
        The number, from 1; 0 cancels nothing.
    """
    seen = 0
    root: asyncio.Task[Any] | None = None

    def told() -> None:
        nonlocal seen
        seen += 1
        if seen == after and root is not None:
            root.cancel()

    async def run() -> Any:
        nonlocal root
        root = asyncio.ensure_future(job)
        try:
            return await root
        except asyncio.CancelledError:
            return "cancelled"

    return _Loop(told).run_until_complete(run()), seen
