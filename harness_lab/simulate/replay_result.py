"""What a replay gives: for each recorded run and policy, what would have been refused, cut, saved or lost."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab.outcome import Outcome
from harness_lab.simulate.reacting import OBLIVIOUS
from harness_lab.usage import usd

if TYPE_CHECKING:
    from harness_lab.settlements import Settlements
    from harness_lab.simulate.reacting import Aside

_STOPPED = (Outcome.EXHAUSTED, Outcome.TIMED_OUT, Outcome.DENIED, Outcome.AWAITING_APPROVAL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReplayResult:
    """Recorded runs as they would have gone under other policies.

    Parameters
    ----------
    settlements : Settlements
        One row per node of every run under every policy; the column `policy` tells them apart.
    records : Settlements
        What was recorded.
    marks : DataFrame
        Where the record cannot say what would have happened: policy, run, node, why. What follows there is as it was
        recorded.
    decisions : DataFrame or None
        Every answer of every policy, if kept.
    beside : Aside or None
        One run of agents that wind down, beside the same run as it was recorded; None: no policy has a limit to tell.
    """

    settlements: Settlements
    records: Settlements
    marks: pd.DataFrame
    decisions: pd.DataFrame | None = None
    beside: Aside | None = None

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order in which they were given."""
        return [str(name) for name in self.settlements.nodes["policy"].unique()]

    def outcomes(self) -> pd.DataFrame:
        """Return one row for each policy and run.

        Returns
        -------
        DataFrame
            policy, run, outcome_recorded, outcome, stopped_by, cut (a limit stopped the root), delivered (as recorded;
            NA: unknown), lost (delivered in the record, and cut here), refused (nodes that were not let start and had
            been), stopped (nodes that a limit stopped and had not, the root among them), calls_made, calls_recorded,
            cost_nusd, recorded_nusd, saved_nusd, tokens_saved (NA: unknown), marked
            (the record cannot say all of it).
        """
        then = _totals(self.records.nodes.assign(policy="")).drop(columns="policy").set_index("run")
        rows = _totals(self.settlements.nodes)
        was = then.reindex(rows["run"].str.split("#").str[0]).reset_index(drop=True)
        told = self.marks.drop_duplicates(["policy", "run"]).set_index(["policy", "run"]).index
        cut = rows["outcome"].isin(_STOPPED) & ~was["outcome"].isin(_STOPPED)
        return pd.DataFrame(
            {
                "policy": rows["policy"],
                "run": rows["run"],
                "outcome_recorded": was["outcome"],
                "outcome": rows["outcome"],
                "stopped_by": rows["stopped_by"],
                "cut": cut,
                "delivered": was["delivered"],
                "lost": was["delivered"] & cut,
                "refused": (rows["denied"] - was["denied"]).clip(lower=0),
                "stopped": (rows["limited"] - was["limited"]).clip(lower=0),
                "calls_made": rows["calls"],
                "calls_recorded": was["calls"],
                "cost_nusd": rows["cost_nusd"],
                "recorded_nusd": was["cost_nusd"],
                "saved_nusd": was["cost_nusd"] - rows["cost_nusd"],
                "tokens_saved": was["tokens"] - rows["tokens"],
                "marked": pd.MultiIndex.from_frame(rows[["policy", "run"]]).isin(told),
            }
        )

    def summary(self) -> str:
        """Return what each policy would have done, in a few lines."""
        table = self.outcomes()
        lines = [f"{table['run'].nunique():,} recorded runs, replayed; {OBLIVIOUS}"]
        for name, part in table.groupby("policy", sort=False):
            known = part["saved_nusd"].dropna()
            saved = f"${usd(int(known.sum())):,.2f} saved" if len(known) else "saving unknown"
            if 0 < len(known) < len(part):
                saved += f" in the {len(known):,} runs of known cost"
            good = part["delivered"].fillna(value=False)
            lines.append(
                f"  {name}: {int(part['cut'].sum()):,} runs cut, {int(part['refused'].sum()):,} nodes refused, "
                f"{int(part['lost'].fillna(value=False).sum()):,} of {int(good.sum()):,} delivered runs lost, {saved}; "
                f"{int(part['marked'].sum()):,} runs marked"
            )
        if self.beside is not None:
            lines.append(str(self.beside))
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return :meth:`outcomes`."""
        return self.outcomes()

    def explain(self) -> str:
        """Return what the figures rest on, and the next step."""
        why = self.marks["why"].value_counts()
        told = "; ".join(f"{reason} ({n:,})" for reason, n in why.items()) or "nothing is marked"
        return (
            f"The calls are those of the record, in their order, sizes and times; {OBLIVIOUS}. A run is marked where "
            f"the record cannot say what would have come next: {told}. A delivered run that is cut counts as lost, "
            "though it may have delivered before. Next: simulate with a fitted world to see agents that go on."
        )

    def __repr__(self) -> str:
        return f"ReplayResult({len(self.settlements):,} nodes, policies {', '.join(self.policies)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _totals(nodes: pd.DataFrame) -> pd.DataFrame:
    """Return one row a run: its root's end, and sums over its nodes that are NA where a part is unknown."""
    started = nodes[nodes["outcome"] != Outcome.DENIED]
    sums = started.assign(tokens=started["input_total"] + started["output"])
    keys = ["policy", "run"]
    parts = sums.groupby(keys, sort=False)[["calls", "cost_nusd", "tokens"]].sum(skipna=False)
    ends = nodes[keys].assign(denied=nodes["outcome"] == Outcome.DENIED, limited=nodes["outcome"].isin(_STOPPED[:2]))
    counts = ends.groupby(keys, sort=False).sum().astype("Int64")
    roots = nodes[nodes["parent"].isna()].drop_duplicates(keys).set_index(keys)
    return roots[["outcome", "stopped_by", "delivered"]].join(parts).join(counts).reset_index()
