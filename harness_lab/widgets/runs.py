"""Runs simulated piece by piece: as many as fit a time first, the rest when there is time; stopped at any moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pandas as pd

from harness_lab.analyze import run_table

if TYPE_CHECKING:
    from harness_lab.simulate import Experiment

FEWEST: Final = 20
_SMOOTH: Final = 0.5


class Runs:
    """The runs of one experiment with one policy, as far as they are simulated; always the first ones.

    Parameters
    ----------
    experiment : Experiment
        With one policy.

    Attributes
    ----------
    table : DataFrame
        One row per run; see :func:`harness_lab.analyze.run_table`.
    nodes : DataFrame
        One row per node.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.done = 0
        self.seconds = 0.0
        self._pieces: list[pd.DataFrame] = []
        self._tables: list[pd.DataFrame] = []

    @property
    def wanted(self) -> int:
        """Runs in all."""
        return self.experiment.runs

    @property
    def table(self) -> pd.DataFrame:
        """All runs so far."""
        if len(self._tables) > 1:
            self._tables = [pd.concat(self._tables, ignore_index=True)]
        return self._tables[0] if self._tables else pd.DataFrame()

    def advance(self, runs: int) -> None:
        """Simulate so many runs more."""
        last = min(self.done + runs, self.wanted)
        if last <= self.done:
            return
        began = time.perf_counter()
        result = self.experiment.run(only=range(self.done, last), progress=False, backend="serial")
        self._pieces.append(result.settlements.nodes)
        self._tables.append(run_table(result.settlements))
        self.seconds += time.perf_counter() - began
        self.done = last

    def within(self, seconds: float) -> int:
        """Return how many runs fit into a time, at the speed so far."""
        return FEWEST if not self.done else max(FEWEST, int(self.done * seconds / max(self.seconds, 1e-9)))

    @property
    def seconds_left(self) -> float:
        """Time that the rest takes at the speed so far."""
        return (self.wanted - self.done) * self.seconds / max(self.done, 1)

    def tree(self, run: int) -> pd.DataFrame:
        """Return the nodes of one run; simulated alone if it is not among those that are done."""
        name = str(run)
        for piece in self._pieces:
            rows = piece[piece["run"] == name]
            if len(rows):
                return rows
        return self.experiment.run(only=[run], progress=False, backend="serial").settlements.nodes
