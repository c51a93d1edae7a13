"""Codex CLI rollouts (``sessions/YYYY/MM/DD/rollout-*.jsonl``, ``archived_sessions/``): a session is a run.

What becomes what:

- run: the session; a fork is a run of its own, without the history it took over; a subagent that a session spawned is a
  node of that session's run. ``unit="turn"``: what lies between one message of the user and the next.
- call: one ``token_count`` whose running total moved; one that repeats the total is the same call told again. A total
  that drops begins anew.
- history that a fork or a subagent took over, and the second copy of an archived session, is recognised by its counts:
  the beginning that equals the parent's (the first copy's), value by value, is no call of this file. Where the parent
  is not among the files, counts within a second of the session's start are taken to be history.
- tokens: cached tokens are part of the input, reasoning is part of the output; the total tells whether that holds.
- model: the one asked for; a session names no other. No cost is recorded.
- outcome: how the last turn ended: completed, interrupted, stopped by an error or by the plan's limit; else unknown.
- context: digest of client version and instructions; where these are not recorded, a fingerprint.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, unit_of
from harness_lab.settlements.readers.codex_lines import ENDS, Rollouts
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.rollup import roll_up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_TYPES: Final = re.compile(rb'"type"\s*:\s*"([a-z_]{1,40})"')
_HEAD: Final = 400
_SMALL: Final = 8_192
_ID: Final = re.compile(rb'"id"\s*:\s*"([^"]{1,100})"')
_PARENTS: Final = re.compile(rb'"(?:forked_from_id|parent_thread_id)"\s*:\s*"([^"]{1,100})"')
_WANTED: Final = frozenset(
    {
        b"token_count", b"session_meta", b"turn_context", b"user_message", b"task_complete", b"turn_complete",
        b"turn_aborted", b"error", b"stream_error",
    }
)  # fmt: skip
_TOOLS: Final = frozenset({b"function_call", b"custom_tool_call", b"local_shell_call", b"web_search_call"})


class CodexReader:
    """Reader of Codex CLI rollouts."""

    name = "codex"
    expects = "a Codex rollout (rollout-*.jsonl)"
    units = ("session", "turn")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has a rollout's lines."""
        start = head.lstrip()[:1_024]
        return (
            start.startswith(b"{") and b'"payload"' in start and (b'"session_meta"' in start or b'"event_msg"' in head)
        )

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read rollouts; lines that cannot be taken are set aside."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        rollouts = Rollouts()
        for file in _parents_first(files):
            _read(file, rollouts, output)
        output.notes += rollouts.notes()
        roll_up(rollouts.ledger, output, unit=unit, ends=ENDS, model="model")
        return output


def _read(file: RecordFile, rollouts: Rollouts, output: ReaderOutput) -> None:
    lines = Lines(file, output)
    rollouts.begin(file)
    for number, line in lines:
        kinds = _TYPES.findall(line, 0, _HEAD)
        if not _TOOLS.isdisjoint(kinds):
            rollouts.tool()
        odd = not kinds or (len(line) < _SMALL and b'"token_count"' in line)  # keys in another order
        if odd or not _WANTED.isdisjoint(kinds):
            record = lines.parse(number, line)
            try:
                rollouts.take(record or {}, number)
            except Unfit as error:
                lines.reject(number, str(error))
    rollouts.end()


def _parents_first(files: Sequence[RecordFile]) -> list[RecordFile]:
    """Return the files with active copies before archived ones, and every session after those it took history from."""
    ranked = sorted(files, key=lambda file: ("archived_sessions" in file.path.parts, file.name))
    by_id: dict[bytes, list[RecordFile]] = {}
    for file in ranked:
        found = _ID.search(file.head)
        by_id.setdefault(found[1] if found else b"", []).append(file)
    done: dict[Path, RecordFile] = {}
    for file in ranked:
        trail = [file]
        while trail:  # depth first, without recursion; a circle of parents ends where it began
            one = trail[-1]
            first = one.head.partition(b"\n")[0]
            above = [other for ident in _PARENTS.findall(first) for other in by_id.get(ident, ())]
            waiting = [other for other in above if other.path not in done and other not in trail]
            if waiting and len(trail) < len(ranked):
                trail.append(waiting[0])
            else:
                done.setdefault(trail.pop().path, one)
    return list(done.values())
