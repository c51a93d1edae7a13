"""One run as a trace file in the format of Chrome's tracing, which Perfetto and chrome://tracing open.

References
----------
.. [1] Trace Event Format, Google, the "JSON Object Format" with complete (X), instant (i), counter (C) and metadata (M)
   events.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from harness_lab.simulate.trace import SPENT
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    import pandas as pd

_PROCESS: Final = 1
_NS_PER_US: Final = 1000


def chrome_trace(events: pd.DataFrame, nodes: pd.DataFrame, *, title: str) -> dict[str, Any]:
    """Return a trace: a track for each node with its calls and waits, marks for refusals and stops, what was spent.

    Parameters
    ----------
    events : DataFrame
        A run's events (:data:`harness_lab.simulate.trace.EVENT_COLUMNS`).
    nodes : DataFrame
        Its node rows: ``node, agent, outcome, stopped_by, start_ns, duration_ns``.
    title : str
        Name of the process that the viewer shows.

    Returns
    -------
    dict
        To be written as JSON; times in microseconds of virtual time.
    """
    tracks = {str(name): i for i, name in enumerate(_in_tree_order(nodes), start=1)}
    made = [_meta("process_name", 0, title)]
    agents = dict(zip(nodes["node"].tolist(), nodes["agent"].tolist(), strict=True))
    made += [_meta("thread_name", track, f"{agents[name]} {name}") for name, track in tracks.items()]
    made += [_meta("thread_sort_index", track, track) for track in tracks.values()]
    made += [_node_slice(row, tracks[str(row["node"])]) for row in nodes.to_dict("records")]
    made += _steps(events, tracks)
    made += _spend(events)
    return {"traceEvents": made, "displayTimeUnit": "ms", "otherData": {"title": title, "clock": "virtual time"}}


def _in_tree_order(nodes: pd.DataFrame) -> list[str]:
    def place(name: str) -> tuple[tuple[int, ...], ...]:
        return () if name == "0" else tuple(tuple(map(int, level.split("."))) for level in name.split("/"))

    return sorted(map(str, nodes["node"]), key=place)


def _meta(kind: str, track: int, value: str | int) -> dict[str, Any]:
    key = "sort_index" if kind.endswith("sort_index") else "name"
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {key: value}}


def _node_slice(row: Any, track: int) -> dict[str, Any]:
    start, length = _known(row["start_ns"]) or 0, _known(row["duration_ns"]) or 0
    told = {name: _known(row[name]) for name in ("outcome", "stopped_by", "calls", "attempts", "starts", "cost_nusd")}
    name = f"{row['agent']}: {row['outcome']}"
    return _slice(name, "node", track, start, start + length, told)


def _slice(name: str, category: str, track: int, start: int, end: int, told: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in told.items() if value is not None}
    span = {"ts": start / _NS_PER_US, "dur": (end - start) / _NS_PER_US}
    return {"name": name, "cat": category, "ph": "X", "pid": _PROCESS, "tid": track, **span, "args": shown}


def _steps(events: pd.DataFrame, tracks: dict[str, int]) -> list[dict[str, Any]]:
    """Return a slice for each call and each wait, and a mark for each refusal, stop and cancellation."""
    made: list[dict[str, Any]] = []
    open_since: dict[tuple[Any, ...], int] = {}
    for row in events.to_dict("records"):
        event, answer, now = row["event"], row["answer"], int(row["time_ns"])
        track = tracks.get(str(row["node"]), 0)
        key = (row["node"], row["kind"], _known(row["call"]), _known(row["attempt"]))
        word = "start" if row["kind"] == "node" else f"call {key[2]}" + (f" (attempt {key[3]})" if key[3] else "")
        if answer == "waits":
            open_since[("waits", *key)] = now
            continue
        waited = open_since.pop(("waits", *key), None)
        if waited is not None:
            made.append(_slice(f"waits for {word}", "wait", track, waited, now, {"then": answer}))
        if answer == "granted" and row["kind"] != "node":
            open_since[key] = now
        elif event == "settle" and key in open_since:
            told = {name: _known(row[name]) for name in SPENT} | {"status": answer, "state": row["state"] or None}
            made.append(_slice(word, "call", track, open_since.pop(key), now, told))
        if answer == "refused" or event in ("cancel", "stop"):
            made.append(_mark(f"{event} {answer}".strip() + f": {word}", track, now, str(row["reason"])))
    return made


def _mark(name: str, track: int, now: int, reason: str) -> dict[str, Any]:
    place = {"pid": _PROCESS, "tid": track, "ts": now / _NS_PER_US}
    return {"name": name, "cat": "limit", "ph": "i", "s": "t", **place, "args": {"reason": reason}}


def _spend(events: pd.DataFrame) -> list[dict[str, Any]]:
    """Return counters of what the calls of the tree have used so far, as far as it was reported."""
    settled = events[events["event"] == "settle"]
    sums = dict.fromkeys(SPENT, 0)
    made = []
    for row in settled.to_dict("records"):
        for name in SPENT:
            sums[name] += _known(row[name]) or 0
        at = {"pid": _PROCESS, "tid": 0, "ts": int(row["time_ns"]) / _NS_PER_US}
        dollars = sums["spent_cost_nusd"] / NUSD_PER_USD
        counters = {"calls": sums["spent_calls"], "tokens": sums["spent_tokens"], "cost_usd": dollars}
        made += [{"name": name, "ph": "C", **at, "args": {name: value}} for name, value in counters.items()]
    return made


def _known(value: Any) -> Any:
    """Return a value as JSON knows it; NA is None."""
    if value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if hasattr(value, "item") else value
