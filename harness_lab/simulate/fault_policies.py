"""What faults put in front of a policy or a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.clock import Time
from harness_lab.policies.protocol import StepAsk, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness_lab.agents.ports import Runtime
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End, Grant, News, Path, Policy, SpawnAsk, Ticket, Use


class PassedOn:
    """A policy that passes everything on to another; what a fault changes it overrides."""

    __slots__ = ("blocking", "channels", "inner")

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.channels = inner.channels
        self.blocking = inner.blocking

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        return self.inner.spawn(ask, now)

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        return self.inner.admit(ask, now)

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        self.inner.settle(step, use, now)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        self.inner.close(node, use, end, now)

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        self.inner.cancel(node, reason, now)

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by."""
        return self.inner.tick(now)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited."""
        return self.inner.outbox()


class DeadLetters(PassedOn):
    """Loses what dead nodes would have said.

    Parameters
    ----------
    inner : Policy
        Who never hears it.
    dead : set of Path
        Names of nodes that died; it grows.
    """

    __slots__ = ("dead",)

    def __init__(self, inner: Policy, dead: set[Path]) -> None:
        super().__init__(inner)
        self.dead = dead

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended, unless its node is dead."""
        if step.path not in self.dead:
            self.inner.settle(step, use, now)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has ended, unless it is dead."""
        if node.path not in self.dead:
            self.inner.close(node, use, end, now)


class Slow(PassedOn):
    """Does I/O, so that the loop asks it through the runtime."""

    __slots__ = ()

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner)
        self.blocking = True


class Refusing(PassedOn):
    """Refuses some questions before the policy hears of them.

    Parameters
    ----------
    inner : Policy
        Who answers the others.
    refusal : callable
        Returns the refusal of an ask, None to pass it on.
    """

    __slots__ = ("_refusal",)

    def __init__(self, inner: Policy, refusal: Callable[[Any], Refusal | None]) -> None:
        super().__init__(inner)
        self._refusal = refusal

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        return self._refusal(ask) or self.inner.spawn(ask, now)

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        return self._refusal(ask) or self.inner.admit(ask, now)


class JumpingClock(PassedOn):
    """Tells a policy another time from some instant on.

    Parameters
    ----------
    inner : Policy
        Who reads the clock.
    at, by : int
        When it jumps and how far, nanoseconds.
    """

    __slots__ = ("_at", "_by", "_waits")

    def __init__(self, inner: Policy, at: int, by: int) -> None:
        super().__init__(inner)
        self._at = at
        self._by = by
        self._waits: list[tuple[int, int]] = []

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        return self._back(self.inner.spawn(ask, self._read(now)), now)

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        return self._back(self.inner.admit(ask, self._read(now)), now)

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        self.inner.settle(step, use, self._read(now))

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        self.inner.close(node, use, end, self._read(now))

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        self.inner.cancel(node, reason, self._read(now))

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by; whoever waited as long as it was told to has waited long enough."""
        due = max((until for real, until in self._waits if real <= now), default=0)
        return self.inner.tick(Time(max(self._read(now), due)))

    def _read(self, now: Time) -> Time:
        return Time(max(0, now + self._by)) if now >= self._at else now

    def _back(self, answer: Grant | Wait | Refusal, now: Time) -> Grant | Wait | Refusal:
        """Return a wait in the runtime's own time."""
        if type(answer) is not Wait or answer.until is None:
            return answer
        real = Time(now + answer.until - self._read(now))
        self._waits.append((real, answer.until))
        return Wait(answer.ticket, real)


class SlowRuntime:
    """A runtime on which an answer takes time.

    Parameters
    ----------
    runtime : Runtime
        Does everything else.
    delay : callable
        Returns the nanoseconds before an ask is put.
    """

    __slots__ = ("_delay", "runtime")

    def __init__(self, runtime: Runtime, delay: Callable[[Any], int]) -> None:
        self.runtime = runtime
        self._delay = delay

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtime, name)

    async def ask(self, policy: Policy, question: Callable[[Any, Time], Any], ask: Any) -> Grant | Refusal:
        """Ask a policy after a while, and wait in its queue if it says so."""
        runtime = self.runtime
        await runtime.sleep(self._delay(ask))
        answer = question(ask, runtime.now())
        runtime.drain(policy)
        return await runtime.answered(policy, answer) if type(answer) is Wait else answer

    async def tell(self, policy: Policy, ticket: Ticket, use: Use, end: End | None = None) -> None:
        """Settle a step, or with `end` close a node: the store takes it in its own time, and nobody waits for that."""
        if end is None:
            policy.settle(ticket, use, self.runtime.now())
        else:
            policy.close(ticket, use, end, self.runtime.now())
        self.runtime.drain(policy)
