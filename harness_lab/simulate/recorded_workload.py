"""A workload that draws whole recorded runs: what was long together stays long together.

One word picks the run that is played. A run that a limit had stopped says only that it was at least so long; another
that went on longer is drawn in its place, so that stopped runs do not shorten what is simulated.

References
----------
.. [1] Efron, B. (1967). The two sample problem with censored data. Proc. Fifth Berkeley Symposium 4, 831-853.
       Redistribution to the right, which gives the Kaplan-Meier estimate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from harness_lab import draws
from harness_lab.outcome import Outcome, Purpose
from harness_lab.policies.protocol import End
from harness_lab.simulate.plain import plain
from harness_lab.simulate.player import Player
from harness_lab.simulate.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.agents.ports import Brain
    from harness_lab.simulate.profile import Reaction
    from harness_lab.simulate.recording import RecordedNode
    from harness_lab.simulate.workload import AgentProfile
    from harness_lab.usage import Amounts

CUT_SHORT = (Outcome.EXHAUSTED, Outcome.TIMED_OUT, Outcome.AWAITING_APPROVAL, Outcome.DENIED)
"""Ends that say only that it would have gone on."""
_TRIES = 32
_UNKNOWN = End(Outcome.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class RecordedWorkload(Workload):
    """A workload that plays recorded runs, drawn with the same chance each.

    Parameters
    ----------
    runs : tuple of RecordedNode
        The roots of the recorded runs.
    asks : mapping of str to Amounts
        What is asked for a child of each agent; what was recorded where it is missing.
    reaction : Reaction or None
        How agents react to what they are told; None: they are oblivious.

    Notes
    -----
    `agents` holds a summary of each role (its model and path); what they do comes from `runs`.
    """

    runs: tuple[RecordedNode, ...] = ()
    asks: Mapping[str, Amounts] | None = None
    reaction: Reaction | None = None

    def compile(self) -> dict[str, Any]:
        """Return what plays the runs, under the name of the root."""
        return {self.root: RecordedAgent(self)}

    def models(self) -> list[str]:
        """Return the models that are called, sorted."""
        return sorted({step.model for run in self.runs for node in run.below() for step in node.steps})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the recorded runs."""
        found = hashlib.sha256()
        for run in self.runs:
            for node in run.below():
                found.update(repr(node.plain()).encode())
        return found.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that name the workload: the runs by their digest."""
        return {
            "root": self.root,
            "runs": len(self.runs),
            "runs_sha256": self.digest,
            "asks": plain(dict(self.asks or {})),
            "reaction": plain(self.reaction),
        }


class RecordedAgent(Player):
    """Draws recorded runs and plays them."""

    __slots__ = ("_by_agent", "_runs", "name", "profile")

    def __init__(self, workload: RecordedWorkload) -> None:
        keys = {name: agent.floor_key for name, agent in workload.agents.items()}
        super().__init__(workload.asks, keys, workload.reaction)
        self.name = workload.root
        self.profile: AgentProfile = workload.agents[workload.root]
        self._runs = workload.runs
        self._by_agent: dict[str, list[RecordedNode]] = {}
        for run in workload.runs:
            for node in run.below():
                self._by_agent.setdefault(node.agent, []).append(node)
        for nodes in self._by_agent.values():
            nodes.sort(key=_length)

    def brain(self, node: RecordedNode | int, key: int | None = None, ask: Amounts | None = None) -> Brain:
        """Return the brain of a root (given its key alone), or of a recorded node."""
        if key is not None:
            return super().brain(node, key, ask)  # type: ignore[arg-type]
        root: int = node  # type: ignore[assignment]
        return super().brain(_drawn(self._runs, draws.word(root, 0, 0, Purpose.DONOR)), root)

    def born(self, key: int, ask: Amounts) -> Callable[[], Brain]:
        """Return what makes the brain of a root."""
        return partial(self.brain, key)

    def stands_in(self, node: RecordedNode, key: int) -> RecordedNode:
        """Return the node, or one of its role that went on for longer where a limit had cut it short [1]_.

        Where none did, how it would have ended is unknown.
        """
        tries = 1
        while node.end.outcome in CUT_SHORT and tries < _TRIES:
            peers = self._by_agent[node.agent]
            longer = [peer for peer in peers if _length(peer) > _length(node)]
            if not longer:
                return node if node.end.outcome is Outcome.DENIED else replace(node, end=_UNKNOWN)
            node = _drawn(longer, draws.word(key, 0, tries, Purpose.DONOR))
            tries += 1
        return node


def _length(node: RecordedNode) -> int:
    return -1 if node.end.outcome is Outcome.DENIED else len(node.steps)


def _drawn(nodes: Sequence[RecordedNode], word: int) -> RecordedNode:
    found: RecordedNode = nodes[word * len(nodes) >> 64]
    return found
