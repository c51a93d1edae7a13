"""The columns of the settlement table, one line each: name, dtype, meaning with its unit, what NA means.

Both tables (nodes and calls) are declared here once; dtypes, the row models, the checks and the documentation follow
from these tuples. NA is "unknown" or "does not apply", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness_lab.outcome import CHANNELS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT: Final = 2_000
"""Characters a text may have; the table holds names and ids, no prose."""

DType = Literal["Int64", "string", "boolean", "Float64"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Parameters
    ----------
    name : str
        Its name in the frame and in the file.
    dtype : {"Int64", "string", "boolean", "Float64"}
        Its pandas dtype; all four are nullable.
    meaning : str
        What it says, with its unit and the meaning of NA.
    """

    name: str
    dtype: DType
    meaning: str


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning)


def _count(name: str, meaning: str) -> Column:
    return Column(name, "Int64", meaning)


def _flag(name: str, meaning: str) -> Column:
    return Column(name, "boolean", meaning)


def _amounts(prefix: str, verb: str, missing: str) -> tuple[Column, ...]:
    """One column per channel: ``<prefix>_calls``, ``<prefix>_input`` and so on."""
    units = {"cost": "nano-dollars", "calls": "model calls"}
    return tuple(
        _count(f"{prefix}_{channel}", f"{verb}, {units.get(channel, 'tokens')}; NA: {missing}") for channel in CHANNELS
    )


_TOKENS: Final = (
    _count(
        "blended_tokens", "the one mixed token figure of records that give no parts; its mix is the source's; NA: none"
    ),
    _count("input_total", "all prompt tokens: fresh, read from a cache, written to one; NA: unknown"),
    _count("input_fresh", "prompt tokens neither read from nor written to a cache; NA: unknown"),
    _count("cache_read", "prompt tokens read from a cache; NA: unknown"),
    _count("cache_write", "prompt tokens written to a cache; NA: unknown"),
    _count("cache_write_1h", "the part of cache_write with the one-hour lifetime; NA: unknown"),
    _count("output", "completion tokens, reasoning included; NA: unknown"),
    _count("reasoning", "the part of output that was reasoning; NA: unknown"),
)

_MONEY: Final = (
    _count("cost_nusd", "what it cost, nano-dollars, as cost_source says; NA: unknown, never free"),
    _text("cost_source", "recorded, computed, estimated or simulated; NA where cost_nusd is NA"),
    _count("billed_nusd", "what the provider's bill says, nano-dollars; NA: no bill was joined"),
)

_TIMES: Final = (
    _count("start_ns", "start, nanoseconds since 1970 UTC (simulated: since the run's start); NA: unknown"),
    _count("duration_ns", "from start to end, nanoseconds; NA: unknown"),
    _count("wait_ns", "the part of duration_ns spent waiting (children, slots), nanoseconds; NA: unknown"),
)

NODE_COLUMNS: Final[tuple[Column, ...]] = (
    _text("run", "the run (one whole tree) that this node belongs to; never NA"),
    _text("policy", "name of the limit policy that was simulated; NA: recorded"),
    _text("scenario", "name of the simulated scenario; NA: recorded"),
    _text(
        "record_unit", "what one row stands for: node, run, headless-run, session, turn, call or key-day; NA: unknown"
    ),
    _text("node", "the node within its run; never NA, the root is '0' where the record has no name for it"),
    _text("parent", "the node that started it; NA: it is the root, or unknown"),
    _text("path", "position in the tree as call.slot.attempt on each level, joined by '/'; NA: root or unknown"),
    _count("depth", "levels below the root, which has 0; NA: unknown"),
    _text("agent", "role or profile; NA: unknown"),
    _text("backend", "what carried the agent or its model calls; NA: unknown"),
    _text("model", "the model asked for; NA: unknown"),
    _text("served_model", "the model that answered; several are sorted and joined by ' + '; NA: unknown"),
    _text(
        "model_usage",
        "what each model used, of records that tell no calls: canonical JSON, model to counts and cost; NA: not told",
    ),
    _text("context", "digest of the context policy (what is sent before the task); NA: its own key, 'unknown'"),
    _text("context_fields", "what the digest was made of, as canonical JSON; NA: unknown"),
    _flag("context_inferred", "the record hides the context and context is a fingerprint; NA: no context"),
    _text("outcome", "a value of harness_lab.outcome.Outcome; never NA, 'unknown' instead"),
    _text("stopped_by", "the first binding limit, a code of harness_lab.outcome.Code; NA: none, or unknown"),
    _text("cause", "a value of harness_lab.outcome.Cause; NA: unknown"),
    _flag("overspent", "it used more than a ceiling allowed; NA: unknown"),
    _flag("delivered", "the result was good: tests passed, merged, accepted; NA: unknown"),
    Column("score", "Float64", "a grade in the source's own unit; NA: none"),
    _text("source_status", "the source's own word for the end; NA: none"),
    _flag("eligible", "evidence for floors: yes or no by a person's decision; NA: the rule decides"),
    _text("eligible_reason", "why a person decided so; NA: no one did"),
    _count("calls", "model calls that were made; NA: unknown"),
    _count("attempts", "model calls with retries counted; NA: unknown"),
    _count("tool_calls", "tool calls; NA: unknown"),
    _count("starts", "children started; NA: unknown"),
    _count("iterations", "iterations in the source's own count; NA: none"),
    *_TOKENS,
    *_MONEY,
    *_TIMES,
    *_amounts("ask", "what its parent declared for it", "nothing was declared"),
    _count("ask_time_ns", "time that its parent declared for it, nanoseconds; NA: none was declared"),
    *_amounts("ceiling", "the limit in force on this node's own use", "no limit, or unknown"),
    _count("ceiling_time_ns", "the time limit in force, nanoseconds; NA: no limit, or unknown"),
    *_amounts("held", "what was reserved for it when it started", "just its ask, or nothing"),
    _flag("usage_known", "every call reported its usage, so the figures are whole; NA: not recorded"),
    _count("placeholder_calls", "calls whose recorded output is a placeholder or was cut short; NA: not known"),
    _text("task_kind", "kind of task; NA: unknown"),
    _text("user", "who ran it, as the source names or hashes it; NA: unknown"),
    _text("team", "team; NA: unknown"),
    _text("repo", "repository or project; NA: unknown"),
    _text("session", "session, hashed; NA: unknown"),
    _text("client_version", "version of the client that ran it; NA: unknown"),
    _text("source", "the file it was read from, or a sentence on where it was published; NA: simulated"),
    _count("line", "line or row in that file, from 1; NA: the file is one record"),
    _count("schema_version", "version of this schema; never NA"),
)
"""The columns of the nodes table, in order."""

CALL_COLUMNS: Final[tuple[Column, ...]] = (
    _text("run", "the run, as in the nodes table; never NA"),
    _text("policy", "name of the limit policy that was simulated; NA: recorded"),
    _text("scenario", "name of the simulated scenario; NA: recorded"),
    _text("node", "the node, as in the nodes table; never NA"),
    _count("call", "number of the call within its node, from 0; NA: unknown"),
    _count("attempt", "which try of this call, from 0; NA: unknown"),
    _text("kind", "model, tool, compaction or wrap-up; NA: unknown"),
    _text("turn", "interactive or programmatic; NA: unknown"),
    _text("status", "completed, failed, abandoned or unsent; NA: unknown"),
    _text("model", "the model asked for; NA: unknown"),
    _text("served_model", "the model that answered; NA: unknown"),
    *_TOKENS,
    *_MONEY,
    *_TIMES,
    _flag("output_placeholder", "the recorded output is a placeholder or was cut short, so too low; NA: not known"),
    _count("output_chars", "characters of the answer: text, thinking and tool input; NA: unknown"),
    _text("price_date", "date of the prices behind a computed cost, YYYY-MM-DD; NA: recorded, or unknown"),
    _text("source", "the file it was read from; NA: simulated"),
    _count("line", "line or row in that file, from 1; NA: the file is one record"),
)
"""The columns of the calls table, in order."""

NODE_NAMES: Final = tuple(column.name for column in NODE_COLUMNS)
CALL_NAMES: Final = tuple(column.name for column in CALL_COLUMNS)

PARTS: Final = ("input_fresh", "cache_read", "cache_write")
"""The disjoint parts of ``input_total``."""

SUBSETS: Final = (("reasoning", "output"), ("cache_write_1h", "cache_write"))
"""Pairs (part, whole): the part never exceeds the whole."""

SIGNED: Final = frozenset({"start_ns", "score"})
"""The numeric columns that may be negative."""


def meanings(columns: tuple[Column, ...] = NODE_COLUMNS) -> Mapping[str, str]:
    """Return name → meaning, in order; for documentation and ``explain()``."""
    return {column.name: column.meaning for column in columns}
