"""Settlements on disk: Parquet, with the schema version in the file's metadata.

The nodes are in ``NAME.parquet`` and the calls, where there are any, beside them in ``NAME.calls.parquet``. Files are
written beside their place and moved into it, so that nobody ever sees half a file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness_lab import files
from harness_lab.errors import InputError, ReadError
from harness_lab.settlements.columns import CALL_COLUMNS, NODE_COLUMNS, Column
from harness_lab.settlements.report import ReadReport
from harness_lab.settlements.schema import SCHEMA_VERSION, conform_calls, conform_nodes, migrate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSION_KEY: Final = b"harness_lab.schema_version"
REPORT_KEY: Final = b"harness_lab.read_report"

ARROW: Final = {"Int64": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "Float64": pa.float64()}
"""pandas dtype → Arrow type."""
PANDAS: Final[dict[pa.DataType, Any]] = {
    pa.int64(): pd.Int64Dtype(),
    pa.string(): pd.StringDtype(),
    pa.large_string(): pd.StringDtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.float64(): pd.Float64Dtype(),
}
"""Arrow type → pandas dtype."""


class Stored(NamedTuple):
    """What a stored table holds."""

    nodes: pd.DataFrame
    calls: pd.DataFrame | None
    report: ReadReport


def calls_path(path: Path) -> Path:
    """Return where the calls of the table at `path` lie: ``runs.parquet`` → ``runs.calls.parquet``."""
    return path.with_name(f"{path.stem}.calls.parquet")


def write(path: Path, nodes: pd.DataFrame, calls: pd.DataFrame | None, report: ReadReport) -> None:
    """Write a table; a calls file left over from an earlier table of the same name is removed.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to, or something that is no file is in the place
        of one of the two; see :func:`harness_lab.files.replacing`.
    """
    files.target(path)
    beside = files.target(calls_path(path))
    if calls is not None:
        _write_one(beside, calls, CALL_COLUMNS, {})
    _write_one(path, nodes, NODE_COLUMNS, {REPORT_KEY: json.dumps(report.to_dict()).encode()})
    if calls is None:
        files.remove(beside)


def _write_one(path: Path, frame: pd.DataFrame, columns: tuple[Column, ...], extra: dict[bytes, bytes]) -> None:
    schema = pa.schema([(column.name, ARROW[column.dtype]) for column in columns])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    table = table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode(), **extra})
    with files.replacing(path) as beside:
        pq.write_table(table, beside, compression="zstd")


def read(path: Path) -> Stored:
    """Read a table that :func:`write` wrote, of this or an older schema version.

    Raises
    ------
    ReadError
        If the file is missing, no Parquet, not a settlement table, damaged, or of a newer version.
    """
    nodes, metadata = _read_one(path, conform_nodes)
    beside = calls_path(path)
    calls = _read_one(beside, conform_calls)[0] if beside.is_file() else None
    return Stored(nodes, calls, _report(metadata, rows=len(nodes)))


def _read_one(path: Path, conform: Callable[[pd.DataFrame], pd.DataFrame]) -> tuple[pd.DataFrame, dict[bytes, bytes]]:
    expected = "a settlement table (Parquet written by harness_lab)"
    try:
        with pq.ParquetFile(path) as file:  # not read_table: that would take "a=b" in a folder's name for a column
            table = file.read()
    except FileNotFoundError:
        raise ReadError(str(path), expected=expected, got="no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise ReadError(str(path), expected=expected, got=str(error).partition("\n")[0]) from None
    version = stored_version(table.schema.metadata)
    if version is None:
        hint = "other tables are read with settlements.read(path, columns={field: column})"
        raise ReadError(str(path), expected=expected, got="Parquet without a schema version", hint=hint)
    frame = migrate(table.to_pandas(types_mapper=PANDAS.get, ignore_metadata=True), version=version)
    try:
        return conform(frame), table.schema.metadata
    except InputError as error:
        raise ReadError(str(path), expected=expected, got=str(error)) from None


def stored_version(metadata: dict[bytes, bytes] | None) -> int | None:
    """Return the schema version in a Parquet file's metadata, or None if it is no settlement table."""
    try:
        return int((metadata or {})[VERSION_KEY])
    except (KeyError, ValueError):
        return None


def _report(metadata: dict[bytes, bytes], *, rows: int) -> ReadReport:
    try:
        return ReadReport.from_dict(json.loads(metadata[REPORT_KEY]))
    except (KeyError, ValueError, TypeError, AttributeError):
        return ReadReport(files=1, read=rows, kept=rows)
