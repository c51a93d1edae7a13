"""aider: the analytics log (one message is one row) and benchmark results (one exercise is one row).

Analytics (``--analytics-log``, JSON lines):

- a row is one ``message_send``: record_unit ``call``, one node, named by file and line. The log has no run id and
  parallel instances interleave, so sessions cannot be told apart and none is made up.
- ``message_send_exception`` is a failed call whose usage is unknown. ``launched``, ``exit`` and the other events are no
  calls; how many there were is in a note.
- cost 0 beside tokens is unknown (no price for the model), prompt 0 is unknown, and an answer of 0 tokens was
  interrupted: outcome and output unknown. Costs are recorded as they are, absurd ones too.
- the prompt count is aider's own (an estimate where the provider sends none); whether it holds cached tokens is not
  said, so it is ``input_total`` and the parts are unknown.

Benchmark (``.aider.results.json``): record_unit ``run``; ``delivered`` says whether the last try passed its tests;
a file without outcomes was written at set-up: its run never finished, outcome unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from harness_lab.outcome import Cause, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.json_lines import objects
from harness_lab.settlements.readers.times import Times
from harness_lab.settlements.readers.values import (
    Json,
    document,
    dollars,
    ident,
    inside,
    obj,
    seconds,
    short_name,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_RESULTS: Final = ".aider.results.json"
_CALLS: Final = frozenset({"message_send", "message_send_exception"})


class AiderAnalyticsReader:
    """Reader of aider's analytics log."""

    name = "aider-analytics"
    expects = "an aider analytics log (--analytics-log)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the first line is an event of such a log."""
        line = head.lstrip().partition(b"\n")[0]
        return line.startswith(b"{") and all(mark in line for mark in (b'"event"', b'"properties"', b'"user_id"'))

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read messages; a line that cannot be taken is set aside."""
        output = ReaderOutput()
        for file in files:
            others: Counter[str] = Counter()
            for number, event in objects(file, output):
                name = event.get("event")
                if not isinstance(name, str) or name not in _CALLS:
                    others[_short(name)] += 1
                    continue
                try:
                    output.node(_message(event, file, number))
                except Unfit as error:
                    output.reject(file.name, number, str(error))
            if others:
                listed = ", ".join(f"{count:,} {name}" for name, count in others.most_common(8))
                output.notes.append(f"{file.name}: events that are no calls: {listed}")
        return output


def _short(name: object) -> str:
    """Return an event's name for a note; anything longer than two words is none."""
    return name if isinstance(name, str) and re.fullmatch(r"[a-z_]{1,30}( [a-z_]{1,30})?", name) else "of no name"


def _message(event: Json, file: RecordFile, line: int) -> Record:
    said = event.get("properties")
    use = _use(said)
    answered = Outcome.COMPLETED if use["output"] else Outcome.UNKNOWN
    outcome = Outcome.FAILED if event["event"] == "message_send_exception" else answered
    return {
        "run": f"{file.name}:{line}",
        "node": "0",
        "depth": 0,
        "record_unit": "call",
        "agent": "aider",
        "model": short_name(inside(said, "main_model")),
        "task_kind": short_name(inside(said, "edit_format")),
        "user": ident(event.get("user_id")),
        "outcome": outcome,
        "cause": Cause.NONE if outcome is Outcome.COMPLETED else None,
        "source_status": event["event"],
        "calls": 1,
        **use,
        "usage_known": None not in (use["input_total"], use["output"]),
        "start_ns": Times().at("time", event.get("time")),
        "source": file.name,
        "line": line,
    }


def _use(said: object) -> Record:
    """Return tokens and cost; what is 0 here is unknown."""
    cost = dollars("cost", inside(said, "cost"))
    return {
        "input_total": whole("prompt_tokens", inside(said, "prompt_tokens")) or None,
        "output": whole("completion_tokens", inside(said, "completion_tokens")) or None,
        "cost_nusd": cost or None,
        "cost_source": "recorded" if cost else None,
    }


class AiderBenchmarkReader:
    """Reader of aider's benchmark results, one file for each exercise."""

    name = "aider-benchmark"
    expects = f"aider benchmark results ({_RESULTS})"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the file is named so, or its head has what only these have."""
        marks = b'"tests_outcomes"' in head and b'"testcase"' in head
        return head.lstrip().startswith(b"{") and (path.name == _RESULTS or marks)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read results; one that cannot be read is set aside."""
        output = ReaderOutput()
        for file in files:
            try:
                output.node(_exercise(obj(document(file), "a results object"), file))
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
        return output


def _exercise(data: Json, file: RecordFile) -> Record:
    name = ident(data.get("testcase"))
    if name is None or "tests_outcomes" not in data:
        raise Unfit("not aider benchmark results: no 'testcase' or no 'tests_outcomes'")
    tries = data["tests_outcomes"] if isinstance(data["tests_outcomes"], list) else []
    folders = [part for part in file.path.parts[-7:-1] if part not in {"exercises", "practice", "/"}]
    use, thought = _use(data), whole("thinking_tokens", data.get("thinking_tokens"))
    fits = thought is not None and use["output"] is not None and thought <= use["output"]
    return {
        "run": "/".join(folders or [name]),
        "node": "0",
        "depth": 0,
        "record_unit": "run",
        "agent": "aider",
        "model": short_name(data.get("model")),
        "task_kind": short_name(data.get("edit_format")),
        "outcome": Outcome.COMPLETED if tries else Outcome.UNKNOWN,
        "cause": Cause.NONE if tries else None,
        "delivered": tries[-1] if tries and isinstance(tries[-1], bool) else None,
        "iterations": len(tries),
        **use,
        "reasoning": thought if fits else None,
        "usage_known": bool(tries) and use["input_total"] is not None,
        "duration_ns": seconds("duration", data.get("duration")) or None,
        "source": file.name,
    }
