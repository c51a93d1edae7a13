"""Plays recorded nodes: their pauses, calls and children, in the order of the record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness_lab import draws
from harness_lab.agents.ports import Call, Child, Children, Rest
from harness_lab.outcome import Outcome, Refusal
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.simulate.own import Own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.agents.ports import Brain
    from harness_lab.floors import FloorKey
    from harness_lab.simulate.profile import Reaction
    from harness_lab.simulate.recording import RecordedNode
    from harness_lab.usage import Amounts

WAS_DENIED = "it was denied in the record and is granted here: what it would have done is not recorded"
CHILD_CHANGED = "a child ended otherwise than recorded: what its parent would have done then is not recorded"
ENDED_EARLY = "the record ends there because it was stopped: what would have come after is not recorded"
_STOPPED = (Outcome.EXHAUSTED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.AWAITING_APPROVAL, Outcome.UNKNOWN)


class Player:
    """Makes brains that do what recorded nodes did.

    Parameters
    ----------
    asks : mapping of str to Amounts, optional
        What is asked for a child of each agent; what was recorded where it is missing.
    floor_keys : mapping of str to FloorKey, optional
        The path that runs each agent.
    reaction : Reaction, optional
        Agents that wind down: from the told share on they start no more children, make one more call and are done.
    """

    __slots__ = ("_asks", "_floor_keys", "_reaction")

    def __init__(
        self,
        asks: Mapping[str, Amounts] | None = None,
        floor_keys: Mapping[str, FloorKey | None] | None = None,
        reaction: Reaction | None = None,
    ) -> None:
        self._reaction = reaction
        self._asks = asks or {}
        self._floor_keys = floor_keys or {}

    def brain(self, node: RecordedNode, key: int, ask: Amounts | None = None) -> Brain:
        """Do what a node did, and end as it ended; `key` names the luck of what no record says."""
        node = self.stands_in(node, key)
        if not self._is_played(node):
            return End(Outcome.UNKNOWN)
        own = None if self._reaction is None else Own(self._reaction.told if ask is None else ask, self._reaction.at)
        if -1 in node.children:
            yield from self._children(node, key, -1)
        for at, step in enumerate(node.steps):
            if step.pause_ns:
                yield Rest(step.pause_ns)
            told = yield Call(step.model, key, step.call, step.attempt, step.prompt, step.resent, answer=step.answer)
            if told is None or type(told) is Refusal:
                break
            if own is not None and own.is_done(told):
                return COMPLETED
            if at in node.children and not (own is not None and own.winding_down):
                yield from self._children(node, key, at)
        if node.tail_ns:
            yield Rest(node.tail_ns)
        if node.end.outcome in _STOPPED:
            self.mark(node, ENDED_EARLY)
        return node.end

    def _is_played(self, node: RecordedNode) -> bool:
        """Note what the record does not say of a node; return whether it says what the node did."""
        for mark in node.marks:
            self.mark(node, mark)
        denied = node.end.outcome is Outcome.DENIED
        if denied:
            self.mark(node, WAS_DENIED)
        return not denied

    def stands_in(self, node: RecordedNode, key: int) -> RecordedNode:
        """Return the node that is played for another: here the node itself."""
        return node

    def mark(self, node: RecordedNode, why: str) -> None:
        """Take note of what the record cannot say: here nobody asks."""

    def _children(self, node: RecordedNode, key: int, at: int) -> Brain:
        after = node.steps[at].call if at >= 0 else 0
        batch = node.children[at]
        ends = yield Children([self._child(child, key, (after, slot, attempt)) for slot, attempt, child in batch])
        for (_, _, child), end in zip(batch, ends, strict=True):
            if end is None or end.outcome != child.end.outcome:
                self.mark(node, CHILD_CHANGED)
                break
        return node.end

    def _child(self, node: RecordedNode, key: int, name: tuple[int, int, int]) -> Child:
        call, slot, attempt = name
        agent = node.agent
        return Child(
            agent=agent,
            budget=self._asks.get(agent, node.ask),
            call=call,
            slot=slot,
            attempt=attempt,
            brain=partial(self.brain, node, draws.child_key(key, call, slot, attempt), self._asks.get(agent, node.ask)),
            floor_key=self._floor_keys.get(agent),
        )
