"""OpenTelemetry spans of generative AI in OTLP JSON: all naming generations, OpenInference and vendors' spellings.

Which span is a model call, an agent or a tool follows from ``gen_ai.operation.name``, ``openinference.span.kind``,
``traceloop.span.kind`` or ``llm.request.type``; without any of them, a span with token counts is a model call. How
spans become nodes and calls: :mod:`harness_lab.settlements.readers.spans`.

- tokens: the conventions say that the prompt count holds cached tokens; older emitters leave them out. Each emitter
  (instrumentation scope and provider in one file) is checked on its rows.
- cost: the conventions have none; OpenInference and vendors do. Otherwise it is unknown.
- outcome: a span with status *error* failed; the class in ``error.type`` or of a recorded exception names a turn limit,
  a time-out or a cancel. An agent span without an error completed. Messages are not kept.
- session: ``gen_ai.conversation.id`` or ``session.id``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record, unit_of
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.otlp import attributes, nanoseconds, records
from harness_lab.settlements.readers.spans import End, Kind, Span, Traces
from harness_lab.settlements.readers.values import Json, cause_of, dollars, ident, inside, items, short_name, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "input": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.promptTokens",
        "ai.usage.inputTokens",
    ),
    "output": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.completionTokens",
        "ai.usage.outputTokens",
    ),
    "read": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cache_read_tokens",
        "gen_ai.usage.input_tokens.cached",
        "gen_ai.usage.input_tokens_details.cached_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
        "llm.usage.cache_read_input_tokens",
        "ai.usage.cachedInputTokens",
    ),
    "write": (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
        "llm.usage.cache_creation_input_tokens",
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "llm.usage.reasoning_tokens",
        "ai.usage.reasoningTokens",
    ),
    "total": (
        "gen_ai.usage.total_tokens",
        "llm.usage.total_tokens",
        "llm.token_count.total",
        "ai.usage.totalTokens",
    ),
}
_COSTS: Final = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost", "gen_ai.usage.cost_usd")
_ASKED: Final = ("gen_ai.request.model", "llm.request.model", "ai.model.id", "llm.model_name")
_SERVED: Final = ("gen_ai.response.model", "llm.response.model", "ai.response.model", "llm.model_name")
_BACKEND: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
_SESSION: Final = ("gen_ai.conversation.id", "session.id", "langfuse.session.id", "conversation.id")
_AGENT: Final = ("gen_ai.agent.name", "agent.name", "gen_ai.agent.id", "traceloop.entity.name")

_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("chat", "completion", "text_completion", "generate_content", "embeddings", "embedding"), "model"),
    **dict.fromkeys(("llm", "rerank", "generation"), "model"),
    **dict.fromkeys(("invoke_agent", "agent"), "agent"),
    **dict.fromkeys(("execute_tool", "tool"), "tool"),
    **dict.fromkeys(("chain", "workflow", "task", "retriever", "guardrail", "evaluator", "prompt"), "other"),
    **dict.fromkeys(("create_agent", "invoke_workflow", "plan", "retrieval"), "other"),
}
_KIND_NAMES: Final = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type")

_TURNS: Final = re.compile(r"MaxTurns|max_turns|MaxIterations|max_iterations|RecursionError|GraphRecursion|UsageLimit")
_TIMED: Final = re.compile(r"Timeout|timeout|DeadlineExceeded|deadline")
_CANCELLED: Final = re.compile(r"Cancel|cancel|KeyboardInterrupt|Abort")
_ERROR: Final = (2, "2", "STATUS_CODE_ERROR")


class OtelReader:
    """Reader of OpenTelemetry spans in OTLP JSON."""

    name = "otel"
    expects = "OpenTelemetry spans in OTLP JSON (resourceSpans)"

    units = ("trace", "session")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has spans in OTLP JSON."""
        return head.lstrip()[:1] in {b"{", b"["} and b'"resourceSpans"' in head

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read all spans of all files, since one trace may lie in several, then make their rows."""
        output = ReaderOutput()
        unit = unit_of(self, options, output)
        traces = Traces(Conventions(cached_inside=True), name="OpenTelemetry spans", unit=unit)
        for file in files:
            for line, resource, scope, span in records(file, "spans", output):
                try:
                    traces.add(_span(span, resource, f"{file.name}|{scope}", file.name, line))
                except Unfit as error:
                    output.reject(file.name, line, str(error))
        traces.write(output)
        return output


def _span(span: Json, resource: Mapping[str, Any], group: str, source: str, line: int | None) -> Span:
    trace, name = ident(span.get("traceId")), ident(span.get("spanId"))
    if trace is None or name is None:
        raise Unfit("a span without traceId or spanId")
    said = attributes(span)
    raw = Raw(**{part: whole(names[0], _get(said, names)) for part, names in _NAMES.items()})
    kind = _kind(said, raw)
    start = nanoseconds("startTimeUnixNano", span.get("startTimeUnixNano"))
    end = nanoseconds("endTimeUnixNano", span.get("endTimeUnixNano"))
    backend = short_name(_get(said, _BACKEND))
    return Span(
        trace=trace,
        id=name,
        parent=ident(span.get("parentSpanId")),
        kind=kind,
        raw=raw if kind == "model" else Raw(),
        group=f"{group}|{backend}",
        start_ns=start,
        duration_ns=end - start if start is not None and end is not None and end >= start else None,
        cost_nusd=dollars("cost", _get(said, _COSTS)) if kind == "model" else None,
        end=_end(span, said, kind, ended=end is not None),
        source=source,
        line=line,
        fields=_fields(said, resource, kind, backend),
    )


def _get(said: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((said[name] for name in names if said.get(name) is not None), None)


def _kind(said: Mapping[str, Any], raw: Raw) -> Kind:
    for name in _KIND_NAMES:
        value = said.get(name)
        kind = _KINDS.get(value.lower()) if isinstance(value, str) else None
        if kind is not None:
            return kind
    return "model" if raw.input is not None or raw.output is not None else "other"


def _fields(said: Mapping[str, Any], resource: Mapping[str, Any], kind: Kind, backend: str | None) -> Record:
    fields: Record = {
        "model": short_name(_get(said, _ASKED)),
        "session": ident(_get(said, _SESSION)),
        "user": ident(said.get("user.id")),
        "backend": backend,
        "client_version": short_name(resource.get("service.version")),
    }
    if kind == "model":
        fields["served_model"] = short_name(_get(said, _SERVED))
    if kind == "agent":
        fields["agent"] = short_name(_get(said, _AGENT))
    return fields


def _end(span: Json, said: Mapping[str, Any], kind: Kind, *, ended: bool) -> End:
    if inside(span, "status", "code") not in _ERROR:
        return (Outcome.COMPLETED, Cause.NONE, None) if ended else (Outcome.UNKNOWN, None, None)
    name = _error_class(span, said)
    if kind == "model":
        return Outcome.FAILED, cause_of(name), None
    if _TURNS.search(name):
        return Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED
    if _TIMED.search(name):
        return Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED
    if _CANCELLED.search(name):
        return Outcome.CANCELLED, Cause.USER, None
    return Outcome.FAILED, cause_of(name), None


def _error_class(span: Json, said: Mapping[str, Any]) -> str:
    """Return the class of the error, never its message."""
    found = [said.get("error.type")]
    found += [attributes(event).get("exception.type") for event in items(span.get("events"))]
    return " ".join(name[:100] for name in found if isinstance(name, str))
