"""One headless run of Claude Code, put together from its messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.context import canonical, context_digest, text_digest
from harness_lab.settlements.convert import Unfit, money, span
from harness_lab.settlements.model_usage import packed
from harness_lab.settlements.readers.claude_message import counts, usage_of
from harness_lab.settlements.readers.ends import COMPLETED, ERRORS, FAILED, MODEL, OPEN, End, error_word
from harness_lab.settlements.readers.journal import journal, limits
from harness_lab.settlements.readers.values import folder, identifier, inside, short_name, tokens
from harness_lab.settlements.rows import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.settlements.files import RecordFile
    from harness_lab.settlements.readers.base import Record

_Json = dict[str, Any]

_SUBTYPES: Final[Mapping[str, End]] = {
    "success": COMPLETED,
    "error_max_turns": End(Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED),
    "error_max_budget_usd": End(Outcome.EXHAUSTED, Cause.LIMIT, Code.COST_EXHAUSTED),
    "error_max_structured_output_retries": MODEL,
    "error_during_execution": FAILED,
}
_KEYS: Final = (
    ("input_fresh", "inputTokens"),
    ("cache_read", "cacheReadInputTokens"),
    ("cache_write", "cacheCreationInputTokens"),
    ("output", "outputTokens"),
)
_BEDROCK: Final = re.compile(r"(^|\.)anthropic\.")
_MOST_RUN: Final = 2**53


class Run:
    """The messages of one session in one file."""

    def __init__(self, file: RecordFile, number: int | None) -> None:
        self._file, self._line = file, number
        self._result: _Json | None = None
        self._init: _Json = {}
        self._sums = {"num_turns": 0, "duration_ms": 0}
        self._session: str | None = None
        self._calls: dict[str, _Json] = {}

    def take(self, message: _Json, number: int | None) -> None:
        """Take one message."""
        kind = message.get("type")
        self._session = self._session or identifier(message.get("session_id"))
        if kind == "result":
            self._result, self._line = message, number
            for key in self._sums:
                self._sums[key] += _whole(key, message.get(key)) or 0
        elif kind == "system" and message.get("subtype") == "init":
            self._init = self._init or message
        elif kind == "assistant":
            self._answer(message, number)

    def _answer(self, message: _Json, number: int | None) -> None:
        """Keep a call's line with the largest output."""
        told = message.get("message")
        usage = inside(told, "usage")
        if not isinstance(usage, dict) or inside(told, "model") == "<synthetic>":
            return
        fresh, read, write, hour, output = counts(usage_of(usage))
        key = inside(told, "id")
        key = key if isinstance(key, str) else f"{len(self._calls)}"
        known = self._calls.get(key)
        if known is None or (output or 0) > (known["output"] or 0):
            self._calls[key] = {
                "input_fresh": fresh, "cache_read": read, "cache_write": write, "cache_write_1h": hour,
                "output": output, "served_model": short_name(inside(told, "model")), "line": number,
            }  # fmt: skip

    def rows(self) -> tuple[Record, list[Record]]:
        """Return the node and its calls."""
        result = self._result or {}
        said = journal(self._file.path, part="claude_code")
        run = self._session or identifier(self._file.path.parent.name) or "run"
        where = {"run": run, "node": "0", "source": self._file.name}
        used = self._usage(result)
        node: Record = {
            **where,
            "session": self._session,
            "record_unit": "headless-run",
            "depth": 0,
            "agent": "claude-code",
            "line": self._line,
            "model": short_name(self._init.get("model")),
            "client_version": short_name(self._init.get("claude_code_version")),
            "repo": folder(self._init.get("cwd")),
            **used,
            **self._cost(result, used),
            "iterations": self._sums["num_turns"] if "num_turns" in result else None,
            "calls": len(self._calls) or None,
            **limits(said),
            **({"duration_ns": span(self._sums["duration_ms"] / 1_000)} if "duration_ms" in result else {}),
            **self._end(result),
            **self._context(),
        }
        rows = [
            {**where, **call, "call": number, "kind": "model", "status": "completed"}
            for number, call in enumerate(self._calls.values())
        ]
        return node, rows

    def _usage(self, result: _Json) -> Record:
        """Return the sum over all models; of a stream without a result, the sum over its calls, a lower bound."""
        models = result.get("modelUsage")
        if isinstance(models, dict) and models:
            names = sorted(filter(None, map(short_name, models)))
            sums = {column: _total(models, key) for column, key in _KEYS}
            each = _each(models) if len(names) == len(models) else None
            known = None not in sums.values()
            backend = "bedrock" if all(map(_BEDROCK.search, names)) and names else None
            hour = {"cache_write_1h": _hours(result, sums)}
            used = {"served_model": " + ".join(names) or None, "model_usage": each, "backend": backend}
            return {**sums, **hour, **used, "usage_known": known}
        if isinstance(result.get("usage"), dict):
            fresh, read, write, hour_part, output = counts(usage_of(result["usage"]))
            columns = ("input_fresh", "cache_read", "cache_write", "cache_write_1h", "output")
            found: Record = dict(zip(columns, (fresh, read, write, hour_part, output), strict=True))
            return {**found, "usage_known": fresh is not None and output is not None}
        sums = {key: sum(call[key] or 0 for call in self._calls.values()) for key, _ in _KEYS} if self._calls else {}
        names = sorted({call["served_model"] for call in self._calls.values() if call["served_model"]})
        return {**sums, "served_model": " + ".join(names) or None, "usage_known": False}

    def _cost(self, result: _Json, used: Record) -> Record:
        cost = result.get("total_cost_usd")
        paid = None if cost is None else money(cost)
        if paid is None or (paid == 0 and any(used.get(column) for column, _ in _KEYS)):
            return {"cost_nusd": None}
        return {"cost_nusd": paid, "cost_source": "recorded"}

    def _end(self, result: _Json) -> Record:
        word = short_name(result.get("subtype"))
        end = _SUBTYPES.get(word or "", FAILED if word else OPEN)
        if result.get("is_error") is True and end is COMPLETED:
            kind = error_word(result.get("result"))
            end, word = ERRORS[kind], kind
        elif word == "error_during_execution":
            errors = result.get("errors")
            kind = error_word(*(errors if isinstance(errors, list) else ()), result.get("result"))
            end = ERRORS[kind]
        return {"outcome": end.outcome, "cause": end.cause, "stopped_by": end.code, "source_status": word}

    def _context(self) -> Record:
        """Return the digest of what the stream's first message says is sent; of a bare result nothing is known."""
        tools = self._init.get("tools")
        listed = sorted(tool for tool in tools if isinstance(tool, str)) if isinstance(tools, list) else None
        fields = {
            "client": "claude-code",
            "mode": "headless",
            "version": short_name(self._init.get("claude_code_version")),
            "permission_mode": short_name(self._init.get("permissionMode")),
            "tools": None if listed is None else text_digest("\n".join(listed)),
        }
        return {"context": context_digest(fields), "context_fields": canonical(fields), "context_inferred": True}


def _whole(what: str, value: object) -> int | None:
    """Return a count of a whole run, which may be larger than a call's; None stays None."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value <= _MOST_RUN:
        raise Unfit(f"{what}: should be a whole number, at least 0, got {shown(value)}")
    return value


def _total(models: _Json, key: str) -> int | None:
    """Return a count's sum over all models; None if one of them does not say."""
    counted = [_whole(key, inside(one, key)) for one in models.values()]
    known = [value for value in counted if value is not None]
    return sum(known) if len(known) == len(counted) else None


def _each(models: _Json) -> str | None:
    """Return what each model used, and what the client says it cost."""
    told: dict[str, dict[str, int | None]] = {}
    for model, one in models.items():
        paid = inside(one, "costUSD")
        told[model] = {column: _whole(key, inside(one, key)) for column, key in _KEYS}
        told[model]["cost_nusd"] = None if paid is None else money(paid)
    return packed(told)


def _hours(result: _Json, sums: Mapping[str, int | None]) -> int | None:
    """Return the cache writes of one hour: known only if ``usage`` covers all cache writes."""
    hour = tokens("ephemeral_1h_input_tokens", inside(result, "usage", "cache_creation", "ephemeral_1h_input_tokens"))
    whole = inside(result, "usage", "cache_creation_input_tokens")
    covered = hour is not None and whole == sums["cache_write"] and sums["cache_write"] is not None
    return hour if covered and hour is not None and hour <= (sums["cache_write"] or 0) else None
