"""The calls of Claude Code transcripts: each once, however many lines and files tell of it.

Nearly all the time of reading is spent here and in :mod:`harness_lab.settlements.readers.claude_message`, once for each
of millions of lines; so these two are written for speed: few calls of functions, exact types, one row of integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.settlements.convert import Unfit, money
from harness_lab.settlements.readers.claude_message import content, counts
from harness_lab.settlements.readers.ledger import (
    CHARS,
    END,
    FINAL,
    FRESH,
    LACKING,
    LINE,
    MAX_CALL_NUSD,
    NO_TIME,
    NONE,
    OUTPUT,
    READ,
    SIDE,
    SOURCE,
    THREAD,
    TOOLS,
    TOTAL,
    WIDTH,
    WORD,
    WRITE,
    WRITE_1H,
    Ledger,
)  # fmt: skip
from harness_lab.settlements.readers.times import Clock

if TYPE_CHECKING:
    from harness_lab.settlements.readers.claude_message import Answer, Counts


class Calls:
    """What was read so far of all calls.

    A call is known by message id and request id. A sidechain that repeats a message under another request id tells of
    the same call. The line with the largest output counts; the file that comes first has the call.

    Attributes
    ----------
    lines, elsewhere : int
        Lines with usage so far, and those that tell of a call of an earlier file.
    clock : Clock
        What reads the times of the lines.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.lines = self.elsewhere = 0
        self._names, self._rows, self.clock = ledger.names, ledger.rows, Clock()
        self._places: dict[str, int] = {}
        self._requests: list[str | None] = []
        self._source = self._open = NONE
        self._stamp: object = None

    def begin(self, source: int) -> None:
        """Turn to the next file, known by the number of its name."""
        self.close()
        self._source = source

    def known(self, answer: Answer) -> int | None:
        """Return the place of a line's call if it is known, with this request, and is no sidechain's."""
        place = self._places.get(answer.message.id)
        if place is None or self._requests[place // WIDTH] != answer.request_id or self._rows[place + SIDE]:
            return None
        return place

    def repeat(self, place: int, answer: Answer, number: int) -> None:
        """Take another line of a call."""
        rows, message = self._rows, answer.message
        output = message.usage.output_tokens
        if output is not None and output > rows[place + OUTPUT]:
            self._larger(place, counts(message.usage), number)
        self.lines += 1
        if rows[place + SOURCE] != self._source:
            self.elsewhere += 1
            return
        word, final, tools, chars = content(message)
        rows[place + CHARS] += chars
        if tools:
            rows[place + TOOLS] += tools
        if word is not None:
            rows[place + WORD] = self._names[word]
        if final:
            rows[place + FINAL] = 1
        if place != self._open:
            self.close()
            self._open = place
        self._stamp = answer.timestamp

    def find(self, answer: Answer, *, side: bool) -> tuple[str, int | None]:
        """Return the key of a line's call, and its place if it is known."""
        ident, request = answer.message.id, answer.request_id
        place = self._places.get(ident)
        if place is None or self._requests[place // WIDTH] == request or side or self._rows[place + SIDE]:
            return ident, place
        key = f"{ident}\0{request}"
        return key, self._places.get(key)

    def add(self, key: str, thread: int, answer: Answer, number: int, *, side: bool) -> None:
        """Add a call.

        Raises
        ------
        Unfit
            If a count or the cost is none.
        """
        message, request, cost = answer.message, answer.request_id, answer.cost_usd
        fresh, read, write, hour, output = counts(message.usage)
        word, final, tools, chars = content(message)
        names, rows, at = self._names, self._rows, self.clock(answer.timestamp)
        total = NONE
        if fresh is None or read is None or write is None:
            fresh = read = write = hour = NONE
        else:
            total = fresh + read + write
        begun, place = NO_TIME if at is None else at, len(rows)
        rows.extend(
            (
                fresh, read, write, NONE if hour is None else hour, total, NONE if output is None else output, NONE,
                NONE if cost is None else _paid(cost), thread, begun, begun, number, names.named(message.model),
                self._source, NONE if word is None else names[word], tools, total == NONE or output is None, chars,
                NONE, final, side, names.named(answer.version),
            )
        )  # fmt: skip
        self._places[key] = place
        self._requests.append(request)
        self.lines += 1

    def claim(self, place: int, thread: int) -> None:
        """Give a call that a sidechain told of first to the thread that it belongs to."""
        self._rows[place + THREAD], self._rows[place + SIDE] = thread, 0

    def is_side(self, place: int) -> bool:
        """Return whether only a sidechain has told of a call so far."""
        return self._rows[place + SIDE] == 1

    def _larger(self, place: int, given: Counts, number: int) -> None:
        """Let a line's counts stand for its call if its output is larger than what was known."""
        fresh, read, write, hour, output = given
        rows = self._rows
        if output is None or output <= rows[place + OUTPUT]:
            return
        rows[place + OUTPUT], rows[place + LINE] = output, number
        if fresh is not None and read is not None and write is not None:
            rows[place + FRESH], rows[place + READ], rows[place + WRITE] = fresh, read, write
            rows[place + WRITE_1H] = NONE if hour is None else hour
            rows[place + TOTAL] = fresh + read + write
        rows[place + LACKING] = rows[place + TOTAL] == NONE

    def close(self) -> None:
        """Work out when the call ended whose lines came last: only its last line's time matters."""
        if self._open != NONE:
            end = self.clock(self._stamp)
            if end is not None and end > self._rows[self._open + END]:
                self._rows[self._open + END] = end
            self._open = NONE


def _paid(given: object) -> int:
    """Return the cost of a call, which only very old transcripts hold."""
    paid = money(given)
    if paid > MAX_CALL_NUSD:
        raise Unfit("costUSD: more than a call can cost")
    return paid
