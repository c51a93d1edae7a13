"""Draws of a whole block at once: the same numbers as one at a time, at a tenth of the time.

A draw is named by who asks for it and what for, so drawing ahead is only a cache: who is not in it draws alone. What is
drawn is the tree that a run would be if nothing stopped it, level by level; retries, and what lies beyond the bounds
below, are left out.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab import draws
from harness_lab.outcome import Purpose
from harness_lab.providers.mock import DrawnAnswers, MockModel
from harness_lab.simulate.workload import MAX_CALLS, Agent, DrawnNodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from harness_lab.providers.mock import Answers
    from harness_lab.simulate.workload import Rule

    Words = NDArray[np.uint64]
    Ints = NDArray[np.int64]

RUNS = 256
"""Runs that are drawn together."""
_FEWEST = 8
"""Runs below which it does not pay."""
_CALLS = 256
"""Calls of one node that are drawn ahead."""
_LEVELS = 6
_NODES = 1 << 15
"""Nodes of one agent on one level; a tree that grows beyond is drawn as it comes."""

_G, _D = np.uint64(draws.GAMMA), np.uint64(draws.CHILD)
_M1, _M2 = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_27, _30, _31, _32 = (np.uint64(bits) for bits in (27, 30, 31, 32))


def mix(z: Words) -> Words:
    """Return the splitmix64 finaliser of many words; see :func:`harness_lab.draws.mix`."""
    z = (z ^ (z >> _30)) * _M1
    z = (z ^ (z >> _27)) * _M2
    return z ^ (z >> _31)


def words(keys: Words, calls: Ints | int, lane: int, purpose: int) -> Words:
    """Return the random bits of many calls of many nodes for one purpose; see :func:`harness_lab.draws.word`."""
    name = np.atleast_1d(np.asarray(calls << 10 | lane << 5 | purpose, dtype=np.uint64))
    return mix(keys + _G * (name + np.uint64(1)))


def run_keys(seed: int, runs: Sequence[int]) -> Words:
    """Return the keys of the roots of some runs."""
    return np.array([draws.run_key(seed, run) for run in runs], dtype=np.uint64)


@contextmanager
def drawn_ahead(agent: Any, model: Any, seed: int, runs: Sequence[int]) -> Iterator[None]:
    """Let agents and models find, while some runs are simulated, their draws made.

    Parameters
    ----------
    agent : Agent
        The root's profile; one that is not a plain one draws as it comes.
    model : WorldModel
        Answers calls; the same holds.
    seed : int
        Names the luck.
    runs : sequence of int
        Which runs.
    """
    if type(agent) is not Agent or len(runs) < _FEWEST:
        yield
        return
    ahead = _Ahead(agent, model)
    ahead.draw(run_keys(seed, runs))
    try:
        yield
    finally:
        ahead.forget()


class _Ahead:
    """What is drawn of one block."""

    def __init__(self, agent: Agent, model: Any) -> None:
        self._root = agent
        self._model = model if type(model) is MockModel else None
        self._touched: list[Any] = []

    def draw(self, keys: Words) -> None:
        """Draw level by level."""
        level = {self._root.name: [keys]}
        agents = {self._root.name: self._root, **self._root.agents}
        for _ in range(_LEVELS):
            below: dict[str, list[Words]] = defaultdict(list)
            for name, parts in level.items():
                agent, keys = agents[name], np.concatenate(parts)
                if type(agent) is Agent and len(keys) <= _NODES:
                    self._agent(agent, keys, below)
            if not below:
                return
            level = below

    def forget(self) -> None:
        """Drop what was drawn: a world is sent to workers without it."""
        for one in self._touched:
            one.drawn = None

    def _agent(self, agent: Agent, keys: Words, below: dict[str, list[Words]]) -> None:
        """Draw some nodes of one agent, and name the children that they would ask for."""
        tables = agent.tables
        calls = np.clip(tables.calls.draw_many(words(keys, 0, 0, Purpose.CALLS)), 1, MAX_CALLS)
        startup = tables.startup.draw_many(words(keys, 0, 0, Purpose.STARTUP))
        known = np.minimum(calls, _CALLS)
        first = np.cumsum(known) - known
        node = np.repeat(np.arange(len(keys)), known)
        call = np.arange(len(node)) - first[node]
        each = keys[node]
        growth = tables.growth.draw_many(words(each, call, 0, Purpose.GROWTH)).tolist()
        if agent.drawn is None:
            agent.drawn = DrawnNodes({}, [])
            self._touched.append(agent)
        start = len(agent.drawn.growth)
        agent.drawn.growth.extend(growth)
        names = keys.tolist()
        sizes = zip((first + start).tolist(), known.tolist(), calls.tolist(), startup.tolist(), strict=True)
        agent.drawn.nodes.update(zip(names, sizes, strict=True))
        if self._model is not None:
            self._answers(self._model.answers(agent.profile.model), names, first, each, call)
        slot = 0
        for lane, rule in enumerate(agent.rules):
            for made in _children(rule, lane, slot, each, call):
                below[rule.spawn.agent].append(made)
            slot += rule.most

    def _answers(self, answers: Answers, names: list[int], first: Ints, each: Words, call: Ints) -> None:
        output = np.minimum(answers.output_table.draw_many(words(each, call, 0, Purpose.OUTPUT)), answers.max_output)
        latency = answers.latency_table.draw_many(words(each, call, 0, Purpose.LATENCY))
        failed = (words(each, call, 0, Purpose.ERROR) >> _32).astype(np.int64) < answers.error
        if answers.drawn is None:
            answers.drawn = DrawnAnswers({}, _CALLS, [], [], [])
            self._touched.append(answers)
        drawn = answers.drawn
        drawn.first.update(zip(names, (first + len(drawn.output)).tolist(), strict=True))
        drawn.output.extend(output.tolist())
        drawn.latency.extend(latency.tolist())
        drawn.failed.extend(failed.tolist())


def _children(rule: Rule, lane: int, slot: int, each: Words, call: Ints) -> Iterator[Words]:
    """Yield the keys of the children of one rule, slot by slot."""
    due = np.ones(len(call), dtype=bool) if rule.after is None else np.isin(call, rule.after)
    keys, after = each[due], call[due]
    if rule.chance < draws.ONE:
        lucky = (words(keys, after, lane, Purpose.SPAWN) >> _32).astype(np.int64) < rule.chance
        keys, after = keys[lucky], after[lucky]
    counts = None if rule.counts is None else rule.counts.draw_many(words(keys, after, lane, Purpose.COUNT))
    for i in range(rule.most):
        some = slice(None) if counts is None else counts > i
        name = (after[some] << 16 | (slot + i) << 8).astype(np.uint64)
        if len(name):
            yield mix((keys[some] ^ _D) + _G * (name + np.uint64(1)))
