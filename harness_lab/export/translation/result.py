"""What a translation gives."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.export.carry import StandIn
from harness_lab.export.decisions import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.analyze.compare import Comparison
    from harness_lab.export.decisions import Kind
    from harness_lab.export.targets.base import Target, Values
    from harness_lab.export.writers import Export
    from harness_lab.policies import PolicySpec
    from harness_lab.stats.estimates import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A setting that stands in for a value which the target cannot be told.

    Parameters
    ----------
    key : str
        The setting.
    value : str
        What it stands in for, as the source calls it.
    amount : float
        What it is, in our units.
    tried : int
        Amounts that were simulated.
    runs, seed : int
        Runs of the search, and their luck.
    without, differing : (int, int)
        Without it and with it, in the search: runs in which anything differs, and runs that complete under one of the
        two only.
    """

    key: str
    value: str
    amount: float
    tried: int
    runs: int
    seed: int
    without: tuple[int, int]
    differing: tuple[int, int]

    def stand_in(self) -> StandIn:
        """Return what the writer is told."""
        return StandIn(value=self.value, amount=self.amount)

    def __str__(self) -> str:
        any_, ends = self.differing
        return (
            f"{self.key} stands in for {self.value}: the closest of {self.tried} amounts on {self.runs:,} other runs "
            f"(seed {self.seed}): {any_:,} are treated differently, {ends:,} complete under one only; without it "
            f"{self.without[0]:,} and {self.without[1]:,}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Translation:
    """The limits of one system in the settings of another, and what that changes.

    Parameters
    ----------
    source, target : Target
        The two systems.
    said : dict
        What the source was told, by its settings.
    written : Export
        The target's files, read back; what was carried and lost, as the source calls it.
    workload : str
        The workload that both systems met.
    runs, seed : int
        Its runs, and their luck.
    policy, read_back : PolicySpec
        What the source and the target enforce, as they were simulated.
    differing : Estimate
        Share of the runs in which at least one answer differs.
    kinds : dict of str to Estimate
        The same by kind of the first difference, see :data:`harness_lab.export.decisions.KINDS`; their shares add up.
    bound : (int, int)
        Runs in which a limit refused something, made it wait or ended it: under the source, and under the target.
    met : int
        Runs that both met; more than `runs` where runs arrive together.
    ends : Estimate
        Share of the runs that complete under one of the two and not under the other.
    comparison : Comparison
        Completion, spend and waste under both, on the same luck; the source is the baseline.
    searched : tuple of Searched
        Settings that stand in for something.
    in_vain : tuple of str
        Values for which settings were tried, and none came closer than nothing.
    unsimulated : tuple of str
        What of either system is not in the simulation, or only nearly.
    defaults : tuple of str
        What the source does of its own where nothing was said; it is not simulated either.
    """

    source: Target
    target: Target
    said: Values
    written: Export
    workload: str
    runs: int
    seed: int
    policy: PolicySpec
    read_back: PolicySpec
    differing: Estimate
    kinds: Mapping[Kind, Estimate]
    ends: Estimate
    bound: tuple[int, int]
    met: int
    comparison: Comparison
    searched: tuple[Searched, ...] = ()
    in_vain: tuple[str, ...] = ()
    unsimulated: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row a kind of difference, and one for all: ``kind`` and the fields of the estimate."""
        rows = [{"kind": "treated differently", **self.differing.record()}]
        rows += [{"kind": kind, **estimate.record()} for kind, estimate in self.kinds.items()]
        rows.append({"kind": "completes under one only", **self.ends.record()})
        return pd.DataFrame(rows)

    def summary(self) -> str:
        """Return what is written, what cannot be said, and how many runs are treated differently, in plain text."""
        told = ", ".join(f"{key} = {value}" for key, value in self.said.items())
        where = f"{self.workload}, {self.runs:,} runs, seed {self.seed}"
        lines = [f"{self.source.title} ({told}) in the words of {self.target.title}; on {where}:"]
        none = f"nothing can be said to {self.target.title}" if self.target.knobs else "the policy as it stands"
        lines += [f"- {one}" for one in self.written.carried] or [f"- {none}"]
        lines += [f"- cannot be said: {loss}" for loss in self.written.losses]
        lines += [f"- {one}" for one in (*self.searched, *self.in_vain)]
        lines += [self._bound(), f"Treated differently: {self.differing}"]
        lines += [f"- {kind} ({KINDS[kind]}): {one}" for kind, one in self.kinds.items() if one.value]
        lines.append(f"Complete under one of the two only: {self.ends}")
        if self.differing.value:
            lines += ["On the same luck:", self.comparison.verdict()]
        lines += [f"- not simulated: {text}" for text in self.unsimulated]
        lines += [f"- {self.source.title} of its own, not simulated: {text}" for text in self.defaults]
        lines += [f"- {self.target.title} of its own, not simulated: {text}" for text in self.written.defaults]
        return "\n".join(lines)

    def _bound(self) -> str:
        (there, here), of = self.bound, f"of {self.met:,} runs"
        told = f"A limit of {self.source.title} bound in {there:,} {of}, of {self.target.title} in {here:,}"
        if there or here:
            return f"{told}."
        return f"{told}: these runs do not reach them, and say nothing of what is beyond; take a workload that does."

    def explain(self) -> str:
        """Return what the figures mean, what they do not, and the next step."""
        return (
            "Both systems were simulated as their documentation and source say that they answer, and met the same "
            "runs, draw for draw. A run is treated differently if any question in it is answered otherwise; it is "
            "counted under its first difference. The share is one of this workload: on another it is another. What "
            "either system does beside its limits (retries, compaction, its own prices) is not in it.\n"
            "Next: translate(..., workload='your-records.parquet') on a world fitted to your own records."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "source": self.source.name, "target": self.target.name, "form": self.written.form, "said": dict(self.said),
            "workload": self.workload, "runs": self.runs, "seed": self.seed,
            "bound": {"source": self.bound[0], "target": self.bound[1], "of": self.met},
            "treated_differently": self.differing.record(),
            "kinds": {kind: one.record() for kind, one in self.kinds.items()},
            "completes_under_one_only": self.ends.record(),
            "files": dict(self.written.files), "carried": list(self.written.carried),
            "cannot_be_said": list(self.written.losses), "stands_in": list(self.searched),
            "in_vain": list(self.in_vain), "not_simulated": list(self.unsimulated),
            "source_defaults": list(self.defaults),
            "target_defaults": list(self.written.defaults), "differences": self.comparison.differences(),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Translation({self.source.name} -> {self.target.name}, {self.differing})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"
