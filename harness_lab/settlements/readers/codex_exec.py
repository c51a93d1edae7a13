"""``codex exec``: its text log (one mixed token figure, often missing) and its JSON events: one run, one node.

What becomes what:

- run: the session (thread) id.
- text log: "tokens used" is fresh input and output in one figure, cached input left out: ``blended_tokens``. Most logs
  end without it; then the usage is unknown.
- JSON events (``--json``): ``turn.completed`` carries the thread's running totals, so the last one counts; cached
  tokens are part of the input.
- outcome: from the log itself ("ERROR:", a failed turn), or the ``journal.json`` of a benchmark harness beside it,
  which also has the time limit in force. A log that just stops is unknown.
- model: the one asked for. Cost: none is recorded.
- context: hidden, so a fingerprint: client version, reasoning effort, sandbox and approval policy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.context import canonical, context_digest
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.files import lines as text_lines
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record, unit_of
from harness_lab.settlements.readers.conventions import disjoint
from harness_lab.settlements.readers.ends import COMPLETED, ERRORS, OPEN, End, error_word
from harness_lab.settlements.readers.journal import ended, journal, limits, timed_out
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.values import identifier, inside, kind_of, short_name, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_BANNER: Final = re.compile(rb"OpenAI Codex v([\w.+-]{1,40})")
_EVENT: Final = re.compile(rb'"type"\s*:\s*"(?:thread\.started|turn\.(?:started|completed|failed)|item\.\w+)"')
_FIELD: Final = re.compile(r"^([a-z][a-z ]{1,30}): *(\S.{0,200})$")
_SAME_LINE: Final = re.compile(rb"^(?:\[[^\]]{1,40}\] )?tokens used: *([\d,]{1,20})$")
_NUMBER: Final = re.compile(rb"^[\d,]{1,20}$")
_ERROR: Final = re.compile(rb"^(?:\[[^\]]{1,40}\] )?ERROR: (.*)$")
_RULE: Final = b"--------"
_CONTEXT: Final = ("reasoning effort", "sandbox", "approval")
_SHORT: Final = 4_096


class CodexExecReader:
    """Reader of what ``codex exec`` prints."""

    name = "codex-exec"
    expects = "the output of codex exec (text log or --json events)"
    units = ("headless-run",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the output's banner or one of its events is in the head."""
        if head.lstrip().startswith(b"{"):
            return _EVENT.search(head[:_SHORT]) is not None
        return _BANNER.search(head[:_SHORT]) is not None

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read logs; one that cannot be read is set aside."""
        output = ReaderOutput()
        unit_of(self, options, output)
        for file in files:
            try:
                events = file.head.lstrip().startswith(b"{")
                node = _events(file, output) if events else _log(file)
                output.node({**_base(file), **node, **timed_out(node)})
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
        return output


def _base(file: RecordFile) -> Record:
    run = identifier(file.path.parent.name) or identifier(file.path.stem) or "run"
    return {"run": run, "node": "0", "depth": 0, "record_unit": "headless-run", "agent": "codex", "source": file.name}


def _log(file: RecordFile) -> Record:
    """Return the node of a text log."""
    banner = _BANNER.search(file.head)
    version = banner[1].decode("ascii", "replace") if banner else None
    fields, used, word = _scan(file)
    session = identifier(fields.get("session id"))
    said = journal(file.path, part="codex_cli")
    return {
        **({"run": session, "session": session} if session else {}),
        "model": short_name(fields.get("model")),
        "backend": short_name(fields.get("provider")),
        "client_version": version,
        "blended_tokens": used,
        **_context({"version": version, **{key: short_name(fields.get(key)) for key in _CONTEXT}}),
        **limits(said),
        **_end(word, said),
    }


def _scan(file: RecordFile) -> tuple[dict[str, str], int | None, str | None]:
    """Return the header's fields, the last token figure, and the kind of the last error."""
    fields: dict[str, str] = {}
    rules, used, word, announced = 0, None, None, False
    for _, line in text_lines(file.path):
        if line is None or len(line) > _SHORT:
            continue
        rules += line == _RULE
        if rules == 1 and (match := _FIELD.match(line.decode("utf-8", "replace"))):
            fields.setdefault(match[1], match[2].strip())
        figure = _SAME_LINE.match(line) or (_NUMBER.match(line) if announced else None)
        if figure:
            used = tokens("tokens used", int(figure[figure.lastindex or 0].replace(b",", b"") or b"0"))
        announced = line.strip() == b"tokens used"
        if error := _ERROR.match(line):
            word = error_word(error[1].decode("utf-8", "replace"))
    return fields, used, word


def _end(word: str | None, said: dict[str, Any]) -> Record:
    """Return the outcome: the log's own error says more than the harness's "error"."""
    end, status = ended(said)
    if word is not None and end is not COMPLETED:
        end, status = ERRORS[word], word
    return _outcome(end, status)


def _outcome(end: End, status: str | None) -> Record:
    return {"outcome": end.outcome, "cause": end.cause, "stopped_by": end.code, "source_status": status}


def _context(fields: dict[str, str | None]) -> Record:
    whole = {"client": "codex-exec", **fields}
    return {"context": context_digest(whole), "context_fields": canonical(whole), "context_inferred": True}


def _events(file: RecordFile, output: ReaderOutput) -> Record:
    """Return the node of a log of JSON events."""
    found: Record = {**_context({}), **limits(journal(file.path, part="codex_cli"))}
    turns, end, word = 0, OPEN, None
    lines = Lines(file, output)
    for number, line in lines:
        event = lines.parse(number, line) if _EVENT.search(line) or b'"error"' in line[:64] else None
        kind = kind_of(event)
        if kind == "thread.started" and (thread := identifier(inside(event, "thread_id"))):
            found |= {"run": thread, "session": thread}
        elif kind == "turn.completed":
            found |= _usage(inside(event, "usage"))
            turns, end, word = turns + 1, COMPLETED, "turn.completed"
        elif kind in {"turn.failed", "error"}:
            word = error_word(inside(event, "error", "message"), inside(event, "message"))
            end = ERRORS[word]
    return {**found, "iterations": turns, **_outcome(end, word)}


def _usage(usage: object) -> Record:
    """Return the running totals of a thread, disjoint."""
    given, read, output = (
        tokens(key, inside(usage, key)) for key in ("input_tokens", "cached_input_tokens", "output_tokens")
    )
    parts = disjoint(given=given, read=read, write=0, output=output, total=None, usual="inside")
    return {
        "input_total": parts.total,
        "input_fresh": parts.fresh,
        "cache_read": parts.read,
        "cache_write": parts.write,
        "output": output,
        "reasoning": tokens("reasoning_output_tokens", inside(usage, "reasoning_output_tokens")),
        "usage_known": parts.total is not None and output is not None,
    }
