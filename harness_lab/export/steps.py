"""One limit in another's unit: super-steps of a graph, and what an agent really gets done within them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """How many super-steps a run of a graph takes: ``base + per_unit * k`` for k calls.

    Parameters
    ----------
    base : int
        Steps of a run without any; may be negative, where the last call takes fewer steps than the others.
    per_unit : int
        Steps of each call, at least 1.
    unit : str
        What is counted by k, such as ``model calls``.

    Examples
    --------
    A graph that takes six steps of its own and four for each tool call:

    >>> graph = StepModel(base=6, per_unit=4, unit="tool calls")
    >>> [graph.within(limit) for limit in (25, 60, 10)], graph.limit_for(10)
    ([4, 13, 1], 46)
    """

    base: int
    per_unit: int
    unit: str = "model calls"

    def __post_init__(self) -> None:
        if self.per_unit < 1:
            raise InputError("per_unit", expected="at least one step", got=self.per_unit)

    def limit_for(self, count: int) -> int:
        """Return the smallest limit of steps that allows `count`; never below 0."""
        return max(0, self.base + self.per_unit * count)

    def within(self, limit: int) -> int:
        """Return the largest count that a limit of steps allows; 0 where it allows none."""
        return max(0, math.floor((limit - self.base) / self.per_unit))

    @classmethod
    def fit(cls, traces: Sequence[tuple[int, int]], *, unit: str = "model calls") -> StepModel:
        """Fit the model to traces of one graph.

        Parameters
        ----------
        traces : sequence of (int, int)
            Count and steps of each run; at least two different counts.
        unit : str
            What is counted.

        Returns
        -------
        StepModel
            Least squares, its figures rounded to whole steps.

        Raises
        ------
        InputError
            If there are too few traces, or a run takes another number of steps than the model says: then the graph
            has paths of different lengths, and no single limit means one count.

        Examples
        --------
        >>> StepModel.fit([(0, 6), (1, 10), (3, 18)])
        StepModel(base=6, per_unit=4, unit='model calls')
        """
        if len({count for count, _ in traces}) < 2:
            raise InputError("traces", expected="runs with at least two different counts", got=list(traces))
        counts, steps = np.asarray(traces, dtype=np.float64).T
        slope, base = np.polyfit(counts, steps, 1)
        model = cls(base=round(float(base)), per_unit=max(1, round(float(slope))), unit=unit)
        wrong = [trace for trace in traces if model.base + model.per_unit * trace[0] != trace[1]]
        if wrong:
            expected = f"{model.base} + {model.per_unit} k steps in every run"
            raise InputError("traces", expected=expected, got=wrong, hint="The graph's paths differ in length")
        return model
