"""What the lines of Claude Code transcripts say: calls, prompts, ends, subagents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.claude_calls import Calls
from harness_lab.settlements.readers.claude_message import decode, tolerant
from harness_lab.settlements.readers.ends import error_word
from harness_lab.settlements.readers.ledger import NONE, THREAD, VERSION, WIDTH, Ledger, Thread
from harness_lab.settlements.readers.values import folder, identifier, inside, short_name

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile
    from harness_lab.settlements.readers.claude_message import Answer
    from harness_lab.settlements.readers.json_lines import Lines

_Json = dict[str, Any]

_LOCAL: Final = (
    "<local-command",
    "<bash-",
    "<command-name>/clear",
    "<command-name>/exit",
    "Caveat: The messages below",
)
_BACKENDS: Final = (("msg_bdrk_", "bedrock"), ("msg_vrtx_", "vertex"), ("msg_", "anthropic"))
_SYNTHETIC: Final = "<synthetic>"


class Transcripts:
    """What was read so far of all transcripts.

    Attributes
    ----------
    ledger : Ledger
        Calls, threads, prompts and ends.
    """

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._calls = Calls(self.ledger)
        self._threads: dict[tuple[str, str], int] = {}
        self._chains: dict[str, str] = {}
        self._results: dict[tuple[str, str], tuple[str, int | None, bool]] = {}
        self._quick: dict[Any, int] = {}
        self._begun = NONE
        self._asked: tuple[str, int | None] | None = None
        self._count: Counter[str] = Counter()

    def begin(self, file: RecordFile, lines: Lines) -> None:
        """Turn to the next file."""
        self._calls.begin(self.ledger.names(file.name))
        self._file, self._lines, self._begun = file.name, lines, NONE
        self._stem = file.path.name.partition(".")[0]
        self._chains.clear()
        self._quick.clear()
        self._asked = None
        self._agent_type = _agent_type(file.path) if self._stem.startswith("agent-") else None

    def answer(self, line: bytes, number: int) -> bool:
        """Take a line of an answer, as nearly all are written; return whether it was one."""
        try:
            answer = decode(line)
        except (msgspec.MsgspecError, RecursionError):
            return False
        try:
            place = self._calls.known(answer)
            if place is not None:
                self._calls.repeat(place, answer, number)
                return True
            agent = answer.agent_id
            thread = self._quick.get((answer.session_id, agent))
            plain = (
                answer.message.id and answer.message.model != _SYNTHETIC and not (agent is None and answer.is_sidechain)
            )
            if thread is None or not plain:
                return False
            self._counted(answer, thread, number, side=agent is not None)
        except Unfit as error:
            self._lines.reject(number, str(error))
        return True

    def usage(self, record: _Json, number: int) -> None:
        """Take a line that tells of usage: an answer, a subagent's answer, or a finished subagent."""
        kind = record.get("type")
        try:
            if kind == "assistant":
                self._answer(record, record, number, record.get("agentId"))
            elif kind == "progress":
                self._progress(record, number)
            elif kind == "user":
                self.user(record, number)
            else:
                self._count["strange"] += 1
        except Unfit as error:
            self._lines.reject(number, str(error))

    def _progress(self, record: _Json, number: int) -> None:
        data = record.get("data")
        told = inside(data, "message")
        if inside(told, "type") == "assistant":
            agent = identifier(inside(data, "agentId")) or identifier(record.get("parentToolUseID"))
            self._answer(record, told, number, agent)
        else:
            self._count["strange"] += 1

    def _answer(self, record: _Json, meta: _Json, number: int, agent: object) -> None:
        """Take a line of an answer that opens a thread, or is written in another way than most."""
        names = (meta.get("requestId"), meta.get("uuid"))
        unique = next((one for one in names if type(one) is str and one), len(self.ledger))
        answer = tolerant(record, meta, unique=f"\0{unique}")
        place = self._calls.known(answer)
        if place is not None:
            self._calls.repeat(place, answer, number)
            return
        side = agent is not None
        if not side and record.get("isSidechain") is True:
            side, agent = True, self._chain(record)
        thread = self._at(record, agent)
        if answer.message.model == _SYNTHETIC:
            self._notice(record, meta["message"], thread, self._calls.clock(meta.get("timestamp")))
        else:
            self._counted(answer, thread, number, side=side)

    def _counted(self, answer: Answer, thread: int, number: int, *, side: bool) -> None:
        """Take a line of a call that may be new."""
        calls = self._calls
        key, place = calls.find(answer, side=side)
        if place is not None:
            calls.repeat(place, answer, number)
            if not side and calls.is_side(place):
                calls.claim(place, thread)
            return
        calls.add(key, thread, answer, number, side=side)
        if thread != self._begun or self._asked is not None:
            self._begin_thread(thread, answer.message.id)

    def _begin_thread(self, thread: int, ident: str) -> None:
        """Note what a thread's first call tells, and whose turn a prompt began that was copied from another session."""
        opened, self._begun = self.ledger.threads[thread], thread
        if "backend" not in opened.fields:
            opened.fields["backend"] = _backend(ident)
        if self._asked is not None:
            if self._asked[0] != opened.run:
                self.ledger.prompt(opened.run, self._asked[1])
            self._asked = None

    def _notice(self, record: _Json, message: _Json, thread: int, at: int | None) -> None:
        """Take a message that the client wrote itself: an error, or nothing of interest."""
        self._count["synthetic"] += 1
        if record.get("isApiErrorMessage") is True or record.get("error") is not None:
            content = message.get("content")
            first = content[0] if isinstance(content, list) and content else content
            text = inside(first, "text") if isinstance(first, dict) else first
            self.ledger.ended(thread, at, error_word(text, record.get("error")))

    def _at(self, record: _Json, agent: object) -> int:
        """Return the thread of a line."""
        session = record.get("sessionId")
        if type(session) is not str or not (agent is None or type(agent) is str):
            return self._thread(identifier(session) or self._stem, identifier(agent), record)
        number = self._quick.get((session, agent))
        if number is None:
            number = self._thread(identifier(session) or self._stem, identifier(agent), record)
            self._quick[session, agent] = number
        return number

    def _thread(self, session: str, agent: str | None, record: _Json) -> int:
        """Return the number of a thread; it is made when it is first met."""
        key = (session, agent or "0")
        number = self._threads.get(key)
        if number is None:
            number = self._threads[key] = self.ledger.open(self._opened(key, record))
        return number

    def _opened(self, key: tuple[str, str], record: _Json) -> Thread:
        session, node = key
        main, version = node == "0", short_name(record.get("version"))
        kind = "main" if main else self._agent_type or "subagent"
        fields = {
            "agent": "claude-code" if main else kind,
            "session": session,
            "repo": folder(record.get("cwd")),
            "client_version": version,
        }
        context = {"client": "claude-code", "version": version, "thread": kind}
        parent = None if main else "0"
        return Thread(run=session, node=node, parent=parent, source=self._file, fields=fields, context=context)

    def _chain(self, record: _Json) -> str:
        """Return the subagent that an older sidechain line belongs to: that of the line before it, or a new one."""
        parent, own = _text(record.get("parentUuid")), _text(record.get("uuid"))
        agent = self._chains.get(parent or "") or f"sidechain-{own or self._file}"
        agent = identifier(agent) or "sidechain"
        if own is not None:
            self._chains[own] = agent
        return agent

    def user(self, record: _Json, number: int) -> None:
        """Take a line of the user: a prompt, an interruption, the result of a subagent, or nothing of interest."""
        message = record.get("message")
        if record.get("type") != "user" or not isinstance(message, dict):
            return
        session = identifier(record.get("sessionId")) or self._stem
        at = self._calls.clock(record.get("timestamp"))
        agent = identifier(record.get("agentId"))
        if agent is None and record.get("isSidechain") is True:
            agent = self._chain(record)
        self._result(record, session, agent, at)
        text = _said(message.get("content"))
        if text is None or record.get("isMeta") is True or record.get("isCompactSummary") is True:
            return
        if text.startswith("[Request interrupted by user"):
            self.ledger.ended(self._thread(session, agent, record), at, "interrupted")
        elif agent is None and not text.startswith(_LOCAL):
            self._asked = (session, at)
            self.ledger.prompt(session, at)
            self.ledger.ended(self._thread(session, None, record), at, "prompt")

    def _result(self, record: _Json, session: str, agent: str | None, at: int | None) -> None:
        """Keep what a finished subagent's result says: whose child it is, and that it completed."""
        told = record.get("toolUseResult")
        child = identifier(inside(told, "agentId"))
        if child is not None:
            done = inside(told, "status") == "completed"
            self._results[session, child] = (agent or "0", at, done)

    def retry(self, record: _Json, number: int) -> None:
        """Count a call that failed and is tried again."""
        if record.get("type") == "system" and record.get("subtype") == "api_error":
            session = identifier(record.get("sessionId")) or self._stem
            thread = self._thread(session, identifier(record.get("agentId")), record)
            self.ledger.threads[thread].retries += 1

    def finish(self) -> None:
        """Bring together what is known only when all files are read: versions, whose child a subagent is, its end."""
        self._calls.close()
        rows = self.ledger.rows
        for thread, version in dict(zip(rows[THREAD::WIDTH], rows[VERSION::WIDTH], strict=True)).items():
            if version != NONE:
                self.ledger.threads[thread].fields["client_version"] = self.ledger.names.texts[version]
        for (session, child), (parent, at, done) in self._results.items():
            number = self._threads.get((session, child))
            if number is None:
                self._count["silent"] += 1
                continue
            if parent != child:
                self.ledger.threads[number].parent = parent
            if done:
                self.ledger.ended(number, at, "completed")

    def notes(self) -> list[str]:
        """Return what a reader of the table should know of the lines."""
        count, calls, lines, elsewhere = self._count, len(self.ledger), self._calls.lines, self._calls.elsewhere
        notes = []
        if lines:
            notes.append(
                f"claude-code: {lines:,} line(s) with usage are {calls:,} call(s): "
                f"{lines - calls - elsewhere:,} repeated a call of their own file, "
                f"{elsewhere:,} one of another file"
            )
        if count["synthetic"]:
            notes.append(f"claude-code: {count['synthetic']:,} message(s) of the client itself are no calls")
        if count["strange"]:
            notes.append(f"claude-code: {count['strange']:,} line(s) with usage, of no known kind, were left alone")
        if count["silent"]:
            notes.append(
                f"claude-code: {count['silent']:,} finished subagent(s) have no calls in these files: "
                "what they used is missing; are their subagents/ folders here?"
            )
        return notes


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _said(content: object) -> str | None:
    """Return the user's own words' beginning; None for a line that only brings results of tools."""
    if isinstance(content, str):
        return content[:200]
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    stops = [text for text in texts if isinstance(text, str) and text.startswith("[Request interrupted by user")]
    if stops:
        return stops[0][:200]
    if not blocks or any(block.get("type") == "tool_result" for block in blocks):
        return None
    return next((text[:200] for text in texts if isinstance(text, str)), "")


def _backend(ident: str) -> str | None:
    """Return what served the calls, as the ids of its messages tell."""
    return next((backend for prefix, backend in _BACKENDS if ident.startswith(prefix)), None)


def _agent_type(path: Path) -> str | None:
    """Return the kind of subagent from the small file beside its transcript, where there is one."""
    beside = path.with_name(f"{path.name.partition('.')[0]}.meta.json")
    try:
        with beside.open("rb") as file:
            return short_name(inside(orjson.loads(file.read(65_536)), "agentType"))
    except (OSError, ValueError):
        return None
