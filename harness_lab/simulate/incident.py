"""One recorded run under other policies: where each would have stopped it, and what else it would have cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.clock import ns
from harness_lab.errors import InputError
from harness_lab.simulate.incident_result import Incident, Stop
from harness_lab.simulate.replay import Replay
from harness_lab.simulate.trace import Tracing, events_frame
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.policies import PolicySpec
    from harness_lab.pricing import PriceTable
    from harness_lab.settlements import Settlements
    from harness_lab.stats.estimates import Estimate

ROOT: Final = "0"
_GROUPS: Final = ("user", "repo", "session")
_CUT: Final = ("timed_out", "cancelled")


def replay(
    records: Settlements,
    run: str,
    policies: Iterable[PolicySpec],
    *,
    around_s: float | None = None,
    prices: PriceTable | None = None,
    confidence: float = 0.95,
) -> Incident:
    """Play one recorded run under other policies, and the good runs of the same period beside it.

    Parameters
    ----------
    records : Settlements
        The run and its neighbours; with call rows, the answer is exact to the call. Without, the totals of a node are
        spread over its calls, and the run is marked.
    run : str
        Name of the run, as in the column ``run``.
    policies : iterable of PolicySpec
        What might have stopped it.
    around_s : float, optional
        The period: runs that started within so many seconds of this one. None: all runs of `records`.
    prices : PriceTable, optional
        Prices of calls without a recorded cost, and of worst cases.
    confidence : float, default 0.95
        Of the intervals; runs of one user, repository or session are taken as alike.

    Raises
    ------
    InputError
        If there is no such run, two policies have one name, or the records are of several policies.
    """
    specs = tuple(policies)
    one = Replay.of(records, specs, runs=[run], prices=prices)
    traced = {spec.name: _traced(one, spec) for spec in specs}
    good, basis, period, unplaced = _good_runs(records, run, around_s)
    cut = _also_cut(records, good, specs, prices, confidence)
    played = one.run()
    return Incident(
        run=run, records=one.records,
        first={name: _stop(events) for name, events in traced.items()},
        stops={name: _stop(events, node=ROOT) for name, events in traced.items()},
        played=played.outcomes(), events=traced, cut=cut, basis=basis, period=period, unplaced=unplaced,
        marks=played.marks,
    )  # fmt: skip


def _traced(one: Replay, spec: PolicySpec) -> pd.DataFrame:
    """Return everything that a policy is asked and answers, each root of the run in turn, from the earliest start."""
    world, tracing, keys = one.world(), Tracing(spec, name=spec.name), list(one.runs)
    world.block(tracing, keys, engine="kernel", keep_calls=False, keep_decisions=False)  # type: ignore[arg-type]
    known = [start for key in keys if (start := one.runs[key].start_ns) is not None]
    frames = []
    for key, (_, traced) in zip(keys, tracing.started, strict=True):
        start = one.runs[key].start_ns
        events = events_frame(traced.events)
        events["time_ns"] += 0 if start is None else start - min(known)
        frames.append(events)
    return pd.concat(frames, ignore_index=True).sort_values("time_ns", kind="stable", ignore_index=True)


def _stop(events: pd.DataFrame, *, node: str | None = None) -> Stop | None:
    """Return the first event in which a limit refused or cut something off, of one node if it is named."""
    late = (events["event"] == "close") & events["answer"].isin(_CUT) & (events["reason"] != "")
    bites = (events["answer"] == "refused") | late
    if node is not None:
        bites &= events["node"] == node
    found = np.flatnonzero(bites.to_numpy(dtype=bool, na_value=False))
    if not found.size:
        return None
    row, before = events.iloc[int(found[0])], events.iloc[: int(found[0])]
    settled = before[before["event"] == "settle"]
    reason = str(row["reason"])
    what = f"the start of node {row['node']}" if row["kind"] == "node" else f"call {row['call']} of node {row['node']}"
    return Stop(
        at_ns=int(row["time_ns"]), event=what if row["event"] != "close" else f"node {row['node']}",
        limit=reason.split(":")[0].split(" (")[0], reason=reason, calls=_sum(settled["spent_calls"]),
        tokens=_sum(settled["spent_tokens"]), cost_nusd=_sum(settled["spent_cost_nusd"]),
    )  # fmt: skip


def _sum(amounts: pd.Series[Any]) -> int | None:
    """Return a sum; None where a part of it is unknown."""
    total = amounts.sum(skipna=False)
    return None if pd.isna(total) else int(total)


def _good_runs(records: Settlements, run: str, around_s: float | None) -> tuple[pd.DataFrame, str, str, int]:
    """Return the roots of the good runs of the period, what good means, the period, and how many lack a start."""
    roots = records.nodes[records.nodes["parent"].isna()].drop_duplicates("run")
    others, mine = roots[roots["run"] != run], roots[roots["run"] == run]
    basis = "delivered" if others["delivered"].notna().any() else "completed"
    is_good = others["delivered"] if basis == "delivered" else others["outcome"] == "completed"
    good = others[is_good.fillna(value=False)]
    if around_s is None:
        return good, basis, "all other runs of the records", 0
    reach = ns(around_s, what="around_s")
    centre = mine["start_ns"].iloc[0] if len(mine) else pd.NA
    if reach < 0 or pd.isna(centre):
        got = around_s if reach < 0 else f"run {run} without a start"
        raise InputError("around_s", expected="seconds >= 0, and a run whose start is recorded", got=got)
    near = ((good["start_ns"] - centre).abs() <= reach).fillna(value=False)
    return good[near], basis, f"started within {around_s:g} s of it", int(good["start_ns"].isna().sum())


def _also_cut(
    records: Settlements,
    good: pd.DataFrame,
    specs: tuple[PolicySpec, ...],
    prices: PriceTable | None,
    confidence: float,
) -> dict[str, Estimate]:
    names = good["run"].tolist()
    if not names:
        nothing = share(np.zeros(0, dtype=bool), confidence=confidence, method="share of good runs cut")
        return dict.fromkeys([spec.name for spec in specs], nothing)
    outcomes = Replay.of(records, specs, runs=names, prices=prices).run().outcomes()
    whole = outcomes["run"].str.split("#").str[0]
    found = {}
    for spec in specs:
        mine = outcomes["policy"] == spec.name
        hit = outcomes.loc[mine, "cut"].groupby(whole[mine]).any().reindex(names).to_numpy(dtype=bool)
        found[spec.name] = share(hit, confidence=confidence, clusters=_groups(good), method="share of good runs cut")
    return found


def _groups(roots: pd.DataFrame) -> np.ndarray[Any, Any] | None:
    """Return the group of each run in the column with the fewest groups of several runs; None if there is none."""
    sizes = {name: roots[name].nunique() for name in _GROUPS if roots[name].notna().any()}
    shared = {name: n for name, n in sizes.items() if 1 < n < roots[name].notna().sum()}
    if not shared:
        return None
    name = min(shared, key=lambda one: shared[one])
    alone = pd.Series([f"alone {i}" for i in range(len(roots))], index=roots.index, dtype="string")
    return np.asarray(pd.factorize(roots[name].fillna(alone))[0])
