"""Starting contexts, earlier and later: which paths have a new one, and which of its fields changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.analyze.frames import column, label, parts_by

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH: Final = ("agent", "backend", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextChange:
    """A path whose starting context is another one now.

    Parameters
    ----------
    path : tuple
        Agent, backend and model (None: unknown).
    gone, new : tuple of str
        Digests that only the earlier and only the later records have.
    fields : mapping of str to (object, object)
        What changed in the newest description: earlier and later value, None where a field is absent. Empty where the
        records do not describe their contexts.
    rows : int
        Later rows with a new context.
    """

    path: tuple[Any, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    fields: Mapping[str, tuple[object, object]]
    rows: int

    def __str__(self) -> str:
        changed = ", ".join(f"{name} {old!r} -> {new!r}" for name, (old, new) in self.fields.items())
        why = f": {changed}" if changed else " (the records do not say which fields changed)"
        return f"{label(self.path)}: {self.rows:,} row(s) start from a context not seen before{why}"


def context_changes(old: pd.DataFrame, new: pd.DataFrame) -> tuple[ContextChange, ...]:
    """Compare the contexts of each path that both sets of nodes have; a path with the same contexts is left out."""
    before, after = _by_path(old), _by_path(new)
    found = []
    for path, rows in after.items():
        if path not in before:
            continue
        digests = [set(part["context"].dropna()) for part in (before[path], rows)]
        fresh = digests[1] - digests[0]
        if fresh:
            mine = rows[rows["context"].isin(fresh)]
            found.append(
                ContextChange(
                    path=path, gone=tuple(sorted(digests[0] - digests[1])), new=tuple(sorted(fresh)),
                    fields=changed_fields(described(before[path]), described(mine)), rows=len(mine),
                )
            )  # fmt: skip
    return tuple(found)


def changed_fields(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Return the fields that differ, with both values.

    Examples
    --------
    >>> changed_fields({"client": "1.0", "tools": 9}, {"client": "1.1", "tools": 9})
    {'client': ('1.0', '1.1')}
    """
    if not old or not new:
        return {}
    names = sorted({*old, *new})
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def _by_path(nodes: pd.DataFrame) -> dict[tuple[Any, ...], pd.DataFrame]:
    names = [*PATH, "context", "context_fields", "start_ns"]
    return dict(parts_by(pd.DataFrame({name: column(nodes, name) for name in names}), PATH))


def described(rows: pd.DataFrame) -> dict[str, object]:
    """Return the fields of the newest row that describes its context."""
    order = rows["start_ns"] if "start_ns" in rows.columns else None
    known = rows[rows["context_fields"].notna()]
    described = known if order is None else known.sort_values("start_ns", kind="stable", na_position="first")
    if described.empty:
        return {}
    try:
        fields = json.loads(str(described["context_fields"].iloc[-1]))
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
