"""JSON lines for readers: each line an object or a reason, within bounds of length, depth and number of complaints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, RecordFile, lines
from harness_lab.settlements.readers.values import obj, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.settlements.readers.base import ReaderOutput
    from harness_lab.settlements.readers.values import Json

MAX_ASIDE: Final = 1_000
"""Lines of one file that are set aside one by one; further ones are counted in one entry, so that memory is bounded."""


def objects(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int, Json]]:
    """Yield (line number, object) of a JSON-lines file; lines that are none are set aside in `output`.

    Memory stays within one line; blank lines are no records.
    """
    aside = 0
    try:
        for number, line in lines(file.path):
            try:
                value = _value(line)
            except Unfit as error:
                aside += 1
                if aside <= MAX_ASIDE:
                    output.reject(file.name, number, str(error))
                continue
            if value is not None:
                yield number, value
    except UNREADABLE as error:
        output.reject(file.name, None, f"cannot be read to its end: {error}")
    if aside > MAX_ASIDE:
        more = f"{aside - MAX_ASIDE:,} more lines could not be taken; the first {MAX_ASIDE:,} are listed"
        output.reject(file.name, None, more)


def _value(line: bytes | None) -> Json | None:
    """Return a line's object; None for a blank line."""
    if line is None:
        raise Unfit("the line is too long")
    text = line.removeprefix(b"\xef\xbb\xbf").strip()
    return obj(parsed(text), "a JSON object") if text else None
