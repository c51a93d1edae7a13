"""Other people's limiters in the place of a policy: the four questions, and the rest filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Code, Refusal, Shortfall
from harness_lab.policies.protocol import SETTLED, Grant, SpawnAsk, StepAsk, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.clock import Time
    from harness_lab.policies import Policy
    from harness_lab.policies.protocol import Ask, End, News, Use, Wait

QUESTIONS = ("spawn", "admit", "settle", "close")


class Limiter:
    """A policy that lets everything through; override what yours has an opinion on.

    Examples
    --------
    A limiter that counts calls, in three lines:

    >>> class Ten(Limiter):
    ...     left = 10
    ...     def admit(self, ask, now):
    ...         self.left -= 1
    ...         return self.yes(ask, now) if self.left >= 0 else self.no("ten calls are enough")
    """

    channels: tuple[str, ...] = CHANNELS
    blocking = False

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        return self.yes(ask, now)

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a call may start; ``ask.bound`` is its worst case by channel."""
        return self.yes(ask, now)

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a call ended; ``use.spent`` is what it used by channel, None: unknown."""
        step.state = SETTLED

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node ended."""
        node.state = SETTLED

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by."""
        return None

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited: nobody does."""
        yield from ()

    @staticmethod
    def yes(ask: Ask, now: Time) -> Grant:
        """Grant what is asked."""
        parent = ask.node if isinstance(ask, StepAsk) else ask.parent
        depth = 0 if parent is None else parent.depth + isinstance(ask, SpawnAsk)
        return Grant(Ticket(ask, parent, depth, [], now))

    @staticmethod
    def no(why: str, *, code: Code = Code.CALL_REFUSED) -> Refusal:
        """Refuse it, with a reason in words."""
        return Refusal((Shortfall(code, None, None, None, "nothing", detail=why),))


class _Filled(Limiter):
    """An object with the four questions as a whole policy."""

    def __init__(self, limiter: Any) -> None:
        self.spawn = limiter.spawn  # type: ignore[method-assign]
        self.admit = limiter.admit  # type: ignore[method-assign]
        self.settle = limiter.settle  # type: ignore[method-assign]
        self.close = limiter.close  # type: ignore[method-assign]
        for name in ("cancel", "tick", "outbox"):
            if hasattr(limiter, name):
                setattr(self, name, getattr(limiter, name))


def policy_of(limiter: Any) -> Policy:
    """Return a limiter as a policy: itself if it is one, else with what it lacks beside the four questions filled in.

    Raises
    ------
    InputError
        If it lacks one of the four.
    """
    missing = [name for name in QUESTIONS if not callable(getattr(limiter, name, None))]
    if missing:
        hint = "harness_lab.simulate.Limiter answers those that yours does not"
        raise InputError("limiter", expected=f"an object with {', '.join(QUESTIONS)}", got=missing, hint=hint)
    whole = all(hasattr(limiter, name) for name in ("channels", "blocking", "cancel", "tick", "outbox"))
    policy: Policy = limiter if whole else _Filled(limiter)
    return policy
