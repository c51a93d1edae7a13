"""Rows of the fast engine as columns of the settlement table, or as the tuples that the kernel's sink keeps."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.outcome import CHANNELS
from harness_lab.simulate.fast import layout as at
from harness_lab.simulate.fast.layout import CAUSES, CODES, OUTCOMES, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from harness_lab.simulate.fast.constants import Constants

    Ints = NDArray[np.int64]

_PLACE = {cell: place + 1 for place, cell in enumerate(ROW)}
_COUNTS = {
    "depth": at.DEPTH,
    "calls": at.CALLS,
    "attempts": at.ATTEMPTS,
    "starts": at.STARTS_OF,
    "start_ns": at.BEGAN,
    "wait_ns": at.WAITED,
}
_KNOWN = {
    "input_fresh": (at.FRESH, at.USAGE_LOST),
    "cache_read": (at.READ, at.USAGE_LOST),
    "cache_write": (at.WRITE, at.USAGE_LOST),
    "output": (at.ANSWERED, at.USAGE_LOST),
    "cost_nusd": (at.COST_OF, at.COST_LOST),
    "billed_nusd": (at.BILLED, at.BILL_LOST),
}


class FastRows:
    """Rows of a block.

    Parameters
    ----------
    values : ndarray of int64
        As :func:`harness_lab.simulate.fast.run.simulate` returns them.
    constants : Constants
        The world: names of agents and models, and what is asked for nodes.
    """

    def __init__(self, values: Ints, constants: Constants) -> None:
        self.values = values
        self._constants = constants

    @property
    def nodes(self) -> FastRows:
        """Itself: all its rows are of nodes."""
        return self

    @property
    def calls(self) -> list[Any]:
        """Rows of calls: none are kept."""
        return []

    def __len__(self) -> int:
        return len(self.values)

    def attempts(self) -> list[int]:
        """Return the attempts of each node."""
        found: list[int] = self._cell(at.ATTEMPTS).tolist()
        return found

    def frame(self, names: Sequence[str]) -> pd.DataFrame:
        """Return the columns named, as the kernel's rows have them."""
        return pd.DataFrame({name: self._column(name) for name in names})

    def _cell(self, cell: int) -> Ints:
        found: Ints = self.values[:, _PLACE[cell]]
        return found

    def _column(self, name: str) -> Any:
        if name in _COUNTS:
            return _integers(self._cell(_COUNTS[name]), None)
        if name in _KNOWN:
            cell, lost = _KNOWN[name]
            return _integers(self._cell(cell), self._cell(lost) != 0)
        if name.startswith("ask_"):
            return self._asks(CHANNELS.index(name.removeprefix("ask_")))
        if name.startswith("held_"):
            return _integers(np.zeros(len(self.values), np.int64), np.ones(len(self.values), bool))
        return getattr(self, f"_{name}")()

    def _run(self) -> Any:
        runs, which = np.unique(self.values[:, 0], return_inverse=True)
        return _words([str(run) for run in runs.tolist()], which)

    def _path(self) -> Any:
        names, own, _ = self._paths
        return _words(names, own)

    def _parent(self) -> Any:
        names, _, above = self._paths
        return _words(names, above)

    def _agent(self) -> Any:
        return _words(self._constants.agents, self._cell(at.AGENT))

    def _model(self) -> Any:
        return _words(self._constants.models, self._cell(at.MODEL))

    def _outcome(self) -> Any:
        return _words([str(outcome) for outcome in OUTCOMES], self._cell(at.HOW))

    def _stopped_by(self) -> Any:
        return _words([str(code) for code in CODES[1:]], self._cell(at.STOPPED_BY) - 1)

    def _cause(self) -> Any:
        return _words([str(cause) for cause in CAUSES], self._cell(at.CAUSE))

    def _overspent(self) -> Any:
        return _flags(self._cell(at.OVERSPENT) != 0)

    def _usage_known(self) -> Any:
        return _flags(self._cell(at.USAGE_LOST) == 0)

    def _duration_ns(self) -> Any:
        return _integers(self._cell(at.ENDED) - self._cell(at.BEGAN), None)

    def _asks(self, channel: int) -> Any:
        asks = [-1 if ask[channel] is None else ask[channel] for ask in self._constants.asks]
        asked = np.array(asks, np.int64)[self._cell(at.RULE)]  # the root's rule is -1, the last
        return _integers(asked, asked < 0)

    @cached_property
    def _paths(self) -> tuple[list[str], Ints, Ints]:
        """Return names of places in a tree, the place of each row, and that of its parent; the root has none above."""
        cells = (at.NODE, at.PARENT, at.DEPTH, at.BORN_AFTER, at.SLOT)
        return _named_paths(self.values[:, 0], *(self._cell(cell) for cell in cells))


def _named_paths(
    runs: Ints, node: Ints, parent: Ints, depth: Ints, after: Ints, slot: Ints
) -> tuple[list[str], Ints, Ints]:
    """Name places level by level: few places occur in many trees, so each name is made once."""
    names, places = ["0"], np.zeros(len(runs), np.int64)
    above = np.full(len(runs), -1, np.int64)
    which = np.unique(runs, return_inverse=True)[1]
    width = int(node.max(initial=0)) + 1
    of_node = np.full((int(which.max(initial=-1)) + 1) * width, -1, np.int64)  # the place of each node of each run
    of_node[which * width + node] = 0
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero(depth == level)
        above[rows] = of_node[which[rows] * width + parent[rows]]
        keys = np.stack([above[rows], after[rows], slot[rows]], axis=1)
        found, inverse = np.unique(keys, axis=0, return_inverse=True)
        places[rows] = len(names) + inverse.reshape(-1)
        of_node[which[rows] * width + node[rows]] = places[rows]
        for up, call, at_slot in found.tolist():
            own = f"{call}.{at_slot}.0"
            names.append(own if level == 1 else f"{names[up]}/{own}")
    return names, places, above


def _integers(values: Ints, missing: NDArray[np.bool_] | None) -> Any:
    if missing is None:
        missing = np.zeros(len(values), bool)
    return pd.arrays.IntegerArray(np.where(missing, 1, values), missing)


def _flags(values: NDArray[np.bool_]) -> Any:
    return pd.arrays.BooleanArray(values, np.zeros(len(values), bool))


def _words(words: Sequence[str], which: Ints) -> Any:
    """Return words by number; -1 is NA."""
    return pd.array([*words, None], dtype="string").take(np.where(which < 0, len(words), which))
