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

from harness_lab.outcome import CALLS, CHANNELS, COST, TOKENS, Code, Outcome, Refusal
from harness_lab.policies.protocol import SpawnAsk, Wait

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from harness_lab.clock import Time
    from harness_lab.policies import Policy
    from harness_lab.policies.protocol import End, Grant, News, StepAsk, Ticket, Use
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

    def put(self, place: int, found: Final) -> None:
        """Keep a simulated outcome."""
        self.sure[place] = True
        for name, value in found._asdict().items():
            getattr(self, name)[place] = value


class Final(NamedTuple):
    """How one run went; fields as of :class:`Outcomes`."""

    completed: bool
    stopped: bool
    calls: float
    tokens: float
    cost_nusd: float
    time_ns: float


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
                 "policy", "refused", "spent", "stops", "times", "touched", "used")  # fmt: skip

    def __init__(
        self, policy: Policy, *, channel: int | None, charge_hold: bool, spawns: bool, codes: Collection[str]
    ) -> None:
        self.codes = codes
        self.refused: set[int] = set()
        self.policy = policy
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
        return _Cuts(self, spawns=self._spawns).outcomes()

    def final(self) -> Final:
        """Return how the run itself went."""
        end, at = self.stops[()]
        uses = list(self.spent.values())
        return Final(
            completed=end.outcome is Outcome.COMPLETED,
            stopped=end.stopped_by in self.codes,
            calls=float(sum(_completed(use) for use in uses)),
            tokens=sum(_amount(use, TOKENS) for use in uses),
            cost_nusd=sum(_amount(use, COST) for use in uses),
            time_ns=float(at - self.times[0]),
        )


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


class _Cuts:
    """Goes through the questions of one run in order."""

    def __init__(self, run: Questions, *, spawns: bool) -> None:
        self._run = run
        self._refuses_spawns = spawns
        self._nodes: dict[Any, _Node] = {}
        self._paths = [ask.path if type(ask) is SpawnAsk else ask.node.path for ask in run.asks]
        self._steps: dict[Any, list[int]] = {}
        self._batches: dict[tuple[Any, int], list[int]] = {}
        self._arrange()

    def _arrange(self) -> None:
        """Find each node's own calls, and the children that it asked for after each of them."""
        last: dict[Any, int] = {}
        for i, ask in enumerate(self._run.asks):
            path = self._paths[i]
            if type(ask) is SpawnAsk:
                last[path] = i
                self._steps[path] = []
                if path:
                    self._batches.setdefault((path[:-1], last[path[:-1]]), []).append(i)
            else:
                last[path] = i
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
            calls=np.cumsum([_completed(use) for use in uses], dtype=np.float64),
            tokens=np.cumsum([_amount(use, TOKENS) for use in uses]),
            cost_nusd=np.cumsum([_amount(use, COST) for use in uses]),
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
        started = [k for k in self._batches.get((path, i), []) if k not in run.refused]
        gathered = max([done, *(run.stops[self._paths[k]][1] for k in started)])
        after = next((k for k in self._steps[path] if k > i), None)
        node.gap = (run.stops[path][1] if after is None else run.times[after]) - gathered
        node.ready = done
        node.moved(done if self._refuses_spawns else max([done, *(done + self._first_gap(k) for k in started)]))

    def _first_gap(self, k: int) -> int:
        """Return how long child `k` runs before its first question."""
        path = self._paths[k]
        first = self._steps[path][0] if self._steps[path] else None
        return (self._run.stops[path][1] if first is None else self._run.times[first]) - self._run.times[k]


def _completed(use: Use | None) -> int:
    return 0 if use is None or use.status != "completed" else 1


def _amount(use: Use | None, channel: int) -> float:
    if use is None:
        return 0.0
    amount = use.spent[channel]
    return _MISSING if amount is None else float(amount)


CHANNEL_OF = {name: i for i, name in enumerate(CHANNELS)} | {"time": None}
"""Ceiling → position of its channel; None for time."""
