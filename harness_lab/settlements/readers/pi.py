"""pi sessions (``sessions/--<path>--/<time>_<id>.jsonl``): a session is a run with one node.

What becomes what:

- run: the session's id; ``unit="turn"``: what lies between one message of the user and the next.
- call: one message of the assistant. Branches that were left again were paid for and count; a session that was branched
  off another one repeats its messages: they count once, in the parent.
- tokens: disjoint, as ``totalTokens`` confirms row by row. A message without any usage (aborted, failed) is unknown.
- cost: as recorded, to the nano-dollar; 0 for tokens that were used means that the client has no price: unknown.
- outcome: the last message's ``stopReason``: stop, length, toolUse (open), error, aborted (by the user).
- context: hidden, so a fingerprint: session format, size class of the first prompt.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.convert import Unfit, money
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, unit_of
from harness_lab.settlements.readers.conventions import CONTRADICTION, Parts, disjoint
from harness_lab.settlements.readers.ends import ABORTED, COMPLETED, ERRORS, LENGTH, OPEN, End, error_word
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.ledger import MAX_CALL_NUSD, Ledger, Thread
from harness_lab.settlements.readers.rollup import roll_up
from harness_lab.settlements.readers.times import when
from harness_lab.settlements.readers.values import folder, identifier, inside, kind_of, short_name, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_Json = dict[str, Any]

ENDS: Final[Mapping[str, End]] = {
    **ERRORS,
    "stop": COMPLETED,
    "length": LENGTH,
    "aborted": ABORTED,
    "toolUse": OPEN,
}


class PiReader:
    """Reader of pi sessions."""

    name = "pi"
    expects = "a pi session (*.jsonl under sessions/)"
    units = ("session", "turn")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the first line is a session's."""
        first = head.lstrip()[:4_096].partition(b"\n")[0].replace(b" ", b"")
        return first.startswith(b"{") and b'"type":"session"' in first and b'"id"' in first and b'"run"' not in first

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read sessions; lines that cannot be taken are set aside."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        sessions = _Sessions(output)
        for file in sorted(files, key=_order):
            sessions.read(file)
        output.notes += sessions.notes()
        roll_up(sessions.ledger, output, unit=unit, ends=ENDS, model="model")
        return output


def _order(file: RecordFile) -> tuple[bool, str, str]:
    """Sessions that were branched off another one come after all others; then by time, with which names begin."""
    return (b'"parentSession"' in file.head[:4_096], file.path.name, file.name)


class _Sessions:
    """What was read so far of all sessions."""

    def __init__(self, output: ReaderOutput) -> None:
        self.ledger = Ledger()
        self._output = output
        self._seen: set[str] = set()
        self._count: Counter[str] = Counter()

    def read(self, file: RecordFile) -> None:
        lines = Lines(file, self._output)
        self._file = file.name
        self._thread = self.ledger.open(self._opened({}, file))
        for number, line in lines:
            if b'"usage"' in line or b'"assistant"' in line or b'"user"' in line or b'"session"' in line:
                record = lines.parse(number, line)
                try:
                    self._take(record or {}, number, file)
                except Unfit as error:
                    lines.reject(number, str(error))

    def _take(self, record: _Json, number: int, file: RecordFile) -> None:
        kind, message = kind_of(record), record.get("message")
        if kind == "session":
            thread = self._opened(record, file)
            self.ledger.threads[self._thread] = thread
        elif kind == "message" and isinstance(message, dict):
            at = when(record.get("timestamp"))
            at = when(message.get("timestamp")) if at is None else at
            if message.get("role") == "assistant":
                self._answer(record, message, at, number)
            elif message.get("role") == "user":
                self.ledger.prompt(self.ledger.threads[self._thread].run, at)
                self.ledger.ended(self._thread, at, "prompt")
            else:
                self._count["strange"] += "usage" in message
        else:
            self._count["strange"] += inside(message, "usage") is not None

    def _opened(self, record: _Json, file: RecordFile) -> Thread:
        run = identifier(record.get("id")) or identifier(file.path.name.partition(".jsonl")[0]) or "session"
        version = record.get("version")
        layout = version if isinstance(version, int) and 0 < version < 1_000 else 1
        fields = {"agent": "pi", "session": run, "repo": folder(record.get("cwd"))}
        return Thread(run=run, source=file.name, fields=fields, context={"client": "pi", "layout": layout})

    def _answer(self, record: _Json, message: _Json, at: int | None, number: int) -> None:
        usage = message.get("usage")
        known = usage if isinstance(usage, dict) else {}
        parts, output = self._tokens(known)
        model = short_name(message.get("model"))
        place = (record.get("id"), record.get("timestamp"), message.get("timestamp"), model, *parts, output)
        key = "|".join(map(str, place))
        if key in self._seen:
            self._count["repeated"] += 1
            return
        self._seen.add(key)
        word = message.get("stopReason")
        if word == "error" or (isinstance(word, str) and word not in ENDS):
            word = error_word(message.get("errorMessage"))
        blocks = message.get("content")
        tools = sum(inside(block, "type") == "toolCall" for block in blocks) if isinstance(blocks, list) else 0
        self.ledger.call(
            self._thread,
            fresh=parts.fresh, read=parts.read, write=parts.write, total=parts.total, output=output,
            cost=self._cost(known, parts, output), at=at, line=number, served=model, source=self._file,
            word=word if isinstance(word, str) else None, tools=tools,
        )  # fmt: skip
        backend, fields = short_name(message.get("provider")), self.ledger.threads[self._thread].fields
        if backend is not None:
            known_ones = set((fields.get("backend") or backend).split(" + "))
            fields["backend"] = " + ".join(sorted(known_ones | {backend}))

    def _tokens(self, usage: _Json) -> tuple[Parts, int | None]:
        """Return a message's counts; a message in which nothing was counted is unknown, not free."""
        output = tokens("output", usage.get("output"))
        given, read, write = (tokens(key, usage.get(key)) for key in ("input", "cacheRead", "cacheWrite"))
        if not (given or read or write or output):
            self._count["silent"] += 1
            return CONTRADICTION, None
        total = tokens("totalTokens", usage.get("totalTokens")) or None
        parts = disjoint(given=given, read=read or 0, write=write or 0, output=output, total=total, usual="beside")
        if parts == CONTRADICTION:
            self._count["contradictory"] += 1
            return parts, None
        return parts, output

    def _cost(self, usage: _Json, parts: Parts, output: int | None) -> int | None:
        recorded = inside(usage, "cost", "total")
        cost = None if recorded is None else money(recorded)
        if cost is not None and cost > MAX_CALL_NUSD:
            raise Unfit("cost: more than a call can cost")
        if cost == 0:  # a plan, or a model without a price; or nothing was counted at all
            self._count["unpriced"] += parts.total is not None
            return None
        return cost

    def notes(self) -> list[str]:
        """Return what a reader of the table should know."""
        said = {
            "repeated": "message(s) are repeated from another session and count once",
            "silent": "message(s) without any usage (aborted, failed): unknown, not free",
            "contradictory": "message(s) whose total fits no convention: usage unknown",
            "strange": "line(s) with usage, of no known kind, were left alone",
            "unpriced": "message(s) used tokens at a recorded cost of 0: cost unknown",
        }
        return [f"pi: {self._count[key]:,} {text}" for key, text in said.items() if self._count[key]]
