"""A foreign loop run whole, as an agent of its own in the simulator: what it lets through and how it ends is observed.

As a policy a loop is asked call by call, and what it does with its last reply is not seen. Here it keeps that word: it
runs on the simulator's own virtual loop, with the simulated provider as its model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.adapters.loops import CallFailed, LoopAdapter
from harness_lab.adapters.protocol import No
from harness_lab.adapters.registry import checked, named
from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Outcome, Refusal, Shortfall
from harness_lab.policies.protocol import COMPLETED, End

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from harness_lab.simulate import Seat


def loop_agent(
    adapter: str | type[LoopAdapter],
    *,
    wants: Callable[[Seat], int],
    input_tokens: int = 1_000,
    **limits: Any,
) -> Callable[[Seat], Coroutine[Any, Any, End]]:
    """Return an agent that is a foreign loop, for :func:`harness_lab.simulate.simulate_agent`.

    Parameters
    ----------
    adapter : str or type of LoopAdapter
        One that owns its loop.
    wants : callable
        How many calls the task of a run needs, from its seat (``seat.random`` is the run's own luck).
    input_tokens : int
        Prompt tokens of each call.
    **limits
        Limits by name.

    Returns
    -------
    coroutine function
        It completes if the loop does, is exhausted if the loop's limit ended it, and fails with a failed call.

    Raises
    ------
    InputError
        If there is no such adapter, its package is not there, it owns no loop, or it does not take such a limit.
    """
    found = adapter if isinstance(adapter, type) else named(adapter)
    if not issubclass(found, LoopAdapter):
        hint = "policy(...) makes a policy of a limiter that is an object"
        raise InputError("adapter", expected="one that owns its loop", got=found.name, hint=hint)
    checked(found, limits)

    async def agent(seat: Seat) -> End:
        loop, left = found(**limits), wants(seat)

        async def model() -> str:
            nonlocal left
            reply = await seat.call(input_tokens)
            if reply.status != "completed":
                raise CallFailed(reply.status)
            left -= 1
            return "more" if left > 0 else "done"

        try:
            await loop.start(model)
        except CallFailed:
            return End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
        except Exception as error:
            if not loop.over(error):
                raise
            raise _refused(No(str(error).partition("\n")[0], loop.limit)) from error
        return COMPLETED

    return agent


def _refused(no: No) -> Exception:
    from harness_lab.simulate import Refused

    return Refused(Refusal((Shortfall(no.code, None, None, None, "nothing", no.channel, no.reason),)))
