"""From records of the agent loop to columns of the settlement table."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.outcome import CHANNELS

if TYPE_CHECKING:
    from harness_lab.agents.ports import Call, Reply
    from harness_lab.agents.record import NodeRecord
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Path
    from harness_lab.simulate.fast import FastRows
    from harness_lab.usage import Amounts

_NODE = (
    "run",
    "path",
    "parent",
    "depth",
    "agent",
    "model",
    "outcome",
    "stopped_by",
    "cause",
    "overspent",
    "calls",
    "attempts",
    "starts",
    "input_fresh",
    "cache_read",
    "cache_write",
    "output",
    "cost_nusd",
    "billed_nusd",
    "usage_known",
    "start_ns",
    "duration_ns",
    "wait_ns",
    *(f"ask_{channel}" for channel in CHANNELS),
    *(f"held_{channel}" for channel in CHANNELS),
)
_NOT_GRANTED = (None,) * len(CHANNELS)
_CALL = (
    "run",
    "path",
    "call",
    "attempt",
    "kind",
    "status",
    "model",
    "input_fresh",
    "cache_read",
    "cache_write",
    "output",
    "cost_nusd",
    "billed_nusd",
    "start_ns",
    "duration_ns",
)
_TEXT = {"run", "path", "parent", "agent", "model", "outcome", "stopped_by", "cause", "status", "kind"}
_FLAG = {"overspent", "usage_known"}


class Rows:
    """A sink that keeps one tuple a node, and one a call if asked.

    Attributes
    ----------
    reported_nusd : int
        What the nodes of the run were reported to cost, as far as known.
    """

    __slots__ = ("calls", "nodes", "reported_nusd", "run")

    def __init__(self) -> None:
        self.run = 0
        self.reported_nusd = 0
        self.nodes: list[tuple[Any, ...]] = []
        self.calls: list[tuple[Any, ...]] = []

    def attempts(self) -> list[int]:
        """Return the attempts of each node kept."""
        column = _NODE.index("attempts")
        return [row[column] for row in self.nodes]

    def node(self, record: NodeRecord) -> None:
        """Take a node that has ended, or that never started."""
        end, above = record.end, record.parent
        if end is None:
            return
        known = record.usage_known
        self.reported_nusd += record.cost_nusd
        self.nodes.append(
            (
                self.run,
                node_name(record.path),
                None if above is None else node_name(above.path),
                record.depth,
                record.agent,
                record.model,
                end.outcome,
                end.stopped_by,
                end.cause,
                record.overspent,
                record.calls,
                record.attempts,
                record.starts,
                record.input_fresh if known else None,
                record.cache_read if known else None,
                record.cache_write if known else None,
                record.output if known else None,
                record.cost_nusd if record.cost_known else None,
                record.billed_nusd if record.billed_known else None,
                known,
                record.started,
                record.ended - record.started,
                record.wait_ns,
                *record.budget,
                *_held(record),
            )
        )

    def call(self, record: NodeRecord, call: Call, reply: Reply | None, started: Time, now: Time) -> None:
        """Take a call that has ended."""
        known = reply is not None and reply.reported
        counts = (None,) * 5
        if known and reply is not None:
            counts = (reply.input_fresh, reply.cache_read, reply.cache_write, reply.output, reply.cost_nusd)  # type: ignore[assignment]
        status = "abandoned" if reply is None else reply.status
        billed = None if reply is None else reply.billed_nusd
        name = node_name(record.path)
        head = (self.run, name, call.call, call.attempt, call.kind, status, call.model)
        self.calls.append((*head, *counts, billed, started, now - started))


def _held(record: NodeRecord) -> Amounts:
    """Return what was set aside, where that is not just what was asked: a run that no limit touches has no trace."""
    granted = record.granted
    return _NOT_GRANTED if granted is None or granted == record.budget else granted


@lru_cache(maxsize=4096)
def node_name(path: Path) -> str:
    """Return a node's name in the table: ``0`` for the root, ``3.0.0/1.2.0`` for a grandchild."""
    return "/".join(f"{call}.{slot}.{attempt}" for call, slot, attempt in path) or "0"


def nodes_frame(rows: list[tuple[Any, ...]] | FastRows, *, policy: str, scenario: str, backend: str) -> pd.DataFrame:
    """Return node rows as columns of the settlement table."""
    frame = _frame(rows, _NODE) if isinstance(rows, list) else rows.frame(_NODE)
    frame["node"] = frame["path"]
    frame["path"] = frame["path"].where(frame["path"] != "0")
    frame["input_total"] = frame["input_fresh"] + frame["cache_read"] + frame["cache_write"]
    frame["cost_source"] = pd.Series("simulated", index=frame.index, dtype="string").mask(frame["cost_nusd"].isna())
    for name, value in (("policy", policy), ("scenario", scenario), ("backend", backend), ("record_unit", "node")):
        frame[name] = pd.Series(value, index=frame.index, dtype="string")
    return frame


def calls_frame(rows: list[tuple[Any, ...]], *, policy: str, scenario: str) -> pd.DataFrame:
    """Return call rows as columns of the settlement table."""
    frame = _frame(rows, _CALL).rename(columns={"path": "node"})
    frame["input_total"] = frame["input_fresh"] + frame["cache_read"] + frame["cache_write"]
    for name, value in (("policy", policy), ("scenario", scenario)):
        frame[name] = pd.Series(value, index=frame.index, dtype="string")
    return frame


def _frame(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> pd.DataFrame:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pd.DataFrame({name: _array(name, values) for name, values in zip(names, columns, strict=True)})


def _array(name: str, values: tuple[Any, ...]) -> Any:
    if name in _TEXT:
        return pd.array([None if value is None else str(value) for value in values], dtype="string")
    return pd.array(list(values), dtype="boolean" if name in _FLAG else "Int64")
