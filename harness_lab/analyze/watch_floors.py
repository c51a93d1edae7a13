"""The floors of a config, held against newer settlements of their paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab.analyze.contexts import changed_fields, described
from harness_lab.analyze.evidence import eligible, unit_values
from harness_lab.analyze.frames import Bools, Data, nodes_of, text

if TYPE_CHECKING:
    import pandas as pd


def check_floors(
    policy: Any, nodes: pd.DataFrame, *, now_ns: int | None, reference: Data | None = None
) -> list[dict[str, Any]]:
    """Return one finding per row of the policy's floor table that has a floor."""
    module = policy.module("runtime_floors")
    rows = [] if module is None else [row for row in module.table.rows if row.floor is not None]
    before = None if reference is None else nodes_of(reference)
    return [_check(row, nodes, before, now_ns) for row in rows]


def _check(row: Any, nodes: pd.DataFrame, before: pd.DataFrame | None, now_ns: int | None) -> dict[str, Any]:
    what = f"floor {row.floor:,} of {row.key} (n = {row.n})"
    path = _path(row.key, nodes)
    mine = path & _same(nodes, "context", row.key.context)
    if row.served_model is not None:
        mine &= text(nodes, "served_model") == row.served_model
    old = row.is_stale(now_ns) if now_ns is not None else None
    if old:
        days = (now_ns - row.measured_ns) / 86_400e9 if row.measured_ns is not None and now_ns is not None else np.nan
        aged = f"its newest evidence is {days:.0f} days old, past its date"
        return {"what": what, "status": "stale", "found": aged, "n": int(mine.sum()), "suggestion": "measure again"}
    if not mine.any() and row.key.context is not None and path.any():
        return _moved(what, row, nodes[path], before)
    values = unit_values(nodes, row.key.unit)[mine & eligible(nodes)]
    values = values[~np.isnan(values)]
    if not values.size:
        return {"what": what, "status": "unknown", "found": "no newer eligible settlement of this path", "n": 0}
    below, lowest = int((values < row.floor).sum()), int(values.min())
    found = f"{below} of {values.size:,} newer eligible settlements lie below it; the lowest is {lowest:,}"
    status = "stale" if below else "holds"
    return {"what": what, "status": status, "found": found, "n": values.size, "suggestion": f"lower it to {lowest:,}"}


def _moved(what: str, row: Any, rows: pd.DataFrame, before: pd.DataFrame | None) -> dict[str, Any]:
    """Say that the path starts from another context now, and which fields changed where that is known."""
    changed: dict[str, tuple[object, object]] = {}
    if before is not None and "context_fields" in before.columns and "context_fields" in rows.columns:
        was = before[_path(row.key, before) & _same(before, "context", row.key.context)]
        changed = changed_fields(described(was), described(rows))
    fields = "; ".join(f"{name}: {old!r} -> {new!r}" for name, (old, new) in changed.items())
    found = f"the path starts from another context now ({len(rows):,} newer rows){f'; {fields}' if fields else ''}"
    return {"what": what, "status": "stale", "found": found, "n": len(rows), "suggestion": "measure the new context"}


def _path(key: Any, nodes: pd.DataFrame) -> Bools:
    found = (text(nodes, "backend") == key.backend) & (text(nodes, "model") == key.model)
    return np.asarray(found & (text(nodes, "agent") == key.agent if key.agent is not None else True))


def _same(nodes: pd.DataFrame, name: str, value: str | None) -> Bools:
    return np.asarray(text(nodes, name) == (value or ""))
