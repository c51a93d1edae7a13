"""Which exceptions stop a run from outside, and which are only the failure of a tool or of a client."""

from __future__ import annotations

import asyncio


def is_stop(error: BaseException) -> bool:
    """Whether an exception has to be let through: the process's end, a closed coroutine, a cancellation of this task.

    A tool that waited for a task of its own which was cancelled has only failed. As in asyncio, ``SystemExit`` ends the
    process wherever it is raised: a handler of signals raises it in whatever happens to run.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)


def words_of(error: BaseException) -> str:
    """Return an error's text; of one that cannot be written the class."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def as_failure(error: BaseException) -> Exception:
    """Return what did not stop the run as an ordinary error, which fails it."""
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"ended by {type(error).__name__}")
    failure.__cause__ = error
    return failure
