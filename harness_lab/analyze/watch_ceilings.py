"""The promises of a config's ceilings, held against newer runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.analyze.ceilings import COLUMN_OF, ceiling
from harness_lab.analyze.curve import curve_rows
from harness_lab.analyze.frames import amount
from harness_lab.analyze.runs import EXACT, run_table
from harness_lab.analyze.sample import Sample, take
from harness_lab.analyze.tree_shape import SHAPES, with_shape
from harness_lab.stats.estimates import Interval, percent
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.analyze.ceilings import CeilingChannel, TreeChannel

LIMITS: Final[dict[str, tuple[CeilingChannel | TreeChannel, float]]] = {
    "reservation_pool.cost_usd": ("cost", 1e9), "reservation_pool.calls": ("calls", 1.0),
    "reservation_pool.input": ("input", 1.0), "reservation_pool.tokens": ("tokens", 1.0),
    "shared_ledger.max_cost_usd": ("cost", 1e9), "shared_ledger.max_steps": ("calls", 1.0),
    "shared_ledger.max_seconds": ("time", 1e9), "tree_limits.max_depth": ("depth", 1.0),
    "tree_limits.max_calls": ("starts", 1.0), "tree_limits.max_concurrent": ("concurrency", 1.0),
}  # fmt: skip
"""Parameters that limit a whole run: the channel, and the factor from their unit to the column's."""


def check_ceilings(config: Any, nodes: pd.DataFrame, *, alpha: float, cluster: str | None) -> list[dict[str, Any]]:
    """Return one finding per limit of the policy that bounds a whole run; a number that no run reaches is none."""
    runs = run_table(nodes)
    promises = {one.value: one for one in config.evidence}
    found = []
    for module in config.policy.modules:
        for name, (channel, factor) in LIMITS.items():
            kind, parameter = name.split(".")
            value = getattr(module, parameter, None) if module.kind == kind else None
            if value is not None and value < EXACT - 1 and _over_run(module, parameter):
                promise = promises[name].target_share if name in promises else None
                shaped = with_shape(runs, nodes, channel) if channel in SHAPES else runs
                found.append(_check(nodes, shaped, name, channel, round(value * factor), promise, alpha, cluster))
    return found


def _over_run(module: Any, parameter: str) -> bool:
    """Whether a limit is counted over a whole run: children at once may be counted over each parent."""
    return parameter != "max_concurrent" or bool(module.concurrency == "tree")


def _check(
    nodes: pd.DataFrame, runs: pd.DataFrame, name: str, channel: CeilingChannel | TreeChannel, at: float,
    promise: float | None, alpha: float, cluster: str | None,
) -> dict[str, Any]:  # fmt: skip
    column = COLUMN_OF[channel]
    sample = take(runs, column, cluster=cluster)
    what = f"{name} = {amount(column, at)}"
    if not sample.n:
        return {"what": what, "status": "unknown", "found": "no newer run whose usage is known", "n": 0}
    if promise is None:
        row = curve_rows(sample, column, np.asarray([at]), confidence=0.95).iloc[0]
        delivered = int(row["delivered_cut"])
        cut = f"{int(row['runs_cut'])} of {sample.n:,} newer runs used more ({delivered} of them delivered)"
        return {"what": what, "status": "unknown", "found": f"no promise is written down; {cut}", "n": sample.n}
    found = _completion(sample, column, at, alpha)
    words = f"{percent(promise)} shall complete within it; newer runs: {found}"
    if not isinstance(found.interval, Interval):
        return {"what": what, "status": "unknown", "found": words, "n": sample.n}
    broken = found.interval.high < promise
    again = ceiling(nodes, channel, target=promise, cluster=cluster) if broken else None
    suggestion = (
        "" if again is None else again._line() if again.ceiling is None else f"the newer runs give {again._line()}"
    )
    return {
        "what": what,
        "status": "stale" if broken else "holds",
        "found": words,
        "n": sample.n,
        "suggestion": suggestion,
    }


def _completion(sample: Sample, column: str, at: float, alpha: float) -> Any:
    """Share of runs that complete within the ceiling, with an upper end at 1 - alpha; stopped runs allowed for."""
    within = sample.completed & (sample.amounts <= at)
    below = sample.stopped & (sample.amounts < at)
    plain = share(within, confidence=1 - 2 * alpha, clusters=sample.labels, method="share completed within")
    if not below.any() or not isinstance(plain.interval, Interval):
        return plain
    row = curve_rows(sample, column, np.asarray([at]), confidence=1 - 2 * alpha).iloc[0]
    if np.isnan(row["completed_share_high"]):
        # another limit stopped runs below: at best all of them would have completed
        best = share(within | below, confidence=1 - 2 * alpha, clusters=sample.labels, method="share completed within")
        if not isinstance(best.interval, Interval):
            return best
        return replace(
            plain, interval=replace(plain.interval, high=best.interval.high, method="worst case beyond stops")
        )
    interval = Interval(
        low=row["completed_share_low"], high=row["completed_share_high"], confidence=1 - 2 * alpha,
        method="cumulative incidence",
    )  # fmt: skip
    return replace(plain, value=float(row["completed_share"]), interval=interval)
