"""What the lines of Codex rollouts say, and what of it is history taken over from another session."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Outcome
from harness_lab.settlements.context import text_digest
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.conventions import CONTRADICTION, disjoint
from harness_lab.settlements.readers.ends import ABORTED, COMPLETED, ERRORS, OPEN, End, error_word
from harness_lab.settlements.readers.ledger import Ledger, Thread
from harness_lab.settlements.readers.times import Clock
from harness_lab.settlements.readers.values import folder, identifier, inside, kind_of, short_name, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.settlements.files import RecordFile

_Json = dict[str, Any]
_Counts = tuple[int | None, ...]

ENDS: Final[Mapping[str, End]] = {
    **ERRORS,
    "completed": COMPLETED,
    "interrupted": ABORTED,
    "stopped": End(Outcome.CANCELLED),
    "prompt": OPEN,
}

_KEYS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
_BURST_NS: Final = 1_000_000_000
"""A call takes longer than this; what is told sooner after a session's start is history."""


@dataclass(slots=True)
class _File:
    """Where reading stands in one file."""

    name: str
    stem: str
    thread: int | None = None
    model: str | None = None
    total: _Counts | None = None
    last: _Counts | None = None
    began: int | None = None
    history: array[int] | None = None
    burst: bool = False
    matched: int = 0
    own: array[int] = field(default_factory=lambda: array("q"))
    held: list[tuple[int | None, str]] = field(default_factory=list)
    tools: int = 0
    failed: bool = False


class Rollouts:
    """What was read so far of all rollouts."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._threads: dict[str, int] = {}
        self._events: dict[str, array[int]] = {}
        self._clock = Clock()
        self._count: Counter[str] = Counter()

    def begin(self, file: RecordFile) -> None:
        """Turn to the next file."""
        self._at = _File(file.name, file.path.name.partition(".jsonl")[0])

    def end(self) -> None:
        """Close a file: what was held back belongs to history if all of its counts did."""
        if self._at.thread is not None:
            run = self.ledger.threads[self._at.thread]
            own = run.run if run.node == "0" else run.node
            if len(self._at.own) > len(self._events.get(own, ())):
                self._events[own] = self._at.own

    def tool(self) -> None:
        """Count a tool call; it belongs to the call whose count comes next."""
        self._at.tools += 1

    def take(self, record: _Json, number: int) -> None:
        """Take one line."""
        payload = record.get("payload")
        kind, at = kind_of(record), self._clock(record.get("timestamp"))
        if not isinstance(payload, dict):
            raise Unfit("a line without its payload")
        if kind == "session_meta":
            self._session(payload, at)
        elif kind == "turn_context":
            self._at.model = short_name(payload.get("model")) or self._at.model
        elif kind == "event_msg":
            self._event(payload, at, number)
        else:
            self._count["strange"] += 1

    def _session(self, meta: _Json, at: int | None) -> None:
        """Open the file's thread; later lines of this kind are history of others."""
        here = self._at
        if here.thread is not None:
            return
        ident = identifier(meta.get("id")) or here.stem
        here.began = at if at is not None else self._clock(meta.get("timestamp"))
        above = identifier(inside(meta, "source", "subagent", "thread_spawn", "parent_thread_id"))
        origin = identifier(meta.get("forked_from_id")) or above
        here.history = self._events.get(ident) if ident in self._threads else self._events.get(origin or "")
        here.burst = origin is not None and here.history is None
        if ident in self._threads:
            here.thread = self._threads[ident]
            self._count["copies"] += 1
            return
        here.thread = self._threads[ident] = self.ledger.open(self._opened(ident, meta, above))

    def _opened(self, ident: str, meta: _Json, above: str | None) -> Thread:
        known = self._threads.get(above or "")
        root = None if above is None else above if known is None else self.ledger.threads[known].run
        told = meta.get("base_instructions", meta.get("instructions"))
        text = inside(told, "text") if isinstance(told, dict) else told
        version = short_name(meta.get("cli_version"))
        role = inside(meta, "source", "subagent", "thread_spawn", "agent_role") or inside(meta, "source", "subagent")
        kind = "codex" if inside(meta, "source", "subagent") is None else short_name(role) or "subagent"
        context = {"client": "codex", "version": version, "thread": kind}
        if isinstance(text, str) and text:
            context["instructions"] = text_digest(text)
        return Thread(
            run=root or ident,
            node="0" if root is None else ident,
            parent=None if root is None else "0" if above == root else above,
            source=self._at.name,
            context=context,
            hidden="instructions" not in context,
            fields={
                "agent": kind,
                "backend": short_name(meta.get("model_provider")),
                "client_version": version,
                "repo": folder(meta.get("cwd")),
                "session": ident,
            },
        )

    def _event(self, payload: _Json, at: int | None, number: int) -> None:
        kind, here = kind_of(payload), self._at
        if here.thread is None:
            self._session({}, at)
        if kind == "token_count":
            self._counted(payload.get("info"), at, number)
        elif kind == "user_message":
            here.failed = False
            self._say(at, "prompt")
        elif kind in {"task_complete", "turn_complete"}:
            if not here.failed:
                self._say(at, "completed")
        elif kind == "turn_aborted":
            self._say(at, "interrupted" if payload.get("reason", "interrupted") == "interrupted" else "stopped")
        elif kind == "error":
            here.failed = True
            told = payload.get("codex_error_info")
            self._say(
                at, error_word(next(iter(told), None) if isinstance(told, dict) else told, payload.get("message"))
            )
        elif kind == "stream_error" and here.thread is not None:
            self.ledger.threads[here.thread].retries += 1
        else:
            self._count["strange"] += 1

    def _say(self, at: int | None, word: str) -> None:
        """Note a prompt or an end; while history is being told it is held back."""
        if self._at.history is not None or self._at.burst:
            self._at.held.append((at, word))
            return
        thread = self._at.thread
        if thread is not None:
            if word == "prompt":
                self.ledger.prompt(self.ledger.threads[thread].run, at)
            self.ledger.ended(thread, at, word)

    def _counted(self, info: object, at: int | None, number: int) -> None:
        """Take a token_count: history, told again, or a call."""
        if not isinstance(info, dict):
            self._count["empty"] += 1
            return
        here = self._at
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None and last is None:
            raise Unfit("a token_count without counts")
        self._count["events"] += 1
        here.own.append(hash((total, last)))
        before, here.total = here.total, total if total is not None else here.total
        again = total == before if total is not None else last == here.last
        here.last = last
        if self._is_history(at):
            self._count["history"] += 1
            here.held.clear()
            here.tools = 0
        elif again:
            self._count["again"] += 1
        else:
            self._call(_used(total, before, last), info, at, number)

    def _is_history(self, at: int | None) -> bool:
        """Return whether a count repeats what the parent (or the first copy) told at the same place."""
        here = self._at
        if here.burst:
            near = at is not None and here.began is not None and at - here.began <= _BURST_NS
            if near:
                self._count["guessed"] += 1
                return True
        elif here.history is not None:
            here.matched += 1
            if here.matched <= len(here.history) and here.history[here.matched - 1] == here.own[-1]:
                return True
        self._leave_history()
        return False

    def _leave_history(self) -> None:
        here = self._at
        here.history, here.burst = None, False
        held, here.held = here.held, []
        for at, word in held:
            self._say(at, word)

    def _call(self, used: _Counts, info: _Json, at: int | None, number: int) -> None:
        here = self._at
        given, read, write, output, reasoning, total = used
        parts = disjoint(given=given, read=read, write=write, output=output, total=total, usual="inside")
        if parts == CONTRADICTION:
            self._count["contradictory"] += 1
            output = reasoning = None
        if here.thread is not None:
            self.ledger.call(
                here.thread,
                fresh=parts.fresh, read=parts.read, write=parts.write, total=parts.total, output=output,
                reasoning=reasoning, at=at, line=number, source=here.name, tools=here.tools,
                served=short_name(info.get("model")) or here.model,
            )  # fmt: skip
        here.tools = 0

    def notes(self) -> list[str]:
        """Return what a reader of the table should know."""
        said = {
            "again": "token count(s) repeat an unchanged total and are no calls",
            "history": "token count(s) are history taken over from a parent or an archived copy, counted once",
            "guessed": "of these are history by their time alone: the parent is not among the files",
            "copies": "file(s) are further copies of a session",
            "empty": "token count(s) without figures",
            "strange": "line(s) of a kind that is not known here were left alone",
            "contradictory": "call(s) whose total fits no convention: usage unknown",
        }
        return [f"codex: {self._count[key]:,} {text}" for key, text in said.items() if self._count[key]]


def _counts(usage: object) -> _Counts | None:
    if not isinstance(usage, dict):
        return None
    given = tuple(tokens(key, usage.get(key)) if key in usage else None for key in _KEYS)
    return None if given[0] is None else given


def _used(total: _Counts | None, before: _Counts | None, last: _Counts | None) -> _Counts:
    """Return what one call used: how far the total moved; its own count where the total began, or began anew."""
    if before is None and last is not None:
        return last
    moved = tuple(
        None if now is None else now - (then or 0) for now, then in zip(total or (), before or (0,) * 6, strict=False)
    )
    if total is None or any(step is not None and step < 0 for step in moved):
        return last or total or (None,) * len(_KEYS)
    return moved
