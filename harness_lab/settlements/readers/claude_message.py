"""What one message of Claude Code says: its token counts, how it ends, how long it is.

A line is decoded straight into the few fields that matter (:func:`decode`), which also checks their types and bounds.
Whatever does not fit that shape goes through :func:`tolerant`, which says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import orjson

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.ends import COMPLETED, ERRORS, LENGTH, MODEL, OPEN, End
from harness_lab.settlements.readers.values import inside, tokens
from harness_lab.usage import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

_Json = dict[str, Any]
_NOTHING: Final = len("null")
"""The JSON of a tool's input that is this short says nothing: ``{}``, ``null``, or there is none."""

_Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]

Counts = tuple[int | None, int | None, int | None, int | None, int | None]
"""Fresh input, cache read, cache write, its one-hour part, output."""


class Created(msgspec.Struct, gc=False):
    """How long cache writes live."""

    ephemeral_5m_input_tokens: _Tokens | None = None
    ephemeral_1h_input_tokens: _Tokens | None = None


class Usage(msgspec.Struct, gc=False):
    """Token counts of a message, disjoint; None: not there."""

    input_tokens: _Tokens | None = None
    cache_creation_input_tokens: _Tokens | None = None
    cache_read_input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None
    cache_creation: Created | None = None


class Block(msgspec.Struct, gc=False):
    """One block of a message's content; of it only its kind and length are used."""

    type: str
    text: str = ""
    thinking: str = ""
    input: msgspec.Raw = msgspec.Raw()


class Message(msgspec.Struct, gc=False):
    """What the model answered."""

    id: str
    usage: Usage
    model: str | None = None
    content: list[Block] = []
    stop_reason: str | None = None


class Answer(msgspec.Struct, gc=False, rename="camel"):
    """One line of an answer."""

    type: Literal["assistant"]
    message: Message
    request_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool = False
    version: str | None = None
    timestamp: str | None = None
    cost_usd: float | int | None = msgspec.field(name="costUSD", default=None)


decode: Final = msgspec.json.Decoder(Answer).decode
"""Decode a line that has the usual shape; raises ``MsgspecError`` or ``RecursionError`` for any other."""


def tolerant(record: _Json, meta: _Json, *, unique: str) -> Answer:
    """Return a line's answer, whatever its shape.

    Parameters
    ----------
    record, meta : dict
        The line, and the object in it that has the message: the line itself, or what a progress line tells of.
    unique : str
        What stands for the message's id if there is none.

    Raises
    ------
    Unfit
        If it has no message with usage, or a count that is none.
    """
    told = meta.get("message")
    usage = told.get("usage") if type(told) is dict else None
    if type(told) is not dict or type(usage) is not dict:
        raise Unfit("an assistant's message without usage")
    ident, blocks = _text(told.get("id")), told.get("content")
    message = Message(
        ident or unique, usage_of(usage), _text(told.get("model")), _blocks(blocks), told.get("stop_reason")
    )
    return Answer(
        "assistant", message, _text(meta.get("requestId")), version=_text(record.get("version")),
        timestamp=meta.get("timestamp"), cost_usd=record.get("costUSD"),
    )  # fmt: skip


def usage_of(usage: _Json) -> Usage:
    """Return token counts out of a parsed object.

    Raises
    ------
    Unfit
        If one of them is no count.
    """
    made = usage.get("cache_creation")
    lives = {key: tokens(key, inside(made, key)) for key in Created.__struct_fields__}
    plain = {key: tokens(key, usage.get(key)) for key in Usage.__struct_fields__ if key != "cache_creation"}
    return Usage(**plain, cache_creation=Created(**lives))


def _blocks(blocks: object) -> list[Block]:
    return [_block(block) for block in blocks if type(block) is dict] if type(blocks) is list else []


def _block(block: _Json) -> Block:
    """Return a block whose texts are texts; half a surrogate pair, or a number beyond 64 bits, cannot be written."""
    try:
        given = orjson.dumps(block.get("input"))
    except TypeError:
        given = str(block.get("input")).encode(errors="replace")
    said, thought = _text(block.get("text")), _text(block.get("thinking"))
    return Block(str(block.get("type")), said or "", thought or "", msgspec.Raw(given))


def _text(value: object) -> str | None:
    return value if type(value) is str and value else None


ENDS: Final[Mapping[str, End]] = {
    **ERRORS,
    **dict.fromkeys(("end_turn", "stop_sequence", "answer", "completed"), COMPLETED),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), LENGTH),
    **dict.fromkeys(("tool_use", "pause_turn", "thinking", "prompt"), OPEN),
    "refusal": MODEL,
}
"""What ends a turn. ``answer`` is a message that ends in text, in a record that does not say why it ended."""


def counts(usage: Usage) -> Counts:
    """Return a message's token counts.

    Raises
    ------
    Unfit
        If they contradict each other.
    """
    fresh, write, read = usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens
    made, hour = usage.cache_creation, None
    if made is not None:
        hour = made.ephemeral_1h_input_tokens
        if hour is not None:
            if write is None and made.ephemeral_5m_input_tokens is not None:
                write = made.ephemeral_5m_input_tokens + hour
            if hour > (write or 0):
                raise Unfit(f"ephemeral_1h_input_tokens {hour} exceeds cache_creation_input_tokens {write}")
    if fresh is not None:  # before there were caches there were no such keys
        return fresh, read or 0, write or 0, hour, usage.output_tokens
    return fresh, read, write, hour, usage.output_tokens


def content(message: Message) -> tuple[str | None, bool, int, int]:
    """Return how a message ends, whether it says so itself, its tool calls, and its length in characters.

    A tool's input is output too: its length is that of its JSON.
    """
    tools, chars, word = 0, 0, None
    for block in message.content:
        kind = block.type
        if kind == "text":
            word = "answer"
            chars += len(block.text)
        elif kind == "tool_use":
            word, tools = "tool_use", tools + 1
            if len(block.input) > _NOTHING:
                chars += len(block.input)
        else:
            word = "thinking"
            chars += len(block.thinking)
    reason = message.stop_reason
    if reason is None:
        return word, False, tools, chars
    return (reason if type(reason) is str and reason in ENDS else "error"), True, tools, chars
