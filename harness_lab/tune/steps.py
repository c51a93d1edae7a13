"""The effect of one more step: what raising or lowering each limit does, simulated on the same luck."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.analyze import compare
from harness_lab.errors import InputError
from harness_lab.stats.estimates import check_confidence, figure, percent
from harness_lab.tune.parameters import Parameter, parameters, with_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze import Comparison
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One limit, one step.

    Parameters
    ----------
    policy : str
        Name of the changed policy in the comparison.
    limit : str
        ``module.parameter``.
    before, after : int or float
        The value, and the value one step on.
    """

    policy: str
    limit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepEffects:
    """What one step of each limit does.

    Parameters
    ----------
    base : str
        The policy whose limits are turned.
    steps : tuple of Step
        Each step that was simulated.
    comparison : Comparison
        All variants against the base, run by run; intervals, and Holm over all of them.
    """

    base: str
    steps: tuple[Step, ...]
    comparison: Comparison

    def to_frame(self) -> pd.DataFrame:
        """Return one row per step and metric.

        Returns
        -------
        DataFrame
            ``limit, before, after, direction`` (up, down), ``metric, unit``, the paired difference's fields,
            ``p_adjusted`` (Holm), ``identical`` (runs without a difference), ``shown`` (whether the effect is shown).
        """
        found = self.comparison.differences().set_index("policy")
        rows = []
        for step in self.steps:
            mine = found.loc[[step.policy]].reset_index(drop=True)
            mine = mine.assign(limit=step.limit, before=step.before, after=step.after)
            mine = mine.assign(direction="up" if step.after > step.before else "down")
            rows.append(mine.assign(shown=mine["p_adjusted"].le(1 - self.comparison.confidence).fillna(value=False)))
        first = ["limit", "before", "after", "direction", "metric", "unit", "value", "low", "high", "shown"]
        table = pd.concat(rows, ignore_index=True)
        return table[[*first, *(name for name in table.columns if name not in first)]]

    def plot(self, ax: Axes | None = None, *, metric: str = "completed") -> Axes:
        """Draw the effect of each step on one metric, with intervals; effects that are shown are filled."""
        from harness_lab.plots.choice import plot_best

        table = self.to_frame()
        table = table[table["metric"] == metric]
        ends = zip(table["limit"], table["before"], table["after"], strict=True)
        names = [f"{limit} {figure(float(old))} -> {figure(float(new))}" for limit, old, new in ends]
        return plot_best(
            table.assign(policy=names, maybe_best=table["shown"]),
            ax=ax,
            metric=f"change of {metric}",
            filled="effect shown",
        )

    def summary(self) -> str:
        """Return each step and what it does, in plain text; steps without effect are said together."""
        table, lines, idle = self.to_frame(), [], []
        for step in self.steps:
            rows = table[(table["limit"] == step.limit) & (table["after"] == step.after)]
            name = f"{step.limit} {figure(step.before)} -> {figure(step.after)}"
            shown = [self._words(row) for _, row in rows[rows["shown"]].iterrows()]
            lines += [f"- {name}: {'; '.join(shown)}"] if shown else []
            idle += [] if shown else [name]
        if idle:
            lines.append(f"- no effect shown: {', '.join(idle)}")
        runs = self.comparison.paired
        head = f"One step of each limit of {self.base}, {runs:,} runs on the same luck:"
        bound = self.comparison.binding
        mine = bound[(bound["policy"] == self.base) & (bound["level"] == "root")]
        counts = zip(mine["stopped_by"], mine["count"], mine["of"], strict=True)
        stops = [f"{code} {count:,} of {of:,}" for code, count, of in counts]
        return "\n".join([head, *lines, f"Limits that stopped runs of {self.base}: {', '.join(stops) or 'none'}."])

    def explain(self) -> str:
        """Return what the effects mean and what to do next."""
        confidence = percent(self.comparison.confidence)
        return (
            f"Each step was simulated alone, on the same draws as {self.base}; the figures are paired differences with "
            f"{confidence} intervals, and 'shown' allows for all {len(self.steps)} steps and metrics together. Two "
            "steps at once may do more or less than their sum: after one limit is raised the next one binds. What has "
            "no effect shown may have one that more runs would show. "
            "Agents are taken not to change what they do because of a limit.\n"
            "Next: tune(experiment, ...) searches several limits at once."
        )

    @staticmethod
    def _words(row: pd.Series[Any]) -> str:
        unit = "$" if row["unit"] == "$" else ""
        tail = f" {row['unit']}" if row["unit"] and not unit else ""
        ends = f"[{unit}{row['low']:.4g}, {unit}{row['high']:.4g}]{tail}"
        return f"{row['metric']} {unit}{row['value']:+.4g}{tail} {ends}"

    def __repr__(self) -> str:
        return f"StepEffects({self.base}: {len(self.steps)} steps)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def one_step_more(
    experiment: Experiment, *, policy: str | None = None, limits: Sequence[str] | None = None, step: float = 0.1,
    confidence: float = 0.95, down: bool = True, workers: int | None = None,
) -> StepEffects:  # fmt: skip
    """Simulate one step more (and less) of each limit of a policy, paired with the policy itself.

    Parameters
    ----------
    experiment : Experiment
        The workload, the provider and the number of runs.
    policy : str, optional
        Which of its policies; the last if not given.
    limits : sequence of str, optional
        Limits as ``module.parameter``; all that are set if not given.
    step : float, default 0.1
        A step as a share of the value. Whole numbers move by at least one; depth and concurrency by one.
    confidence : float, default 0.95
        Confidence of each interval, and 1 less it the error rate of all claims together.
    down : bool, default True
        Whether a step down is simulated too.
    workers : int, optional
        Worker processes.

    Returns
    -------
    StepEffects

    Raises
    ------
    InputError
        If there is no such policy or limit, or it limits nothing.
    """
    check_confidence(confidence)
    if not 0 < step < 1:
        raise InputError("step", expected="a share in (0, 1), such as 0.1", got=step)
    names = [one.name for one in experiment.policies]
    if policy is not None and policy not in names:
        raise InputError("policy", expected=f"one of {', '.join(names)}", got=policy)
    base = experiment.policies[-1 if policy is None else names.index(policy)]
    steps, variants = _variants(base, _chosen(base, limits), step, down=down)
    result = experiment.with_policies(base, *variants).run(workers=workers)
    found = compare(result.settlements, baseline=base.name, confidence=confidence)
    return StepEffects(base=base.name, steps=tuple(steps), comparison=found)


def _chosen(base: PolicySpec, limits: Sequence[str] | None) -> list[Parameter]:
    known = {one.name: one for one in parameters(base)}
    unknown = [name for name in limits or () if name not in known]
    if not known:
        raise InputError("limits", expected="a policy that sets one", got=f"{base.name}, which sets none")
    if unknown:
        raise InputError("limits", expected=f"some of {', '.join(known)}", got=unknown)
    return [known[name] for name in (limits if limits is not None else known)]


def _variants(
    base: PolicySpec, chosen: Sequence[Parameter], step: float, *, down: bool
) -> tuple[list[Step], list[PolicySpec]]:
    """Build each variant that the policy allows; a value that it refuses (a depth of 0, say) is left out."""
    steps, variants = [], []
    for one in chosen:
        for up in (True, False) if down else (True,):
            value = one.stepped(step, up=up)
            name = f"{base.name} with {one.name} = {value}"
            try:
                variant = None if value is None else with_parameter(base, one.name, value, rename=name)
            except InputError:
                continue
            if variant is not None and value is not None:
                steps.append(Step(policy=name, limit=one.name, before=one.value, after=value))
                variants.append(replace(variant, name=name))
    return steps, variants
