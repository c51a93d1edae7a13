"""Terminal-Bench 0.x results (``results.json``): of one trial, or of a whole run with its trials under ``results``.

What becomes what:

- run: ``trial_name`` (it holds task, number and time). A run-level file says its trials again: what is said twice
  counts once, and its own figures (accuracy, pass@k) are no records.
- tokens: whether ``total_input_tokens`` counts cached ones depends on the agent, so it is ``input_total`` and the parts
  are unknown. 0 and null are both unknown. Counts are missing above all where trials timed out: what is missing is not
  missing at random.
- outcome: by ``failure_mode``; the agent's time-out is timed out and may still have delivered; trouble of the tests
  leaves the agent's run completed; a failed installation is "never started".
- delivered: ``is_resolved``; null is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.times import Times, between
from harness_lab.settlements.readers.values import Json, document, ident, obj, short_name, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_End = tuple[Outcome, Cause | None, Code | None]
_DONE: Final[_End] = (Outcome.COMPLETED, Cause.NONE, None)

_ENDS: Final[Mapping[str, _End]] = {
    "none": _DONE,
    "test_timeout": _DONE,
    "parse_error": _DONE,
    "agent_timeout": (Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED),
    "timeout": (Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED),
    "context_length_exceeded": (Outcome.FAILED, Cause.MODEL, None),
    "output_length_exceeded": (Outcome.FAILED, Cause.MODEL, None),
    "fatal_llm_parse_error": (Outcome.FAILED, Cause.MODEL, None),
    "agent_installation_failed": (Outcome.DENIED, Cause.INFRASTRUCTURE, None),
    "unknown_agent_error": (Outcome.FAILED, None, None),
    "unknown": (Outcome.FAILED, None, None),
}


class TerminalBenchReader:
    """Reader of Terminal-Bench results."""

    name = "terminal-bench"
    expects = "Terminal-Bench results (results.json)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what only these have."""
        trial = b'"is_resolved"' in head and b'"failure_mode"' in head
        whole_run = b'"n_resolved"' in head and b'"accuracy"' in head
        return head.lstrip().startswith(b"{") and (trial or whole_run)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read trials; one that cannot be taken is set aside."""
        output, times = ReaderOutput(), Times()
        for file in files:
            try:
                trials = _trials(obj(document(file), "a results object"))
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
                continue
            for number, trial in trials:
                try:
                    output.node(_trial(obj(trial, "a trial object"), file, number, times))
                except Unfit as error:
                    output.reject(file.name, number, str(error))
        times.note("Terminal-Bench trials", output.notes)
        return output


def _trials(data: Json) -> list[tuple[int | None, object]]:
    listed = data.get("results")
    if isinstance(listed, list):
        return [(number, trial) for number, trial in enumerate(listed, start=1)]
    return [(None, data)]


def _trial(data: Json, file: RecordFile, number: int | None, times: Times) -> Record:
    run = ident(data.get("trial_name"), data.get("id"))
    if run is None or "failure_mode" not in data:
        raise Unfit("not a Terminal-Bench trial: no 'trial_name' or no 'failure_mode'")
    sent = whole("total_input_tokens", data.get("total_input_tokens")) or None
    received = whole("total_output_tokens", data.get("total_output_tokens")) or None
    resolved = data.get("is_resolved")
    mode = short_name(data["failure_mode"]) or "unset"
    ended = _ENDS.get(mode, (Outcome.FAILED, None, None))
    if mode == "unset":
        ended = _DONE if isinstance(resolved, bool) else (Outcome.UNKNOWN, None, None)
    start = data.get("agent_started_at")
    return {
        "run": run,
        "node": "0",
        "depth": 0,
        "record_unit": "run",
        "outcome": ended[0],
        "cause": ended[1],
        "stopped_by": ended[2],
        "delivered": resolved if isinstance(resolved, bool) else None,
        "source_status": mode,
        "input_total": sent,
        "output": received,
        "usage_known": None not in (sent, received),
        "start_ns": times.at("agent_started_at", start),
        "duration_ns": between(start, data.get("agent_ended_at")),
        "source": file.name,
        "line": number,
    }
