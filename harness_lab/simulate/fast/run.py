"""Running blocks on the fast engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.errors import NotConserved
from harness_lab.simulate.fast.arena import Arena
from harness_lab.simulate.fast.constants import with_policy
from harness_lab.simulate.fast.layout import FAULT, FULL, LEAK, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.fast.constants import Constants

    Ints = NDArray[np.int64]

_ROWS = 4096


def simulate(constants: Constants, seed: int, policy: PolicySpec, runs: Sequence[int]) -> Ints | None:
    """Simulate some runs under a policy.

    Parameters
    ----------
    constants : Constants
        The world.
    seed : int
        Names the luck.
    policy : PolicySpec
        One of the family (:func:`harness_lab.simulate.fast.family.why_not`).
    runs : sequence of int
        Numbers of the runs.

    Returns
    -------
    ndarray of int64 or None
        One row a node that ended, in the order in which they ended: the run, then the cells named in
        :data:`harness_lab.simulate.fast.layout.ROW`. None: a figure is beyond 64 bits, or a tree does not end; the
        kernel can say which.

    Raises
    ------
    NotConserved
        If a run has ended and its books do not close.
    """
    from harness_lab.simulate.fast.machine import machine

    block = machine()
    values = with_policy(constants.values, policy)
    numbers = np.asarray(runs, np.int64)
    arena: Arena | None = Arena()
    room = np.empty((_ROWS, len(ROW) + 1), np.int64)
    found: list[Ints] = []
    done = 0
    while done < len(numbers):
        if arena is None:
            return None
        place = (arena.world, arena.nodes, arena.accounts, arena.heap)
        done, rows = block(*place, values, constants.tables, np.uint64(seed), numbers, done, room)
        found.append(room[:rows].copy())
        fault = int(arena.world[FAULT])
        if fault == FULL:
            arena = arena.larger()
        elif fault == LEAK:
            raise NotConserved(f"policy {policy.name}, run {numbers[done]}", "in the fast engine")
        elif fault:
            return None
        elif rows == 0 and done < len(numbers):
            room = np.empty((2 * len(room), len(ROW) + 1), np.int64)
    return np.concatenate(found) if found else room[:0]
