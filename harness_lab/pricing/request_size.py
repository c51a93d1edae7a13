"""The size of a request, counted so that it is never too small: every byte of its text, and each picture by itself.

Source: a token stands for at least one byte of text in every byte-pair vocabulary; the bounds of pictures are the
providers' published ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_lab.usage import count

MEDIA = {
    "image": "images",
    "image_url": "images",
    "input_image": "images",
    "document": "documents",
    "file": "documents",
    "input_file": "documents",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "input_video": "video",
    "video_url": "video",
}
"""Types of content parts that are no text, and what each counts as."""
TEXT = frozenset(
    {"text", "input_text", "output_text", "refusal", "thinking", "reasoning", "tool_use", "tool_call", "tool_result"}
)
"""Types of content parts that are text and nothing else, down to the content of tool results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSize:
    """What one request sends.

    Parameters
    ----------
    text_bytes : int
        UTF-8 bytes of all that is sent as text: system prompt, history, tool schemas, tool results. Byte-level
        tokenizers make at most one token of a byte, so this bounds their tokens.
    tools : bool
        Whether tools are offered (providers add text of their own then).
    images, documents, audio, video : int
        Content parts that are no text.
    unknown : int
        Content parts of a type that nobody here knows: they cannot be bounded.
    """

    text_bytes: int
    tools: bool = False
    images: int = 0
    documents: int = 0
    audio: int = 0
    video: int = 0
    unknown: int = 0

    def __post_init__(self) -> None:
        for name in ("text_bytes", "images", "documents", "audio", "video", "unknown"):
            object.__setattr__(self, name, count(name, getattr(self, name)))


def measure(
    system_prompt: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> RequestSize:
    """Measure a request.

    Parameters
    ----------
    system_prompt : str
        As it is sent.
    messages : sequence of mapping
        The conversation, tool calls and results included. The items of a list under ``content`` are content parts with
        a ``type``; a part that is no text is taken out of the bytes and counted by itself.
    tools : sequence of mapping
        Names, descriptions and schemas as they are offered.

    Notes
    -----
    A message counts with its keys and punctuation as JSON, which covers the marks that a provider's template puts
    around it.

    Examples
    --------
    >>> measure("hé", [])
    RequestSize(text_bytes=3, tools=False, images=0, documents=0, audio=0, video=0, unknown=0)
    """
    found = dict.fromkeys(("images", "documents", "audio", "video", "unknown"), 0)
    text = [_without_media(message, found) for message in messages]
    size = _bytes(system_prompt) + sum(map(_json_bytes, [*text, *tools]))
    return RequestSize(text_bytes=size, tools=bool(tools), **found)


def _without_media(value: Any, found: dict[str, int]) -> Any:
    """Return a value without its content parts that are no text; they are counted in `found`."""
    if isinstance(value, Mapping):
        return {
            key: _parts(inner, found) if key == "content" and isinstance(inner, list | tuple) else _deeper(inner, found)
            for key, inner in value.items()
        }
    return _deeper(value, found)


def _deeper(value: Any, found: dict[str, int]) -> Any:
    if isinstance(value, Mapping):
        return _without_media(value, found)
    if isinstance(value, list | tuple):
        return [_without_media(inner, found) for inner in value]
    if isinstance(value, bytes | bytearray):
        found["unknown"] += 1
        return None
    return value


def _parts(parts: Sequence[Any], found: dict[str, int]) -> list[Any]:
    kept = []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else "text"
        if kind in MEDIA:
            found[MEDIA[kind]] += 1
            continue
        if kind not in TEXT:
            found["unknown"] += 1
        kept.append(_without_media(part, found))
    return kept


def _json_bytes(value: Any) -> int:
    return _bytes(json.dumps(value, ensure_ascii=False, default=str))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
