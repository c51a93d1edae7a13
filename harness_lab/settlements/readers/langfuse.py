"""Langfuse exports of observations: the interface's CSV and JSON, the API's JSON, rows of the scheduled blob export.

- calls: GENERATION and EMBEDDING observations; AGENT ones are nodes, TOOL ones are counted. The rest, and traces, only
  tell what lies above what. How observations become rows: :mod:`harness_lab.settlements.readers.spans`.
- usage and cost are maps with free keys, in a CSV as JSON in a text. Keys that begin with ``input`` or ``output`` are
  disjoint parts (details are taken out of ``input`` when usage is recorded); ``total`` is only compared: where it
  equals input and output alone, the details were inside after all. Of costs, the application's own are preferred.
- cost: the map's ``total``, else the sum of its parts; without any it is unknown.
- level ERROR is a failure; its message is not kept.
- times: with a zone, or, in the blob export, UTC by its documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from harness_lab.outcome import Cause, Outcome
from harness_lab.settlements.convert import Unfit, instant
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record, unit_of
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.json_lines import MAX_ASIDE
from harness_lab.settlements.readers.spans import End, Kind, Span, Traces
from harness_lab.settlements.readers.tables import Bad, lines_of
from harness_lab.settlements.readers.values import cause_of, dollars, ident, short_name, summed, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_Row = Mapping[str, Any]

_KINDS: Final[Mapping[str, Kind]] = {"GENERATION": "model", "EMBEDDING": "model", "AGENT": "agent", "TOOL": "tool"}
_READ: Final = re.compile(r"cache_?read|cached", re.IGNORECASE)
_WRITE: Final = re.compile(r"cache_?(creation|write)", re.IGNORECASE)
_HOUR: Final = re.compile(r"1h", re.IGNORECASE)
_REASONING: Final = re.compile(r"reasoning|thinking|thoughts", re.IGNORECASE)
_MARKS: Final = ((b"traceId", b"trace_id"), (b"usageDetails", b"usage_details", b"costDetails", b"cost_details"))


class LangfuseReader:
    """Reader of Langfuse observations."""

    name = "langfuse"
    expects = "a Langfuse export of observations (CSV, JSON or JSON lines)"

    units = ("trace", "session")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has the columns of such an export."""
        return all(any(mark in head for mark in marks) for marks in _MARKS) and (
            b"GENERATION" in head or b"type" in head
        )

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read all observations of all files, since one trace may lie in several, then make their rows."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        rules = Conventions(cached_inside=False, reasoning_inside=False)
        traces = Traces(rules, name="Langfuse observations", unit=unit)
        for file in files:
            _read(file, traces, output)
        traces.write(output)
        return output


def _read(file: RecordFile, traces: Traces, output: ReaderOutput) -> None:
    others = rows = 0
    try:
        for line, row in _observations(file, output):
            rows += 1
            if not (row.get("traceId") or row.get("trace_id")):
                others += 1
                continue
            try:
                traces.add(_span(row, file.name, line))
            except Unfit as error:
                output.reject(file.name, line, str(error))
    except (Unfit, pa.ArrowException, *UNREADABLE) as error:
        output.reject(file.name, None, str(error).partition("\n")[0])
    else:
        if not rows:
            output.reject(file.name, None, "no observations")
    if others:
        output.notes.append(f"{file.name}: {others:,} row(s) without a trace id were left alone")


def _observations(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int, _Row]]:
    """Yield (line, row); lines that are none are set aside, beyond some number only counted."""
    aside = 0
    for line in lines_of(file.path, file.head):
        if isinstance(line, Bad):
            aside += 1
            if aside <= MAX_ASIDE:
                output.reject(file.name, line.number, line.reason)
            continue
        for row in _rows(line.values):
            yield line.number, row
    if aside > MAX_ASIDE:
        output.reject(file.name, None, f"{aside - MAX_ASIDE:,} more rows could not be taken")


def _rows(values: _Row) -> list[_Row]:
    """Return an API page's rows; a plain row is itself."""
    page = values.get("data")
    if isinstance(page, list) and "meta" in values:
        return [row for row in page if isinstance(row, Mapping)]
    return [values]


def _span(row: _Row, source: str, line: int) -> Span:
    trace, name = ident(row.get("traceId"), row.get("trace_id")), ident(row.get("id"), row.get("span_id"))
    if trace is None or name is None:
        raise Unfit("an observation without id or traceId")
    said = row.get("type")
    kind = _KINDS.get(said.upper(), "other") if isinstance(said, str) else "other"
    start = _time("startTime", row.get("startTime") or row.get("start_time"))
    end = _time("endTime", row.get("endTime") or row.get("end_time"))
    model = short_name(row.get("model") or row.get("provided_model_name") or row.get("providedModelName"))
    parent = ident(row.get("parentObservationId"), row.get("parent_observation_id"))
    return Span(
        trace=trace,
        id=name,
        parent=parent,
        kind=kind,
        raw=_raw(row) if kind == "model" else Raw(),
        group=f"{source}|{model}",
        start_ns=start,
        duration_ns=end - start if start is not None and end is not None and end >= start else None,
        cost_nusd=_cost(row) if kind == "model" else None,
        end=_end(row, ended=end is not None),
        source=source,
        line=line,
        fields=_fields(row, kind, model),
    )


def _fields(row: _Row, kind: Kind, model: str | None) -> Record:
    fields: Record = {
        "model": model if kind == "model" else None,
        "session": ident(row.get("sessionId"), row.get("session_id")),
        "user": ident(row.get("userId"), row.get("user_id")),
    }
    if kind == "model":
        fields["served_model"] = model
    if kind == "agent":
        fields["agent"] = short_name(row.get("name"))
    return fields


def _time(what: str, value: object) -> int | None:
    """Return an instant; the export's documentation says that times without a zone are UTC."""
    if value is None or value == "":
        return None
    try:
        return instant(value)
    except (Unfit, OverflowError) as error:
        raise Unfit(f"{what}: {error}") from None


def _map(row: _Row, *names: str) -> Mapping[str, Any]:
    """Return the first of some maps that has anything in it; in a CSV they are JSON in a text."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise Unfit(f"{name}: should be a JSON object") from None
        if isinstance(value, Mapping) and any(part is not None for part in value.values()):
            return value
        if isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value):
            return dict(value)  # how Parquet holds maps
    return {}


def _raw(row: _Row) -> Raw:
    usage = _map(row, "usageDetails", "usage_details", "providedUsageDetails", "provided_usage_details", "usage")
    plain: dict[str, list[int]] = {"input": [], "read": [], "write": [], "write_1h": [], "output": [], "reasoning": []}
    for key, value in usage.items():
        number = whole(key, value)
        if number is None:
            continue
        if key.startswith("output") or key in {"completion_tokens", "completionTokens"}:
            plain["reasoning" if _REASONING.search(key) else "output"].append(number)
        elif _WRITE.search(key):
            plain["write"].append(number)
            plain["write_1h"].extend([number] if _HOUR.search(key) else [])
        elif _READ.search(key):
            plain["read"].append(number)
        elif key.startswith("input") or key in {"prompt_tokens", "promptTokens"}:
            plain["input"].append(number)
    return Raw(**{name: summed(values) for name, values in plain.items()}, total=whole("total", usage.get("total")))


def _cost(row: _Row) -> int | None:
    cost = _map(row, "providedCostDetails", "provided_cost_details", "costDetails", "cost_details")
    given = dollars("total", cost.get("total"))
    if given is None:
        given = summed(dollars(key, value) for key, value in cost.items() if value is not None)
    if given is None:
        given = dollars("totalCost", row.get("totalCost") or row.get("total_cost") or None)
    return given


def _end(row: _Row, *, ended: bool) -> End:
    if row.get("level") == "ERROR":
        message = row.get("statusMessage") or row.get("status_message")
        return Outcome.FAILED, cause_of(message[:200]) if isinstance(message, str) else None, None
    return (Outcome.COMPLETED, Cause.NONE, None) if ended else (Outcome.UNKNOWN, None, None)
