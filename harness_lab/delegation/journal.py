"""The run journal as a file, and the append-only file that it, the ledger and the audit log are made of.

One of the two places in the package that touch files and time.

A row counts as written once its newline is on disk. An append that fails is taken back; one that was interrupted leaves
a torn line, which :meth:`RunJournal.resume` cuts off and keeps beside the journal.

Source: the run journal of Bernstein 3.23; torn lines and intents are our own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.canonical import canonical_json
from harness_lab.delegation.errors import ChainBroken, UnfinishedDispatch
from harness_lab.delegation.events import (
    ENVELOPE,
    GENESIS,
    JournalVerdict,
    Seal,
    check_run_id,
    make_row,
    row_line,
)
from harness_lab.delegation.rules import OURS, DelegationRules
from harness_lab.delegation.verify import verify_bytes
from harness_lab.errors import InputError, ReadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

JOURNAL_FILENAME = "journal.jsonl"
INTENT_FILENAME = "journal.intent"


def journal_path(root: str | Path, run_id: str) -> Path:
    """Return where the journal of a run is.

    Raises
    ------
    JournalPathError
        If the run id must not become part of a path.
    """
    return Path(root) / "runs" / check_run_id(run_id) / JOURNAL_FILENAME


class AppendFile:
    """A file of lines that only grows, durable and all or nothing.

    Parameters
    ----------
    path : Path
        The file; it and its folder are made by the first append.
    sync : bool
        Whether an append waits until the disk has it. Without, a power cut may lose what a kill would not.
    """

    __slots__ = ("path", "size", "sync")

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path
        self.sync = sync
        self.size = path.stat().st_size if path.exists() else 0

    def read(self) -> tuple[list[bytes], bytes]:
        """Return the whole lines without their newlines, and what lies behind the last newline."""
        data = _bytes(self.path) if self.path.exists() else b""
        self.size = len(data)
        *lines, tail = data.split(b"\n")
        return lines, tail

    def append(self, text: str) -> int:
        """Write at the end, all of it or nothing; return the size before.

        Raises
        ------
        ChainBroken
            If somebody else has written meanwhile.
        OSError
            If the disk refuses; the file is then as it was.
        """
        before, data = self.size, text.encode("utf-8")
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._check_size(fd, before)
            try:
                _write_all(fd, data)
                self._settle(fd)
                if new and self.sync:
                    _sync_folder(self.path.parent)
                self.size = before + len(data)
            except BaseException:
                self.size = before
                os.ftruncate(fd, before)
                if new:
                    self.path.unlink(missing_ok=True)
                raise
        finally:
            os.close(fd)
        return before

    def cut(self, size: int) -> None:
        """Give up everything behind the first `size` bytes; a file of none goes."""
        if size == 0:
            self.path.unlink(missing_ok=True)
        elif self.path.exists():
            fd = os.open(self.path, os.O_RDWR)
            try:
                os.ftruncate(fd, size)
                self._settle(fd)
            finally:
                os.close(fd)
        self.size = size

    def cut_torn(self, tail: bytes) -> None:
        """Cut a torn last line off, keeping its bytes beside the file."""
        with self.path.with_suffix(".torn").open("ab") as kept:
            kept.write(tail + b"\n")
        self.cut(self.size - len(tail))

    def _check_size(self, fd: int, expected: int) -> None:
        found = os.fstat(fd).st_size
        if found != expected:
            raise ChainBroken(
                f"{self.path.name}: expected {expected:,} bytes, got {found:,}: somebody else wrote to it"
            )

    def _settle(self, fd: int) -> None:
        if self.sync:
            os.fsync(fd)


class RunJournal:
    """The journal of one run.

    Parameters
    ----------
    run_id : str
        1 to 64 of letters, digits, ``_``, ``.``, ``-``.
    root : path
        Folder above ``runs/<run_id>/journal.jsonl``.
    rules : DelegationRules
        The axis `existing_journal`.
    sync : bool
        Whether each append waits until the disk has it.
    now : callable, optional
        Seconds since the epoch, for the rows' `ts`; the wall clock if None.

    Raises
    ------
    JournalPathError
        If the run id must not become part of a path.
    ChainBroken
        If the journal has rows already: :meth:`resume` continues it.
    """

    def __init__(
        self,
        run_id: str,
        root: str | Path,
        *,
        rules: DelegationRules = OURS,
        sync: bool = True,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.run_id = check_run_id(run_id)
        self.rules = rules
        self.file = AppendFile(journal_path(root, run_id), sync=sync)
        self.intent = Intent(self.path.with_name(INTENT_FILENAME), sync=sync)
        self._now = now if now is not None else time.time
        self._started = self._now()
        self._lock = threading.RLock()
        self._head, self._count = GENESIS, 0
        if self.file.size and rules.existing_journal == "refuse":
            raise ChainBroken(f"{self.path.name} of run {self.run_id} has rows: continue it with RunJournal.resume")

    @classmethod
    def resume(cls, run_id: str, root: str | Path, **options: Any) -> RunJournal:
        """Continue a journal; one that does not exist begins.

        A torn last line is cut off and kept beside the journal (``journal.torn``). Whoever dispatches nodes uses
        :func:`harness_lab.delegation.resume` instead, which brings ledger and audit log up to the journal too.

        Parameters
        ----------
        **options
            As for :class:`RunJournal`.

        Raises
        ------
        ChainBroken
            If a whole row does not follow; the message names the first.
        """
        rules: DelegationRules = options.pop("rules", OURS)
        journal = cls(run_id, root, rules=replace(rules, existing_journal="restart"), **options)
        journal.rules = rules
        lines, tail = journal.file.read()
        verdict = verify_bytes(b"".join(line + b"\n" for line in lines))
        if verdict.errors:
            raise ChainBroken(f"{journal.path.name} of run {run_id} cannot be continued: {verdict.errors[0]}")
        if tail:
            journal.file.cut_torn(tail)
        journal._head, journal._count = verdict.head, verdict.count
        return journal

    @property
    def path(self) -> Path:
        """Where the journal is."""
        return self.file.path

    def head(self) -> str:
        """Return the event hash of the last row; empty for none."""
        return self._head

    def event_count(self) -> int:
        """Return how many rows this chain has."""
        return self._count

    def record(self, event: str, **payload: Any) -> dict[str, Any]:
        """Append one event and return its row.

        Raises
        ------
        InputError
            If the payload is no JSON, or uses a name of the envelope.
        UnfinishedDispatch
            If a dispatch was interrupted: what it left must be settled first.
        """
        with self._lock:
            self.intent.refuse()
            return self.append([(event, payload)])[0]

    def rows_for(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Return the rows that these events would be, without writing them."""
        rows, head = [], self._head
        for index, (event, payload) in enumerate(events, self._count):
            _check_payload(event, payload)
            ts = self._now()
            elapsed = round(ts - self._started, 3)
            rows.append(make_row(event, payload, index=index, prev_hash=head, ts=ts, elapsed_s=elapsed))
            head = rows[-1]["event_hash"]
        return rows

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Append events, all or none, and return their rows."""
        with self._lock:
            rows = self.rows_for(events)
            self.write(rows)
            return rows

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows that :meth:`rows_for` made; a single write."""
        if rows:
            self.file.append("".join(map(row_line, rows)))
            self._head, self._count = rows[-1]["event_hash"], self._count + len(rows)

    def mark(self) -> tuple[int, str, int]:
        """Return what :meth:`rollback` needs."""
        return self.file.size, self._head, self._count

    def rollback(self, mark: tuple[int, str, int]) -> None:
        """Take back everything since `mark`."""
        size, self._head, self._count = mark
        if self.file.size > size:
            self.file.cut(size)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads of this process out."""
        with self._lock:
            yield

    def verify(self, *, seal: Seal | None = None) -> JournalVerdict:
        """Verify the file; see :func:`verify_journal`."""
        return verify_journal(self.path, seal=seal)

    def seal(self) -> Seal:
        """Return what identifies the journal as it is; keep it where the journal's writers cannot change it."""
        data = _bytes(self.path) if self.path.exists() else b""
        return Seal(head=self._head, count=self._count, sha256=hashlib.sha256(data).hexdigest())

    def __repr__(self) -> str:
        return f"RunJournal({self.run_id!r}, {self._count:,} rows)"


class Intent:
    """What a dispatch is about to do, on disk before it does it: it exists while the dispatch is unfinished."""

    __slots__ = ("path", "sync")

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path = path
        self.sync = sync

    def refuse(self) -> None:
        """Raise if a dispatch is unfinished.

        Raises
        ------
        UnfinishedDispatch
            If a dispatch was begun and not finished.
        """
        if self.path.exists():
            raise UnfinishedDispatch(f"{self.path.name}: an earlier dispatch was interrupted; call delegation.resume")

    def declare(self, content: Mapping[str, Any]) -> None:
        """Write the intent; only one can exist."""
        self.refuse()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            _write_all(fd, (json.dumps(content) + "\n").encode())
            if self.sync:
                os.fsync(fd)
                _sync_folder(self.path.parent)
        except BaseException:
            self.clear()
            raise
        finally:
            os.close(fd)

    def read(self) -> dict[str, Any] | None:
        """Return the intent; None if there is none or it was interrupted itself, in which case nothing was begun."""
        if not self.path.exists():
            return None
        data = self.path.read_bytes()
        try:
            content = json.loads(data) if data.endswith(b"\n") else None
        except ValueError:
            content = None
        return content if isinstance(content, dict) else None

    def clear(self) -> None:
        """Forget it: everything that it said is done, or nothing is."""
        self.path.unlink(missing_ok=True)


def read_journal(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a journal that is intact.

    Raises
    ------
    ChainBroken
        If it is not.
    """
    verdict = verify_journal(path)
    if not verdict.intact:
        raise ChainBroken(f"{Path(path).name}: {verdict.errors[0]}")
    return [json.loads(line) for line in AppendFile(Path(path)).read()[0]]


def verify_journal(path: str | Path, *, seal: Seal | None = None) -> JournalVerdict:
    """Verify a journal file; see :func:`harness_lab.delegation.verify.verify_bytes`.

    Raises
    ------
    ReadError
        If there is no such file, or it cannot be read.
    """
    return verify_bytes(_bytes(Path(path)), seal=seal)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReadError(str(path), expected="a file that can be read", got=error.strerror or str(error)) from error


def _check_payload(event: str, payload: Mapping[str, Any]) -> None:
    canonical_json(payload, what=f"payload of {event}")
    taken = sorted((ENVELOPE | {"event"}) & set(payload))
    if taken:
        raise InputError(f"payload of {event}", expected="names that the envelope does not use", got=taken)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
