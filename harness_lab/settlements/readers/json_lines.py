"""JSON lines for readers: each line an object or a reason, within bounds of length and depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, RecordFile, lines
from harness_lab.settlements.readers.values import obj, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.settlements.readers.base import ReaderOutput
    from harness_lab.settlements.readers.values import Json


def objects(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int, Json]]:
    """Yield (line number, object) of a JSON-lines file; lines that are none are set aside in `output`.

    Memory stays within one line; blank lines are no records.
    """
    reader = lines(file.path)
    while True:
        try:
            number, line = next(reader)
        except StopIteration:
            return
        except UNREADABLE as error:
            output.reject(file.name, None, f"cannot be read to its end: {error}")
            return
        if line is None:
            output.reject(file.name, number, "the line is too long")
            continue
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not text:
            continue
        try:
            yield number, obj(parsed(text), "a JSON object")
        except Unfit as error:
            output.reject(file.name, number, str(error))
