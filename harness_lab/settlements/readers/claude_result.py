"""Headless Claude Code (``claude -p --output-format json`` or ``stream-json``) and the Agent SDK's result message.

One result is one headless run with one node, subagents included: ``modelUsage`` covers every model that was used, the
helper model too, which ``usage`` leaves out.

What becomes what:

- tokens: the sum over ``modelUsage`` (disjoint); ``usage`` only where there is no ``modelUsage``.
- cost: ``total_cost_usd``, the client's list-price estimate, to the nano-dollar; 0 for tokens that were used: unknown.
- iterations: ``num_turns``. Calls are counted in a stream; a bare result does not say how many there were.
- outcome: ``subtype``: success, error_max_turns (a limit: steps), error_max_budget_usd (a limit: cost),
  error_max_structured_output_retries (the model), error_during_execution. A success that is_error ended in an error
  message: its kind is told from it.
- a stream of several results is one conversation with running totals: the last counts, durations and turns add up. A
  stream without a result is a run that was cut off: its tokens are a lower bound.
- ceilings: a stream does not record them; the time budget comes from a benchmark harness's ``journal.json`` beside it.
- context: a stream's first message names tools, version and permission mode: their digest; else a fingerprint.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, unit_of
from harness_lab.settlements.readers.claude_run import Run
from harness_lab.settlements.readers.json_lines import Lines
from harness_lab.settlements.readers.values import document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_RESULT: Final = re.compile(rb'"type"\s*:\s*"result"')
_STREAM: Final = re.compile(rb'"type"\s*:\s*"system"[^\n]{0,200}"subtype"\s*:\s*"init"')
_INIT: Final = re.compile(rb'"subtype"\s*:\s*"init"')


class ClaudeResultReader:
    """Reader of headless Claude Code's results."""

    name = "claude-result"
    expects = "a result of headless Claude Code (JSON or stream-json)"
    units = ("headless-run",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether a result or the beginning of a stream is in the head."""
        if b'"session_id"' not in head and b'"total_cost_usd"' not in head:
            return False
        result = _RESULT.search(head) is not None and (b'"num_turns"' in head or b'"is_error"' in head)
        return result or _STREAM.search(head) is not None or (_INIT.search(head) is not None and b'"tools"' in head)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read results; one that cannot be read is set aside."""
        output = ReaderOutput()
        unit_of(self, options, output)
        for file in files:
            try:
                _one(file, output)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
        return output


def _one(file: RecordFile, output: ReaderOutput) -> None:
    """Read one file: each session in it is a run."""
    runs: dict[str, Run] = {}
    for number, message in _messages(file, output):
        key = str(message.get("session_id"))
        runs.setdefault(key, Run(file, number)).take(message, number)
    if not runs:
        raise Unfit("no result and no message of a stream")
    for run in runs.values():
        node, calls = run.rows()
        output.node(node, calls)


def _messages(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the messages of a file: one object, a list of them, or one a line, whatever else was printed between."""
    start = file.head.lstrip()
    if start.startswith(b"[") or not _is_lines(start):
        yield from ((None, one) for one in _objects(document(file)))
        return
    lines = Lines(file, output)
    for number, line in lines:
        if b'"usage"' in line or b'"init"' in line or b'"result"' in line:
            message = lines.parse(number, line)
            if message is not None and isinstance(message.get("type"), str):
                yield number, message


def _is_lines(start: bytes) -> bool:
    """Return whether a file is one message a line, or has other output before them; not one object over many lines."""
    first, _, rest = start.partition(b"\n")
    if not start.startswith(b"{"):
        return True
    return first.rstrip().endswith(b"}") and (bool(rest.strip()) or len(first) > 1)


def _objects(value: object) -> Iterable[dict[str, Any]]:
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, dict) and isinstance(one.get("type"), str)]
