"""Answers of foreign limiters as they are stored, one file a limiter: each was found where its package is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness_lab.conformance.foreign import AdapterReport
from harness_lab.conformance.report import Result
from harness_lab.errors import ReadError

if TYPE_CHECKING:
    from pathlib import Path


def read_answers(folder: Path) -> list[AdapterReport]:
    """Read every stored report of a folder, by name.

    Raises
    ------
    ReadError
        If there is none, or a file is not what ``conformance --adapter NAME --json`` prints.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        expected = "files that conformance --adapter NAME --json printed"
        raise ReadError(str(folder), expected=expected, got="no JSON file")
    return [_read(file) for file in files]


def _read(file: Path) -> AdapterReport:
    try:
        data = json.loads(file.read_text("utf-8"))
        return from_data(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "what conformance --adapter NAME --json prints"
        raise ReadError(str(file), expected=expected, got=f"{type(error).__name__}: {error}") from error


def from_data(data: dict[str, Any]) -> AdapterReport:
    """Return the report whose :meth:`~harness_lab.conformance.foreign.AdapterReport.to_data` this is."""
    return AdapterReport(
        results=tuple(Result(**row) for row in data["rows"]),
        adapter=data["adapter"],
        package=data["package"],
        version=data["version"],
        limits=data["limits"],
    )
