"""Limiters that own the loop of the agent: they are asked by letting the loop run until it wants the model.

Such a limiter has no method to ask. What can be seen is whether its loop, given a reply, comes back for another call or
ends. So the loop runs as it is, on a virtual event loop of its own, with a model that waits: a question is put to it by
handing out the reply of the call before, and the answer is yes if it wants the model again.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No, NotApplicable
from harness_lab.adapters.watched import note

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Model = Callable[[], Coroutine[Any, Any, Any]]

    from harness_lab.adapters.protocol import Call, Used


class CallFailed(Exception):
    """What a loop's model raises when a call failed."""


@cache
def _loop_class() -> Any:
    from harness_lab.simulate.virtual_loop import VirtualLoop

    class PeerLoop(VirtualLoop):
        """A virtual loop on which plain functions of a peer run at once, not in a thread."""

        def run_in_executor(  # type: ignore[override]
            self, _executor: Any, function: Callable[..., Any], *given: Any
        ) -> asyncio.Future[Any]:
            done = self.create_future()
            try:
                done.set_result(function(*given))
            except Exception as error:
                done.set_exception(error)
            return done

    return PeerLoop


class _Mailbox:
    """What a loop awaits in the place of a model."""

    def __init__(self) -> None:
        self.wanted: asyncio.Future[Any] | None = None

    async def reply(self) -> Any:
        self.wanted = asyncio.get_running_loop().create_future()
        return await self.wanted


class AskedLoop:
    """One run of a foreign loop, which stands still whenever it wants the model.

    Parameters
    ----------
    run : callable
        Is given what to await in the place of a model, and returns the coroutine of the run.
    """

    def __init__(self, run: Callable[[Model], Coroutine[Any, Any, Any]]) -> None:
        self._loop, self._mail = _loop_class()(), _Mailbox()
        self._task: asyncio.Task[Any] = self._loop.create_task(run(self._mail.reply))
        self.stop = weakref.finalize(self, _stop, self._loop, self._task)  # a run must not end as garbage
        self._loop.run_on()

    @property
    def wants(self) -> bool:
        """Whether it wants the model."""
        return self._mail.wanted is not None

    @property
    def ended(self) -> BaseException | None:
        """What it raised when it ended; None: nothing, or it has not ended."""
        return self._task.exception() if self._task.done() and not self._task.cancelled() else None

    def reply(self, told: Any) -> None:
        """Hand out the reply that it waits for (an exception: the call failed), and let it go on."""
        wanted, self._mail.wanted = self._mail.wanted, None
        if wanted is None or wanted.done():
            return
        if isinstance(told, Exception):
            wanted.set_exception(told)
        else:
            wanted.set_result(told)
        self._loop.run_on()


@cache
def _printed(script: str, line: str) -> str:
    """Return what a line prints after its script."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(f"{script}\n{line}", {"__name__": "scenario"})  # noqa: S102 - a script of ours, on the package as it is
    return said.getvalue().partition("\n")[0]


def _stop(loop: Any, task: asyncio.Task[Any]) -> None:
    """Cancel a run where it stands."""
    if not task.done():
        task.cancel()
        loop.run_on()


class LoopAdapter(Adapter):
    """A limiter that owns its loop; a subclass says how the loop is run.

    A failed call that is tried again is tried below the loop, by the client of the model, and is no turn of its own; a
    failed call that is not ends the loop, as the error would. What a loop does with its last reply cannot be told here:
    a node that is done has completed, whatever the loop would have raised then.
    """

    limit: ClassVar[str] = "calls"
    script: ClassVar[str] = ""
    """What shows a scenario: a function ``run`` of what :meth:`shown` says, and of the call that fails; or nothing."""

    _asked: AskedLoop | None = None
    _reply: Any = None
    _open = False
    _made = 0
    _ended: No | None = None

    def start(self, model: Model) -> Coroutine[Any, Any, Any]:
        """Return the run of the loop, on a task that never is done; each reply asks it to go on."""
        raise NotImplementedError

    def over(self, error: BaseException) -> bool:
        """Whether an error is the limit, and not a failure."""
        raise NotImplementedError

    def shown(self) -> str:
        """Return the limit as the script is given it."""
        return ""

    def at_once(self) -> None:
        """Take note that a call asks while another one of the same node is under way.

        Raises
        ------
        NotApplicable
            If the loop makes one call at a time.
        """
        raise NotApplicable(f"{self.name} makes one call at a time; calls at once are made by runs of their own")

    @classmethod
    def shows(cls, lines: list[str]) -> list[str]:
        """Write behind each run what it prints: they are runs of their own, which the story did not end."""
        endless = [line for line in lines if line.startswith("run(None")]
        runs = [line for line in lines if line.startswith("run(") and line not in endless]
        return [f"{line}  # {_printed(cls.script, line)}" if line in runs else line for line in lines]

    def before_call(self, call: Call) -> No | None:
        """Let the loop go on, and see whether it wants the model."""
        if call.kind == "compaction" or self._ended is not None:
            return self._ended
        if self._open and not (call.attempt and isinstance(self._reply, CallFailed)):
            if self._reply is None:
                self.at_once()
                return None
            self._goes_on()
        elif self._asked is None:
            self._begins()
        if self._asked is None or not self._asked.wants:
            return self._over()
        self._open, self._reply = True, None
        return None

    def after_call(self, call: Call, used: Used) -> None:
        """Keep the reply until the next question."""
        if call.kind != "compaction":
            self._reply = "more" if used.status == "completed" else CallFailed(used.status)

    def not_sent(self, call: Call) -> None:
        """Leave the loop where it stands: it wants the model still."""
        self._open = False

    def end(self) -> None:
        """Stop the loop."""
        if self._asked is not None:
            self._asked.stop()

    def _begins(self) -> None:
        if self.script:
            note(self.script)
            note(f"run({self.shown()})")
        self._asked = AskedLoop(self.start)

    def _goes_on(self) -> None:
        self._made += 1
        if self.script and isinstance(self._reply, Exception):
            note(f"run({self.shown()}, fails_at={self._made})")
        if self._asked is not None:
            self._asked.reply(self._reply)

    def _over(self) -> No:
        error = self._asked.ended if self._asked is not None else None
        if error is None:
            self._ended = No("the loop has ended")
        elif self.over(error):
            self._ended = No(str(error).partition("\n")[0], self.limit)
        elif isinstance(error, CallFailed):
            self._ended = No("a failed call ended the run")
        else:
            raise error
        return self._ended
