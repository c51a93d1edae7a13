"""What one message of Claude Code says: its token counts, how it ends, how long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.claude_output import length
from harness_lab.settlements.readers.ends import COMPLETED, ERRORS, LENGTH, MODEL, OPEN, End
from harness_lab.settlements.readers.jsonl import inside, tokens
from harness_lab.usage import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

_Json = dict[str, Any]
Counts = tuple[int | None, int | None, int | None, int | None, int | None]
"""Fresh input, cache read, cache write, its one-hour part, output."""

ENDS: Final[Mapping[str, End]] = {
    **ERRORS,
    **dict.fromkeys(("end_turn", "stop_sequence", "answer", "completed"), COMPLETED),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), LENGTH),
    **dict.fromkeys(("tool_use", "pause_turn", "thinking", "prompt"), OPEN),
    "refusal": MODEL,
}
"""What ends a turn. ``answer`` is a message that ends in text, in a record that does not say why it ended."""


def counts(usage: _Json) -> Counts:
    """Return a message's token counts.

    Raises
    ------
    Unfit
        If one of them is no count, or they contradict each other.
    """
    fresh, output = usage.get("input_tokens"), usage.get("output_tokens")
    read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    made = usage.get("cache_creation")
    hour = made.get("ephemeral_1h_input_tokens") if type(made) is dict else None
    if type(fresh) is type(read) is type(write) is type(output) is int and (hour is None or type(hour) is int):
        part = 0 if hour is None else hour
        if 0 <= fresh | read | write | output | part <= MAX_TOKENS and part <= write:  # one test for all: no sign bit
            return fresh, read, write, hour, output
    return _checked(usage)


def _checked(usage: _Json) -> Counts:
    """Return the counts of a message that lacks some of them, or has bad ones."""
    made = usage.get("cache_creation")
    hour = tokens("ephemeral_1h_input_tokens", inside(made, "ephemeral_1h_input_tokens"))
    write = tokens("cache_creation_input_tokens", usage.get("cache_creation_input_tokens"))
    if write is None and hour is not None:
        short = tokens("ephemeral_5m_input_tokens", inside(made, "ephemeral_5m_input_tokens"))
        write = None if short is None else short + hour
    if hour is not None and write is not None and hour > write:
        raise Unfit(f"ephemeral_1h_input_tokens {hour} exceeds cache_creation_input_tokens {write}")
    read = tokens("cache_read_input_tokens", usage.get("cache_read_input_tokens"))
    fresh = tokens("input_tokens", usage.get("input_tokens"))
    if fresh is not None:  # before there were caches there were no such keys
        read, write = read or 0, write or 0
    return fresh, read, write, hour, tokens("output_tokens", usage.get("output_tokens"))


def content(message: _Json) -> tuple[str | None, bool, int, int]:
    """Return how a message ends, whether it says so itself, its tool calls, and its length in characters."""
    reason, blocks = message.get("stop_reason"), message.get("content")
    tools, chars, word = 0, 0, None
    if type(blocks) is list:
        for block in blocks:
            if type(block) is not dict:
                continue
            kind = block.get("type")
            if kind == "text":
                word, said = "answer", block.get("text")
                chars += len(said) if type(said) is str else 0
            elif kind == "tool_use":
                word, tools = "tool_use", tools + 1
                chars += length(block.get("input"))
            else:
                word, said = "thinking", block.get("thinking")
                chars += len(said) if type(said) is str else 0
    if reason is None:
        return word, False, tools, chars
    return (reason if type(reason) is str and reason in ENDS else "error"), True, tools, chars
