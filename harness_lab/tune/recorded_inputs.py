"""Which recorded inputs of runs move a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import numbers
from harness_lab.analyze.grouping import AUTO, choose_cluster, gapless
from harness_lab.analyze.parts import ask_by
from harness_lab.analyze.runs import run_table
from harness_lab.errors import InputError
from harness_lab.stats.estimates import NotEstimable, check_confidence
from harness_lab.tune.given_data import delta
from harness_lab.tune.sensitivity import Sensitivity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.analyze.frames import Bools, Data, Floats

MIN_RUNS: Final = 50


def sensitivity_of_records(
    settlements: Data, inputs: Sequence[str] = ("calls", "input_total", "output", "nodes"), *,
    metric: str = "cost_nusd", by: str | Sequence[str] | None = None, confidence: float = 0.95, seed: int = 0,
    cluster: str | None = AUTO,
) -> Sensitivity:  # fmt: skip
    """Rank recorded inputs of runs by how far knowing them moves the distribution of a metric.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    inputs : sequence of str
        Numeric columns of the run table.
    metric : str
        Another numeric column of the run table.
    by : str or sequence of str, optional
        Columns whose groups are answered by themselves, in ``parts``.
    confidence, seed
        Of the intervals; of the dealing of runs into folds.
    cluster : str or None, default "auto"
        Column whose runs resemble each other: intervals are over whole clusters.

    Returns
    -------
    Sensitivity
        By :func:`harness_lab.tune.given_data.delta`. Inputs that are unknown, or the same in every run, are left out.

    Raises
    ------
    InputError
        If fewer than 50 runs have the metric and the inputs known, or the metric or every input is the same in all.
    """
    check_confidence(confidence)
    if seed < 0:
        raise InputError("seed", expected="a whole number of at least 0", got=seed)
    runs = run_table(settlements)
    _known_columns(runs, inputs, metric)
    wanted = {name: numbers(runs, name) for name in dict.fromkeys(inputs)}
    y = numbers(runs, metric)
    out = {name: why for name, x in wanted.items() if (why := _useless(x, y))}
    names = [name for name in wanted if name not in out]
    table = np.stack([*(wanted[name] for name in names), y], axis=1)
    known: Bools = np.asarray(~np.isnan(table).any(axis=1))
    table, chosen = table[known], choose_cluster(runs[known], y[known], cluster)[1]
    labels = None if chosen is None else gapless(chosen)
    _enough(table, out, metric)
    found = {
        name: delta(table[:, k], table[:, -1], clusters=labels, confidence=confidence, seed=seed)
        for k, name in enumerate(names)
    }
    ends = [(one.value, np.nan if one.low is None else one.low, np.nan if one.high is None else one.high)
            for one in found.values()]  # fmt: skip
    frame = pd.DataFrame(ends, columns=["importance", "low", "high"])
    frame.insert(0, "factor", names)
    none = next((str(one.interval) for one in found.values() if isinstance(one.interval, NotEstimable)), "")
    return Sensitivity(
        metric=metric, method="delta", worst={}, best={}, n=len(table), confidence=confidence, note=none, left_out=out,
        frame=frame.sort_values("importance", ascending=False, ignore_index=True, kind="stable"),
        clusters=None if labels is None else int(labels.max()) + 1,
        parts=ask_by(settlements, by, lambda rows: sensitivity_of_records(
            rows, inputs, metric=metric, confidence=confidence, seed=seed, cluster=cluster,
        )),
    )  # fmt: skip


def _known_columns(runs: pd.DataFrame, inputs: Sequence[str], metric: str) -> None:
    """Raise for a name that is no column of numbers, or a metric that is its own input."""
    numeric = [str(name) for name in runs.columns if pd.api.types.is_numeric_dtype(runs[name])]
    for what, name in [*(("inputs", name) for name in inputs), ("metric", metric)]:
        if name not in numeric:
            raise InputError(what, expected=f"columns of numbers, such as {', '.join(numeric[:8])}", got=name)
    if metric in inputs:
        raise InputError("inputs", expected=f"columns other than the metric {metric}", got=metric)


def _useless(x: Floats, y: Floats) -> str:
    """Say why an input cannot be ranked; empty if it can."""
    both = x[~np.isnan(x + y)]
    if both.size < MIN_RUNS:
        return f"known beside the metric in {both.size:,} run(s) only"
    return "" if np.ptp(both) else "the same in every run"


def _enough(table: Floats, out: Mapping[str, str], metric: str) -> None:
    """Raise where too few runs, inputs or values are left."""
    reasons = set(out.values())
    left = reasons.pop() if len(reasons) == 1 else "; ".join(f"{name}: {why}" for name, why in out.items())
    if table.shape[1] < 2 or len(table) < MIN_RUNS:
        got = left or f"{len(table)} such runs"
        raise InputError("settlements", expected=f"at least {MIN_RUNS} runs of known inputs that vary", got=got)
    if not np.ptp(table[:, -1]):
        raise InputError(metric, expected="a metric that varies between runs", got=f"the same in all {len(table)} runs")
