"""Bringing together what several files say: what is said twice counts once, and two runs never share a name.

A row is known by (policy, scenario, run, node). If two rows have the same key, then

- with equal content (source and line apart) the later one is a duplicate;
- with other content in *another file*, it is another run of the same name (two models on the same task, say): that
  file's run gets a suffix, ``name~2``;
- with other content in the *same file*, the record contradicts itself, and the later row is set aside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab.settlements.columns import NODE_NAMES
from harness_lab.settlements.report import SetAside

if TYPE_CHECKING:
    import numpy as np

_KEY = ["policy", "scenario", "run", "node"]
_CONTENT = [name for name in NODE_NAMES if name not in {"source", "line"}]


@dataclass(slots=True)
class Merged:
    """The rows that stay, and what became of the others."""

    nodes: pd.DataFrame
    calls: pd.DataFrame
    duplicates: int = 0
    set_aside: list[SetAside] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(nodes: pd.DataFrame, calls: pd.DataFrame) -> Merged:
    """Remove duplicates, rename runs that share a name, set aside what contradicts itself."""
    merged = Merged(nodes, calls)
    if not nodes.duplicated(_KEY).any():
        return merged
    _rename(merged)
    again = merged.nodes.duplicated(_CONTENT)
    merged.duplicates = int(again.sum())
    contradicting = merged.nodes.duplicated(_KEY) & ~again
    for row in merged.nodes[contradicting].to_dict("records"):
        reason = f"node {row['node']} of run {row['run']} came before in this file, with other figures"
        line = None if pd.isna(row["line"]) else int(row["line"])
        merged.set_aside.append(SetAside(str(row["source"]), line, reason))
    merged.calls = _calls_once(merged, dropped=again | contradicting)
    merged.nodes = merged.nodes[~(again | contradicting)].reset_index(drop=True)
    return merged


def _rename(merged: Merged) -> None:
    """Give a suffix to the runs of a file that say something else than an earlier file under the same name."""
    nodes = merged.nodes
    clash = nodes.duplicated(_KEY) & ~nodes.duplicated(_CONTENT)
    first = nodes.drop_duplicates(_KEY)[[*_KEY, "source"]].rename(columns={"source": "first_source"})
    origin = nodes[_KEY].merge(first, on=_KEY, how="left")["first_source"]
    elsewhere = clash & (nodes["source"] != origin.set_axis(nodes.index)).fillna(value=False)
    pairs = nodes.loc[elsewhere, ["run", "source"]].drop_duplicates()
    taken = set(nodes["run"])
    for run, source in pairs.itertuples(index=False):
        name = _free_name(str(run), taken)
        for frame in (merged.nodes, merged.calls):
            frame.loc[(frame["run"] == run) & (frame["source"] == source), "run"] = name
    if len(pairs):
        merged.notes.append(
            f"{len(pairs):,} run(s) share their name with another file's run; renamed to NAME~2 and so on"
        )


def _free_name(run: str, taken: set[str]) -> str:
    number = next(n for n in range(2, len(taken) + 3) if f"{run}~{n}" not in taken)
    taken.add(f"{run}~{number}")
    return f"{run}~{number}"


def _calls_once(merged: Merged, *, dropped: pd.Series) -> pd.DataFrame:
    """Return the calls without those that came from a dropped row's file while an equal node stays from another one."""
    calls = merged.calls
    if calls.empty:
        return calls
    place = ["run", "node", "source"]
    gone = pd.MultiIndex.from_frame(merged.nodes.loc[dropped, place])
    stays = pd.MultiIndex.from_frame(merged.nodes.loc[~dropped, place])
    mine = pd.MultiIndex.from_frame(calls[place])
    keep: np.ndarray = ~(mine.isin(gone) & ~mine.isin(stays))
    return calls[keep].reset_index(drop=True)
