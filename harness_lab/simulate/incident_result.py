"""What is found about an incident: where each policy would have stopped it, and what else it would have cut."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.simulate.reacting import OBLIVIOUS
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from harness_lab.settlements import Settlements
    from harness_lab.stats.estimates import Estimate


class Stop(NamedTuple):
    """A time at which a policy said no, or cut something off.

    Parameters
    ----------
    at_ns : int
        Time since the run's start.
    event, limit, reason : str
        What was refused or cut off, by which limit, and the figures.
    calls, tokens, cost_nusd : int or None
        What the tree had used by then; None: a part of it is unknown.
    """

    at_ns: int
    event: str
    limit: str
    reason: str
    calls: int | None
    tokens: int | None
    cost_nusd: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Incident:
    """A recorded run, and what each policy would have done to it and to its neighbours.

    Parameters
    ----------
    run : str
        Name of the run.
    records : Settlements
        Its recorded rows.
    first : mapping of str to Stop or None
        By policy: where it first said no to any node; None: it would not have touched the run.
    stops : mapping of str to Stop or None
        By policy: where it would have stopped the run itself, that is its root; None: the run goes on to its own end.
    played : DataFrame
        The run under each policy: one row of :meth:`harness_lab.simulate.ReplayResult.outcomes` each.
    events : mapping of str to DataFrame
        By policy: everything that was asked and answered (:class:`harness_lab.simulate.Timeline`).
    cut : mapping of str to Estimate
        By policy: the share of good runs of the period that it would have cut as well.
    basis : str
        What good runs are: ``delivered``; ``completed`` where no delivery is recorded.
    period : str
        Which runs are of the period.
    unplaced : int
        Runs that may be of the period, but whose start is unknown; they are left out.
    marks : DataFrame
        What the record cannot say: policy, run, node, why.
    """

    run: str
    records: Settlements
    first: Mapping[str, Stop | None]
    stops: Mapping[str, Stop | None]
    played: pd.DataFrame
    events: Mapping[str, pd.DataFrame]
    cut: Mapping[str, Estimate]
    basis: str
    period: str
    unplaced: int
    marks: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return one row a policy.

        Returns
        -------
        DataFrame
            ``policy``; ``first_s, first_event, first_limit`` (where it first said no; NA: nowhere, or the record has no
            times); ``stopped, at_s, event, limit, calls, tokens, cost_usd`` (where it stopped the run, and what was
            used by then; NA: it did not); ``outcome, stopped_by`` of the run; ``spent_usd, recorded_usd, saved_usd``
            (the whole run; NA: unknown); ``basis, good_runs, good_cut, share, low, high`` (of the period); ``marked``.
        """
        frame = pd.DataFrame([self._row(policy) for policy in self.stops])
        return frame.astype(dict.fromkeys(("calls", "tokens", "good_runs", "good_cut"), "Int64"))

    @property
    def timed(self) -> bool:
        """Whether the record says how long anything of the run took; if not, no time of it is known."""
        tables = [table for table in (self.records.nodes, self.records.calls) if table is not None]
        return any(bool(table["duration_ns"].notna().any()) for table in tables)

    def _row(self, policy: str) -> dict[str, Any]:
        found, began = self.cut[policy], self.first[policy]
        mine = self.played[self.played["policy"] == policy]
        first = mine.iloc[0]
        sums = mine[["cost_nusd", "recorded_nusd", "saved_nusd"]].sum(skipna=False) / NUSD_PER_USD
        return {
            "policy": policy,
            "first_s": None if began is None or not self.timed else began.at_ns / NS_PER_S,
            "first_event": None if began is None else began.event,
            "first_limit": None if began is None else began.limit,
            **_stopped(self.stops[policy], timed=self.timed),
            "outcome": first["outcome"],
            "stopped_by": first["stopped_by"],
            "spent_usd": sums["cost_nusd"],
            "recorded_usd": sums["recorded_nusd"],
            "saved_usd": sums["saved_nusd"],
            "basis": self.basis,
            "good_runs": found.n,
            "good_cut": None if found.value is None else round(found.value * found.n),
            "share": found.value,
            "low": found.low,
            "high": found.high,
            "marked": bool(mine["marked"].any()),
        }

    def summary(self) -> str:
        """Return where each policy would have stopped the run, and what it would have cut beside it."""
        nodes = self.records.nodes
        cost = nodes["cost_nusd"].sum(skipna=False)
        spent = _dollars(cost / NUSD_PER_USD)
        root = nodes[nodes["parent"].isna()].iloc[0]
        lines = [
            f"Run {self.run}: {len(nodes):,} node(s), {nodes['calls'].sum():,} calls, {spent}, "
            f"{root['outcome']} in the record. Assumes oblivious agents."
        ]
        lines += [self._words(row) for row in self.to_frame().to_dict("records")]
        if self.unplaced:
            lines.append(f"{self.unplaced:,} run(s) of unknown start are left out of the period.")
        return "\n".join(lines)

    def _words(self, row: Mapping[Any, Any]) -> str:
        good = f"of {row['good_runs']:,} {self.basis} runs ({self.period}) it would have cut {row['good_cut'] or 0:,}"
        if row["low"] is not None and not pd.isna(row["low"]):
            good += f" ({row['share']:.1%} [{row['low']:.1%}, {row['high']:.1%}])"
        if self.first[row["policy"]] is None:
            return f"- {row['policy']}: would not have touched it; {good}."
        saved = _dollars(row["saved_usd"])
        began = f"{_after(row['first_s'])} to {row['first_event']}, by {row['first_limit']}"
        parts = [f"first says no {began}"]
        if row["stopped"]:
            parts = [] if self.first[row["policy"]] == self.stops[row["policy"]] else parts
            parts += [
                f"stops the run {_after(row['at_s'])} at {row['event']}, by {row['limit']}, after "
                f"{_known(row['calls'])} calls, {_known(row['tokens'])} tokens and {_dollars(row['cost_usd'])}"
            ]
        return f"- {row['policy']}: {'; '.join(parts)}; the run ends {row['outcome']}, {saved} saved; {good}."

    def explain(self) -> str:
        """Return what the figures rest on, and the next step."""
        why = self.marks["why"].drop_duplicates().tolist()
        marked = f" The record does not say everything: {'; '.join(why)}." if why else ""
        return (
            f"The recorded calls are made again in their order, sizes and times, and the real modules are asked before "
            f"each; {OBLIVIOUS}. What had been used when a policy first said no counts calls that had ended by then; "
            f"calls in flight end and are charged, so the run may spend more.{marked}\n"
            "A run of the period counts as cut when a limit would have ended it before its own end.\n"
            "Next: events[policy] is the whole conversation; choose among policies on other runs than this one."
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the recorded tree over time, with a line where each policy stops it, or first says no."""
        from harness_lab.plots import plot_timeline

        found = {policy: self.stops[policy] or self.first[policy] for policy in self.stops}
        marks = {policy: stop.at_ns / NS_PER_S for policy, stop in found.items() if stop is not None}
        return plot_timeline(self.records.nodes, ax=ax, marks=marks)

    def __repr__(self) -> str:
        stopped = sum(stop is not None for stop in self.stops.values())
        return f"Incident(run {self.run}, stopped by {stopped} of {len(self.stops)} policies)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _stopped(stop: Stop | None, *, timed: bool) -> dict[str, Any]:
    if stop is None:
        return {"stopped": False, **dict.fromkeys(("at_s", "event", "limit", "calls", "tokens", "cost_usd"))}
    return {
        "stopped": True, "at_s": stop.at_ns / NS_PER_S if timed else None, "event": stop.event, "limit": stop.limit,
        "calls": stop.calls, "tokens": stop.tokens,
        "cost_usd": None if stop.cost_nusd is None else stop.cost_nusd / NUSD_PER_USD,
    }  # fmt: skip


def _after(seconds: Any) -> str:
    return "after an unknown time" if pd.isna(seconds) else f"after {seconds:,.1f} s"


def _known(value: Any) -> str:
    return "an unknown number of" if pd.isna(value) else f"{value:,}"


def _dollars(value: Any) -> str:
    return "an unknown cost" if pd.isna(value) else f"${value:,.2f}"
