"""The rows an estimate rests on: values, endings, clusters, and what was kept apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness_lab.analyze.endings import APART, COMPLETED, STOPPED, Tally, endings, tally
from harness_lab.analyze.frames import (
    COUNTED,
    Bools,
    Data,
    Floats,
    Ints,
    amounts,
    is_false,
    is_true,
    nodes_of,
    numbers,
)
from harness_lab.analyze.grouping import Labels, choose_cluster
from harness_lab.analyze.runs import run_table
from harness_lab.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["run", "node"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Rows of known value and judged ending.

    Parameters
    ----------
    amounts : ndarray of float64, shape (n,)
        The quantity, in its column's unit.
    kinds : ndarray of int64, shape (n,)
        Endings (:mod:`harness_lab.analyze.endings`).
    spend, delivered, undelivered : ndarray, shape (n,)
        Cost in nano-dollars (NaN: unknown); delivered yes; delivered no.
    labels : ndarray or None
        Cluster of each row; None: rows are taken as independent.
    cluster : str or None
        The column that the clusters come from.
    tally : Tally
        How many rows went where.
    kept : ndarray of bool, shape (rows,)
        Which rows of the frame these are.
    policies : int
        Policies (with their scenarios) that the rows come from; 0: recorded.
    """

    amounts: Floats
    kinds: Ints
    spend: Floats
    delivered: Bools
    undelivered: Bools
    labels: Labels | None
    cluster: str | None
    tally: Tally
    kept: Bools
    policies: int = 0

    @property
    def n(self) -> int:
        """Rows."""
        return self.amounts.size

    @property
    def completed(self) -> Bools:
        """Which rows completed."""
        return np.asarray(self.kinds == COMPLETED)

    @property
    def stopped(self) -> Bools:
        """Which rows were stopped by a limit."""
        return np.asarray(self.kinds == STOPPED)

    @property
    def clusters(self) -> int | None:
        """Clusters among the rows; None: rows are taken as independent."""
        return None if self.labels is None else int(np.count_nonzero(np.bincount(self.labels)))

    def in_order(self) -> Sample:
        """Return the same rows by ascending amount; `kept` stays that of the frame."""
        order = np.argsort(self.amounts, kind="stable")
        return replace(
            self, amounts=self.amounts[order], kinds=self.kinds[order], spend=self.spend[order],
            delivered=self.delivered[order], undelivered=self.undelivered[order],
            labels=None if self.labels is None else self.labels[order],
        )  # fmt: skip

    @property
    def size(self) -> str:
        """N and clusters in words."""
        pooled = f", {self.policies} policies pooled" if self.policies > 1 else ""
        if self.labels is None:
            return f"n = {self.n:,}, taken as independent{pooled}"
        return f"n = {self.n:,}, {self.clusters:,} clusters by {self.cluster}{pooled}"


def table(data: Data, level: Level) -> pd.DataFrame:
    """Return one row per run or per node.

    Raises
    ------
    InputError
        If `level` is neither.
    """
    if level not in ("run", "node"):
        raise InputError("level", expected='"run" or "node"', got=level)
    return run_table(data) if level == "run" else nodes_of(data)


def take(frame: pd.DataFrame, column: str, *, cluster: str | None) -> Sample:
    """Set apart what cannot be used and count it.

    Parameters
    ----------
    frame : DataFrame
        Runs or nodes.
    column : str
        The quantity.
    cluster : str or None
        As for :func:`harness_lab.analyze.grouping.choose_cluster`.
    """
    values, kinds = _values(frame, column), endings(frame)
    known = ~np.isnan(values)
    keep = known & (kinds != APART)
    kept = frame if keep.all() else frame.loc[keep]
    name, labels = choose_cluster(kept, values[keep], cluster)
    return Sample(
        amounts=values[keep], kinds=kinds[keep], spend=numbers(kept, "cost_nusd"), delivered=is_true(kept, "delivered"),
        undelivered=is_false(kept, "delivered"), labels=labels, cluster=name, tally=tally(frame, kinds, known),
        kept=keep, policies=_policies(kept),
    )  # fmt: skip


def _policies(frame: pd.DataFrame) -> int:
    if "policy" not in frame.columns or frame["policy"].isna().all():
        return 0
    names = [name for name in ("policy", "scenario") if name in frame.columns]
    return len(frame.loc[frame["policy"].notna(), names].drop_duplicates())


def _values(frame: pd.DataFrame, column: str) -> Floats:
    if column == "tokens" and column not in frame.columns:
        return amounts(frame, "input_total") + amounts(frame, "output")
    if column not in frame.columns:
        expected = "a column of numbers, such as cost_nusd, calls, tokens, input_total or duration_ns"
        raise InputError("column", expected=expected, got=column)
    values = amounts(frame, column)
    if "usage_known" in frame.columns and column not in COUNTED:
        values[_incomplete(frame, column)] = np.nan
    return values


def _incomplete(frame: pd.DataFrame, column: str) -> Bools:
    """Nodes whose figure is only a lower bound because a call did not report its usage."""
    lower = is_false(frame, "usage_known")
    if column.endswith("_nusd") and "cost_source" in frame.columns:
        recorded: Any = frame["cost_source"] == "recorded"
        lower &= ~recorded.fillna(value=False).to_numpy(dtype=bool)
    return lower
