"""A policy that writes down every answer of another, and changes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.outcome import Refusal
from harness_lab.policies.protocol import Grant, Granted, Refused, StepAsk, Ticket, path_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, End, News, Policy, SpawnAsk, Use, Wait

Decision = tuple[str, str, int, int, str, int | None]
"""One answer: node, question, call, attempt, answer (``granted``, ``waits`` or the codes of a refusal), deadline."""


class Logged:
    """Writes down the answers of a policy.

    Parameters
    ----------
    policy : Policy
        Who answers.

    Attributes
    ----------
    decisions : list of Decision
        In the order in which they were given.
    """

    __slots__ = ("blocking", "channels", "decisions", "policy")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.channels = policy.channels
        self.blocking = policy.blocking
        self.decisions: list[Decision] = []

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        answer = self.policy.spawn(ask, now)
        self._note(ask, answer)
        return answer

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        answer = self.policy.admit(ask, now)
        self._note(ask, answer)
        return answer

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        self.policy.settle(step, use, now)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        self.policy.close(node, use, end, now)

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        self.policy.cancel(node, reason, now)

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by."""
        return self.policy.tick(now)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited."""
        for news in self.policy.outbox():
            if isinstance(news, Granted):
                self._note(news.ticket.ask, news.grant)
            elif isinstance(news, Refused):
                self._note(news.ticket.ask, news.refusal)
            yield news

    def _note(self, ask: Ask, answer: Grant | Wait | Refusal) -> None:
        deadline = answer.deadline if isinstance(answer, Grant) else None
        if isinstance(ask, StepAsk):
            head = (path_text(ask.node.path), "admit", ask.call, ask.attempt)
        else:
            head = (path_text(ask.path), "spawn", -1, -1)
        self.decisions.append((*head, _text(answer), deadline))


def _text(answer: Grant | Wait | Refusal) -> str:
    if isinstance(answer, Grant):
        return "granted"
    return "; ".join(map(str, answer.shortfalls)) if isinstance(answer, Refusal) else "waits"
