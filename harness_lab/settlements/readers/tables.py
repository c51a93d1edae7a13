"""The rows of CSV, JSON lines, JSON arrays and Parquet, one at a time, whatever their content.

Everything here is about form: a row that cannot be taken apart is a :class:`Bad`, and reading goes on.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import MAX_JSON_BYTES, lines, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARQUET_MAGIC: Final = b"PAR1"
_BATCH: Final = 10_000
_PAGE: Final = re.compile(rb'\{\s*"data"\s*:\s*\[')


@dataclass(frozen=True, slots=True)
class Line:
    """One row: its number in the file (from 1) and its values by column."""

    number: int
    values: dict[str, object]


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that could not be taken apart, and why."""

    number: int
    reason: str


def lines_of(path: Path, head: bytes) -> Iterator[Line | Bad]:
    """Yield the rows of a flat file; its form is told by its first bytes.

    Raises
    ------
    Unfit, OSError, EOFError, pyarrow.ArrowException
        If the file as a whole cannot be read.
    """
    if head.startswith(PARQUET_MAGIC):
        return _parquet(path)
    text = _start(head)
    if _PAGE.match(text):
        return _page(path)
    if text.startswith(b"{"):
        return _json_lines(path)
    if text.startswith(b"["):
        return _json_array(path)
    return _csv(path)


def header(path: Path, head: bytes) -> list[str]:
    """Return the column names that a file's head shows; empty if it shows none."""
    try:
        if head.startswith(PARQUET_MAGIC):
            return list(pq.read_schema(path).names)
        first = _start(head).partition(b"\n")[0].strip()
        if first.startswith(b"{"):
            return list(_object(first))
        return next(csv.reader([first.decode()], delimiter=_delimiter(first)), [])
    except (ValueError, RecursionError, csv.Error, OSError, pa.ArrowException):
        return []


def _start(head: bytes) -> bytes:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _object(text: bytes | str) -> dict[str, object]:
    """Parse one JSON object.

    Raises
    ------
    ValueError
        If it is none.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object was expected, got a {type(value).__name__}")
    return value


def _json_lines(path: Path) -> Iterator[Line | Bad]:
    for number, line in lines(path):
        if line is None:
            yield Bad(number, "the line is too long")
        elif line.strip():
            yield _json_row(number, line.removeprefix(b"\xef\xbb\xbf"))


def _json_row(number: int, text: bytes) -> Line | Bad:
    try:
        return Line(number, _object(text))
    except json.JSONDecodeError as error:
        return Bad(number, f"not valid JSON ({error.msg} at character {error.pos}); cut short?")
    except RecursionError:
        return Bad(number, "nested too deeply")
    except ValueError as error:
        return Bad(number, "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error))


def _page(path: Path) -> Iterator[Line | Bad]:
    """Yield the rows of an API's answer, ``{"data": [rows], ...}``; if the file is no such object, its lines."""
    with open_bytes(path) as file:
        text = file.read(MAX_JSON_BYTES + 1)
    try:
        rows = _object(text)["data"] if len(text) <= MAX_JSON_BYTES else None
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        yield from _json_lines(path)
        return
    for number, row in enumerate(rows, start=1):
        yield Line(number, row) if isinstance(row, dict) else Bad(number, "not a JSON object")


def _json_array(path: Path) -> Iterator[Line | Bad]:
    with open_bytes(path) as file:
        text = file.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise Unfit(f"a JSON array of more than {MAX_JSON_BYTES:,} bytes; JSON lines can be of any length")
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"not valid JSON: {error}") from None
    for number, row in enumerate(rows, start=1):
        yield Line(number, row) if isinstance(row, dict) else Bad(number, "not a JSON object")


def _delimiter(first: bytes) -> str:
    """Return the most frequent of comma, semicolon and tab in the header line."""
    return max((",", ";", "\t"), key=lambda mark: first.count(mark.encode()))


def _csv(path: Path) -> Iterator[Line | Bad]:
    bad: list[Bad] = []
    source = _texts(path, bad)
    first = next(source, "")
    if bad:
        raise Unfit(f"header: {bad[0].reason}")
    if not first:
        return
    mark = _delimiter(first.encode())
    names = [name.strip() for name in next(csv.reader([first], delimiter=mark))]
    if len(set(names)) < len(names):
        raise Unfit("the header names a column twice")
    rows = csv.reader(source, delimiter=mark)
    while True:
        before = rows.line_num + 1
        try:
            values = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            yield Bad(before + 1, f"not a CSV row: {error}")
            continue
        if values:
            yield _csv_row(before + 1, names, values)
    yield from bad


def _csv_row(number: int, names: list[str], values: list[str]) -> Line | Bad:
    if len(values) != len(names):
        cut = "; cut short?" if len(values) < len(names) else ""
        return Bad(number, f"{len(values)} fields where the header has {len(names)}{cut}")
    return Line(number, dict(zip(names, values, strict=True)))


def _texts(path: Path, bad: list[Bad]) -> Iterator[str]:
    """Yield a text file's lines with their ends; one that cannot be taken is left empty and added to `bad`."""
    for number, line in lines(path):
        text = ""
        if line is None:
            bad.append(Bad(number, "the line is too long"))
        else:
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                bad.append(Bad(number, "not UTF-8"))
        yield text + "\n"


def _parquet(path: Path) -> Iterator[Line | Bad]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            for values in batch.to_pylist():
                number += 1
                yield Line(number, values)
        promised = file.metadata.num_rows
    if number != promised:
        yield Bad(number + 1, f"damaged: {number:,} of the {promised:,} rows that the file says it has can be read")
