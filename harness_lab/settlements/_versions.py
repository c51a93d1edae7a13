"""Which reading of a run stays in a store: what is new, what is the same, which of two readings knows more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.settlements._keys import KEY, index, placed
from harness_lab.settlements.columns import CALL_NAMES, NODE_NAMES
from harness_lab.settlements.schema import conform_calls

if TYPE_CHECKING:
    from harness_lab.settlements.settlements import Settlements

_PLACE: Final = {"run", "source", "line", "schema_version"}
_NODE_CONTENT: Final = [name for name in NODE_NAMES if name not in _PLACE]
_CALL_CONTENT: Final = [name for name in CALL_NAMES if name not in _PLACE | set(KEY)]
_SUFFIX: Final = re.compile(r"~\d+$")
MOST_OF_A_NAME: Final = 9
"""Runs of one name that a store tells apart: ``x``, ``x~2`` ... ``x~9``."""


class Verdict(NamedTuple):
    """What an append has to do.

    Attributes
    ----------
    nodes, calls : DataFrame
        Rows to add.
    replaced : DataFrame
        Keys of the stored runs that go.
    counts : dict
        ``added, replaced, unchanged, kept_older``, in runs.
    """

    nodes: pd.DataFrame
    calls: pd.DataFrame
    replaced: pd.DataFrame
    counts: dict[str, int]


def base_of(run: str) -> str:
    """Return a run's name without the number that tells it from others of the same name."""
    return _SUFFIX.sub("", run) if "~" in run else run


def variants(base: str) -> list[str]:
    """Return the names under which runs of one name may be stored."""
    return [base, *(f"{base}~{n}" for n in range(2, MOST_OF_A_NAME + 1))]


def decide(*, new: Settlements, stored: Settlements) -> Verdict:
    """Compare readings run by run.

    Two readings of one name are the same run if it started at the same instant; where no start is known, if they come
    from a file of the same name. Otherwise the one that comes is another run, and is stored as ``NAME~2`` and so on.
    """
    new_nodes, new_calls = new.nodes, _placed(new)
    old_calls = _placed(stored)
    theirs, ours = _digests(new_nodes, new_calls), _digests(stored.nodes, old_calls)
    names, action = _match(theirs, ours)
    counts = {word: int((action == word).sum()) for word in ("added", "replaced", "unchanged", "kept_older")}
    take = np.isin(action, ["added", "replaced"])
    renamed = theirs[["policy", "scenario", "run"]].assign(name=names)[take]
    nodes = _renamed(new_nodes, renamed, list(KEY))
    calls = _renamed(new_calls, renamed, list(KEY))
    gone = renamed[action[take] == "replaced"].drop(columns="run").rename(columns={"name": "run"})
    return Verdict(nodes, calls, gone[list(KEY)], counts)


def _placed(table: Settlements) -> pd.DataFrame:
    """Return the call rows, each with the policy and scenario of its run."""
    calls = conform_calls({}) if table.calls is None else table.calls
    filled, unclear = placed(table.nodes, calls)
    if unclear is not None:
        hint = "write the tables of each policy to a store of its own"
        got = f"run {unclear} under several, and calls that name none"
        raise InputError("store", expected="calls that name the policy and scenario of their run", got=got, hint=hint)
    return filled


def _renamed(rows: pd.DataFrame, names: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Return the rows whose run is to be taken, under the name it gets."""
    if rows.empty or names.empty:
        return rows.iloc[:0]
    given = names.set_index(index(names, key))["name"]
    mine = given.reindex(index(rows, key)).array
    kept = rows.assign(run=mine)
    return kept[kept["run"].notna()].astype({"run": "string"}).reset_index(drop=True)


def _digests(nodes: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run: its key, what it says (a digest of all its rows), how much it knows, when it began."""
    hashes = pd.util.hash_pandas_object(nodes[_NODE_CONTENT], index=False).to_numpy()
    calls_hash = pd.util.hash_pandas_object(calls[_CALL_CONTENT], index=False).to_numpy()
    of_calls = pd.DataFrame({"calls_digest": calls_hash, "calls_stored": 1}, index=index(calls, KEY))
    of_calls = of_calls.groupby(level=list(range(len(KEY))), sort=False).sum()
    rows = nodes[[*KEY, "start_ns", "source"]].assign(
        digest=hashes,
        nodes_stored=1,
        made=nodes["calls"].fillna(0),
        tokens=nodes["input_total"].fillna(0) + nodes["output"].fillna(0),
    )
    grouped = rows.groupby(list(KEY), dropna=False, sort=False, as_index=False)
    found = grouped.agg(
        digest=("digest", "sum"), nodes_stored=("nodes_stored", "sum"), made=("made", "sum"), tokens=("tokens", "sum"),
        start=("start_ns", "min"), source=("source", "first"),
    )  # fmt: skip
    mine = of_calls.reindex(index(found, KEY), fill_value=0)  # keeps unsigned 64 bits
    return found.assign(calls_digest=mine["calls_digest"].array, calls_stored=mine["calls_stored"].array)


def _match(theirs: pd.DataFrame, ours: pd.DataFrame) -> tuple[list[str], Any]:
    """Return, for each run that comes, the name it has in the store and what is to be done."""
    stored: dict[tuple[str, str, str], dict[str, Any]] = {}
    earlier: Any = ours.to_dict("records")
    coming: Any = theirs.to_dict("records")
    for row in earlier:
        stored[_group(row, str(row["run"]))] = row
    names, action = [], []
    for row in coming:
        name, verdict = _place(row, stored)
        stored[_group(row, name)] = row if verdict in {"added", "replaced"} else stored[_group(row, name)]
        names.append(name)
        action.append(verdict)
    return names, np.array(action, dtype=object)


def _group(row: dict[str, Any], name: str) -> tuple[str, str, str]:
    policy, scenario = ("" if pd.isna(row[part]) else str(row[part]) for part in ("policy", "scenario"))
    return policy, scenario, name


def _place(row: dict[str, Any], stored: dict[tuple[str, str, str], dict[str, Any]]) -> tuple[str, str]:
    run = str(row["run"])
    base = base_of(run)
    if _group(row, run) not in stored and _group(row, base) not in stored:
        return run, "added"
    candidates = dict.fromkeys((run, *variants(base)))
    free = None
    for name in candidates:
        there = stored.get(_group(row, name))
        if there is None:
            free = free or name
        elif _says(there) == _says(row):
            return name, "unchanged"
    for name in candidates:
        there = stored.get(_group(row, name))
        if there is not None and _same_run(there, row):
            return name, "replaced" if _knows(row) >= _knows(there) else "kept_older"
    return free or run, "added"


def _says(row: dict[str, Any]) -> tuple[int, ...]:
    return int(row["nodes_stored"]), int(row["calls_stored"]), int(row["calls_digest"]), int(row["digest"])


def _knows(row: dict[str, Any]) -> tuple[int, ...]:
    return int(row["nodes_stored"]), int(row["calls_stored"]), int(row["made"]), int(row["tokens"])


def _same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    starts = one["start"], other["start"]
    if not any(pd.isna(start) for start in starts):
        return bool(starts[0] == starts[1])
    files = ["" if pd.isna(row["source"]) else str(row["source"]).rpartition("/")[2] for row in (one, other)]
    return files[0] == files[1]
