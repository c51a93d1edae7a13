"""The best of several policies by simulation: only those still in the race are simulated further."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.analyze.figures import METRICS, metric_values
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.wide import LARGER, measured, unit_of
from harness_lab.errors import InputError
from harness_lab.stats.estimates import percent, with_unit
from harness_lab.stats.selection import FIRST_STAGE, Race, Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Floats
    from harness_lab.simulate import Experiment

BLOCK = 250


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RaceResult:
    """Which policy won.

    Parameters
    ----------
    policies : tuple of str
        All that started.
    metric : str
        The metric.
    selection : Selection
        Who won, who dropped out after how many runs, what is promised.
    simulated : int
        Trees simulated, over all policies.
    limit : int
        Runs of each policy at which the race would have been broken off.
    left_out : int
        Runs in which the metric is unknown under a policy; they are in no comparison.
    """

    policies: tuple[str, ...]
    metric: str
    selection: Selection
    simulated: int
    limit: int
    left_out: int = 0

    @property
    def chosen(self) -> str | None:
        """The winner; None where the limit came first."""
        return None if self.selection.chosen is None else self.policies[self.selection.chosen]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per policy: ``policy, metric, out_at`` (runs; NA: still in), ``chosen``."""
        out = pd.array(list(self.selection.out_at), dtype="Int64")
        frame = pd.DataFrame({"policy": self.policies, "metric": self.metric, "out_at": out})
        return frame.assign(chosen=[name == self.chosen for name in self.policies])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw after how many runs each policy was out; those still in are hatched; return the axes."""
        from harness_lab.plots.bars import plot_bars
        from harness_lab.plots.quantities import Quantity

        frame = self.to_frame()
        still = frame["out_at"].isna()
        made = pd.DataFrame(
            {"name": frame["policy"], "value": frame["out_at"].fillna(self.selection.used), "marked": still}
        )
        title = f"Which is best in {METRICS[self.metric][0]}? {self.chosen or 'not decided'}"
        shown = Quantity(name="runs until it was out of the race")
        return plot_bars(made, ax=ax, shown=shown, marked="still in at the end", title=title)

    def summary(self) -> str:
        """Return the outcome in plain text."""
        found = self.selection
        worth = with_unit(found.indifference, unit_of(self.metric))
        promise = f"{percent(found.probability)} to be the best where it leads by {worth} or more"
        head = (
            f"{self.chosen} is selected in {METRICS[self.metric][0]} ({promise})"
            if self.chosen is not None
            else f"no selection within {self.limit:,} runs; needs n >= {found.needs:,}"
        )
        saved = 1 - self.simulated / (len(self.policies) * max(found.used, 1))
        unknown = f" {self.left_out:,} run(s) of unknown value are left out." if self.left_out else ""
        return f"{head}; {self.simulated:,} trees simulated, {percent(max(saved, 0.0))} saved by early exits.{unknown}"

    def explain(self) -> str:
        """Return what is promised and what to do next."""
        return (
            "Kim's and Nelson's sequential procedure on common random numbers: a policy is out once it is further "
            "behind than chance explains. It promises the choice, not the figures seen on the way.\n"
            "Next: simulate the winner under another seed for its own figures."
        )

    def __repr__(self) -> str:
        return f"RaceResult({self.chosen}, {self.simulated:,} trees)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def race(
    experiment: Experiment, metric: str = "cost_nusd", *, indifference: float, probability: float = 0.95,
    max_runs: int = 20_000, first_stage: int = FIRST_STAGE, block: int = BLOCK,
) -> RaceResult:  # fmt: skip
    """Select the best of an experiment's policies, simulating no more than that takes.

    Parameters
    ----------
    experiment : Experiment
        Its policies race; its number of runs is not looked at.
    metric : {"completed", "cost_nusd", "wasted_nusd", "duration_ns"}
        More completion is better; less of the others.
    indifference : float
        Smallest difference worth telling apart, in the display unit (share, dollars, seconds).
    probability : float, default 0.95
        Chance that the best is selected if it leads by that much.
    max_runs : int, default 20000
        Runs of each policy at most.
    first_stage, block : int
        Runs before anybody may drop out; runs simulated at a time after that.

    Returns
    -------
    RaceResult

    Raises
    ------
    InputError
        If there is one policy only, or no such metric.
    """
    if metric not in METRICS:
        raise InputError("metric", expected=f"one of {', '.join(METRICS)}", got=metric)
    names = tuple(one.name for one in experiment.policies)
    running = Race(len(names), indifference=indifference, probability=probability, first_stage=first_stage)
    whole = replace(experiment, runs=max_runs)
    found, simulated, done, left_out = running.feed(np.zeros((len(names), 0))), 0, 0, 0
    while found.chosen is None and done < max_runs:
        still = found.remaining
        size = min(first_stage if not done else block, max_runs - done)
        fresh = _values(whole.with_policies(*(whole.policies[k] for k in still)), metric, done, size)
        rows = np.zeros((len(names), fresh.shape[1]))
        rows[list(still)] = fresh
        left_out += size - fresh.shape[1]
        simulated, done = simulated + size * len(still), done + size
        found = running.feed(rows)
    return RaceResult(
        policies=names, metric=metric, selection=found, simulated=simulated, limit=max_runs, left_out=left_out
    )


def _values(experiment: Experiment, metric: str, start: int, size: int) -> Floats:
    """Simulate some runs; return the metric per policy, larger is better, of the runs in which all know it."""
    result = experiment.run(only=range(start, start + size))
    runs = measured(run_table(result.settlements))
    values = metric_values(runs, metric).reshape(len(experiment.policies), size)
    values = values[:, ~np.isnan(values).any(axis=0)]
    return values if metric in LARGER else -values
