"""JSON lines for readers: each line an object or a reason, within bounds of length, depth and number of complaints.

A transcript is mostly text that nobody here wants. Its readers look at a line's bytes first and parse those that can
hold usage or the end of something. Looking for a quoted word in bytes is sound: inside a JSON string every quote is
escaped, so ``b'"usage"'`` is always a key or a value of the record itself, never part of somebody's text.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

import orjson

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import MAX_LINE_BYTES, UNREADABLE, RecordFile, open_bytes
from harness_lab.settlements.readers.values import lenient, obj, parsed
from harness_lab.settlements.report import SetAside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.settlements.readers.base import ReaderOutput
    from harness_lab.settlements.readers.values import Json

MAX_ASIDE: Final = 1_000
"""Lines of one file that are set aside one by one; further ones are counted in one entry, so that memory is bounded."""

_BLOCK: Final = 2**19
_TOO_LONG: Final = b"\0"


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
                    if block == _TOO_LONG + b"\n":
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
        value = lenient(line)
        if value is None and self.fits(number, line):
            self.reject(number, f"not valid JSON ({str(error).partition(':')[0]}); cut short?")
        return value


def _pass_over(opened: IO[bytes], part: bytes) -> None:
    """Read to the end of a line of which `part` is the beginning, keeping nothing of it."""
    while part and not part.endswith(b"\n"):
        part = opened.readline(_BLOCK)


def objects(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int, Json]]:
    """Yield (line number, object) of a JSON-lines file; lines that are none are set aside in `output`.

    Memory stays within a block and one line; blank lines are no records.
    """
    lines = Lines(file, output)
    for block in lines.blocks():
        listed = block[:-1].split(b"\n")
        for number, line in enumerate(listed, lines.number):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if not text or text == _TOO_LONG:
                continue
            try:
                yield number, obj(parsed(text), "a JSON object")
            except Unfit as error:
                lines.reject(number, str(error))
        lines.number += len(listed)
