"""Policies on the same luck: paired differences, what each limit stopped, and a verdict no stronger than the data."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from harness_lab.analyze.binding import binding_frame
from harness_lab.analyze.contrasts import Contrast, contrasts_to, corrected
from harness_lab.analyze.figures import PolicyFigures, policy_figures
from harness_lab.analyze.frames import nodes_of
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.played import Played
from harness_lab.analyze.runs import reduced, tree_of
from harness_lab.analyze.switches import switches, switches_text
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, check_confidence, percent
from harness_lab.stats.notes import notes_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from harness_lab.analyze.frames import Data


class HasManifest(Protocol):
    """The result of an experiment: its settlements, and the policies that it was made with."""

    @property
    def settlements(self) -> Any:
        """The table."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What is needed to get it again; ``specs`` are the policies by name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Policies compared run by run.

    Parameters
    ----------
    baseline : str
        The policy that the others are compared with.
    policies : tuple of PolicyFigures
        Each policy's own figures, in order of appearance.
    contrasts : tuple of Contrast
        Paired differences to the baseline.
    binding : DataFrame
        How often each limit stopped roots and nodes: ``policy, level, stopped_by, count, of, share, low, high``.
    identical : int
        Runs with the same outcome, spend, calls and time under all policies.
    paired : int
        Runs that every policy has.
    confidence : float
        Confidence of each interval, and 1 less the error rate of the verdict over all comparisons together.
    cluster : str or None
        Column whose rows were taken as alike; None: runs were taken as independent.
    switches : DataFrame or None
        In which switches each policy differs from the baseline: ``policy, switch, baseline, value``; None: the policies
        themselves were not at hand.
    parts : Parts or None
        The same for each group of `by`.
    """

    baseline: str
    policies: tuple[PolicyFigures, ...]
    contrasts: tuple[Contrast, ...]
    binding: pd.DataFrame
    identical: int
    paired: int
    confidence: float
    cluster: str | None
    switches: pd.DataFrame | None = None
    parts: Parts[Comparison] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return each policy's figures: ``policy, metric, unit`` and the fields of the estimate; the group in front."""
        return self._figures() if self.parts is None else self.parts.to_frame()

    def _figures(self) -> pd.DataFrame:
        rows = []
        for one in self.policies:
            for name in ("completed", "spend", "wasted", "wasted_share", "time"):
                estimate: Estimate = getattr(one, name)
                rows.append({"policy": one.policy, "metric": name, "unit": estimate.unit, **estimate.record()})
        return pd.DataFrame(rows)

    def differences(self) -> pd.DataFrame:
        """Return the paired differences to the baseline.

        Returns
        -------
        DataFrame
            ``policy, metric, unit``, the fields of the estimate (value, low, high ...), ``p_value``, ``p_adjusted``
            (Holm), ``variance_ratio`` (paired over unpaired: below 1 pairing helped), ``correlation``, ``identical``
            (pairs without a difference), ``left_out`` (runs without a partner or of unknown value).
        """
        return pd.DataFrame([c.record() for c in self.contrasts])

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw each policy's figures, its differences to the baseline, and which limits bound; return the figure.

        See :func:`harness_lab.plots.plot_policies`.
        """
        from harness_lab.plots import plot_policies

        differences = self.differences() if self.contrasts else None
        return plot_policies(self._figures(), differences, self.binding, baseline=self.baseline, figure=figure)

    def verdict(self) -> str:
        """Return what can be said about each policy against the baseline, and no more."""
        others = [one.policy for one in self.policies if one.policy != self.baseline]
        if not others:
            return f"Only one policy ({self.baseline}): nothing to compare."
        return "\n".join(self._verdict(policy) for policy in others)

    def summary(self) -> str:
        """Return the comparison in plain text: figures, verdict, what bound, what is unknown; group by group."""
        if self.parts is not None:
            return self.parts.summary()
        lines = [
            f"{len(self.policies)} policies, {self.paired:,} runs that all of them have"
            f"{'' if self.cluster is None else f', clustered by {self.cluster}'}; {self.identical:,} run(s) identical "
            f"under all. Baseline: {self.baseline}."
        ]
        lines += [f"- {one}" for one in self.policies]
        if self.switches is not None:
            lines += switches_text(self.switches, [one.policy for one in self.policies], baseline=self.baseline)
        lines += [self.verdict(), *self._bound()]
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the comparison means, what it does not, and what to do next."""
        return (
            f"Each run was played under every policy with the same draws, so differences are taken run by run. Each "
            f"interval holds at {percent(self.confidence)} on its own; the verdict uses Holm's correction over all "
            f"{len(self.contrasts)} comparisons, so that the chance of any false claim stays below "
            f"{percent(1 - self.confidence)} where runs are many enough for t intervals of means.\n"
            "'Cannot be told apart' is no proof of equality: the interval says how large a difference may still be. A "
            "variance ratio near 1 says that pairing did not help.\n"
            "Runs of unknown cost are left out of spend and counted. The comparison assumes oblivious agents: they "
            "do not adapt to the policy, unless a workload says how they react. Do not pick the best policy here and "
            "quote its figures from the same draws.\n"
            "Next: confirm the chosen policy on fresh draws (another seed)."
        )

    def _verdict(self, policy: str) -> str:
        mine = [c for c in self.contrasts if c.policy == policy]
        parts = [claim for c in mine if (claim := c.claim(confidence=self.confidence))]
        same = [c for c in mine if c.identical]
        open_ = [c.word for c in mine if c.supported and not c.identical and not c.claim(confidence=self.confidence)]
        parts += [f"cannot be told apart in {', '.join(open_)}"] if open_ else []
        if same:
            pairs = min(c.found.difference.n for c in same)
            parts.append(f"identical in all {pairs} runs in {', '.join(c.word for c in same)}")
        parts += [f"no answer for {c.word} ({c.found.difference.interval})" for c in mine if not c.supported]
        return f"{policy} against {self.baseline}: {'; '.join(parts) or 'no run that both have'}."

    def _bound(self) -> list[str]:
        lines = []
        for level, word in (("root", "runs"), ("node", "nodes")):
            rows = self.binding[(self.binding["level"] == level) & (self.binding["count"] > 0)]
            parts = [f"{r.policy}: {r.stopped_by} {r.count:,} of {r.of:,}" for r in rows.itertuples()]
            lines += [f"Limits that stopped {word}: {', '.join(parts)}."] if parts else []
        return lines or ["No limit stopped anything."]

    def __repr__(self) -> str:
        return f"Comparison({len(self.policies)} policies, {self.paired:,} paired runs, baseline {self.baseline})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def compare(
    settlements: Data | HasManifest,
    *,
    baseline: str | None = None,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> Comparison:
    """Compare the policies in the column ``policy`` on the runs that they share.

    Parameters
    ----------
    settlements : Settlements, DataFrame or the result of an experiment
        The nodes of all policies; the same ``run`` (and ``scenario``) under two policies is the same luck. The result
        itself knows its policies too, and the comparison then says in which switches they differ.
    baseline : str, optional
        The policy that the others are compared with. Default: the first in the table.
    by : str or sequence of str, optional
        Columns whose groups of runs are compared by themselves, in ``parts``. Each has an error rate of its own.
    confidence : float, default 0.95
        Confidence of each interval; 1 less it is the error rate of the verdict over all comparisons.
    cluster : str or None, default "auto"
        Column whose runs resemble each other; see :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If no row names a policy, or the baseline is none of them.

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": [*range(20)] * 2, "policy": ["a"] * 20 + ["b"] * 20, "outcome": "completed",
    ...     "cost_nusd": [*range(20)] * 2})
    >>> print(compare(nodes).verdict())
    b against a: identical in all 20 runs in completion, spend, wasted spend.
    """
    check_confidence(confidence)
    manifest: Mapping[str, Any] = getattr(settlements, "manifest", {})
    specs: Mapping[str, Any] = manifest.get("specs", {})
    if cluster == AUTO and manifest.get("cluster") is not None:  # the experiment knows what is independent
        cluster = str(manifest["cluster"])
    table: Any = getattr(settlements, "settlements", settlements)
    nodes = nodes_of(table)
    trees = tree_of(nodes)
    played = Played.of(reduced(nodes, trees), cluster)
    names = played.names
    if not names:
        raise InputError("policy", expected="rows that name a policy", got="none")
    first = names[0] if baseline is None else baseline
    if first not in names:
        raise InputError("baseline", expected=f"one of {', '.join(names)}", got=baseline)
    mine = played.rows[first]
    clusters = played.mine[first].choose(np.arange(mine.size, dtype=np.float64))[0]
    identical, paired = played.identical()
    return Comparison(
        baseline=first, policies=tuple(policy_figures(name, played, confidence) for name in names),
        contrasts=corrected(contrasts_to(played, first, confidence)),
        binding=binding_frame(nodes, names, trees, confidence=confidence), identical=identical, paired=paired,
        confidence=confidence, cluster=clusters,
        switches=switches({name: specs[name] for name in names}, baseline=first) if set(names) <= set(specs) else None,
        parts=ask_by(table, by, lambda rows: compare(
            rows, baseline=first, confidence=confidence, cluster=cluster,
        )),
    )  # fmt: skip
