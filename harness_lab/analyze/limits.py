"""What the limits did: how often each ended, refused or starved, and what was spent without result."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import Bools, Data, as_names, label, nodes_of, numbers, parts_by, text
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.runs import root_rows, run_table
from harness_lab.stats.estimates import Estimate, check_confidence
from harness_lab.stats.means import AMOUNT, SHARE, mean, ratio
from harness_lab.stats.notes import notes_below
from harness_lab.stats.shares import share

NOT_RECORDED = "limit not recorded"
"""What stands for a limit that ended a node and that the record does not name."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """What one limit did in one group.

    Parameters
    ----------
    group : tuple
        The group; empty for all.
    limit : str
        Reason code; ``queue`` for waiting.
    ended : Estimate
        Share of runs that it ended (the root's first binding limit).
    nodes_ended, refused : Estimate
        Share of nodes that it ended after they had started; share of asked-for nodes that it never let start.
    spend_usd : Estimate
        Mean spend of the nodes that it ended, dollars: gone without a completed result.
    """

    group: tuple[Any, ...]
    limit: str
    ended: Estimate
    nodes_ended: Estimate
    refused: Estimate
    spend_usd: Estimate

    def __str__(self) -> str:
        where = f" ({label(self.group)})" if self.group else ""
        return (
            f"{self.limit}{where}: ended runs {self.ended}; ended nodes {self.nodes_ended}; refused nodes "
            f"{self.refused}; spent by a node that it ended {self.spend_usd}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LimitReport:
    """What the limits did.

    Parameters
    ----------
    uses : tuple of LimitUse
        One for each limit that did anything, most runs ended first; :data:`NOT_RECORDED` for what a limit ended
        (outcome exhausted or timed_out) without saying which.
    wasted : dict of tuple to Estimate
        Per group, the share of spend without result (:func:`run_table`).
    waited : dict of tuple to Estimate
        Per group, the share of nodes that waited for a slot or a budget.
    waited_s : dict of tuple to Estimate
        Per group, mean seconds waited per node, over nodes whose waiting is known.
    runs, nodes : int
        Rows.
    cluster : str or None
        Column whose rows were taken as alike.
    """

    uses: tuple[LimitUse, ...]
    wasted: dict[tuple[Any, ...], Estimate]
    waited: dict[tuple[Any, ...], Estimate]
    waited_s: dict[tuple[Any, ...], Estimate]
    runs: int
    nodes: int
    cluster: str | None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per limit and figure: ``group, limit, figure, unit`` and the fields of the estimate."""
        rows = []
        for use in self.uses:
            for name in ("ended", "nodes_ended", "refused", "spend_usd"):
                one: Estimate = getattr(use, name)
                place = {"group": label(use.group), "limit": use.limit, "figure": name, "unit": one.unit}
                rows.append(place | one.record())
        for name, found in (("wasted_share", self.wasted), ("waited", self.waited), ("waited_s", self.waited_s)):
            for key, one in found.items():
                place = {"group": label(key), "limit": "", "figure": name, "unit": one.unit}
                rows.append(place | one.record())
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the share of runs that each limit ended; return the axes."""
        from harness_lab.plots.choice import plot_best

        rows = [
            {"policy": f"{use.limit}{f' ({label(use.group)})' if use.group else ''}", "unit": "", "maybe_best": True}
            | {name: getattr(use.ended, name) for name in ("value", "low", "high")}
            for use in self.uses
        ]
        frame = pd.DataFrame(rows, columns=["policy", "unit", "maybe_best", "value", "low", "high"])
        return plot_best(frame, ax=ax, metric="share of runs ended by the limit")

    def summary(self) -> str:
        """Return what the limits did, in plain text."""
        by = "" if self.cluster is None else f", clustered by {self.cluster}"
        lines = [f"{self.runs:,} runs, {self.nodes:,} nodes{by}."]
        lines += [f"- {use}" for use in self.uses] or ["- no limit ended or refused anything."]
        for words, found in (("spend without result", self.wasted), ("nodes that waited", self.waited)):
            lines += [f"- {words}{f' ({label(key)})' if key else ''}: {one}" for key, one in found.items()]
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the figures mean and what to do next."""
        return (
            "A limit 'ended' a run or node if it was the first to bind; it 'refused' a node if that never started. A "
            "limit that ends much is not thereby too small: what raising it would do is another question, since the "
            "next limit may bind right after.\n"
            "Next: one_step_more(experiment) simulates one step more and less of each limit on the same luck."
        )

    def __repr__(self) -> str:
        return f"LimitReport({len(self.uses)} limits, {self.runs:,} runs)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def limit_report(
    settlements: Data, *, by: str | Sequence[str] | None = None, confidence: float = 0.95, cluster: str | None = AUTO
) -> LimitReport:
    """Report what each limit ended, refused and starved.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    by : str or sequence of str, optional
        Columns whose groups are reported apart, such as ``policy``.
    confidence : float, default 0.95
        Confidence of each interval.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`; nodes of one run are a cluster at least.

    Returns
    -------
    LimitReport

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": range(40), "outcome": ["exhausted"] * 10 + ["completed"] * 30,
    ...     "stopped_by": ["cost-exhausted"] * 10 + [None] * 30, "cost_nusd": 10**9})
    >>> print(limit_report(nodes).uses[0].ended)
    0.25 [0.1419, 0.4019] (95 %, n = 40, Wilson)
    """
    check_confidence(confidence)
    nodes, names = nodes_of(settlements), as_names(by)
    uses: list[LimitUse] = []
    wasted, waited, seconds = {}, {}, {}
    chosen: str | None = None
    for key, rows in parts_by(nodes, names) if names else iter([((), nodes)]):
        part = _Part(rows, key, confidence, cluster)
        uses += part.uses()
        wasted[key], waited[key], seconds[key] = part.wasted(), part.waited(), part.seconds()
        chosen = chosen or part.name
    ranked = sorted(uses, key=lambda use: -(use.ended.value or 0.0))
    count = len(root_rows(nodes)) if len(nodes) else 0
    return LimitReport(
        uses=tuple(ranked), wasted=wasted, waited=waited, waited_s=seconds, runs=count, nodes=len(nodes), cluster=chosen
    )


class _Part:
    """One group's nodes and roots, with their clusters."""

    def __init__(self, nodes: pd.DataFrame, key: tuple[Any, ...], confidence: float, cluster: str | None) -> None:
        self._key, self._confidence, self._asked = key, confidence, cluster
        self._nodes, self._root = nodes, root_rows(nodes)
        outcome, code = text(nodes, "outcome"), text(nodes, "stopped_by")
        cause = text(nodes, "cause")
        limited = (outcome == "exhausted") | ((outcome == "timed_out") & np.isin(cause, ("", "limit")))
        unsaid = (code == "") & limited
        self._code = np.where(unsaid, NOT_RECORDED, code)
        self._denied = outcome == "denied"
        flat = np.arange(len(nodes), dtype=np.float64)
        self.name, self._labels = choose_cluster(nodes, flat, cluster)
        self._root_labels = None if self._labels is None or self.name == "run" else self._labels[self._root]

    def uses(self) -> list[LimitUse]:
        """Return what each limit did."""
        return [self._use(str(code)) for code in np.unique(self._code[self._code != ""].astype(str))]

    def wasted(self) -> Estimate:
        """Return the share of spend without result."""
        runs = run_table(self._nodes)
        lost, cost = numbers(runs, "wasted_nusd"), numbers(runs, "cost_nusd")
        known = ~np.isnan(lost + cost)
        labels = choose_cluster(runs[known], cost[known], self._asked)[1]
        return ratio(lost[known], cost[known], confidence=self._confidence, clusters=labels, within=SHARE)

    def waited(self) -> Estimate:
        """Return the share of nodes that waited, among those whose waiting is known."""
        wait = numbers(self._nodes, "wait_ns")
        known = ~np.isnan(wait)
        return self._share(wait[known] > 0, known)

    def seconds(self) -> Estimate:
        """Return the mean time waited."""
        wait = numbers(self._nodes, "wait_ns") * 1e-9
        known = ~np.isnan(wait)
        labels = None if self._labels is None else self._labels[known]
        return mean(wait[known], confidence=self._confidence, clusters=labels, unit="s", within=AMOUNT)

    def _use(self, code: str) -> LimitUse:
        mine: Bools = np.asarray(self._code == code)
        ended = mine & ~self._denied
        spend = numbers(self._nodes, "cost_nusd") * 1e-9
        known = ended & ~np.isnan(spend)
        labels = None if self._labels is None else self._labels[known]
        every = np.ones(mine.size, dtype=np.bool_)
        return LimitUse(
            group=self._key, limit=code, nodes_ended=self._share(ended, every),
            refused=self._share(mine & self._denied, every), ended=share(
                mine[self._root], confidence=self._confidence, clusters=self._root_labels, method="share of runs"
            ),
            spend_usd=mean(spend[known], confidence=self._confidence, clusters=labels, unit="$", within=AMOUNT),
        )  # fmt: skip

    def _share(self, hits: Bools, known: Bools) -> Estimate:
        labels = None if self._labels is None else self._labels[known]
        return share(hits, confidence=self._confidence, clusters=labels, method="share of nodes")
