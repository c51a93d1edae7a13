"""The file under a durable account: one SQLite database, its schema, and transactions that fail closed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.outcome import CHANNELS

if TYPE_CHECKING:
    from collections.abc import Iterator

Synchronous = Literal["full", "normal"]

SCHEMA_VERSION: Final = 1
_APPLICATION: Final = 0x48_4C_41_43  # "HLAC"
_EMPTY: Final = (0, 0)


def columns(kind: str) -> tuple[str, ...]:
    """Return the names of the columns of one kind, one a channel."""
    return tuple(f"{kind}_{channel}" for channel in CHANNELS)


def _amounts(kind: str, rule: str) -> str:
    return ", ".join(f"{name} INTEGER {rule}" for name in columns(kind))


_COUNT: Final = "NOT NULL DEFAULT 0 CHECK ({0} >= 0)"


def _counts(kind: str) -> str:
    return ", ".join(f"{name} INTEGER {_COUNT.format(name)}" for name in columns(kind))


_SCHEMA: Final = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY CHECK (id = 1), clock_ns INTEGER NOT NULL, "
    "hold_ns INTEGER NOT NULL CHECK (hold_ns > 0), unknown_usage TEXT NOT NULL, starts INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE budgets (name TEXT PRIMARY KEY, definition TEXT NOT NULL)",
    "CREATE TABLE pots (id INTEGER PRIMARY KEY, budget TEXT NOT NULL, whose TEXT NOT NULL, idx INTEGER NOT NULL, "
    f"ended INTEGER NOT NULL DEFAULT 0, {_counts('carry')}, {_counts('spent')}, {_counts('held')}, "
    f"{_counts('unknown')}, UNIQUE (budget, whose, idx))",
    "CREATE TABLE holds (id TEXT PRIMARY KEY, state TEXT NOT NULL, at_ns INTEGER NOT NULL, "
    "expires_ns INTEGER NOT NULL, closed_ns INTEGER, status TEXT, late INTEGER NOT NULL DEFAULT 0, "
    "violated INTEGER NOT NULL DEFAULT 0, "
    "assumed INTEGER NOT NULL DEFAULT 0, open INTEGER NOT NULL DEFAULT 0, pots TEXT NOT NULL, note TEXT NOT NULL, "
    f"{_amounts('bound', '')}, {_amounts('prompt', '')}, {_amounts('charged', '')}) WITHOUT ROWID",
    "CREATE INDEX open_holds ON holds (expires_ns) WHERE state = 'open'",
    "CREATE TABLE leaving (pot INTEGER NOT NULL, leave_ns INTEGER NOT NULL, hold TEXT NOT NULL, "
    "PRIMARY KEY (pot, hold)) WITHOUT ROWID",
    "CREATE INDEX leaving_in_time ON leaving (pot, leave_ns)",
    "CREATE TABLE events (id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class Store:
    """One process's door to the file; safe for its threads, and reopened after a fork.

    Parameters
    ----------
    path : str or Path
        The file.
    synchronous : {"full", "normal"}
        ``full``: every commit survives a loss of power; ``normal``: every commit survives the death of any process,
        and a loss of power may take back the last ones.
    busy_seconds : float
        How long a transaction waits for those of others.

    Raises
    ------
    InputError
        If `synchronous` or `busy_seconds` is not allowed.
    """

    def __init__(self, path: str | Path, *, synchronous: Synchronous = "full", busy_seconds: float = 5.0) -> None:
        if synchronous not in ("full", "normal"):
            raise InputError("synchronous", expected="full or normal", got=synchronous)
        if not 0 <= ns(busy_seconds, what="busy_seconds") <= 3600 * NS_PER_S:
            raise InputError("busy_seconds", expected="seconds from 0 to 3600", got=busy_seconds)
        self.path = str(Path(path).absolute())
        self._synchronous = synchronous
        self._busy_seconds = busy_seconds
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = (0, _EMPTY)

    def create(self, row: tuple[int, int, str], budget: tuple[str, str]) -> bool:
        """Make the account if there is none, in one step; return whether it was made.

        Raises
        ------
        AccountUnavailable
            If the file cannot be written, or holds something else.
        """
        with self._lock, self._translated():
            connection = self._connect("rwc")
            try:
                if _signature(connection) == _EMPTY and not _tables(connection):
                    connection.execute("PRAGMA journal_mode = wal")
                    connection.execute("BEGIN EXCLUSIVE")
                    made = _signature(connection) == _EMPTY and not _tables(connection)
                    if made:
                        for statement in _SCHEMA:
                            connection.execute(statement)
                        insert = "INSERT INTO account (id, clock_ns, hold_ns, unknown_usage) VALUES (1, ?, ?, ?)"
                        connection.execute(insert, row)
                        connection.execute("INSERT INTO budgets (name, definition) VALUES (?, ?)", budget)
                        connection.execute("INSERT INTO pots (budget, whose, idx) VALUES (?, '', 0)", budget[:1])
                    connection.execute("COMMIT")
                    return made
                return False
            finally:
                connection.close()

    @contextmanager
    def transaction(self, now_ns: int = 0, *, keep: bool = True) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Hold the file's only write lock; commit at the end, or leave everything as it was.

        Yields the connection and the account's time: `now_ns`, or the latest instant that it has seen.
        """
        with self._lock, self._translated():
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                (seen,) = connection.execute("SELECT clock_ns FROM account").fetchone()
                if now_ns > seen:
                    connection.execute("UPDATE account SET clock_ns = ?", (now_ns,))
                yield connection, max(now_ns, seen)
                connection.execute("COMMIT" if keep else "ROLLBACK")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one consistent state, without a lock on writers."""
        with self._lock, self._translated():
            connection = self._open()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        with self._lock:
            if self._connection is not None and self._owner[0] == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, OverflowError) as error:
            raise AccountUnavailable(self.path, _reason(error)) from error

    def _open(self) -> sqlite3.Connection:
        """Return this process's connection, if the file is still the one that was opened."""
        owner = (os.getpid(), _identity(self.path))
        if self._connection is not None and self._owner == owner:
            return self._connection
        if self._connection is not None and self._owner[0] == owner[0]:
            raise AccountUnavailable(self.path, "the file was replaced while it was open")
        connection = self._connect("rw")  # after a fork the parent's connection is left alone: closing would unlock it
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._owner = connection, owner
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"file:{quote(self.path)}?mode={mode}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        application, version = _signature(connection)
        if application != _APPLICATION:
            raise AccountUnavailable(self.path, "the file holds no account")
        if version != SCHEMA_VERSION:
            reason = f"its schema is version {version}, this package reads version {SCHEMA_VERSION}"
            raise AccountUnavailable(self.path, reason)
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            raise AccountUnavailable(self.path, f"its journal mode is {mode}, not wal")


def _signature(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _tables(connection: sqlite3.Connection) -> int:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(tables)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        reason = "there is no such file; an account is created once, on purpose, because a new one has spent nothing"
        raise AccountUnavailable(path, reason) from None
    return found.st_dev, found.st_ino


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
