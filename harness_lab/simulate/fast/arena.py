"""The room in which the fast engine works, and how it is given more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness_lab.simulate.fast.layout import ACCOUNT_SIZE, HEAP_SIZE, LINE, LINES, NODE_SIZE, ORDER, QUEUE, WORLD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_NODES = 64
LARGEST_ROOM = 1 << 18
"""Nodes of one tree beyond which the fast engine gives a run to the kernel."""


class Arena:
    """Arrays for trees of at most so many nodes.

    Attributes
    ----------
    world, nodes, accounts, heap : ndarray of int64
        See :mod:`harness_lab.simulate.fast.layout`.
    """

    def __init__(self, nodes: int = _NODES) -> None:
        self.size = nodes
        line = 4 * nodes
        self.world: Ints = np.zeros(WORLD + 8 * line + 2 * nodes, np.int64)
        self.world[LINE] = line
        self.world[LINES] = WORLD
        self.world[ORDER] = WORLD + 8 * line
        self.world[QUEUE] = WORLD + 8 * line + nodes
        self.nodes: Ints = np.zeros((nodes, NODE_SIZE), np.int64)
        self.accounts: Ints = np.zeros((5 * nodes + 5, ACCOUNT_SIZE), np.int64)
        self.heap: Ints = np.zeros((8 * nodes, HEAP_SIZE), np.int64)

    def larger(self) -> Arena | None:
        """Return one with twice the room; None beyond :data:`LARGEST_ROOM`."""
        return Arena(2 * self.size) if self.size < LARGEST_ROOM else None
