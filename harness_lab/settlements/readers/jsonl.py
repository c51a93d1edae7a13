"""JSON lines from transcripts: read fast, parse only what matters, and set aside what cannot be parsed.

A transcript is mostly text that nobody here wants. Readers look at a line's bytes first and parse those that can hold
usage or the end of something. Looking for a quoted word in bytes is sound: inside a JSON string every quote is escaped,
so ``b'"usage"'`` is always a key or a value of the record itself, never part of somebody's text.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

import orjson

from harness_lab.clock import NS_PER_S
from harness_lab.settlements.context import text_digest
from harness_lab.settlements.convert import Unfit, instant
from harness_lab.settlements.files import MAX_JSON_BYTES, MAX_LINE_BYTES, UNREADABLE, RecordFile, open_bytes
from harness_lab.settlements.report import SetAside
from harness_lab.settlements.rows import shown
from harness_lab.usage import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.settlements.readers.base import ReaderOutput

MAX_ASIDE: Final = 200
"""Lines of one file that are set aside one by one; further ones are counted in one entry."""

_BLOCK: Final = 2**19
_TOO_LONG: Final = b"\0"
_MOST_HOURS: Final = 4_096
_PLAIN: Final = len("2026-01-15T12:10:12.532Z")
_MINUTES: Final = {f"{minute:02}:": minute * 60 * NS_PER_S for minute in range(60)}
_SECONDS: Final = {f"{second:02}.": second * NS_PER_S for second in range(60)}
_MILLIS: Final = {f"{milli:03}Z": milli * 1_000_000 for milli in range(1_000)}
_NAME: Final = re.compile(r"[\w.+:/@~\[\]-]{1,100}", re.ASCII)
_ID: Final = re.compile(r"[\w.+:/@~=#-]{1,200}", re.ASCII)
_SURROGATE: Final = b"\\ud"


class Lines:
    """The lines of one JSON-lines file, with what was wrong with some of them.

    Iterate to get (number from 1, line) for every line that can be JSON: it begins with ``{`` and ends with ``}``. All
    other lines are set aside. A file that breaks off (damaged compression, an unreadable disk) ends the iteration and
    is set aside from there on. Memory stays within one block and one line of ``MAX_LINE_BYTES``, whatever the file.
    """

    __slots__ = ("_aside", "_file", "_more", "_output", "number")

    def __init__(self, file: RecordFile, output: ReaderOutput) -> None:
        self._file, self._output, self.number = file, output, 1
        self._aside = self._more = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for block in self.blocks():
            listed = block[:-1].split(b"\n")
            for at, line in enumerate(listed, self.number):
                text = line.strip()
                if text and self.fits(at, text):
                    yield at, text
            self.number += len(listed)

    def blocks(self) -> Iterator[bytes]:
        """Yield whole lines, unchecked, each with its end; one that is too long is empty.

        Whoever takes the blocks keeps count of their lines in ``number``, which is the number of the next one.
        """
        try:
            with open_bytes(self._file.path) as opened:
                for block in self._whole_lines(opened):
                    if block.startswith(_TOO_LONG):
                        self.reject(self.number, f"longer than {MAX_LINE_BYTES:,} bytes")
                    yield block
        except UNREADABLE as error:
            self.reject(self.number, f"cannot be read on: {error}")
        if self._more:
            reason = f"{self._more:,} more lines of this file could not be taken; the first {MAX_ASIDE} are listed"
            self._output.reject(self._file.name, None, reason)

    @staticmethod
    def _whole_lines(opened: IO[bytes]) -> Iterator[bytes]:
        """Read blocks up to a line's end; a line that does not end soon enough is passed over."""
        while block := opened.read(_BLOCK):
            if not block.endswith(b"\n"):
                block += opened.readline(MAX_LINE_BYTES + 1)
                if len(block) > MAX_LINE_BYTES:
                    start = block.rfind(b"\n", 0, len(block) - 1) + 1
                    if len(block) - start > MAX_LINE_BYTES:
                        _pass_over(opened, block)
                        yield from filter(None, (block[:start], _TOO_LONG + b"\n"))
                        continue
            yield block if block.endswith(b"\n") else block + b"\n"

    def fits(self, number: int, line: bytes) -> bool:
        """Return whether a line can be a JSON object; one that cannot is set aside."""
        text = line.strip()
        if text.startswith(b"{") and text.endswith(b"}"):
            return True
        if text and text != _TOO_LONG:
            self.reject(number, "no JSON object; cut short?")
        return False

    def reject(self, number: int, reason: str) -> None:
        """Set a line aside; beyond ``MAX_ASIDE`` they are only counted, so that memory stays bounded."""
        self._aside += 1
        if self._aside > MAX_ASIDE:
            self._more += 1
            return
        self._output.read += 1
        self._output.set_aside.append(SetAside(self._file.name, number, reason))

    def parse(self, number: int, line: bytes) -> dict[str, Any] | None:
        """Return a line as an object; None if it is not valid JSON (then it has been set aside)."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            value = self.mend(number, line, error)
        return value if isinstance(value, dict) else None

    def mend(self, number: int, line: bytes, error: Exception) -> Any:
        """Return what a line is that orjson refuses but JavaScript writes; None for any other, which is set aside."""
        value = _lenient(line)
        if value is None and self.fits(number, line):
            self.reject(number, f"not valid JSON ({str(error).partition(':')[0]}); cut short?")
        return value


def _pass_over(opened: IO[bytes], part: bytes) -> None:
    """Read to the end of a line of which `part` is the beginning, keeping nothing of it."""
    while part and not part.endswith(b"\n"):
        part = opened.readline(_BLOCK)


def _lenient(line: bytes) -> object:
    """Parse what JavaScript writes and orjson refuses: half a surrogate pair inside a text."""
    if _SURROGATE not in line.lower():
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def document(file: RecordFile) -> Any:
    """Return a whole file as one JSON value.

    Raises
    ------
    Unfit
        If it is too large or not valid JSON.
    """
    with open_bytes(file.path) as opened:
        text = opened.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise Unfit(f"larger than {MAX_JSON_BYTES:,} bytes")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        value = _lenient(text)
        if value is None:
            raise Unfit(f"not valid JSON ({str(error).partition(':')[0]}); cut short?") from None
        return value


def inside(value: object, *keys: str) -> Any:
    """Follow `keys` into nested objects; None as soon as one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def kind_of(record: object) -> str:
    """Return the word in a record's ``type``; empty where there is none."""
    kind = inside(record, "type")
    return kind if isinstance(kind, str) else ""


def tokens(what: str, value: object) -> int | None:
    """Return a token count; None stays None.

    Raises
    ------
    Unfit
        If it is no whole number from 0 to a thousand million.
    """
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value <= MAX_TOKENS:
        raise Unfit(f"{what}: should be a whole number from 0 to {MAX_TOKENS:,}, got {shown(value)}")
    return value


def name(value: object) -> str | None:
    """Return a name (model, version, status); anything that could be prose is left out."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def identifier(value: object) -> str | None:
    """Return an id as it is; a digest of one that has odd characters; None if there is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        return None
    return value if _ID.fullmatch(value) else text_digest(value)


def folder(value: object) -> str | None:
    """Return a working directory as the id of a project; a digest where it cannot be written as text."""
    if not isinstance(value, str) or not value.strip():
        return None
    good = len(value) <= 500 and value.isprintable()
    return value if good else text_digest(value)


def when(value: object) -> int | None:
    """Return an instant (ISO 8601, or milliseconds since 1970) as nanoseconds since 1970 UTC; None if it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000 if 0 <= value < 9_000_000_000_000 else None
    if not isinstance(value, str):
        return None
    try:
        return instant(value)
    except (Unfit, OverflowError, ValueError):
        return None


class Clock:
    """Fast reading of times as JavaScript writes them (``2026-01-15T12:10:12.532Z``); others are read as usual."""

    __slots__ = ("_hours",)

    def __init__(self) -> None:
        self._hours: dict[str, int] = {}

    def __call__(self, value: object) -> int | None:
        """Return an instant as :func:`when` does."""
        try:
            hour: int = self._hours[value[:14]]  # type: ignore[index]
            return hour + _MINUTES[value[14:17]] + _SECONDS[value[17:20]] + _MILLIS[value[20:]]  # type: ignore[index]
        except (KeyError, TypeError):
            return self._other(value) if isinstance(value, str) and len(value) == _PLAIN else when(value)

    def _other(self, value: str) -> int | None:
        """Read a time as usual and remember its hour."""
        hour = when(f"{value[:14]}00:00.000Z")
        if hour is not None:
            if len(self._hours) >= _MOST_HOURS:
                self._hours.clear()
            self._hours[value[:14]] = hour
        return when(value)
