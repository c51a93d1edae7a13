"""Settlement rows from live runs: JSON lines that the flat reader takes as they are. Standard library only."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness_lab.agents.session import ANYONE
from harness_lab.outcome import CHANNELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.agents.conversation import Conversation
    from harness_lab.agents.ports import Call, Reply
    from harness_lab.agents.record import NodeRecord

SCHEMA_VERSION = 3
"""Version of the settlement table's schema that these rows follow."""


class SettlementRecorder:
    """Writes one row for each node that ended, and for each that was refused.

    Parameters
    ----------
    target : path or text stream
        Appended to as soon as a node has ended, so a crash loses only what still runs.
    wall : callable, optional
        Returns nanoseconds since 1970 UTC; the machine's clock if None.
    labels : mapping of str to str, optional
        Columns that are the same in each row: ``team``, ``repo``, ``task_kind``, ``client_version``.

    Notes
    -----
    A node's row holds its calls as ``call_rows``; :func:`harness_lab.read` puts them into the calls table. No texts of
    prompts, answers or arguments are written; a session's address is hashed.
    """

    def __init__(
        self,
        target: str | Path | IO[str],
        *,
        wall: Callable[[], int] = time.time_ns,
        labels: dict[str, str] | None = None,
    ) -> None:
        self._stream = target if not isinstance(target, str | Path) else None
        self._path = Path(target) if isinstance(target, str | Path) else None
        self._wall = wall
        self._labels = dict(labels or {})

    def node(self, conversation: Conversation, record: NodeRecord) -> None:
        """Write a node's row."""
        row = row_of(conversation, record) | self._labels
        row["start_ns"] = self._wall() - row["duration_ns"]
        made = [_known(call | {"start_ns": row["start_ns"] + call["start_ns"]}) for call in conversation.made]
        row |= {"call_rows": made} if made else {}
        line = json.dumps(row) + "\n"
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        if self._stream is not None:
            self._stream.write(line)


def row_of(conversation: Conversation, record: NodeRecord) -> dict[str, Any]:
    """Return a node's row by column of the settlement table, without its start; None is unknown."""
    return _identity(conversation) | _ending(conversation, record) | _usage(record) | _limits(conversation, record)


def call_row(call: Call, reply: Reply | None, served: str | None, *, began: int, took: int) -> dict[str, Any]:
    """Return a call by column of the calls table; None is unknown.

    Parameters
    ----------
    call : Call
        What was asked for.
    reply : Reply or None
        What came back; None: it was dropped.
    served : str or None
        The model that answered.
    began, took : int
        From the start of its node, and how long: nanoseconds.
    """
    row: dict[str, Any] = {
        "call": call.call, "attempt": call.attempt, "kind": call.kind, "model": call.model, "served_model": served,
        "status": "abandoned" if reply is None else reply.status, "start_ns": began, "duration_ns": took,
    }  # fmt: skip
    if reply is not None and reply.reported:
        row |= {"input_fresh": reply.input_fresh, "cache_read": reply.cache_read, "cache_write": reply.cache_write,
                "output": reply.output}  # fmt: skip
    if reply is not None and reply.cost_nusd is not None:
        row |= {"cost_nusd": reply.cost_nusd, "cost_source": "recorded"}
    return row


def _known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _identity(conversation: Conversation) -> dict[str, Any]:
    place, session = conversation.place, conversation.opened
    participant = None if session is None or session.participant == ANYONE else session.participant
    return {
        "run": place.tree.context.root_run_id,
        "record_unit": "node",
        "node": place.run_id,
        "parent": place.parent_run_id,
        "path": "/".join(f"{call}.{slot}.{attempt}" for call, slot, attempt in place.path) or None,
        "depth": place.tree.depth + len(place.path),
        "agent": place.agent,
        "backend": None if place.provider == "unknown" else place.provider,
        "model": None if place.model == "unknown" else place.model,
        "context": place.mode.context,
        "served_model": " + ".join(sorted(conversation.served)) or None,
        "user": None if participant is None else f"{participant.type}:{participant.id}",
        "session": None if session is None else hashlib.sha256(session.key.encode()).hexdigest()[:16],
        "schema_version": SCHEMA_VERSION,
    }


def _ending(conversation: Conversation, record: NodeRecord) -> dict[str, Any]:
    end = record.end
    return {
        "outcome": "unknown" if end is None else end.outcome.value,
        "stopped_by": None if end is None or end.stopped_by is None else str(end.stopped_by),
        "cause": None if end is None else end.cause.value,
        "overspent": record.overspent,
        "tool_calls": len(conversation.called),
        "duration_ns": record.ended - record.started,
        "wait_ns": record.wait_ns,
    }


def _usage(record: NodeRecord) -> dict[str, Any]:
    known = record.usage_known
    return {
        "calls": record.calls,
        "attempts": record.attempts,
        "starts": record.starts,
        "input_fresh": record.input_fresh if known else None,
        "cache_read": record.cache_read if known else None,
        "cache_write": record.cache_write if known else None,
        "output": record.output if known else None,
        "cost_nusd": record.cost_nusd if record.cost_known else None,
        "cost_source": "recorded" if record.cost_known else None,
        "usage_known": known,
    }


def _limits(conversation: Conversation, record: NodeRecord) -> dict[str, Any]:
    """Return what was declared, and what held on the node's own use when it started."""
    asked = {f"ask_{channel}": amount for channel, amount in zip(CHANNELS, record.budget, strict=True)}
    account = conversation.place.tree.ledger.accounts.get(conversation.place.path)
    if account is None:
        return asked
    room = account.room
    found = {"ceiling_calls": room.steps, "ceiling_cost": room.cost_nusd, "ceiling_time_ns": room.elapsed_ns}
    return asked | {name: None if value < 0 else value for name, value in found.items()}
