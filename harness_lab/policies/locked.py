"""One policy for many threads: a lock around it, and answers that reach the loop that waits for them."""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from harness_lab.policies.protocol import Granted, Refused, Ticket, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness_lab.clock import Time
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End, Grant, News, Policy, SpawnAsk, StepAsk, Use


class Locked:
    """A policy that may be asked from several threads, each with an event loop of its own.

    Parameters
    ----------
    policy : Policy
        Who answers; nobody else may ask it.

    Notes
    -----
    Answers to those who wait are sorted by the thread that asked; :meth:`on_news` names what wakes a thread's loop when
    another thread's question let somebody of its own go on (``loop.call_soon_threadsafe(...)``).
    """

    __slots__ = ("_inboxes", "_lock", "_owners", "_policy", "_wake", "blocking", "channels")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.channels = policy.channels
        self.blocking = policy.blocking
        self._lock = Lock()
        self._owners: dict[Ticket, int] = {}
        self._inboxes: dict[int, deque[News]] = {}
        self._wake: dict[int, Callable[[], object]] = {}

    def on_news(self, wake: Callable[[], object]) -> None:
        """Let `wake` be called, from any thread, when there is news for the calling thread."""
        with self._lock:
            self._wake[get_ident()] = wake

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        with self._lock:
            return self._owned(self._policy.spawn(ask, now))

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        with self._lock:
            return self._owned(self._policy.admit(ask, now))

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        with self._lock:
            self._policy.settle(step, use, now)
            self._sort()

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        with self._lock:
            self._policy.close(node, use, end, now)
            self._sort()

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        with self._lock:
            self._policy.cancel(node, reason, now)
            self._sort()

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by; return when to be told again."""
        with self._lock:
            when = self._policy.tick(now)
            self._sort()
            return when

    def outbox(self) -> Iterator[News]:
        """Yield answers to those of the calling thread who waited."""
        inbox = self._inboxes.get(get_ident())
        while inbox:
            yield inbox.popleft()

    def _owned(self, answer: Grant | Wait | Refusal) -> Grant | Wait | Refusal:
        if isinstance(answer, Wait):
            self._owners[answer.ticket] = get_ident()
        self._sort()
        return answer

    def _sort(self) -> None:
        """Put each answer into the inbox of the thread that waits for it, and wake the others' loops."""
        for news in self._policy.outbox():
            owner = get_ident()
            if isinstance(news, (Granted, Refused)):
                owner = self._owners.pop(news.ticket, owner)
            self._inboxes.setdefault(owner, deque()).append(news)
            if owner != get_ident() and owner in self._wake:
                self._wake[owner]()


def locked(policy: Policy) -> Locked:
    """Return a policy that may be asked from several threads."""
    return Locked(policy)
