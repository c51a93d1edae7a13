"""Claude Code transcripts (``projects/<folder>/<session>.jsonl``, with ``subagents/``): a session is a run.

What becomes what:

- run: the session that a line names, whatever file it lies in; ``unit="turn"`` makes a run of what lies between one
  prompt and the next (run ``SESSION#n``; ``#0`` is before the first prompt). Node "0" is the main thread; every
  subagent is a node, whether it is a file of its own, a sidechain in the main file, or only told of by progress lines.
- call: one (message id, request id). A call is written once per content block, and again in the files of resumed and
  forked sessions: the line with the largest output counts, in the file that comes first (main threads before subagents,
  originals before forks, then by time). A sidechain that replays a message under another request id repeats it.
- tokens: fresh input, cache read and cache write are disjoint here. The output of some versions is a placeholder
  (:mod:`harness_lab.settlements.readers.claude_output`).
- outcome: how the last turn ended, as far as the transcript says: answered, interrupted, stopped by an error or by the
  plan's limit. A session that ends with a prompt or a tool call is unknown.
- cost: only very old transcripts hold one; otherwise unknown.
- context: hidden, so a fingerprint: client version, kind of thread, size class of its first prompt.

No text enters the table; the length of a text is used where an output count is in doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, unit_of
from harness_lab.settlements.readers.claude_lines import Transcripts
from harness_lab.settlements.readers.claude_message import ENDS
from harness_lab.settlements.readers.claude_output import settle_outputs
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.rollup import roll_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

    _Take = Callable[[dict[str, Any], int], None]

_ASSISTANT: Final = b'"assistant"'
_USAGE: Final = b'"output_tokens"'
_RESULT: Final = b'"tool_result"'
_INTERRUPTED: Final = b"[Request interrupted by user"
_SIDECHAIN: Final = b'"isSidechain":true'
_HEAD: Final = 1_024
"""Bytes of a line in which its own keys come; what follows is text of tools, which is long."""

_BRACE: Final = ord("}")

_TAIL: Final = 1_024
"""Bytes at a line's end in which the usage of a finished subagent comes, beside the result of the tool that ran it."""

_SHORT: Final = 2**13
"""A line of a tool's result in which the user's interruption is told is shorter than this."""

_MARKS: Final = (b'"parentUuid"', b'"isSidechain"', b'"leafUuid"', b'"file-history-snapshot"', b'"queue-operation"')
_TIME: Final = re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"')
_SESSION: Final = re.compile(rb'"sessionId"\s*:\s*"([^"]{1,100})"')


class ClaudeCodeReader:
    """Reader of Claude Code transcripts."""

    name = "claude-code"
    expects = "a Claude Code transcript (*.jsonl under projects/)"
    units = ("session", "turn")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what only these transcripts have."""
        if not head.lstrip().startswith(b"{") or b'"projectHash"' in head:
            return False
        inside = ".claude" in path.parts and "projects" in path.parts and ".jsonl" in path.name
        return any(mark in head for mark in _MARKS) or (inside and b'"type"' in head[:4096])

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read transcripts; lines that cannot be taken are set aside."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        transcripts = Transcripts()
        for file in sorted(files, key=_order):
            _read(file, transcripts, output)
        transcripts.finish()
        output.notes += transcripts.notes()
        output.notes += settle_outputs(transcripts.ledger, options.placeholders)
        roll_up(transcripts.ledger, output, unit=unit, ends=ENDS)
        return output


def _order(file: RecordFile) -> tuple[Any, ...]:
    """Parents first: main threads, files that are no fork, the older, those named after their session."""
    head = file.head
    time, session = _TIME.search(head), _SESSION.search(head)
    stem = file.path.name.partition(".")[0]
    other_name = session is not None and session[1].decode("utf-8", "replace") != stem
    subagent = stem.startswith("agent-") or "subagents" in file.path.parts
    return (subagent, b'"forkedFrom"' in head, time[1] if time else b"", other_name, file.name)


def _read(file: RecordFile, transcripts: Transcripts, output: ReaderOutput) -> None:
    """Read one file: a look at each line's bytes says whether it is parsed."""
    lines = Lines(file, output)
    transcripts.begin(file, lines)
    for block in lines.blocks():
        lines.number = _scan(block, lines, transcripts)


def _scan(block: bytes, lines: Lines, transcripts: Transcripts) -> int:
    """Take the lines of a block that matter, and return the next line's number.

    What a tool said is long: of such a line only the head is looked at, and its end, where a subagent's usage would be.
    """
    find, answer = block.find, transcripts.answer
    number, start = lines.number, 0
    while (end := find(b"\n", start)) >= 0:
        head = start + _HEAD
        if head > end:
            head = end
        if find(_ASSISTANT, start, head) >= 0:
            line = block[start:end]
            if not answer(line, number):
                _parsed(line, number, lines, transcripts.usage)
        elif find(_RESULT, start, head) < 0:
            _other(block[start:end], number, lines, transcripts)
        elif find(_USAGE, max(start, end - _TAIL), end) >= 0:
            _parsed(block[start:end], number, lines, transcripts.usage)
        elif find(_SIDECHAIN, start, head) >= 0 or (end - start < _SHORT and find(_INTERRUPTED, start, end) >= 0):
            _parsed(block[start:end], number, lines, transcripts.user)
        elif block[end - 1] != _BRACE:
            lines.fits(number, block[start:end])
        number, start = number + 1, end + 1
    return number


def _parsed(line: bytes, number: int, lines: Lines, take: _Take) -> None:
    record = lines.parse(number, line)
    if record is not None:
        take(record, number)


def _other(line: bytes, number: int, lines: Lines, transcripts: Transcripts) -> None:
    """Take a line that is no tool's result and whose head names no assistant, if anything in it matters."""
    if _USAGE in line:
        _parsed(line, number, lines, transcripts.usage)
    elif b'"user"' in line:
        _parsed(line, number, lines, transcripts.user)
    elif b'"api_error"' in line:
        _parsed(line, number, lines, transcripts.retry)
    elif _ASSISTANT in line:
        _parsed(line, number, lines, transcripts.usage)
    else:
        lines.fits(number, line)
