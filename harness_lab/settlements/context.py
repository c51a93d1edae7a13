"""The context policy as a digest: what is sent before the task, so that floors of different set-ups do not mix."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def canonical(fields: Mapping[str, object]) -> str:
    """Return `fields` as JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def text_digest(text: str) -> str:
    """Return the first 16 hex digits of a text's SHA-256: the text can be recognised, not read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def context_digest(fields: Mapping[str, object]) -> str:
    """Return the digest of a context policy's fields.

    Parameters
    ----------
    fields : mapping
        What makes the starting context, without any text of it: versions, tool names, digests of texts.

    Returns
    -------
    str
        16 hex digits; equal fields give equal digests, in whatever order.

    Examples
    --------
    >>> context_digest({"a": 1, "b": 2}) == context_digest({"b": 2, "a": 1})
    True
    """
    return text_digest(canonical(fields))
