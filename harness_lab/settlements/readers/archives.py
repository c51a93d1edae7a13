"""Members of a zip archive, read without being unpacked to disk and within bounds.

Names of members are only compared, never used as paths, so a name like ``../../x`` leads nowhere. What is unpacked is
bounded for each member and for the archive as a whole, whatever its directory claims, so that a small file cannot
become an endless one. Method 93 (Zstandard) is read through pyarrow, which the standard library lacks before 3.14.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import MAX_FACTOR, MAX_JSON_BYTES, MIN_TOTAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_MEMBERS: Final = 200_000
"""Members that an archive may have."""

BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    pa.ArrowException,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
    struct.error,
)
"""What a damaged, encrypted or odd archive may raise."""

_ZSTD: Final = 93
_LOCAL_HEADER: Final = 30


class Archive:
    """A zip archive that is read member by member, within bounds.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    Unfit
        If it is no zip archive, or has more than ``MAX_MEMBERS``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = max(MIN_TOTAL, MAX_FACTOR * path.stat().st_size)
        try:
            self._zip = zipfile.ZipFile(path)
        except BROKEN as error:
            raise Unfit(f"no zip archive that can be read ({_reason(error)})") from None
        if len(self._zip.infolist()) > MAX_MEMBERS:
            self._zip.close()
            raise Unfit(f"more than {MAX_MEMBERS:,} members")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def members(self) -> Iterator[zipfile.ZipInfo]:
        """Yield the members, in the archive's order."""
        yield from self._zip.infolist()

    def read(self, member: zipfile.ZipInfo, *, max_bytes: int = MAX_JSON_BYTES) -> bytes:
        """Return a member's content.

        Raises
        ------
        Unfit
            If it is larger than `max_bytes`, the archive's bound is used up, or it cannot be unpacked.
        """
        bound = min(max_bytes, self._left)
        try:
            with self._open(member) as opened:
                content = opened.read(bound + 1)
        except BROKEN as error:
            raise Unfit(f"a member cannot be unpacked ({_reason(error)})") from None
        self._left -= min(len(content), bound)
        if len(content) > bound:
            raise Unfit(f"a member unpacks to more than {bound:,} bytes")
        return content

    def _open(self, member: zipfile.ZipInfo) -> IO[bytes]:
        if member.compress_type != _ZSTD:
            return self._zip.open(member)
        with self._path.open("rb") as file:
            file.seek(member.header_offset)
            header = file.read(_LOCAL_HEADER)
            if len(header) < _LOCAL_HEADER or not header.startswith(b"PK\x03\x04"):
                raise zipfile.BadZipFile("bad local header")
            name, extra = struct.unpack("<HH", header[26:30])
            file.seek(name + extra, 1)
            packed = file.read(min(member.compress_size, MAX_JSON_BYTES))
        return pa.CompressedInputStream(pa.BufferReader(packed), "zstd")  # type: ignore[no-any-return]


def _reason(error: Exception) -> str:
    return type(error).__name__
