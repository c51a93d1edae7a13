"""LiteLLM's spend logs, as a dump of the table and as ``/spend/logs`` answers them, made ready for a column map.

One row is one request: record_unit ``call``; retries and fallbacks are rows of their own. ``prompt_tokens`` counts what
was read from and written to a cache, and how much that was is only in ``metadata.usage_object``.

- a failure has no usage: tokens and cost are unknown, not zero;
- an answer from LiteLLM's own cache (``cache_hit``) repeats the tokens of the first one, but no model was called: no
  call, no tokens, and the spend of 0 is real;
- spend 0 beside tokens otherwise means that the model has no price there: unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from harness_lab.settlements.readers.values import inside

Row = Mapping[str, Any]

_COUNTS: Final = ("prompt_tokens", "completion_tokens", "cache_read", "cache_write", "reasoning")


def prepared(row: Row) -> dict[str, Any]:
    """Return a spend-log row with its cache counts beside the others, and unknowns as None."""
    usage = inside(_object(row.get("metadata")), "usage_object")
    details = inside(usage, "prompt_tokens_details")
    read = _first(inside(usage, "cache_read_input_tokens"), inside(details, "cached_tokens"))
    write = _first(inside(usage, "cache_creation_input_tokens"), inside(details, "cache_creation_tokens"))
    known = {
        **row,
        "cache_read": read,
        "cache_write": 0 if write is None and read is not None else write,
        "reasoning": inside(usage, "completion_tokens_details", "reasoning_tokens"),
        "status": row.get("status") or inside(_object(row.get("metadata")), "status") or "success",
        "usage_known": True,
        "calls": 1,
    }
    hit = str(row.get("cache_hit")).lower() == "true"
    if hit:
        known |= dict.fromkeys(_COUNTS, 0) | {"calls": 0}
    elif known["status"] == "failure":
        known |= dict.fromkeys(_COUNTS) | {"usage_known": False}
    if not hit and _zero(row.get("spend")):
        known["spend"] = None
    return known


def _object(value: object) -> object:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _zero(value: object) -> bool:
    try:
        return float(str(value)) == 0
    except ValueError:
        return False
