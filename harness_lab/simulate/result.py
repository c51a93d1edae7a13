"""What an experiment gives: the settlement table, who made it, and the decisions if they were kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.simulate.reacting import OBLIVIOUS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.settlements import Settlements
    from harness_lab.simulate.reacting import Aside


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Result:
    """The result of an experiment.

    Parameters
    ----------
    settlements : Settlements
        One row per node of every run under every policy; the column `policy` tells them apart.
    manifest : mapping
        Digest of the configuration, seed, engine, versions: what is needed to get the same rows again.
    decisions : DataFrame or None
        Every answer of every policy (policy, run, node, question, call, attempt, answer, deadline_ns), if kept.
    beside : callable or None
        Returns one run of agents that wind down, beside the same run of oblivious ones; None: agents react as it is.
    """

    settlements: Settlements
    manifest: Mapping[str, Any]
    decisions: pd.DataFrame | None = None
    beside: Callable[[], Aside | None] | None = None

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order in which they were given."""
        return [str(name) for name in self.settlements.nodes["policy"].unique()]

    def digest(self, policy: str | None = None) -> str:
        """Return a SHA-256 of every integer and word of the rows: equal digests are equal results.

        Parameters
        ----------
        policy : str, optional
            Of one policy alone, its name left out; of all if None.
        """
        frame = self.settlements.nodes
        if policy is not None:
            frame = frame[frame["policy"] == policy].drop(columns="policy")
        return hashlib.sha256(_bytes(frame)).hexdigest()

    def same_decisions(self, other: Result, policy: str, other_policy: str | None = None) -> DecisionCheck:
        """Compare the decisions of one policy here with those of one there, one by one.

        Both results must have kept them (``Experiment.run(decisions=True)``).
        """
        mine = _decisions(self, policy)
        theirs = _decisions(other, other_policy if other_policy is not None else policy)
        shared = min(len(mine), len(theirs))
        differing = int((mine.iloc[:shared].to_numpy() != theirs.iloc[:shared].to_numpy()).any(axis=1).sum())
        return DecisionCheck(compared=max(len(mine), len(theirs)), differing=differing + abs(len(mine) - len(theirs)))

    def summary(self) -> str:
        """Return what was simulated, in a few lines."""
        nodes = self.settlements.nodes
        roots = nodes[nodes["parent"].isna()]
        lines = [
            f"{len(roots):,} runs ({roots['run'].nunique():,} under each of {len(self.policies)} policies), "
            f"{len(nodes):,} nodes, seed {self.manifest['seed']}, engine {self.manifest['engine']}"
        ]
        for name in self.policies:
            share = (roots.loc[roots["policy"] == name, "outcome"] == "completed").mean()
            lines.append(f"  {name}: {share:.1%} of the runs completed")
        if self.beside is not None:
            one = self.beside()
            lines.append(f"{OBLIVIOUS}{'' if one is None else f'; {one}'}")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return the node rows."""
        return self.settlements.to_frame()

    def explain(self) -> str:
        """Return what the numbers rest on, and the next step."""
        return (
            "All policies met the same luck: every draw is named by run, node, call and purpose. This assumes "
            "oblivious agents: they do not change what they do because of a budget, unless the workload says how they "
            "react. Next: harness_lab.compare(result)."
        )

    def __repr__(self) -> str:
        return f"Result({len(self.settlements):,} nodes, policies {', '.join(self.policies)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCheck:
    """How two lists of decisions compare.

    Parameters
    ----------
    compared : int
        Decisions in the longer list.
    differing : int
        Those that differ, or that only one list has.
    """

    compared: int
    differing: int = field(default=0)

    @property
    def same(self) -> bool:
        """Whether every decision is the same (and there was one)."""
        return self.compared > 0 and self.differing == 0

    def __str__(self) -> str:
        if self.same:
            return f"all {self.compared:,} decisions are the same"
        return f"{self.differing:,} of {self.compared:,} decisions differ"


def _decisions(result: Result, policy: str) -> pd.DataFrame:
    if result.decisions is None:
        return pd.DataFrame()
    kept = result.decisions[result.decisions["policy"] == policy].drop(columns="policy")
    return kept.fillna({"deadline_ns": -1}).reset_index(drop=True)


def _bytes(frame: pd.DataFrame) -> bytes:
    """Return a canonical byte string of a frame of ints and words; NA is its own value."""
    parts = []
    for name in frame.columns:
        values = frame[name]
        missing = values.isna().to_numpy()
        if pd.api.types.is_string_dtype(values.dtype):
            body = "\x1f".join(values.fillna("\x00").tolist()).encode()
        else:
            filled = values.astype("Float64").fillna(-1.0) if name == "score" else values.astype("Int64").fillna(-1)
            body = filled.to_numpy(dtype=np.float64 if name == "score" else np.int64).tobytes()
        parts.append(name.encode() + b"\x1e" + body + missing.tobytes())
    return b"\x1d".join(parts)
