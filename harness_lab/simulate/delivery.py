"""Whether nodes delivered: a chance that grows with the share of its calls that an agent made.

It is told from the rows afterwards, by a draw named by the node like every other, so it costs nothing while runs are
simulated and is the same on every engine.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab import draws
from harness_lab.outcome import Outcome, Purpose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.simulate.workload import Agent

    Points = tuple[tuple[float, float], ...]


def deliveries(nodes: pd.DataFrame, agents: Mapping[str, Agent], root_key: Callable[[str], int]) -> pd.Series[bool]:
    """Return whether each node delivered, NA for agents of which it is not known.

    Parameters
    ----------
    nodes : DataFrame
        Rows of simulated nodes: run, node, agent, outcome, calls.
    agents : mapping of str to Agent
        The compiled agents.
    root_key : callable
        Returns the draw key of a run's root.

    Returns
    -------
    Series of boolean
        A node that was denied delivered nothing. One that ended as it wanted made all of its calls.
    """
    known = {name: agent for name, agent in agents.items() if agent.profile.delivery}
    keys: dict[tuple[str, str], int] = {}
    found: list[bool | None] = []
    for run, node, role, outcome, calls in zip(
        nodes["run"], nodes["node"], nodes["agent"], nodes["outcome"], nodes["calls"], strict=True
    ):
        agent = known.get(role)
        if agent is None:
            found.append(None)
            continue
        key = _key(str(run), str(node), keys, root_key)
        found.append(draws.word(key, 0, 0, Purpose.DELIVERED) >> 32 < _threshold(agent, key, outcome, calls))
    return pd.Series(pd.array(found, dtype="boolean"), index=nodes.index)


def _threshold(agent: Agent, key: int, outcome: str, calls: int) -> int:
    if outcome == Outcome.DENIED:
        return 0
    share = 1.0 if outcome == Outcome.COMPLETED else min(1.0, calls / agent.calls(key))
    return draws.chance(_chance(agent.profile.delivery, share))


def _key(run: str, node: str, keys: dict[tuple[str, str], int], root_key: Callable[[str], int]) -> int:
    """Return a node's draw key, from its name: ``0`` for the root, ``3.0.0/1.2.0`` for a grandchild."""
    if (run, node) not in keys:
        if node == "0":
            keys[run, node] = root_key(run)
        else:
            above, _, last = node.rpartition("/")
            call, slot, attempt = (int(part) for part in last.split("."))
            keys[run, node] = draws.child_key(_key(run, above or "0", keys, root_key), call, slot, attempt)
    return keys[run, node]


def _chance(points: Points, share: float) -> float:
    """Return the chance at a share: on the line between the points around it, that of the nearest beyond them."""
    if share <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if share <= x1:
            return y0 + (y1 - y0) * (share - x0) / (x1 - x0)
    return points[-1][1]
