"""What a run is known by: simulated runs of one name lie under several policies and scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY: Final = ("policy", "scenario", "run")
"""The columns that tell runs apart, in both tables; NA: recorded, or (in older tables of calls) not told."""

NODE_KEY: Final = (*KEY, "node")


def index(frame: pd.DataFrame, names: Sequence[str] = NODE_KEY) -> pd.Index:
    """Return the key of each row, with empty text for NA, so that keys of two tables can be compared."""
    parts = frame[list(names)].astype("string").fillna("")
    return pd.Index(parts[names[0]]) if len(names) == 1 else pd.MultiIndex.from_frame(parts)


def placed(nodes: pd.DataFrame, calls: pd.DataFrame) -> tuple[pd.DataFrame, str | None]:
    """Fill in the policy and scenario that calls do not name, where what they name leaves no choice.

    Returns
    -------
    DataFrame
        The calls, each with the key of its run.
    str or None
        The name of a run of which there are several while a call of it does not say which; None: there is none.
    """
    runs = nodes[list(KEY)].drop_duplicates()
    filled = calls
    for told, missing in ((["policy", "run"], ["scenario"]), (["run"], ["policy", "scenario"])):
        silent = filled[missing].isna().all(axis=1)
        if not silent.any():
            continue
        alone = runs[~runs.duplicated(told, keep=False)]
        at = index(alone, told).get_indexer(index(filled, told))
        found = {name: pd.Series(alone[name].array.take(at, allow_fill=True), filled.index) for name in missing}
        filled = filled.assign(**{name: filled[name].mask(silent, values) for name, values in found.items()})
    unclear = filled["run"].isin(runs["run"]) & ~index(filled, KEY).isin(index(runs, KEY))
    return filled, str(filled.loc[unclear, "run"].iloc[0]) if unclear.any() else None


def calls_of(nodes: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Return the calls of some nodes; what a call does not name is no reason to leave it out."""
    mine = index(calls).isin(index(nodes))
    for missing, told in ((["scenario"], ("policy", "run", "node")), (["policy", "scenario"], ("run", "node"))):
        silent = calls[missing].isna().all(axis=1).to_numpy(dtype=bool)
        if silent.any():
            mine |= silent & index(calls, told).isin(index(nodes, told))
    return calls[mine].reset_index(drop=True)
