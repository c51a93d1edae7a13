"""The exported file, read back, against the policy that it came from: on the same draws, decision for decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from harness_lab.analyze.compare import compare
from harness_lab.export.config import TunedConfig
from harness_lab.export.decisions import apart, by_run, differing
from harness_lab.export.turns import with_names, with_turns
from harness_lab.simulate.result import DecisionCheck
from harness_lab.stats.estimates import percent

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.analyze.compare import Comparison
    from harness_lab.export.writers import Export
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExportCheck:
    """What a target would decide otherwise, and what that costs.

    Parameters
    ----------
    target : str
        The target.
    decisions : DecisionCheck
        Answers compared, and how many differ: who asked what, and whether it was admitted. They are compared by their
        place in the run, so that after a first difference much of the run's rest may differ.
    runs, differing_runs : int
        Runs simulated, and those in which at least one answer differs.
    comparison : Comparison
        Completion, spend and waste under both, on the same luck.
    losses : tuple of str
        What the target cannot express.
    unsimulated : tuple of str
        What is not in the simulation, or only nearly: its figures say nothing about that.
    """

    target: str
    decisions: DecisionCheck
    runs: int
    differing_runs: int
    comparison: Comparison
    losses: tuple[str, ...]
    unsimulated: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether every decision is the same."""
        return self.decisions.same

    def to_frame(self) -> pd.DataFrame:
        """Return the differences of the read-back policy from its origin; see :class:`Comparison`."""
        return self.comparison.differences()

    def summary(self) -> str:
        """Return how many decisions differ and what that costs, in plain text."""
        lines = [f"{self.target}: {self.decisions} ({self.differing_runs:,} of {self.runs:,} runs differ somewhere)."]
        if not self.same:
            share = percent(self.differing_runs / self.runs) if self.runs else "an unknown share"
            lines += [f"{share} of the runs are treated differently. On the same luck:", self.comparison.summary()]
        lines += [f"- cannot be expressed: {loss}" for loss in self.losses]
        lines += [f"- not simulated: {text}" for text in self.unsimulated]
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the figures mean and what they do not."""
        return (
            "The file was read back as a policy that answers as the target's documentation and source say it does, and "
            "both policies met the same draws. What the target does beside its limits (retries, compaction, its own "
            "prices) is not in it.\nNext: run the target on a few real tasks in a mode that only records."
        )

    def __repr__(self) -> str:
        return f"ExportCheck({self.target}, {self.decisions})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def check_export(written: Export, config: TunedConfig | PolicySpec, experiment: Experiment) -> ExportCheck:
    """Simulate what a target would enforce beside the policy that was exported.

    Parameters
    ----------
    written : Export
        What was written; it is read back from its files.
    config : TunedConfig or PolicySpec
        What it came from. What it holds single agents to is simulated for children of that name.
    experiment : Experiment
        Workload, provider, runs and seed; its policies are not used.

    Returns
    -------
    ExportCheck
        Decisions that differ, and what that costs.
    """
    policy, agents = (config.policy, config.agents) if isinstance(config, TunedConfig) else (config, ())
    back = replace(with_turns(written.read_back(), written.agents_back()), name=f"as {written.target.name} enforces it")
    origin, left_out = without_periods(replace(with_turns(policy, agents), name="as tuned"), experiment)
    back, also = without_periods(back, experiment)
    result = with_names(apart(experiment).with_policies(origin, back)).run(decisions=True)
    mine, theirs = (by_run(result, one.name) for one in (origin, back))
    pairs = [(mine.get(run, []), theirs.get(run, [])) for run in dict.fromkeys((*mine, *theirs))]
    decisions = DecisionCheck(
        compared=sum(max(len(ours), len(other)) for ours, other in pairs),
        differing=sum(differing(ours, other) for ours, other in pairs),
    )
    return ExportCheck(
        target=written.target.name,
        decisions=decisions,
        runs=len(pairs),
        differing_runs=sum(ours != other for ours, other in pairs),
        comparison=compare(result.settlements, baseline=origin.name),
        losses=tuple(str(loss) for loss in written.losses),
        unsimulated=(*written.unsimulated(), *dict.fromkeys((*left_out, *also))),
    )


def without_periods(policy: PolicySpec, experiment: Experiment) -> tuple[PolicySpec, tuple[str, ...]]:
    """Leave out what outlives a run where every run is alone, and say so; where runs arrive together it stays."""
    if experiment.workload.arrivals is not None or policy.scope == "run":
        return policy, ()
    kept = tuple(module for module in policy.modules if getattr(module, "scope", "run") == "run")
    why = "outlives a run, and the runs of this workload are alone: give it arrivals"
    gone = [module for module in policy.modules if module not in kept]
    return replace(policy, modules=kept), tuple(f"{getattr(one, 'name', one.kind)}: {why}" for one in gone)
