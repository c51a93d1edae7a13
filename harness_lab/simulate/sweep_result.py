"""What a sweep of one ceiling found: a curve, the runs under any value, and how it was got."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.simulate.sweep_table import UNITS, Run, Table
from harness_lab.writing import dollars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.experiment import Experiment
    from harness_lab.stats.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sweep:
    """What every value of one ceiling does.

    Parameters
    ----------
    ceiling : str
        Which: calls, tokens, input, fresh, cost, time.
    policy : str
        The policy whose ceiling it is.
    scenario : str or None
        The one scenario in which it was looked at; None where the experiment has none.
    frame : DataFrame
        One row a value; see :meth:`to_frame`.
    runs : int
        Runs.
    exact : int
        Runs whose outcomes were read off one simulation without the ceiling; the others were simulated under each value
        (once for all values between two questions). Both are exact.
    reasons : tuple of str
        Why no run could be read off; empty where only runs that other limits touched were simulated again.
    confidence : float
        Of the intervals.
    manifest : mapping
        Configuration's digest, seed, versions.
    """

    ceiling: str
    policy: str
    scenario: str | None
    frame: pd.DataFrame
    runs: int
    exact: int
    reasons: tuple[str, ...]
    confidence: float
    manifest: Mapping[str, Any]
    _table: Table = field()

    @classmethod
    def of(
        cls, *, experiment: Experiment, spec: PolicySpec, ceiling: str, runs: list[Run], reasons: tuple[str, ...],
        confidence: float, values: Ints,
    ) -> Sweep:  # fmt: skip
        """Make the curve over `values` (whole units)."""
        exact = sum(run.outcomes is not None and bool(run.outcomes.sure[-1]) for run in runs)
        table = Table(experiment, spec, ceiling, runs)
        return cls(
            ceiling=ceiling, policy=spec.name, scenario=_only(experiment), runs=len(runs), exact=exact,
            frame=table.curve(values, confidence), reasons=reasons, confidence=confidence, manifest=table.manifest(),
            _table=table,
        )  # fmt: skip

    @property
    def cancelled(self) -> bool:
        """Whether it was interrupted before all runs were looked at."""
        return self.runs < int(self.manifest["runs"])

    def to_frame(self) -> pd.DataFrame:
        """Return the curve.

        Returns
        -------
        DataFrame
            ``ceiling`` (calls, tokens, dollars or seconds), ``n``, ``stopped`` (runs that this ceiling stopped),
            ``completed`` (share), and the means of a run ``calls, tokens, cost_usd, time_s``, each with ``_low`` and
            ``_high``; ``unknown_tokens, unknown_cost`` (runs that are in no such mean).
        """
        return self.frame.copy()

    def at(self, value: float) -> pd.DataFrame:
        """Return every run under one value, exactly as it would be simulated under it.

        Parameters
        ----------
        value : float
            Calls, tokens, dollars or seconds; any value, not only those of the curve.

        Returns
        -------
        DataFrame
            ``run, completed, stopped`` (by this ceiling), ``calls, tokens, cost_nusd, time_ns`` (NaN: unknown).
        """
        from harness_lab.simulate.sweep import _units

        return self._table.at(int(_units(self.ceiling, [value])[0]))  # type: ignore[arg-type]

    def summary(self) -> str:
        """Return the curve in a few lines, and how it was got."""
        unit = UNITS.get(self.ceiling, (self.ceiling, 1))[0]
        lines = [
            f"{len(self.frame):,} ceilings on {self._what()}, {self.runs:,} runs each; {self._how()}. "
            "Assumes oblivious agents."
        ]
        if self.cancelled:
            lines.append(f"Cancelled after {self.runs:,} of {self.manifest['runs']:,} runs; the figures are of those.")
        places = np.unique(np.linspace(0, len(self.frame) - 1, min(9, len(self.frame))).astype(int))
        lines += [self._line(row, unit) for row in self.frame.iloc[places].to_dict("records")]
        return "\n".join(lines)

    def _what(self) -> str:
        return f"{self.ceiling} of {self.policy}" + ("" if self.scenario is None else f" in scenario {self.scenario}")

    def _line(self, row: Mapping[Any, Any], unit: str) -> str:
        value = dollars(row["ceiling"]) if unit == "$" else f"{row['ceiling']:,.6g} {unit}"
        cost = "unknown cost" if pd.isna(row["cost_usd"]) else f"${row['cost_usd']:,.4f} a run"
        return (
            f"  {value}: {row['completed']:.1%} [{row['completed_low']:.1%}, {row['completed_high']:.1%}] completed, "
            f"{row['stopped']:,} stopped by it, {cost}, {row['time_s']:,.1f} s"
        )

    def _how(self) -> str:
        if self.reasons:
            return f"every value was simulated: {'; '.join(self.reasons)}"
        if self.exact == self.runs:
            return "all read off one simulation without it, exactly"
        rest = self.runs - self.exact
        return (
            f"{self.exact:,} runs read off one simulation without it, {rest:,} that other limits touch simulated again"
        )

    def explain(self) -> str:
        """Return what the curve means, and the next step."""
        return (
            "Each row is what the runs would have been under that ceiling, on the same luck, so the rows are not "
            "independent of one another: do not read a difference between two rows off their intervals; simulate the "
            "two values and compare them. A ceiling that is tree-wide, checked before a question and charged after a "
            "call, leaves a run as it is up to the first question that it refuses, so all values follow from one run. "
            "Holds, ceilings of single nodes, queues and concurrency change what comes after: here, "
            f"{self._how()}. Assumes oblivious agents.\n"
            "Next: at(value) has every run under any value; confirm the chosen one on another seed."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the share of runs that complete, with its interval, for each ceiling; return the axes."""
        from harness_lab.plots.style import new_axes, tidy

        ax = new_axes(ax, width=7.0, height=4.0)
        (line,) = ax.step(self.frame["ceiling"], self.frame["completed"], where="post")
        ends = (self.frame["completed_low"], self.frame["completed_high"])
        ax.fill_between(self.frame["ceiling"], *ends, step="post", alpha=0.2, color=line.get_color())
        unit = UNITS.get(self.ceiling, (self.ceiling, 1))[0]
        ax.set(xlabel=f"ceiling on {self.ceiling}, {unit}", ylabel="share of runs that complete", ylim=(0, 1))
        tidy(ax, grid="y")
        return ax

    def __repr__(self) -> str:
        return f"Sweep({self._what()}, {len(self.frame)} values, {self.runs:,} runs)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _only(experiment: Experiment) -> str | None:
    return experiment.scenarios[0].name if experiment.scenarios else None
