"""What every value of one ceiling would have made of a run, from the run without that ceiling.

A ceiling that is tree-wide, never given back, checked before each question and charged after each call refuses the
first question that is put once so much is used, and every question from then on. Up to there the run is the run without
it; calls in flight end and are charged; and whatever the tree would have asked later is refused when it is asked, which
may be earlier than it was, since nobody waits any longer for children that were refused.

So a run with n questions has at most n different outcomes, one for each question that may be the first to be refused,
and going through the questions in order gives all of them: what was used is a running sum, and the end of the run moves
with the node whose question is let through and with those that wait for it.

Other limits may refuse as well: what they refuse before that question is refused alike, and what they let through
without the ceiling they let through under it, since no less is left then. But a run in which something waits for an
answer, or is cut off by a deadline, or of which the use is not known, may go on otherwise, and is simulated under each
value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness_lab.outcome import COST, TOKENS
from harness_lab.policies.protocol import SpawnAsk

if TYPE_CHECKING:
    from harness_lab.policies.protocol import Use
    from harness_lab.simulate.questions import Questions
    from harness_lab.stats.arrays import Floats, Ints

    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_MISSING = float("nan")


@dataclass(slots=True)
class Outcomes:
    """Every outcome of one run, in the order of the question that is refused first; the last is the run itself.

    Parameters
    ----------
    used : ndarray of int64, shape (n - 1,)
        What was used when each question was put: a ceiling of at most so much refuses it.
    sure : ndarray of bool, shape (n,)
        Whether an outcome is known; the others are simulated when they are asked for.
    completed, stopped : ndarray of bool, shape (n,)
        Whether the root completed; whether a limit of the ceiling's code stopped it.
    calls, tokens, cost_nusd, time_ns : ndarray of float64, shape (n,)
        Completed calls, tokens, reported cost (NaN: unknown) and duration.
    """

    used: Ints
    sure: Flags
    completed: Flags
    stopped: Flags
    calls: Floats
    tokens: Floats
    cost_nusd: Floats
    time_ns: Floats

    @classmethod
    def unknown(cls, used: Ints) -> Outcomes:
        """Return the outcomes of a run of which none can be read off."""
        n = used.size + 1
        return cls(used, *(np.zeros(n, dtype=bool) for _ in range(3)), *(np.full(n, np.nan) for _ in range(4)))

    def at(self, values: Ints) -> Ints:
        """Return, for each ceiling, the place of its outcome: between two questions, all ceilings are alike."""
        return np.searchsorted(self.used, values, side="left")

    def put(self, place: int, found: RunEnd) -> None:
        """Keep a simulated outcome."""
        self.sure[place] = True
        for name, value in found._asdict().items():
            getattr(self, name)[place] = value


class RunEnd(NamedTuple):
    """How one run went; fields as of :class:`Outcomes`."""

    completed: bool
    stopped: bool
    calls: float
    tokens: float
    cost_nusd: float
    time_ns: float


class _Node:
    """A node as it is known so far: what it waits for, and when it would end if all further questions were refused."""

    __slots__ = ("asks", "end", "gap", "parent", "ready")

    def __init__(self, parent: _Node | None, start: int) -> None:
        self.parent = parent
        self.asks: list[int] = []
        self.ready = start
        self.gap = 0
        self.end = start

    def moved(self, ready: int) -> None:
        """Take note that it can go on no earlier than at `ready`; whoever waits for it can go on later, too."""
        if ready > self.ready:
            self.ready = ready
        self.end = self.ready + self.gap
        if self.parent is not None:
            self.parent.moved(self.end)


class Cuts:
    """Goes through the questions of one run in order."""

    def __init__(self, run: Questions, *, spawns: bool) -> None:
        self._run = run
        self._refuses_spawns = spawns
        self._nodes: dict[Any, _Node] = {}
        self._paths = [ask.path if type(ask) is SpawnAsk else ask.node.path for ask in run.asks]
        self._steps: dict[Any, list[int]] = {}
        self._batches: dict[int, list[int]] = {}
        self._next: dict[int, int] = {}
        self._arrange()

    def _arrange(self) -> None:
        """Find each node's own calls, the one that came after each, and the children that it asked for then."""
        last: dict[Any, int] = {}
        for i, ask in enumerate(self._run.asks):
            path = self._paths[i]
            if type(ask) is SpawnAsk:
                last[path] = i
                self._steps[path] = []
                if path:
                    self._batches.setdefault(last[path[:-1]], []).append(i)
            else:
                self._next[last[path]] = last[path] = i
                self._steps[path].append(i)

    def outcomes(self) -> Outcomes:
        """Return every outcome of the run."""
        run, n = self._run, len(self._run.asks)
        base = run.final()
        ends = np.zeros(n)
        for i in range(n):
            self._admit(i)
            ends[i] = self._nodes[()].end
        first = np.arange(1, n + 1)
        last, granted = self._last_of_root()
        stopped = (first <= granted) | base.stopped
        uses = [run.spent.get(i) for i in range(n)]
        return Outcomes(
            used=run.thresholds(),
            sure=stopped | (first > last),
            completed=~stopped & (first > last) & base.completed,
            stopped=stopped,
            calls=np.cumsum([completed(use) for use in uses], dtype=np.float64),
            tokens=np.cumsum([amount(use, TOKENS) for use in uses]),
            cost_nusd=np.cumsum([amount(use, COST) for use in uses]),
            time_ns=ends - run.times[0],
        )

    def _last_of_root(self) -> tuple[int, int]:
        """Return the root's last question and its last that was granted: other limits may have refused it too."""
        own = self._steps[()]
        return max(own, default=-1), max((i for i in own if i not in self._run.refused), default=-1)

    def _admit(self, i: int) -> None:
        """Let question `i` through, with all later ones refused."""
        run, path = self._run, self._paths[i]
        if i in run.refused:
            return
        if type(run.asks[i]) is SpawnAsk:
            self._start(i, path)
        else:
            self._let_through(i, self._nodes[path], run.ends[i])

    def _start(self, i: int, path: Any) -> None:
        node = _Node(self._nodes.get(path[:-1]) if path else None, self._run.times[i])
        self._nodes[path] = node
        self._let_through(i, node, self._run.times[i])

    def _let_through(self, i: int, node: _Node, done: int) -> None:
        """Go on after question `i` of a node, which is done with it at `done`; its next question is refused."""
        run, path = self._run, self._paths[i]
        after = self._next.get(i)
        goes_on = run.stops[path][1] if after is None else run.times[after]
        gathered = heard = done
        for k in self._batches.get(i, ()):
            if k not in run.refused:
                gathered = max(gathered, run.stops[self._paths[k]][1])
                heard = heard if self._refuses_spawns else max(heard, done + self._first_gap(k))
        node.gap = goes_on - gathered
        node.ready = done
        node.moved(heard)

    def _first_gap(self, k: int) -> int:
        """Return how long child `k` runs before its first question."""
        path = self._paths[k]
        first = self._steps[path][0] if self._steps[path] else None
        return (self._run.stops[path][1] if first is None else self._run.times[first]) - self._run.times[k]


def completed(use: Use | None) -> int:
    """Return 1 for a call that completed, 0 for any other question."""
    return 0 if use is None or use.status != "completed" else 1


def amount(use: Use | None, channel: int) -> float:
    """Return what a call used in a channel, NaN if it is unknown; 0 for a question that was no call."""
    if use is None:
        return 0.0
    amount = use.spent[channel]
    return _MISSING if amount is None else float(amount)
