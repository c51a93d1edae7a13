"""Whether recorded limits depend on the task: a test, strata, and bounds that hold in the worst case.

References
----------
.. [1] Manski, C. F. (1990). Nonparametric bounds on treatment effects. American Economic Review 80(2), 319-323.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy.stats import kruskal

from harness_lab.analyze.ceilings import COLUMNS, CeilingChannel
from harness_lab.analyze.distribution import distribution
from harness_lab.analyze.frames import Data, Floats, amount, as_names, group_codes, nodes_of, numbers
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.runs import root_rows, run_table
from harness_lab.analyze.sample import Sample, take
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, NotEstimable, check_confidence, p_value, percent
from harness_lab.stats.incidence import cumulative_incidence
from harness_lab.stats.paired import holm
from harness_lab.stats.shift import shift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

GROUPS: Final = ("agent", "task_kind", "user", "team", "repo", "model")
_CEILING: Final = {
    "cost": "ceiling_cost", "calls": "ceiling_calls", "input": "ceiling_input", "tokens": "ceiling_tokens",
    "time": "ceiling_time_ns",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CapCheck:
    """Whether recorded limits go with groups, and what can be said about quantiles all the same.

    Parameters
    ----------
    channel : str
        What is limited.
    caps : int
        Distinct recorded limits, "none" counted as one.
    tests : DataFrame
        ``group, groups, p_value, p_adjusted`` (Holm): whether the limit depends on the group.
    early : Estimate
        Share of runs that failed or completed within the smallest limit, difference between runs of small and of large
        limits: tasks that were given larger limits and differ even where no limit has bound are different tasks.
    pooled : dict of float to Estimate
        Quantiles that take the limits as independent of the task.
    stratified : dict of float to Estimate
        Quantiles averaged over the strata of equal limits: independence is asked for within each only.
    worst : dict of float to tuple of (float or None)
        Bounds of each quantile that hold however the limits were set: as if stopped runs had completed right then, and
        as if they never had.
    dependent : bool or None
        Whether a test says that limits depend on something, or tasks differ; None: cannot be told.
    n : int
        Runs.
    parts : Parts or None
        The same for each group of `by`.
    """

    channel: CeilingChannel
    caps: int
    tests: pd.DataFrame
    early: Estimate
    pooled: dict[float, Estimate]
    stratified: dict[float, Estimate]
    worst: dict[float, tuple[float | None, float | None]]
    dependent: bool | None
    n: int
    confidence: float
    parts: Parts[CapCheck] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per quantile: ``q, pooled, stratified`` with ends, ``worst_low, worst_high``; per group."""
        if self.parts is not None:
            return self.parts.to_frame()
        rows = []
        for q, one in self.pooled.items():
            low, high = self.worst[q]
            rows.append(
                {"q": q, **one.record(), "stratified": self.stratified[q].value, "worst_low": low, "worst_high": high}
            )
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each quantile, and its bounds however the limits were set; see :mod:`harness_lab.plots.verdicts`."""
        from harness_lab.plots.verdicts import plot_bounds

        frame = self.to_frame()
        names = [f"{percent(q)} complete within" for q in frame["q"]]
        if "group" in frame.columns:
            names = [f"{group}: {name}" for group, name in zip(frame["group"], names, strict=True)]
        return plot_bounds(frame.assign(name=names), ax=ax, channel=self.channel)

    def summary(self) -> str:
        """Return the test and the quantiles in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        word = {
            True: "depend on the task or its group",
            False: "are not seen to depend on task or group",
            None: "cannot be tested",
        }
        lines = [
            f"{self.n:,} runs under {self.caps} different {self.channel} limit(s): the limits {word[self.dependent]}."
        ]
        lines += [
            f"- limit by {row['group']} ({row['groups']} groups): Holm {p_value(row['p_adjusted'])}"
            for row in self.tests.to_dict("records")
        ]
        lines.append(f"- done within the smallest limit, large limits less small: {self.early}")
        column = COLUMNS[self.channel]
        for q, one in self.pooled.items():
            low, high = (None if end is None else amount(column, end) for end in self.worst[q])
            bounds = f"[{low or 'not reached'}, {high or 'no bound'}]"
            if self.dependent:
                lines.append(f"- {percent(q)} complete within, however limits were set: {bounds}")
            else:
                value = "not reached" if one.value is None else amount(column, one.value)
                lines.append(f"- {percent(q)} complete within {value}; however limits were set: {bounds}")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the test means and what to do next."""
        return (
            "Estimates from stopped runs take it that a run's limit says nothing about how much it would have used. "
            "Where harder tasks get larger limits that is wrong, and quantiles come out too high. Two tests look for "
            "it: whether limits go with a group, and whether runs of large limits differ already below the smallest "
            "one. The second sees dependence on what no column records. Holm: p-values are made larger for the number "
            "of tests, so that looking often finds nothing by itself. Worst-case bounds hold in any case, and are "
            "wide.\n"
            "Next: estimate by the group that the limits depend on, or record a sample of runs without limits."
        )

    def __repr__(self) -> str:
        return f"CapCheck({self.channel}, dependent: {self.dependent})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def cap_check(
    settlements: Data, channel: CeilingChannel = "cost", *, groups: Sequence[str] = GROUPS,
    quantiles: Sequence[float] = (0.5, 0.9), by: str | Sequence[str] | None = None, confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> CapCheck:  # fmt: skip
    """Test whether recorded limits depend on task, role or group, and bound quantiles however they were set.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        Nodes with the root's ``ceiling_<channel>``.
    channel : {"cost", "calls", "input", "tokens", "time"}
        What is limited.
    groups : sequence of str
        Columns that limits may go with; those that are not recorded are left out.
    quantiles : sequence of float
        Quantiles of completion to give.
    by : str or sequence of str, optional
        Columns whose groups are tested by themselves, in ``parts``: the strata in which limits may be independent.
    confidence : float, default 0.95
        Of each interval; 1 less it is the error rate of the tests together.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    CapCheck

    Notes
    -----
    Bounds in the manner of Manski [1]_, of the sample (they have no sampling interval).
    """
    check_confidence(confidence)
    if channel not in COLUMNS:
        raise InputError("channel", expected=f"one of {', '.join(COLUMNS)}", got=channel)
    nodes = nodes_of(settlements)
    if _CEILING[channel] not in nodes.columns or nodes[_CEILING[channel]].isna().all():
        raise InputError(_CEILING[channel], expected="recorded limits", got="none")
    cap = numbers(nodes.iloc[root_rows(nodes)], _CEILING[channel])
    runs = run_table(nodes).assign(_cap=np.where(np.isnan(cap), np.inf, cap))
    sample = take(runs, COLUMNS[channel], cluster=cluster)
    kept = runs[sample.kept].reset_index(drop=True)
    limit = kept["_cap"].to_numpy(dtype=np.float64)
    tests = _tests(kept, limit, as_names(tuple(groups)))
    early, moved = _early(kept, sample, limit, confidence, cluster)
    known = [p for p in (tests["p_adjusted"].min() if len(tests) else None, moved) if p is not None and p == p]
    dependent = None if not known else min(known) * len(known) <= 1 - confidence
    whole = distribution(kept, COLUMNS[channel], level="node", confidence=confidence, cluster=cluster)
    return CapCheck(
        channel=channel, caps=int(np.unique(limit).size), tests=tests, early=early, dependent=dependent, n=sample.n,
        pooled={q: whole.quantile(q) for q in quantiles}, worst={q: _worst(sample, q) for q in quantiles},
        stratified={q: _stratified(sample, limit, q) for q in quantiles}, confidence=confidence,
        parts=ask_by(settlements, by, lambda rows: cap_check(
            rows, channel, groups=groups, quantiles=quantiles, confidence=confidence, cluster=cluster,
        )),
    )  # fmt: skip


def _tests(runs: pd.DataFrame, limit: Floats, names: tuple[str, ...]) -> pd.DataFrame:
    rows = []
    for name in names:
        if name not in runs.columns or runs[name].isna().all():
            continue
        codes, keys = group_codes(runs, (name,))
        parts = [limit[codes == k] for k in range(len(keys))]
        parts = [np.where(np.isinf(part), 1e300, part) for part in parts if part.size >= 2]
        if len(parts) < 2 or np.unique(limit).size < 2:
            continue
        rows.append({"group": name, "groups": len(parts), "p_value": float(kruskal(*parts).pvalue)})
    frame = pd.DataFrame(rows, columns=["group", "groups", "p_value"])
    return frame.assign(p_adjusted=holm(frame["p_value"].to_numpy()) if len(frame) else [])


def _early(
    runs: pd.DataFrame, sample: Sample, limit: Floats, confidence: float,
    cluster: str | None,
) -> tuple[Estimate, float | None]:  # fmt: skip
    """Compare runs of small and large limits where no limit has bound yet."""
    least, middle = float(limit.min()), float(np.median(limit))
    large = limit > middle if (limit > middle).any() else limit >= middle
    done = (sample.amounts < least) & ~sample.stopped
    if large.all() or not large.any():
        few = NotEstimable(reason="all runs have the same limit")
        return Estimate(value=None, interval=few, n=sample.n, method="difference of shares"), None
    labels = choose_cluster(runs, done.astype(np.float64), cluster)[1]
    old, new = (None, None) if labels is None else (labels[~large], labels[large])
    used = np.minimum(sample.amounts, least)
    found = shift(used[~large], used[large], confidence=confidence, clusters_old=old, clusters_new=new)
    shares = shift(
        done[~large].astype(np.float64), done[large].astype(np.float64), confidence=confidence, clusters_old=old,
        clusters_new=new,
    )  # fmt: skip
    return shares.difference, found.p_value


def _worst(sample: Sample, q: float) -> tuple[float | None, float | None]:
    """Return the quantile as if stopped runs completed at once, and as if they never did."""
    ends = []
    for amounts in (
        np.where(sample.completed | sample.stopped, sample.amounts, np.inf),
        np.where(sample.completed, sample.amounts, np.inf),
    ):
        value = float(np.quantile(amounts, q, method="inverted_cdf")) if amounts.size else np.inf
        ends.append(None if np.isinf(value) else value)
    return ends[0], ends[1]


def _stratified(sample: Sample, limit: Floats, q: float) -> Estimate:
    """Return the quantile of the strata's curves, weighted by their runs; each only up to its own limit."""
    reach = float(limit.min())
    at = np.unique(sample.amounts[sample.completed & (sample.amounts <= reach)])
    total = np.zeros(at.size)
    for cap in np.unique(limit):
        mine = limit == cap
        curve = cumulative_incidence(sample.amounts[mine], sample.kinds[mine])
        place = np.searchsorted(curve.time, at, side="right")
        total += mine.mean() * np.concatenate([[0.0], curve.incidence])[place]
    found = at[total >= q * (1 - 1e-12)]
    note = NotEstimable(
        reason="beyond the smallest limit the strata say different things" if not found.size else "no interval"
    )
    value = float(found[0]) if found.size else None
    return Estimate(value=value, interval=note, n=sample.n, method="strata of equal limits")
