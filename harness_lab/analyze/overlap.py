"""Whether records that are called newer are in part, or wholly, the earlier ones."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import column, nodes_of

if TYPE_CHECKING:
    from harness_lab.analyze.frames import Data

_NAMES: Final = ("policy", "scenario", "run", "node")
_MEASURED: Final = ("start_ns", "calls", "input_total", "output", "cost_nusd", "duration_ns")


def digest_of(records: Data) -> str:
    """Return the hex SHA-256 over the rows of a table of nodes, in order; the names of columns count."""
    nodes = nodes_of(records)
    found = hashlib.sha256("\x1f".join(map(str, nodes.columns)).encode())
    found.update(pd.util.hash_pandas_object(nodes, index=False).to_numpy().tobytes())
    return found.hexdigest()


def shared_rows(old: Data, new: Data) -> int:
    """Return how many later rows are among the earlier ones: the same run and node, with the same outcome and usage.

    Rows of which nothing was measured are not counted, since run numbers alone may agree by chance.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(3), "outcome": "completed", "calls": [4, 5, 6]})
    >>> shared_rows(runs, runs.tail(2)), shared_rows(runs, runs.assign(calls=[7, 8, 9]))
    (2, 0)
    """
    before, after = (_marks(nodes_of(data)) for data in (old, new))
    return int(np.isin(after[1], before[1]).sum()) if before[0].any() and after[0].any() else 0


def overlap_text(shared: int, rows: int) -> str:
    """Say what it means that so many of the later rows are earlier ones; empty where none are."""
    if not shared:
        return ""
    same = "in the earlier records too (same run, outcome and usage)"
    if shared == rows:
        return f"All {rows:,} later rows are {same}: nothing here is newer, so nothing can have moved."
    return f"{shared:,} of {rows:,} later rows are {same}: what both sides share hides what moved. Leave them out."


def _marks(nodes: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return of which rows something was measured, and a mark of each of those rows."""
    measured = pd.DataFrame({name: column(nodes, name).astype("Float64") for name in _MEASURED})
    known = measured.notna().any(axis=1).to_numpy(dtype=bool)
    names = {name: column(nodes, name).astype("string").fillna("") for name in (*_NAMES, "outcome")}
    whole = pd.DataFrame(names).join(measured.fillna(-1.0).astype(np.float64))
    return known, pd.util.hash_pandas_object(whole[known], index=False).to_numpy()
