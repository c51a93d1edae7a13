"""What a policy is asked in one run, written down for the outcomes under every value of a ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab.outcome import CALLS, CHANNELS, COST, TOKENS, Code, Outcome, Refusal
from harness_lab.policies.protocol import SpawnAsk, Wait
from harness_lab.simulate.cuts import Cuts, Outcomes, RunEnd, amount, completed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from harness_lab.clock import Time
    from harness_lab.policies import Policy
    from harness_lab.policies.protocol import End, Grant, News, StepAsk, Ticket, Use
    from harness_lab.stats.arrays import Ints

CHANNEL_OF = {name: i for i, name in enumerate(CHANNELS)} | {"time": None}
"""Ceiling → position of its channel; None for time."""


class Questions:
    """Writes down what a policy is asked in one run, and changes nothing.

    Parameters
    ----------
    policy : Policy
        The policy without the ceiling.
    channel : int or None
        The channel that the ceiling counts; None: time.
    charge_hold : bool
        Whether a call of unknown use is charged its worst case.
    spawns : bool
        Whether the ceiling refuses children too, not only calls.
    codes : collection of str
        Codes of refusals by the ceiling.

    Attributes
    ----------
    touched : bool
        Whether anything waited or was cut off, or what the ceiling counts is not known: then the outcomes under the
        ceiling cannot be read off this run.
    """

    __slots__ = ("_channel", "_hold", "_index", "_spawns", "_used", "asks", "blocking", "channels", "codes", "ends",
                 "news", "policy", "refused", "spent", "stops", "times", "touched", "used")  # fmt: skip

    def __init__(
        self, policy: Policy, *, channel: int | None, charge_hold: bool, spawns: bool, codes: Collection[str]
    ) -> None:
        self.codes = codes
        self.refused: set[int] = set()
        self.policy = policy
        self.news = getattr(policy, "news", None)  # whoever drains may see at a glance that there is none
        self.channels = policy.channels
        self.blocking = policy.blocking
        self._channel = channel
        self._hold = charge_hold
        self._spawns = spawns
        self._used = 0
        self._index: dict[StepAsk, int] = {}
        self.touched = False
        self.asks: list[SpawnAsk | StepAsk] = []
        self.times: list[int] = []
        self.used: list[int] = []
        self.ends: dict[int, int] = {}
        self.spent: dict[int, Use] = {}
        self.stops: dict[Any, tuple[End, int]] = {}

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        answer = self.policy.spawn(ask, now)
        self._asked(ask, answer, now)
        return answer

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        answer = self.policy.admit(ask, now)
        self._index[ask] = len(self.asks)
        self._asked(ask, answer, now)
        return answer

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        self.policy.settle(step, use, now)
        at = self._index[step.ask]  # type: ignore[index]
        self.ends[at] = now
        self.spent[at] = use
        if use.status == "abandoned":
            self.touched = True
        if self._channel is not None and use.status != "unsent":
            amount = use.spent[self._channel]
            if amount is None:
                amount = 1 if self._channel == CALLS else step.ask.bound[self._channel] if self._hold else None  # type: ignore[union-attr]
            if amount is None:
                self.touched = True
            else:
                self._used += amount

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        self.policy.close(node, use, end, now)
        self.stops[node.path] = (end, now)
        if end.outcome is Outcome.CANCELLED or end.stopped_by == Code.DEADLINE:
            self.touched = True

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        self.policy.cancel(node, reason, now)
        self.touched = True

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by."""
        return self.policy.tick(now)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited."""
        yield from self.policy.outbox()

    def _asked(self, ask: SpawnAsk | StepAsk, answer: Grant | Wait | Refusal, now: int) -> None:
        if type(answer) is Refusal:
            self.refused.add(len(self.asks))
        elif type(answer) is Wait:
            self.touched = True
        self.asks.append(ask)
        self.times.append(now)
        self.used.append(now if self._channel is None else self._used)

    def thresholds(self) -> Ints:
        """Return what was used when each question was put: between two of these, all ceilings are alike."""
        return np.asarray(self.used[1:], dtype=np.int64) - (self.times[0] if self._channel is None else 0)

    def outcomes(self) -> Outcomes:
        """Return every outcome of the run under the ceiling, as far as they can be read off."""
        if self.touched:
            return Outcomes.unknown(self.thresholds())
        return Cuts(self, spawns=self._spawns).outcomes()

    def final(self) -> RunEnd:
        """Return how the run itself went."""
        end, at = self.stops[()]
        uses = list(self.spent.values())
        return RunEnd(
            completed=end.outcome is Outcome.COMPLETED,
            stopped=end.stopped_by in self.codes,
            calls=float(sum(completed(use) for use in uses)),
            tokens=sum(amount(use, TOKENS) for use in uses),
            cost_nusd=sum(amount(use, COST) for use in uses),
            time_ns=float(at - self.times[0]),
        )
