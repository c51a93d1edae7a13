"""Gemini CLI chats (``tmp/<project>/chats/session-*.json``, newer ``*.jsonl``): a session is a run.

What becomes what:

- run: the session; a chat of ``kind`` subagent, in a folder named after its parent's session, is a node of that run.
  ``unit="turn"``: what lies between one message of the user and the next.
- call: one message of type ``gemini``. In the newer files a message is written again whenever it grows: the last one
  counts. A message that was rewound or compressed away was paid for and counts.
- tokens: thoughts are billed as output and are not part of ``output``; here they are, and are ``reasoning`` too. Tokens
  of tool results belong to the input. Whether cached tokens are part of the input is told by the total, row by row; a
  total that fits neither way makes the call's usage unknown.
- outcome: how the last turn ended: answered, cancelled, an error; a turn that ends with a tool call is unknown.
- cost: none is recorded. Context: hidden, so a fingerprint: kind of chat, size class of the first prompt.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, unit_of
from harness_lab.settlements.readers.conventions import CONTRADICTION, disjoint
from harness_lab.settlements.readers.ends import COMPLETED, ERRORS, OPEN, End, error_word
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.ledger import Ledger, Thread
from harness_lab.settlements.readers.rollup import roll_up
from harness_lab.settlements.readers.times import when
from harness_lab.settlements.readers.values import document, identifier, inside, kind_of, short_name, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_Json = dict[str, Any]

ENDS: Final[Mapping[str, End]] = {**ERRORS, "answer": COMPLETED, "tool_call": OPEN, "prompt": OPEN}


class GeminiCliReader:
    """Reader of Gemini CLI chats."""

    name = "gemini-cli"
    expects = "a Gemini CLI chat (session-*.json or *.jsonl under chats/)"
    units = ("session", "turn")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what every chat begins with."""
        start = head.lstrip()[:4_096]
        return start.startswith(b"{") and b'"projectHash"' in start and b'"sessionId"' in start

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read chats; what cannot be taken is set aside."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        chats = _Chats(output)
        for file in sorted(files, key=lambda file: (b'"subagent"' in file.head[:4_096], file.name)):
            try:
                chats.read(file)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
        output.notes += chats.notes()
        roll_up(chats.ledger, output, unit=unit, ends=ENDS)
        return output


class _Chats:
    """What was read so far of all chats."""

    def __init__(self, output: ReaderOutput) -> None:
        self.ledger = Ledger()
        self._output = output
        self._threads: dict[str, int] = {}
        self._count: Counter[str] = Counter()
        self._seen: set[tuple[str, str]] = set()

    def read(self, file: RecordFile) -> None:
        """Read one file: a document, or a line for each change of it."""
        first, _, rest = file.head.lstrip().partition(b"\n")
        if first.rstrip().endswith(b"}") and (rest.strip() or b'"messages"' not in first):
            self._lines(file)
            return
        whole = document(file)
        messages = inside(whole, "messages")
        if not isinstance(messages, list):
            raise Unfit("not a chat: it has no 'messages'")
        thread = self._thread(whole, file)
        self._take(thread, ((None, message) for message in messages), file)

    def _lines(self, file: RecordFile) -> None:
        """Read the newer form: of messages with the same id the last one counts."""
        thread: int | None = None
        messages: dict[str, tuple[int | None, _Json]] = {}
        lines = Lines(file, self._output)
        for number, line in lines:
            record = lines.parse(number, line) or {}
            if thread is None:
                thread = self._thread(record, file)
            within = [inside(record, "$set", "messages"), record.get("messages"), [record]]
            for one in (one for listed in within if isinstance(listed, list) for one in listed):
                ident = one.get("id") if isinstance(one, dict) else None
                if isinstance(ident, str) and isinstance(one.get("type"), str):
                    slim = {key: one.get(key) for key in ("id", "type", "timestamp", "tokens", "model", "toolCalls")}
                    slim["content"] = _short(one) if one["type"] not in {"user", "gemini"} else None
                    slim["toolCalls"] = len(slim["toolCalls"]) if isinstance(slim["toolCalls"], list) else 0
                    messages[ident] = (number, slim)
        if thread is not None:
            self._take(thread, messages.values(), file)

    def _thread(self, head: _Json, file: RecordFile) -> int:
        ident = identifier(head.get("sessionId")) or identifier(file.path.name.partition(".json")[0]) or "session"
        folder = file.path.parent.name
        child = head.get("kind") == "subagent"
        run = (identifier(folder) if folder != "chats" else None) or ident if child else ident
        key = f"{run}\0{ident}" if child else run
        if key not in self._threads:
            kind = "subagent" if child else "main"
            fields: dict[str, str | None] = {"agent": "subagent" if child else "gemini-cli", "session": ident}
            fields["repo"] = identifier(head.get("projectHash"))
            self._threads[key] = self.ledger.open(
                Thread(
                    run=run,
                    node=ident if child else "0",
                    parent="0" if child else None,
                    source=file.name,
                    fields=fields,
                    context={"client": "gemini-cli", "thread": kind},
                )
            )
        return self._threads[key]

    def _take(self, thread: int, messages: Iterable[tuple[int | None, object]], file: RecordFile) -> None:
        for number, message in messages:
            if not isinstance(message, dict):
                continue
            kind, at = kind_of(message), when(message.get("timestamp"))
            try:
                if kind == "gemini":
                    self._answer(thread, message, at, number, file)
                elif kind == "user":
                    self.ledger.prompt(self.ledger.threads[thread].run, at)
                    self.ledger.ended(thread, at, "prompt")
                elif kind in {"error", "info", "warning"}:
                    word = error_word(_short(message))
                    if kind == "error" or word == "interrupted" or "cancel" in _short(message).lower():
                        self.ledger.ended(thread, at, word if kind == "error" else "interrupted")
                else:
                    self._count["strange"] += message.get("tokens") is not None
            except Unfit as error:
                self._output.reject(file.name, number, str(error))

    def _answer(self, thread: int, message: _Json, at: int | None, number: int | None, file: RecordFile) -> None:
        ident = message.get("id")
        key = (self.ledger.threads[thread].run, ident if isinstance(ident, str) else f"{file.name}:{len(self._seen)}")
        if key in self._seen:
            self._count["repeated"] += 1
            return
        self._seen.add(key)
        usage = message.get("tokens")
        self._count["silent"] += not isinstance(usage, dict)
        given, cached, output, thoughts, tool, total = (
            tokens(what, inside(usage, what)) for what in ("input", "cached", "output", "thoughts", "tool", "total")
        )
        said = None if output is None else output + (thoughts or 0)
        asked = None if given is None else given + (tool or 0)
        parts = disjoint(given=asked, read=cached, write=0, output=said, total=total, usual="inside")
        if parts == CONTRADICTION:
            self._count["contradictory"] += isinstance(usage, dict)
            said = thoughts = None
        called = message.get("toolCalls")
        tools = len(called) if isinstance(called, list) else called if isinstance(called, int) else 0
        self.ledger.call(
            thread,
            fresh=parts.fresh, read=parts.read, write=None if parts.fresh is None else 0, total=parts.total,
            output=said, reasoning=thoughts, at=at, line=number or 0, source=file.name,
            served=short_name(message.get("model")), word="tool_call" if tools else "answer", tools=tools,
        )  # fmt: skip

    def notes(self) -> list[str]:
        """Return what a reader of the table should know."""
        said = {
            "repeated": "message(s) are repeated and count once",
            "silent": "message(s) without token counts: usage unknown",
            "strange": "message(s) with tokens, of no known kind, were left alone",
            "contradictory": "message(s) whose total fits no convention: usage unknown",
        }
        return [f"gemini-cli: {self._count[key]:,} {text}" for key, text in said.items() if self._count[key]]


def _short(message: _Json) -> str:
    """Return the beginning of a message of the client itself, to tell what kind it is."""
    content = message.get("content")
    return content[:500] if isinstance(content, str) else ""
