"""Verifying the bytes of a journal. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from harness_lab.delegation.events import (
    GENESIS,
    JournalVerdict,
    Seal,
    identity,
    row_error,
    row_line,
)


def verify_bytes(data: bytes, *, seal: Seal | None = None) -> JournalVerdict:
    """Verify the bytes of a journal.

    Parameters
    ----------
    data : bytes
        The whole file.
    seal : Seal, optional
        What the journal was sealed with. Only with it can a missing end be seen, and only with its byte digest a change
        of the times.
    """
    *lines, tail = data.split(b"\n")
    walk = _Walk()
    for number, line in enumerate(lines, 1):
        walk.line(number, line)
    if tail:
        walk.odd(len(lines) + 1, f"line {len(lines) + 1}: torn, {len(tail)} bytes without a newline")
    same = identity(seal, head=walk.head, count=walk.rows, sha256=hashlib.sha256(data).hexdigest())
    errors = [*walk.errors, *(["the journal is not the one that was sealed"] if same == "mismatched" else [])]
    return JournalVerdict(
        chain_consistent=walk.divergent is None, coverage="partial" if walk.partial else "complete", identity=same,
        count=walk.rows, head=walk.head, divergent_index=walk.divergent, first_bad_line=walk.first_bad,
        errors=tuple(errors), torn_bytes=len(tail),
    )  # fmt: skip


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the mapping that a line holds; None if it holds none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


class _Walk:
    """One pass over the lines."""

    __slots__ = ("divergent", "errors", "first_bad", "head", "partial", "rows")

    def __init__(self) -> None:
        self.head = GENESIS
        self.rows = 0
        self.partial = False
        self.divergent: int | None = None
        self.first_bad: int | None = None
        self.errors: list[str] = []

    def line(self, number: int, line: bytes) -> None:
        row = parse_line(line)
        if row is None:
            self.odd(number, f"line {number}: not a row")
            return
        if self.divergent is None:
            wrong = _wrong(row, index=self.rows, prev_hash=self.head)
            if wrong:
                self.divergent = self.rows
                self._first(number, wrong)
            else:
                self.head = row["event_hash"]
        self.rows += 1
        if _written(row) != line + b"\n":
            self.odd(number, f"line {number}: not in the form in which rows are written")

    def odd(self, number: int, error: str) -> None:
        """Note a line that is no row, or not as rows are written."""
        self.partial = True
        self._first(number, error)

    def _first(self, number: int, error: str) -> None:
        self.first_bad = number if self.first_bad is None else self.first_bad
        self.errors.append(error)


def _wrong(row: dict[str, Any], *, index: int, prev_hash: str) -> str:
    try:
        return row_error(row, index=index, prev_hash=prev_hash)
    except (ValueError, RecursionError):  # what could just be read cannot be written again
        return f"step {index}: nested too deeply to be hashed"


def _written(row: dict[str, Any]) -> bytes:
    try:
        return row_line(row).encode()
    except (ValueError, RecursionError):  # an integer too long to print, or nested too deeply
        return b""
