"""TRAE agent trajectories (``trajectory.json``): one file is one run with one node; one interaction is one call.

What becomes what:

- run: the folder's name where the file is just ``trajectory.json``, else the file's own name.
- a ``journal.json`` beside it (a harness that ran TRAE wrote it) adds the time limit and how the process ended; it is
  not a record of its own.
- outcome: ``success`` is completed. Else the error of the last step is a failure (of the infrastructure where it names
  the provider), no call at all is "never started", the step limit reached is exhausted, a process that was ended at or
  after its time limit is timed out, one that was ended by a signal before is cancelled by nobody known.
- tokens: ``input_tokens`` counts cached ones for ``openai`` and ``openrouter``, not for ``anthropic``; every file is
  checked on its rows. Files of ``bedrock`` record no cache figures (all are 0): there the parts are unknown.
- cost: none is recorded.
- delivered: unknown; a patch was made or not, nobody judged it (``source_status`` has the harness's word).
- times: local, without a zone: the start is unknown; durations are differences on that one clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, RecordFile
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.times import Times, between
from harness_lab.settlements.readers.values import (
    Json,
    cause_of,
    document,
    inside,
    items,
    obj,
    seconds,
    served,
    short_name,
    totals,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MINUTE: Final = 60
_CACHED_BESIDE: Final = frozenset({"anthropic"})


class TraeReader:
    """Reader of TRAE agent trajectories."""

    name = "trae"
    expects = "a TRAE agent trajectory (trajectory*.json)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what only these have; journals beside them are taken along."""
        if not head.lstrip().startswith(b"{"):
            return False
        return (
            b'"llm_interactions"' in head
            or (b'"max_steps"' in head and b'"agent_steps"' in head)
            or (_journal(path, head) and b'"trae"' in head)
        )

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read trajectories, each with the journal of its folder."""
        output, times = ReaderOutput(), Times()
        journals = {file.path.parent: file for file in files if _journal(file.path, file.head)}
        trajectories = [
            file for file in files if file.path.parent not in journals or not _journal(file.path, file.head)
        ]
        for file in trajectories:
            try:
                data = obj(document(file), "a trajectory object")
                beside = journals.pop(file.path.parent, None)
                journal = obj(document(beside), "a journal object") if beside else {}
                node, calls = _run(data, journal, file, times, output.notes)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
            else:
                output.node(node, calls)
        for file in journals.values():
            output.reject(file.name, None, "a journal without a trajectory beside it")
        times.note("TRAE trajectories", output.notes)
        return output


def _journal(path: Path, head: bytes) -> bool:
    return path.name == "journal.json" and b'"time_budget_minutes"' in head


def _run(data: Json, journal: Json, file: RecordFile, times: Times, notes: list[str]) -> tuple[Record, list[Record]]:
    """Return the node row and the call rows of one trajectory."""
    if "llm_interactions" not in data:
        raise Unfit("not a trajectory: it has no 'llm_interactions'")
    stem = file.path.name.partition(".")[0]
    run = file.path.parent.name if stem == "trajectory" and file.path.parent.name else stem
    where: Record = {"run": run, "node": "0", "model": short_name(data.get("model")), "source": file.name}
    calls = _calls(data, where, file.name, times, notes)
    budget = _minutes(inside(journal, "trae", "time_budget_minutes"))
    node: Record = {
        **where,
        "record_unit": "run",
        "depth": 0,
        "agent": "trae-agent",
        "backend": short_name(data.get("provider")),
        "served_model": served(call["served_model"] for call in calls),
        "tool_calls": sum(len(items(inside(one, "response", "tool_calls"))) for one in items(data["llm_interactions"])),
        "iterations": len(items(data.get("agent_steps"))),
        "starts": 0,
        "start_ns": times.at("start_time", data.get("start_time")),
        "duration_ns": seconds("execution_time", data.get("execution_time")) or _gap(data),
        "ceiling_calls": whole("max_steps", data.get("max_steps")) or None,
        "ceiling_time_ns": budget,
        **totals(calls),
    }
    return {**node, **_end(data, journal, node)}, calls


def _gap(data: Json) -> int | None:
    return between(data.get("start_time"), data.get("end_time"))


def _minutes(value: object) -> int | None:
    given = seconds("time_budget_minutes", value)
    return given * _MINUTE if given else None


def _calls(data: Json, where: Record, name: str, times: Times, notes: list[str]) -> list[Record]:
    listed = items(data["llm_interactions"])
    providers = {short_name(inside(one, "provider")) for one in listed} | {short_name(data.get("provider"))}
    rules = Conventions(cached_inside=not providers & _CACHED_BESIDE)
    raws = [_raw(inside(one, "response", "usage")) for one in listed]
    if "bedrock" in providers and not any(raw.cached for raw in raws):
        raws = [Raw(input=raw.input, output=raw.output, reasoning=raw.reasoning) for raw in raws]
        rules = Conventions(cached_inside=True)
    for raw in raws:
        rules.see(name, raw)
    rows = []
    for number, (one, raw) in enumerate(zip(listed, raws, strict=True)):
        row = {**where, "call": number, "kind": "model", "status": "completed", **rules.disjoint(name, raw)}
        row["served_model"] = short_name(inside(one, "response", "model"))
        rows.append({**row, "start_ns": times.at("timestamp", inside(one, "timestamp"))})
    rules.note(name, notes)
    return rows


def _raw(usage: object) -> Raw:
    return Raw(
        input=whole("input_tokens", inside(usage, "input_tokens")),
        read=whole("cache_read_input_tokens", inside(usage, "cache_read_input_tokens")),
        write=whole("cache_creation_input_tokens", inside(usage, "cache_creation_input_tokens")),
        output=whole("output_tokens", inside(usage, "output_tokens")),
        reasoning=whole("reasoning_tokens", inside(usage, "reasoning_tokens")),
    )


def _end(data: Json, journal: Json, node: Record) -> Record:
    """Return outcome, cause, the binding limit and the harness's word for it."""
    steps = items(data.get("agent_steps"))
    error = inside(steps[-1], "error") if steps else None
    outcome, cause, code = _ended(data, journal, node, error if isinstance(error, str) and error else None)
    status = short_name(journal.get("status"))
    over = None if node["ceiling_calls"] is None else node["iterations"] > node["ceiling_calls"]
    return {"outcome": outcome, "cause": cause, "stopped_by": code, "overspent": over, "source_status": status}


def _ended(data: Json, journal: Json, node: Record, error: str | None) -> tuple[Outcome, Cause | None, Code | None]:
    if data.get("success") is True:
        return Outcome.COMPLETED, Cause.NONE, None
    if node["calls"] == 0:
        return Outcome.DENIED, cause_of(error) if error else None, None
    spent, limit = seconds("duration_s", inside(journal, "trae", "duration_s")), node["ceiling_time_ns"]
    if spent is not None and limit is not None and spent >= limit:
        return Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED
    if error is not None:
        return Outcome.FAILED, cause_of(error) or (Cause.MODEL if "JSON" in error else None), None
    if node["ceiling_calls"] is not None and node["iterations"] >= node["ceiling_calls"]:
        return Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED
    code = inside(journal, "trae", "returncode")
    if isinstance(code, int) and code < 0:
        return Outcome.CANCELLED, None, None
    return (Outcome.FAILED if data.get("end_time") or code else Outcome.UNKNOWN), None, None
