"""The audit log: an HMAC chain over daily files, so that only a holder of the key can write or alter it unseen.

One of the two places in the package that touch files and time. The key comes from the caller, the environment or a
file of its own; it is never made in passing, and it is in no file, message or text of an object.

Source: the audit chain of Bernstein 3.23 (HMAC-SHA-256 over canonical JSON and the digest before it).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.audit_report import AuditVerdict
from harness_lab.delegation.canonical import canonical_json
from harness_lab.delegation.errors import ChainBroken
from harness_lab.delegation.events import DELEGATION_EVENT
from harness_lab.delegation.hmac_chain import GENESIS_HMAC, LEGACY_SCHEME, SCHEME, ChainKey, check_key, entry_line
from harness_lab.delegation.journal import AppendFile
from harness_lab.delegation.verify import parse_line
from harness_lab.errors import InputError, ReadError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows: one process per log is then the caller's business
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

KEY_ENV = "HARNESS_LAB_AUDIT_KEY"
KEY_FILE_ENV = "HARNESS_LAB_AUDIT_KEY_FILE"
EVENT_SUBAGENT_DELEGATION = DELEGATION_EVENT
ACTOR = "subagent_delegation"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.jsonl")


def load_key(path: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> bytes:
    """Return the audit key.

    Parameters
    ----------
    path : path, optional
        A file that only its owner can read. None: ``HARNESS_LAB_AUDIT_KEY`` (the key itself), else
        ``HARNESS_LAB_AUDIT_KEY_FILE`` (a file).
    environ : mapping, optional
        The environment; the process's own if None.

    Raises
    ------
    InputError
        If there is none, it is shorter than 16 bytes, or others can read its file.
    ReadError
        If the file cannot be read.
    """
    env = os.environ if environ is None else environ
    if path is None and env.get(KEY_ENV):
        return check_key(env[KEY_ENV].strip().encode())
    place = path if path is not None else env.get(KEY_FILE_ENV)
    if not place:
        hint = "python3 -c 'import secrets; print(secrets.token_hex(32))' makes one"
        raise InputError("audit key", expected=f"{KEY_ENV}, {KEY_FILE_ENV} or a key file", got=None, hint=hint)
    file = Path(place)
    try:
        mode, data = stat.S_IMODE(file.stat().st_mode), file.read_bytes()
    except OSError as error:
        raise ReadError(str(file), expected="a key file", got=error.strerror or str(error)) from error
    if os.name == "posix" and mode & 0o077:
        raise InputError("mode of the audit key's file", expected="0600: nobody else may read it", got=f"{mode:04o}")
    return check_key(data.strip())


class AuditChainStore:
    """An audit log in a folder: one file a day, one chain over all of them.

    Parameters
    ----------
    audit_dir : path
        The folder.
    key : bytes, optional
        The master key; :func:`load_key` of `key_path` if None.
    key_path : path, optional
        Its file.
    sync : bool
        Whether each append waits until the disk has it.
    now : callable, optional
        Seconds since the epoch; the wall clock if None.

    Raises
    ------
    InputError
        If there is no key, or none that can be used.

    Notes
    -----
    Nothing is written behind a last line that is torn (:meth:`repair` cuts it off) or is no entry of this key: whatever
    looks at the end of the log raises ``ChainBroken`` then.
    """

    def __init__(
        self,
        audit_dir: str | Path,
        *,
        key: bytes | None = None,
        key_path: str | Path | None = None,
        sync: bool = True,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.folder = Path(audit_dir)
        self._key = ChainKey(key if key is not None else load_key(key_path))
        self._sync = sync
        self._now = now if now is not None else _wall_clock
        self._lock = threading.RLock()
        self._depth = 0
        self._head = GENESIS_HMAC
        self._seen: tuple[str, int] = ("", 0)

    @property
    def prev_chain_digest(self) -> str:
        """HMAC of the last entry; 64 zeros for none."""
        self._read_head()
        return self._head

    def log(
        self,
        event_type: str,
        actor: str,
        resource_type: str,
        resource_id: str,
        details: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Append one entry and return it."""
        entry = {"event_type": event_type, "actor": actor, "resource_type": resource_type, "resource_id": resource_id}
        return self.append([{**entry, "details": dict(details or {})}])[0]

    def log_with_prev_digest(self, **entry: Any) -> dict[str, Any]:
        """Append one entry whose details hold the HMAC of the entry before, and return it."""
        details = dict(entry.pop("details", None) or {})
        return self.append([{**entry, "details": details}], embed=True)[0]

    def append(self, entries: Sequence[Mapping[str, Any]], *, embed: bool = False) -> list[dict[str, Any]]:
        """Append entries, all or none, and return them.

        Parameters
        ----------
        entries : sequence of mapping
            Each with `event_type, actor, resource_type, resource_id, details`.
        embed : bool
            Put the HMAC of the entry before into each entry's details, as ``prev_chain_digest``.

        Raises
        ------
        InputError
            If an entry is no JSON.
        ChainBroken
            If the log cannot be continued.
        """
        with self.exclusive():
            self._read_head()
            moment = datetime.fromtimestamp(self._now(), UTC)
            day = max(f"{moment:%Y-%m-%d}.jsonl", self._seen[0])  # a clock that goes back must not reorder the chain
            signed, head = [], self._head
            for entry in entries:
                canonical_json(entry, what="audit entry")
                signed.append(self._entry(entry, head, f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z", embed=embed))
                head = signed[-1]["hmac"]
            if signed:
                file = AppendFile(self.folder / day, sync=self._sync)
                file.append("".join(map(entry_line, signed)))
                self._head, self._seen = head, (day, file.size)
            return signed

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first, unverified."""
        return read_entries(self.folder)

    def verify(self) -> AuditVerdict:
        """Verify the whole log."""
        return verify_audit(self.folder, key=self._key)

    def mark(self) -> tuple[str, tuple[str, int]]:
        """Return what :meth:`rollback` needs; only sound inside :meth:`exclusive`."""
        self._read_head()
        return self._head, self._seen

    def rollback(self, mark: tuple[str, tuple[str, int]]) -> None:
        """Take back everything since `mark`."""
        if self._seen == mark[1]:
            return
        self._head, self._seen = mark
        kept, size = self._seen
        for file in _days(self.folder):
            if file.name > kept:
                file.unlink()
            elif file.name == kept:
                AppendFile(file, sync=self._sync).cut(size)

    def repair(self) -> int:
        """Cut a torn last line off, keeping it beside the log; return its bytes."""
        with self.exclusive():
            torn = 0
            for file in _days(self.folder)[-1:]:
                last = AppendFile(file, sync=self._sync)
                tail = last.read()[1]
                if tail:
                    last.cut_torn(tail)
                    torn = len(tail)
            self._seen = ("", 0)
            self._read_head()
            return torn

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads out, and other processes where the system has file locks."""
        with self._lock, contextlib.ExitStack() as stack:
            if fcntl is not None and self._depth == 0:
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context((self.folder / ".lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def _entry(self, entry: Mapping[str, Any], head: str, timestamp: str, *, embed: bool) -> dict[str, Any]:
        details = {**entry["details"], "prev_chain_digest": head} if embed else dict(entry["details"])
        order = ("event_type", "actor", "resource_type", "resource_id")
        fields = {name: entry[name] for name in order}
        return self._key.sign(
            {"timestamp": timestamp, **fields, "details": details, "prev_hmac": head, "scheme": SCHEME}
        )

    def _read_head(self) -> None:
        """Take over what is on disk, if it is not what this object wrote last."""
        days = _days(self.folder)
        newest = (days[-1].name, days[-1].stat().st_size) if days else ("", 0)
        if newest == self._seen:
            return
        self._head = GENESIS_HMAC
        for file in reversed(days):
            lines, tail = AppendFile(file).read()
            if tail:
                raise ChainBroken(f"{file.name}: {len(tail)} bytes of a torn entry; repair() cuts them off")
            if lines:
                wrong = self._key.entry_error(lines[-1], None)
                if wrong:
                    raise ChainBroken(f"{file.name}:{len(lines)}: {wrong}")
                self._head = json.loads(lines[-1])["hmac"]
                break
        self._seen = newest

    def __repr__(self) -> str:
        return f"AuditChainStore({str(self.folder)!r})"


def record_subagent_delegation(
    *,
    chain: AuditChainStore,
    run_id: str,
    node_name: str,
    target: str,
    node_hash: str,
    result_content_hash: str,
    journal_index: int,
    journal_event_hash: str,
    tier: str = "interactive",
    actor: str = ACTOR,
) -> dict[str, Any]:
    """Append the audit entry of one delegation and return it.

    Parameters
    ----------
    chain : AuditChainStore
        The log.
    run_id, journal_index, journal_event_hash
        Where the journal has it; empty, -1 and empty without a journal.
    node_name, target, node_hash, result_content_hash, tier
        The node and the hash of its result; never the result.
    actor : str
        Who did it.
    """
    details = {
        "run_id": run_id, "node_name": node_name, "target": target, "node_hash": node_hash,
        "result_content_hash": result_content_hash, "journal_index": journal_index,
        "journal_event_hash": journal_event_hash, "tier": tier,
    }  # fmt: skip
    return chain.append([delegation_entry(details, actor=actor)], embed=True)[0]


def delegation_entry(details: Mapping[str, Any], *, actor: str = ACTOR) -> dict[str, Any]:
    """Return the entry of one delegation, not yet chained."""
    return {
        "event_type": EVENT_SUBAGENT_DELEGATION, "actor": actor, "resource_type": ACTOR,
        "resource_id": details["node_name"], "details": dict(details),
    }  # fmt: skip


def verify_audit(path: str | Path, *, key: bytes | ChainKey) -> AuditVerdict:
    """Verify an audit log.

    Parameters
    ----------
    path : path
        Its folder, or one of its daily files: that file alone, from the end of the file before it if there is one.
    key : bytes
        The master key.

    Raises
    ------
    ReadError
        If there is no such file or folder, or nothing in it.
    """
    place = Path(path)
    chain = key if isinstance(key, ChainKey) else ChainKey(key)
    files = _days(place) if place.is_dir() else [place]
    if not files or not place.exists():
        raise ReadError(str(path), expected="an audit log: a folder of daily files, or one", got="none")
    errors: list[str] = []
    prev: str | None = GENESIS_HMAC if place.is_dir() else _end_before(place)
    entries = legacy = 0
    for file in files:
        lines, tail = AppendFile(file).read()
        for number, line in enumerate(lines, 1):
            wrong = chain.entry_error(line, prev)
            if wrong:
                errors.append(f"{file.name}:{number}: {wrong}")
            prev, scheme = _next(line)
            legacy += scheme == LEGACY_SCHEME
        if tail:
            errors.append(f"{file.name}:{len(lines) + 1}: torn, {len(tail)} bytes without a newline")
        entries += len(lines)
    return AuditVerdict(
        files=len(files), entries=entries, legacy=legacy, head=prev or GENESIS_HMAC, errors=tuple(errors)
    )


def read_entries(path: str | Path) -> list[dict[str, Any]]:
    """Return the entries of a log's folder or of one daily file, oldest first, unverified.

    Raises
    ------
    ReadError
        If a line is no entry.
    """
    place = Path(path)
    found: list[dict[str, Any]] = []
    for file in _days(place) if place.is_dir() else [place] * place.exists():
        for number, line in enumerate(AppendFile(file).read()[0], 1):
            entry = parse_line(line)
            if entry is None:
                raise ReadError(f"{file.name}:{number}", expected="an audit entry", got=line[:60])
            found.append(entry)
    return found


def _next(line: bytes) -> tuple[str | None, int | None]:
    """Return the HMAC that the next line must name (None: nobody can say), and the line's scheme."""
    try:
        entry = json.loads(line)
        return str(entry["hmac"]), entry.get("scheme", LEGACY_SCHEME)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None, None


def _end_before(file: Path) -> str | None:
    earlier = [day for day in _days(file.parent) if day.name < file.name] if _DAY.fullmatch(file.name) else []
    for day in reversed(earlier):
        lines = AppendFile(day).read()[0]
        if lines:
            return _next(lines[-1])[0]
    return GENESIS_HMAC


def _days(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.jsonl") if _DAY.fullmatch(file.name)) if folder.is_dir() else []


def _wall_clock() -> float:
    return datetime.now(UTC).timestamp()
