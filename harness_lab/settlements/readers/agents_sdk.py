"""Usage of the OpenAI Agents SDK as JSON lines: one line is one run, its ``request_usage_entries`` are the calls.

The SDK has no file format of its own; a line is a ``Usage`` as a dict, alone or under ``usage`` beside what the one who
wrote it knows: ``run`` (or ``run_id``, ``trace_id``, ``id``), ``session`` (``group_id``), ``agent``, ``model``,
``cost_usd``, ``start``, ``duration_s``, ``error`` (the exception's class).

- tokens: ``input_tokens`` counts cached ones and ``output_tokens`` counts reasoning (checked on each line's total).
- the run's own sums are the node's figures; entries are kept as calls and not added to them.
- outcome: ``MaxTurnsExceeded`` is the step limit; another error failed; without ``error`` in the line it is unknown.
- usage with no requests is unknown, not zero.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.json_lines import objects
from harness_lab.settlements.readers.times import Times
from harness_lab.settlements.readers.values import (
    Json,
    cause_of,
    dollars,
    first,
    ident,
    inside,
    items,
    seconds,
    short_name,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_KEYS: Final = (b'"requests"', b'"input_tokens"', b'"output_tokens"', b'"total_tokens"')
_CANCELLED: Final = re.compile(r"Cancelled|KeyboardInterrupt|UserAbort")


class AgentsSdkReader:
    """Reader of OpenAI Agents SDK usage."""

    name = "agents-sdk"
    expects = "OpenAI Agents SDK usage as JSON lines"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the first line has the keys of such a usage."""
        line = head.lstrip().partition(b"\n")[0]
        return line.startswith(b"{") and (b'"request_usage_entries"' in line or all(key in line for key in _KEYS))

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read usages; a line that cannot be taken is set aside."""
        output = ReaderOutput()
        for file in files:
            rules, times = Conventions(cached_inside=True), Times()
            for number, data in objects(file, output):
                try:
                    node, calls = _run(data, file, number, rules, times)
                except Unfit as error:
                    output.reject(file.name, number, str(error))
                else:
                    output.node(node, calls)
            rules.note(file.name, output.notes)
            times.note(file.name, output.notes)
        return output


def _run(data: Json, file: RecordFile, line: int, rules: Conventions, times: Times) -> tuple[Record, list[Record]]:
    usage = data["usage"] if isinstance(data.get("usage"), dict) else data
    if "input_tokens" not in usage or "output_tokens" not in usage:
        raise Unfit("not an Agents SDK usage: no 'input_tokens' or no 'output_tokens'")
    run = ident(data.get("run"), data.get("run_id"), data.get("trace_id"), data.get("id")) or f"{file.name}:{line}"
    where: Record = {"run": run, "node": "0", "model": short_name(data.get("model")), "source": file.name, "line": line}
    calls = [
        {**where, "call": number, "kind": "model", "status": "completed", **_tokens(entry, rules)}
        for number, entry in enumerate(items(usage.get("request_usage_entries")))
    ]
    made, cost = whole("requests", usage.get("requests")), dollars("cost_usd", data.get("cost_usd"))
    known = bool(made) if made is not None else bool(usage["input_tokens"])
    node: Record = {
        **where,
        "record_unit": "run",
        "depth": 0,
        "agent": short_name(data.get("agent")),
        "session": ident(data.get("session"), data.get("group_id")),
        "calls": made,
        **(_tokens(usage, rules) if known else {}),
        "usage_known": known,
        "cost_nusd": cost,
        "cost_source": None if cost is None else "recorded",
        "start_ns": times.at("start", data.get("start")),
        "duration_ns": seconds("duration_s", data.get("duration_s")),
        **_end(data),
    }
    return node, calls


def _tokens(usage: Json, rules: Conventions) -> Record:
    details, out = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    raw = Raw(
        input=whole("input_tokens", usage.get("input_tokens")),
        read=whole("cached_tokens", inside(details, "cached_tokens")),
        write=first("cache_write_tokens", inside(details, "cache_write_tokens")),
        output=whole("output_tokens", usage.get("output_tokens")),
        reasoning=whole("reasoning_tokens", inside(out, "reasoning_tokens")),
        total=whole("total_tokens", usage.get("total_tokens")),
    )
    return rules.disjoint("", raw)


def _end(data: Json) -> Record:
    error = data.get("error")
    ended: tuple[Outcome, Cause | None, Code | None]
    if error is None or error == "":
        ended = (Outcome.COMPLETED, Cause.NONE, None) if "error" in data else (Outcome.UNKNOWN, None, None)
    elif "MaxTurnsExceeded" in str(error)[:200]:
        ended = (Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED)
    elif _CANCELLED.search(str(error)[:200]):
        ended = (Outcome.CANCELLED, Cause.USER, None)
    else:
        ended = (Outcome.FAILED, cause_of(str(error)[:200]), None)
    outcome, cause, code = ended
    return {"outcome": outcome, "cause": cause, "stopped_by": code, "source_status": short_name(error)}
