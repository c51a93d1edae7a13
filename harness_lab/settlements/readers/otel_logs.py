"""The telemetry that Claude Code and Codex send, as OTLP logs in JSON.

- ``claude_code.api_request`` is one call that was answered; ``claude_code.api_error`` one that failed, its usage
  unknown. Input leaves cached tokens out, as everywhere with this client; ``cost_usd`` is its estimate by list price.
- ``codex.sse_event`` of kind ``response.completed`` is one call; input counts cached tokens, output counts
  reasoning. Failed kinds are failed calls. The model may only be in other events of
  the conversation. No cost.
- run: the session (``session.id``, ``conversation.id``), record_unit ``session``, one node: subagents are not told
  apart. The record does not say how a session ended: outcome unknown.
- an event that comes twice (same session, sequence or time, and counts) counts once.
- times: an event is sent when the call ended, so its start is that time less ``duration_ms``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.otlp import attributes, nanoseconds, records, value_of
from harness_lab.settlements.readers.times import Times
from harness_lab.settlements.readers.values import (
    Json,
    dollars,
    first,
    ident,
    seconds,
    served,
    short_name,
    totals,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_MS_PER_S: Final = 1_000
_CLAUDE: Final = {"api_request", "api_error"}
_FAILED_KINDS: Final = frozenset({"response.failed", "response.incomplete"})


@dataclass(slots=True)
class _Session:
    """One session being put together."""

    agent: str
    source: str
    line: int | None
    fields: Record
    calls: list[tuple[Raw, Record]] = field(default_factory=list)
    seen: set[tuple[object, ...]] = field(default_factory=set)


class OtelLogsReader:
    """Reader of coding agents' telemetry events in OTLP JSON."""

    name = "otel-logs"
    expects = "telemetry of Claude Code or Codex as OTLP logs in JSON (resourceLogs)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has log records in OTLP JSON."""
        return head.lstrip()[:1] in {b"{", b"["} and b'"resourceLogs"' in head

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read the events of all files, since one session may lie in several, then make their rows."""
        output = ReaderOutput()
        events = _Events()
        for file in files:
            for line, resource, _, record in records(file, "logRecords", output):
                try:
                    events.take(record, resource, file.name, line)
                except Unfit as error:
                    output.reject(file.name, line, str(error))
        events.write(output)
        return output


class _Events:
    def __init__(self) -> None:
        self.sessions: dict[tuple[str, str], _Session] = {}
        self.rules = {
            "claude-code": Conventions(cached_inside=False),
            "codex": Conventions(cached_inside=True),
        }
        self.models: dict[str, str] = {}
        self.others: dict[str, int] = defaultdict(int)
        self.again = 0

    def take(self, record: Json, resource: Mapping[str, Any], source: str, line: int | None) -> None:
        said = attributes(record)
        name = said.get("event.name") or record.get("eventName") or value_of(record.get("body"))
        short = name if isinstance(name, str) else ""
        session = ident(said.get("session.id"), said.get("conversation.id"))
        if short.startswith("codex.") and session is not None and short_name(said.get("model")):
            self.models[session] = said["model"]
        client = _client(short, said)
        if client is None:
            self.others[(short_name(short) or "of no name")[:60]] += 1
            return
        raw = _raw(said, client)
        row = _row(record, said, short, source, line)
        place = self._session(client, session or f"{source}:{line}", said, resource, source, line)
        key = (row["start_ns"], row["duration_ns"], ident(said.get("event.sequence")), row["model"], raw)
        if row["start_ns"] is not None and key in place.seen:
            self.again += 1
            return
        place.seen.add(key)
        self.rules[client].see(source, raw)
        place.calls.append((raw, row))

    def _session(
        self, client: str, run: str, said: Mapping[str, Any], resource: Mapping[str, Any], source: str, line: int | None
    ) -> _Session:
        if (client, run) not in self.sessions:
            version = short_name(said.get("app.version")) or short_name(resource.get("service.version"))
            fields: Record = {
                "run": run,
                "session": run,
                "user": ident(said.get("user.account_uuid"), said.get("user.id")),
                "team": ident(said.get("organization.id")),
                "client_version": version,
            }
            self.sessions[client, run] = _Session(client, source, line, fields)
        return self.sessions[client, run]

    def write(self, output: ReaderOutput) -> None:
        for (client, run), session in self.sessions.items():
            rules = self.rules[client]
            rows = [{**row, **rules.disjoint(row["source"], raw)} for raw, row in session.calls]
            rows.sort(key=lambda row: (row["start_ns"] is None, row["start_ns"] or 0))
            fallback = self.models.get(run)
            calls = [
                {**row, "run": run, "node": "0", "call": number, "model": row["model"] or fallback}
                for number, row in enumerate(rows)
            ]
            output.node(_node(session, calls), calls)
        for client, rules in self.rules.items():
            rules.note(f"{client} telemetry", output.notes)
        if self.again:
            output.notes.append(f"telemetry: {self.again:,} event(s) came more than once and count once")
        if self.others:
            listed = ", ".join(f"{count:,} {name}" for name, count in sorted(self.others.items())[:12])
            output.notes.append(f"telemetry: events that are no calls: {listed}")


def _client(name: str, said: Mapping[str, Any]) -> str | None:
    """Return whose call an event is; None for events that are no call."""
    short = name.removeprefix("claude_code.")
    if short in _CLAUDE and (name != short or "session.id" in said or "model" in said):
        return "claude-code"
    kind = short_name(said.get("event.kind"))
    if name == "codex.sse_event" and (kind in _FAILED_KINDS or (kind == "response.completed" and _told(said))):
        return "codex"
    return None


def _told(said: Mapping[str, Any]) -> bool:
    return said.get("input_token_count") is not None or said.get("output_token_count") is not None


def _raw(said: Mapping[str, Any], client: str) -> Raw:
    if client == "claude-code":
        return Raw(
            input=whole("input_tokens", said.get("input_tokens")),
            read=whole("cache_read_tokens", said.get("cache_read_tokens")),
            write=first("cache_creation_tokens", said.get("cache_creation_tokens")),
            output=whole("output_tokens", said.get("output_tokens")),
        )
    return Raw(
        input=whole("input_token_count", said.get("input_token_count")),
        read=whole("cached_token_count", said.get("cached_token_count")),
        write=whole("cache_write_token_count", said.get("cache_write_token_count")),
        output=whole("output_token_count", said.get("output_token_count")),
        reasoning=whole("reasoning_token_count", said.get("reasoning_token_count")),
    )


def _row(record: Json, said: Mapping[str, Any], name: str, source: str, line: int | None) -> Record:
    took = seconds("duration_ms", said.get("duration_ms"))
    took = None if took is None else took // _MS_PER_S
    end = nanoseconds("timeUnixNano", record.get("timeUnixNano")) or Times().at(
        "event.timestamp", said.get("event.timestamp")
    )
    cost = dollars("cost_usd", said.get("cost_usd"))
    failed = name.endswith("api_error") or short_name(said.get("event.kind")) in _FAILED_KINDS
    model = short_name(said.get("model"))
    return {
        "kind": "model",
        "status": "failed" if failed else "completed",
        "model": model,
        "served_model": None if failed else model,
        "attempt": whole("attempt", said.get("attempt")),
        "start_ns": end if end is None or took is None else end - took,
        "duration_ns": took,
        "cost_nusd": None if failed else cost,
        "cost_source": None if failed or cost is None else "recorded",
        "source": source,
        "line": line,
    }


def _node(session: _Session, calls: Sequence[Record]) -> Record:
    stamps = [row["start_ns"] for row in calls if row["start_ns"] is not None]
    ends = [row["start_ns"] + (row["duration_ns"] or 0) for row in calls if row["start_ns"] is not None]
    return {
        **session.fields,
        "node": "0",
        "depth": 0,
        "record_unit": "session",
        "agent": session.agent,
        "model": _only(row["model"] for row in calls),
        "served_model": served(row["served_model"] for row in calls),
        "outcome": "unknown",
        **totals(calls),
        "start_ns": min(stamps) if stamps else None,
        "duration_ns": max(ends) - min(stamps) if stamps else None,
        "source": session.source,
        "line": session.line,
    }


def _only(values: Any) -> str | None:
    found = {value for value in values if value is not None}
    return found.pop() if len(found) == 1 else None
