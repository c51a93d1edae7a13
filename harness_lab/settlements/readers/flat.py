"""Flat tables: CSV, JSON lines (or one JSON array) and Parquet, with a column map; also our own rows with no map.

Without a map the file's own column names have to be the table's (``cost_usd``, ``duration_s``, ``start`` and the like
are understood). With one, only the mapped columns are read. Numbers may be text. Empty fields are unknown.

Prompt counts: ``input_total`` counts the whole prompt, cached part included (the usual ``prompt_tokens``); with
``cache_read`` beside it, ``input_fresh`` follows. A source that has no column for cache writes is taken to have none
apart from ``input_fresh``. A source whose count leaves the cached part out is mapped to ``input_fresh`` instead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import store
from harness_lab.settlements.columns import NODE_COLUMNS, NODE_NAMES
from harness_lab.settlements.convert import TARGETS, Unfit, converted, is_naive
from harness_lab.settlements.files import UNREADABLE, RecordFile, is_binary
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions
from harness_lab.settlements.readers.presets import Preset
from harness_lab.settlements.readers.tables import PARQUET_MAGIC, Bad, Line, header, lines_of
from harness_lab.settlements.readers.words import Words, check_values
from harness_lab.settlements.rows import shown
from harness_lab.settlements.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

FIELDS: Final = (*NODE_NAMES, *TARGETS)
"""Every field that a column map may name."""
CALL_ROWS: Final = "call_rows"
"""Where a row of ours holds its node's calls, by column of the calls table."""
COMMON: Final = (
    "run", "outcome", "cost_usd", "input_total", "output", "duration_s", "start", "calls", "agent", "model", "backend",
    "user", "team", "repo", "session", "task_kind", "delivered", "node", "parent", "stopped_by", "score", "cache_read",
    "cache_write", "input_fresh",
)  # fmt: skip
"""Fields that most tables have."""
_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("cost", "costs", "spend", "price", "usd", "dollars", "amount", "money"), ("cost_usd",)),
    **dict.fromkeys(("tokens", "total_tokens"), ("input_total", "output")),
    **dict.fromkeys(("input", "prompt", "prompt_tokens", "input_tokens"), ("input_total", "input_fresh")),
    **dict.fromkeys(("completion", "completion_tokens", "output_tokens"), ("output",)),
    **dict.fromkeys(("time", "duration", "seconds", "latency", "elapsed"), ("duration_s",)),
    **dict.fromkeys(("status", "result", "state", "success", "exit_status"), ("outcome",)),
    **dict.fromkeys(("id", "run_id", "trace_id"), ("run",)),
    **dict.fromkeys(("timestamp", "date", "created_at", "started_at"), ("start",)),
    **dict.fromkeys(("steps", "turns", "requests"), ("calls",)),
    **dict.fromkeys(("repository", "project"), ("repo",)),
    **dict.fromkeys(("task", "kind"), ("task_kind",)),
}
"""What names that are no fields are likely to stand for."""

_NUMBERS: Final = frozenset(column.name for column in NODE_COLUMNS if column.dtype in {"Int64", "Float64"}) | {*TARGETS}
_NO_NUMBER: Final = frozenset(("", "n/a", "na", "nan", "null", "none", "-"))
_VERSIONS: Final = frozenset(map(str, range(1, SCHEMA_VERSION + 1)))
_SUFFIXES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".csv.gz", ".jsonl.gz")


class FlatReader:
    """Reader of flat tables."""

    name = "flat"
    expects = (
        "CSV, JSON lines or Parquet with the settlement table's columns, or any other with columns={field: column}"
    )

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the file has the settlement table's own columns."""
        if path.name.endswith(".calls.parquet"):
            return False  # read together with the nodes beside it
        names = header(path, head)
        return "run" in names and all(name in FIELDS or name == CALL_ROWS for name in names)

    def takes(self, path: Path) -> bool:
        """Return whether a file found in a folder is read with a column map: its name says that it is flat."""
        return path.name.lower().endswith(_SUFFIXES) and not path.name.endswith(".calls.parquet")

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read flat tables.

        Raises
        ------
        InputError
            If the map names a field that the table does not have or a column that a file does not have.
        ReadError
            If a file that was named is no table, or has no rows.
        """
        output = ReaderOutput()
        check_map(options.columns)
        check_values(options.values, FIELDS)
        words = Words(options.values)
        for file in files:
            before = output.read
            if options.columns is None and self._read_own(file, output):
                continue
            _read_file(file, options.columns, words, output)
            if file.named and output.read == before:
                raise ReadError(file.name, expected="a table with at least one row", got="no rows")
        if (note := words.note()) is not None:
            output.notes.append(note)
        return output

    def _read_own(self, file: RecordFile, output: ReaderOutput) -> bool:
        """Read a Parquet file that this package wrote; False if it is none."""
        if not file.head.startswith(PARQUET_MAGIC):
            return False
        try:
            if store.stored_version(pq.read_schema(file.path).metadata) is None:
                return False
        except (pa.ArrowException, OSError):
            return False
        try:
            nodes, calls, report = store.read(file.path)
        except ReadError as error:
            _refuse(file, output, str(error))
            return True
        output.read += len(nodes)
        output.nodes.add_frame(nodes)
        if calls is not None:
            output.calls.add_frame(calls)
        if report.set_aside:
            output.notes.append(
                f"{file.name} was made of {report.read:,} records, {len(report.set_aside):,} set aside then"
            )
        return True


def check_map(columns: Mapping[str, str] | None) -> None:
    """Refuse a column map that names fields which the table does not have.

    Raises
    ------
    InputError
        Naming the field and the closest that exist, or saying that the order is turned round.
    """
    for name in columns or ():
        if name not in FIELDS:
            raise _no_field(name, columns[name] if columns else "")


def _no_field(name: str, column: str) -> InputError:
    if column in FIELDS:
        hint = f"Turned round? Write {column}={name}"
        return InputError(
            "column map", expected="FIELD=COLUMN, the table's field first", got=f"{name}={column}", hint=hint
        )
    near = _near(name.lower())
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Common ones: {', '.join(COMMON[:8])}."
    hint += " All of them: harness-lab read --fields"
    return InputError("column map", expected="FIELD=COLUMN with a field of the table", got=name, hint=hint)


def _near(name: str) -> list[str]:
    """Return the fields that a name may stand for: by its meaning, else spelled alike, the common ones first."""
    for word in get_close_matches(name, [*COMMON, *_MEANT], n=1, cutoff=0.75):
        return list(_MEANT.get(word, (word,)))
    return get_close_matches(name, COMMON, n=1, cutoff=0.6) or get_close_matches(name, FIELDS, n=3, cutoff=0.6)


def _read_file(file: RecordFile, columns: Mapping[str, str] | None, words: Words, output: ReaderOutput) -> None:
    if is_binary(file.head) and not file.head.startswith(PARQUET_MAGIC):
        _refuse(file, output, "binary content")
        return
    source = _Mapped(file, columns, words)
    try:
        for line in lines_of(file.path, file.head):
            source.take(line, output)
    except (Unfit, pa.ArrowException, *UNREADABLE) as error:
        _refuse(file, output, str(error).partition("\n")[0] or type(error).__name__)
    source.finish(output)


def _refuse(file: RecordFile, output: ReaderOutput, reason: str) -> None:
    """Raise for a file that the user named; set one aside that was found in a folder."""
    if file.named:
        raise ReadError(file.name, expected="a CSV, JSON lines or Parquet table in UTF-8", got=reason)
    output.reject(file.name, None, f"cannot be read as a table: {reason}")


class _Mapped:
    """One flat file being read: which of its columns become which fields, and how its rows are named."""

    def __init__(self, file: RecordFile, columns: Mapping[str, str] | None, words: Words) -> None:
        self.file, self.own, self.words = file, columns is None, words
        self.preset = columns if isinstance(columns, Preset) else None
        mapped = columns or {}
        self.constants = {name: value[1:] for name, value in mapped.items() if value.startswith("=")}
        self.columns = {name: value for name, value in mapped.items() if not value.startswith("=")}
        self.seen: set[str] = set()
        self.nodes: Counter[str] = Counter()
        self.naive = 0

    def take(self, line: Line | Bad, output: ReaderOutput) -> None:
        """Add one row to the output, or set it aside."""
        if isinstance(line, Bad):
            output.reject(self.file.name, line.number, line.reason)
            return
        calls = line.values.pop(CALL_ROWS, None) if self.own else None
        self.seen.update(line.values)
        try:
            row = self._row(line if self.preset is None else Line(line.number, self.preset.prepared(line.values)))
        except Unfit as error:
            output.reject(self.file.name, line.number, str(error))
            return
        if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
            output.reject(self.file.name, line.number, f"{CALL_ROWS}: should be a list of calls, got {shown(calls)}")
            return
        of = {name: row[name] for name in ("run", "node", "source", "line") if name in row}
        output.node(row, [call | of for call in calls or ()])

    def _row(self, line: Line) -> dict[str, object]:
        picked: dict[str, object] = dict(self.constants)
        pairs = ((name, name) for name in line.values) if self.own else self.columns.items()
        for name, column in pairs:
            value = look_up(line.values, column)
            if not _empty(name, value):
                picked[name] = value
        self.words.translate(picked)
        self.naive += any(is_naive(picked[name]) for name in ("start", "end") if name in picked)
        row = converted(picked)
        _check_version(row.pop("schema_version", SCHEMA_VERSION))
        self._complete(row, line)
        return row

    def _complete(self, row: dict[str, object], line: Line) -> None:
        """Name the row where the file does not, and say where it came from."""
        run = row.setdefault("run", f"{self.file.name}:{line.number}")
        if "node" not in row:
            row["node"] = str(self.nodes[str(run)])
            self.nodes[str(run)] += 1
        row.setdefault("source", self.file.name)
        row.setdefault("line", line.number)
        if "cost_nusd" in row:
            row.setdefault("cost_source", "recorded")
        has_writes = "cache_write" in (line.values if self.own else self.columns)
        if "input_total" in row and "cache_read" in row and not has_writes:
            row["cache_write"] = 0

    def finish(self, output: ReaderOutput) -> None:
        """Complain about mapped columns that no row had; note times without a zone."""
        if self.own and self.file.named and self.seen - set(FIELDS):  # else its rows were set aside
            unknown = ", ".join(sorted(self.seen - set(FIELDS)))
            hint = f"give a map for these columns: {unknown}"
            raise InputError(self.file.name, expected="the settlement table's columns", got=unknown, hint=hint)
        wanted = self.columns.values() if self.preset is None else self.preset.required
        missing = [column for column in wanted if self.seen and column not in self.seen]
        missing = [column for column in missing if column.split(".")[0] not in self.seen]
        if missing:
            raise InputError(f"column map for {self.file.name}", expected=_listed(self.seen), got=missing[0])
        if self.preset is not None and self.preset.note and self.seen:
            output.notes.append(f"{self.file.name}: {self.preset.note}")
        if self.naive:
            output.notes.append(f"{self.file.name}: {self.naive:,} row(s) have times without a zone; read as UTC")


def _empty(name: str, value: object) -> bool:
    """Whether a cell says nothing: it is empty, or a number is due and it holds one of the usual words for none."""
    if value is None or value == "" or value != value:  # NaN is unequal to itself
        return True
    return name in _NUMBERS and isinstance(value, str) and value.strip().lower() in _NO_NUMBER


def _check_version(version: object) -> None:
    if str(version) not in _VERSIONS:
        raise Unfit(f"schema_version: should be at most {SCHEMA_VERSION}, got {shown(version)}")


def _listed(names: set[str]) -> str:
    return f"columns that exist ({', '.join(sorted(names))})"


def look_up(values: Mapping[str, object], column: str) -> object:
    """Return a column's value; ``a.b`` reaches into nested objects where there is no column of that very name.

    Examples
    --------
    >>> look_up({"usage": {"prompt_tokens": 7}}, "usage.prompt_tokens")
    7
    """
    if column in values or "." not in column:
        return values.get(column)
    head, _, rest = column.partition(".")
    inner = values.get(head)
    if isinstance(inner, str) and inner.startswith("{"):
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            return None
    return look_up(inner, rest) if isinstance(inner, Mapping) else None
