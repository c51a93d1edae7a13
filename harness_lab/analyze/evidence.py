"""What speaks for one floor: the eligible settlements of a path, and what has to be said about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness_lab.analyze.frames import Bools, Floats, column, is_false, is_true, known, numbers, text, text_codes
from harness_lab.analyze.grouping import CANDIDATES, choose_cluster
from harness_lab.outcome import UNITS
from harness_lab.stats.estimates import percent
from harness_lab.stats.quantiles import coverage_of_minimum, p_next_below, wilks_n

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.outcome import Unit

ONE_ROW_GAP: Final = 0.10
"""A floor rests on one row if the second-lowest lies further above it than this share."""
TASKS_NOT_SETUP: Final = 5
"""A floor over this many start-up costs measures tasks, not set-up."""
EVIDENCE: Final = (
    "run", "node", "policy", "scenario", "outcome", "delivered", "source_status", "source", "start_ns",
)  # fmt: skip
"""Columns that the evidence of one path is told from, beside those by which rows resemble each other."""
COVERAGE: Final = 0.95
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One path's floor and what it rests on. The path's key is kept by the caller.

    Parameters
    ----------
    served_model : str or None
        The model that answered; None: unknown.
    floor, second_lowest : int or None
        Smallest and next eligible settlement, tokens; None where there is none.
    startup_cost : int or None
        Smallest prompt of a first call, tokens; None without call rows.
    n : int
        Eligible settlements.
    clusters : int or None
        Groups (user, repository, session) they come from; None: none are known.
    coverage : float or None
        Share of future runs that lie at or above the floor, with 95 % confidence (over clusters where known).
    p_next_below : float or None
        Chance that the next run (of a new cluster, where known) lies below.
    measured_ns : int or None
        When the newest row started, epoch nanoseconds; None: unknown.
    evidence_id : str
        Digest of the rows.
    sources : tuple of str
        Where they came from.
    notes : tuple of str
        What a reader has to know.
    """

    served_model: str | None
    floor: int | None
    second_lowest: int | None
    startup_cost: int | None
    n: int
    clusters: int | None
    coverage: float | None
    p_next_below: float | None
    measured_ns: int | None
    evidence_id: str
    sources: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def needs_n(self) -> int | None:
        """Settlements that a floor for 95 % of runs with 95 % confidence would need; None if there are as many."""
        needed = wilks_n(COVERAGE, CONFIDENCE)
        return needed if (self.clusters or self.n) < needed else None


def unit_values(nodes: pd.DataFrame, unit: Unit) -> Floats:
    """Return each node's tokens in a floor's unit, NaN where unknown or known to be incomplete."""
    values = numbers(nodes, "input_total")
    if UNITS[unit] != "input":
        values = values + numbers(nodes, "output")
    if UNITS[unit] == "fresh":
        values = values - numbers(nodes, "cache_read")
    return np.where(is_false(nodes, "usage_known"), np.nan, values)


def eligible(nodes: pd.DataFrame) -> Bools:
    """Return which rows are evidence for a floor: as a person decided, else completed and not known to be undelivered.

    A row that a limit stopped is evidence only if a person decided so.
    """
    outcome, words = text_codes(nodes, "outcome")
    completed = np.asarray([word == "completed" for word in words], dtype=np.bool_)[outcome]
    decided = column(nodes, "eligible").notna().to_numpy(dtype=bool)
    return np.where(decided, is_true(nodes, "eligible"), completed & ~is_false(nodes, "delivered"))


def gather(
    rows: pd.DataFrame, values: Floats, chosen: Bools, *, startup: int | None, key: str, cluster: str | None
) -> Evidence:
    """Reduce the rows of one path and served model to its evidence.

    Parameters
    ----------
    rows : DataFrame
        All nodes of the path.
    values : ndarray of float64
        Their tokens in the unit, NaN: unknown.
    chosen : ndarray of bool
        Which are eligible.
    startup : int or None
        Start-up cost, tokens.
    key : str
        The path, for the digest.
    cluster : str or None
        As for :func:`harness_lab.analyze.grouping.choose_cluster`.
    """
    at = np.flatnonzero(chosen & ~np.isnan(values))
    served = text(rows.head(1), "served_model")
    rows = rows[[name for name in rows.columns if name in EVIDENCE or name in CANDIDATES or name == cluster]]
    lead = bool(at.size) and int(at[-1]) == at.size - 1  # then nothing has to be moved
    mine, amounts = (rows.iloc[: at.size] if lead else rows.iloc[at]), values[at]
    least = np.partition(amounts, 1)[:2].astype(np.int64).tolist() if at.size > 1 else amounts.astype(np.int64).tolist()
    name, labels = choose_cluster(mine, amounts, cluster)
    groups = None if labels is None else int(np.count_nonzero(np.bincount(labels)))
    worth = groups or at.size
    lowest = mine.iloc[[int(np.argmin(amounts))]] if at.size else mine
    notes = _notes(least, lowest, n=at.size, startup=startup, cluster=name)
    unknown = int((chosen & np.isnan(values)).sum())
    return Evidence(
        served_model=str(served[0]) if served.size and served[0] else None, floor=least[0] if least else None,
        second_lowest=least[1] if len(least) > 1 else None, startup_cost=startup, n=at.size, clusters=groups,
        coverage=coverage_of_minimum(worth, CONFIDENCE) if worth else None,
        p_next_below=p_next_below(worth) if worth else None,
        measured_ns=_newest(mine), evidence_id=_digest(mine, amounts, key) if at.size else "",
        sources=tuple(sorted(mine["source"].dropna().astype(str).unique())) if known(mine, "source") else (),
        notes=(
            *([f"{unknown} eligible row(s) of unknown usage left out"] if unknown else []),
            *(notes if at.size else [f"no eligible settlement among {len(rows)} row(s)"]),
        ),
    )  # fmt: skip


def _notes(
    least: list[int], row: pd.DataFrame, *, n: int, startup: int | None, cluster: str | None
) -> list[str]:  # fmt: skip
    """Return what has to be said beside a floor: `least`, the two smallest settlements, and the row of the first."""
    if not n:
        return []
    lowest = least[0]
    notes = _lowest_note(least, row, n)
    if n == 1 or least[1] > lowest * (1 + ONE_ROW_GAP):
        gap = f": the next is {least[1]:,}, {percent(least[1] / lowest - 1)} higher" if n > 1 and lowest else ""
        notes.append(f"rests on one row{gap}")
    if startup is not None and lowest > TASKS_NOT_SETUP * startup:
        times = f"{lowest / startup:.0f} times" if startup else "above"
        notes.append(f"measures tasks, not set-up: {times} the start-up cost of {startup:,}")
    if cluster is not None:
        notes.append(f"coverage counts clusters by {cluster}, not rows")
    return notes


def _lowest_note(least: list[int], row: pd.DataFrame, n: int) -> list[str]:
    """Say so where the lowest row is evidence only because a person decided it."""
    outcome = str(text(row, "outcome")[0])
    if outcome == "completed" and not is_false(row, "delivered")[0]:
        return []
    word = str(text(row, "source_status")[0]) or (outcome if outcome != "completed" else "not delivered")
    rest = f"{least[1]:,}, n = {n - 1}" if n > 1 else "nothing is left"
    return [f"lowest row recorded as {word}; without that row {rest}"]


def _newest(mine: pd.DataFrame) -> int | None:
    return int(mine["start_ns"].max()) if known(mine, "start_ns") and not known(mine, "policy") else None


def _digest(mine: pd.DataFrame, amounts: Floats, key: str) -> str:
    """Return a digest of the rows that does not depend on their order."""
    names = ("run", "node", "policy", "scenario", "outcome", "start_ns")
    parts = [_words(mine, name) for name in names]
    parts.append(pa.array(amounts.astype(np.int64)).cast(pa.large_string()))
    joined = pc.binary_join_element_wise(*parts, pa.scalar("|", type=pa.large_string()))
    if isinstance(joined, pa.ChunkedArray):  # a column of a frame that was put together from several
        joined = joined.combine_chunks()
    lines = joined.take(pc.sort_indices(joined))  # bytes of UTF-8 sort as code points do
    whole = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), pa.scalar("\n", pa.large_string()))
    return hashlib.sha256(f"{key}\n".encode() + whole[0].as_buffer()).hexdigest()[:16]


def _words(mine: pd.DataFrame, name: str) -> Any:
    if not known(mine, name):
        return pa.scalar("", type=pa.large_string())
    return pa.array(mine[name].astype("string").fillna("").array, type=pa.large_string())
