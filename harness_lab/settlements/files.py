"""Finding and opening record files without getting stuck: bounded heads and lines, no loops, regular files only."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from harness_lab.errors import ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_BYTES: Final = 65_536
"""How much of a file is looked at to tell its format."""

MAX_LINE_BYTES: Final = 16 * 2**20
"""The longest line that is taken; longer ones are set aside unread."""

MAX_JSON_BYTES: Final = 256 * 2**20
"""The largest file that is read as one JSON document."""

MAX_FACTOR: Final = 300
"""How many times its own size a packed file or archive may unpack to (text packs to a fortieth at most) ..."""

MIN_TOTAL: Final = 64 * 2**20
"""... or this many bytes, whichever is more: a small file cannot become an endless one."""

SKIPPED_FOLDERS: Final = frozenset((".git", ".venv", "node_modules", "__pycache__"))
"""Folders that are never looked into when they lie below one that was named: they hold code, no records."""

_GZIP: Final = b"\x1f\x8b"
_UNPACK_BYTES: Final = 2**17
_SOURCE_SUFFIXES: Final = (".py", ".pyc")


@dataclass(frozen=True, slots=True)
class RecordFile:
    """One file that may hold records.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        How it is called in reports and in the column ``source``: from the folder or file that was named by the user on,
        so that no home directory gets into a table.
    named : bool
        The user named this very file; otherwise it was found in a folder.
    """

    path: Path
    name: str
    named: bool

    @property
    def head(self) -> bytes:
        """Its first ``HEAD_BYTES`` bytes, decompressed; read anew each time, so that many files need no memory."""
        try:
            return _head(self.path)
        except UNREADABLE:  # it was readable when it was found
            return b""


@dataclass(slots=True)
class Found:
    """What lies under some paths: files that could be opened, and those that could not, with the reason."""

    files: list[RecordFile] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)


UNREADABLE: Final = (OSError, EOFError, zlib.error)
"""What opening and reading a file may raise, packed ones included."""


def find(paths: Sequence[str | os.PathLike[str]]) -> Found:
    """Return the regular files under `paths`, each once, in a fixed order.

    Folders of code (:data:`SKIPPED_FOLDERS`) and source files below a folder are passed over, unless they were named.
    Folders are walked without following links to folders, so a loop of links ends nowhere; sockets, pipes and devices
    are never opened.

    Raises
    ------
    ReadError
        If a path that was named does not exist, is no file or folder, or cannot be opened.
    """
    found = Found()
    seen: set[tuple[int, int]] = set()
    for given in paths:
        root = Path(given)
        try:
            is_folder = stat.S_ISDIR(root.stat().st_mode)
        except (OSError, ValueError) as error:
            raise ReadError(str(given), expected="a file or folder that exists", got=_why(error)) from None
        for path in _walk(root) if is_folder else [root]:
            _add(found, path, root, seen, named=not is_folder)
    return found


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(names) if not name.endswith(_SOURCE_SUFFIXES))


def _add(found: Found, path: Path, root: Path, seen: set[tuple[int, int]], *, named: bool) -> None:
    name = path.name if named else (Path(root.resolve().name) / path.relative_to(root)).as_posix()
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        if is_packed(path):  # it may be damaged
            _head(path)
    except UNREADABLE as error:
        if named:
            raise ReadError(name, expected="a file that can be opened", got=_why(error)) from None
        found.unreadable.append((name, f"cannot be opened: {_why(error)}"))
        return
    found.files.append(RecordFile(path, name, named))


def _head(path: Path) -> bytes:
    with open_bytes(path) as file:
        return file.read(HEAD_BYTES)


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def is_packed(path: Path) -> bool:
    """Whether a file is gzip, by its content."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressing gzip (by content, not by name) as it is read.

    What is unpacked is bounded (:data:`MAX_FACTOR`); beyond it reading raises OSError.
    """
    file = path.open("rb")
    try:
        packed = file.peek(2)[:2] == _GZIP
    except OSError:
        file.close()
        raise
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(file), _UNPACK_BYTES)) if packed else file


class _Unpacked(io.RawIOBase):
    """A gzip file being unpacked, within its bound."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__()
        self._packed, self._unpacked = packed, gzip.GzipFile(fileobj=packed)
        self._bound = self._left = max(MIN_TOTAL, MAX_FACTOR * os.fstat(packed.fileno()).st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._unpacked.read1(len(buffer))
        self._left -= len(part)
        if self._left < 0:
            raise OSError(f"unpacks to more than {self._bound:,} bytes")
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._unpacked.close()
        self._packed.close()
        super().close()


def lines(path: Path, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
    """Yield (number from 1, line without its end) one at a time; None in place of a line longer than `max_bytes`.

    Memory stays within three times `max_bytes`, whatever the line's and the file's size.
    """
    number = 0
    with open_bytes(path) as file:
        while line := file.readline(max_bytes + 1):
            number += 1
            if len(line) <= max_bytes or line.endswith(b"\n"):
                yield number, line.rstrip(b"\r\n")
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(HEAD_BYTES)
            yield number, None


def is_binary(head: bytes) -> bool:
    """Whether a file's head looks like no text: it has NUL bytes (UTF-16 has them too and is not read)."""
    return b"\0" in head
