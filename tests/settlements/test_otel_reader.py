from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105
START = 1_767_261_600_000_000_000

NEW = {"op": "gen_ai.operation.name", "in": "gen_ai.usage.input_tokens", "out": "gen_ai.usage.output_tokens"}
NEW |= {"read": "gen_ai.usage.cache_read.input_tokens", "write": "gen_ai.usage.cache_creation.input_tokens"}
NEW |= {"reasoning": "gen_ai.usage.reasoning.output_tokens", "model": "gen_ai.request.model"}
OLD = {**NEW, "in": "gen_ai.usage.prompt_tokens", "out": "gen_ai.usage.completion_tokens"}
VENDOR = {**NEW, "in": "llm.usage.prompt_tokens", "out": "llm.usage.completion_tokens", "op": "llm.request.type"}
VENDOR |= {"read": "gen_ai.usage.cache_read_input_tokens", "write": "gen_ai.usage.cache_creation_input_tokens"}
DRAFT = {**NEW, "write": "gen_ai.usage.cache_write.input_tokens"}
INFERENCE = {"op": "openinference.span.kind", "in": "llm.token_count.prompt", "out": "llm.token_count.completion"}
INFERENCE |= {
    "read": "llm.token_count.prompt_details.cache_read",
    "write": "llm.token_count.prompt_details.cache_write",
}
INFERENCE |= {"reasoning": "llm.token_count.completion_details.reasoning", "model": "llm.model_name"}


def attribute(key: str, value: object) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    kind = "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": key, "value": {kind: value}}


def span(
    name: str, parent: str = "", *, trace: str = "t1", at: int = 0, error: str = "", **said: object
) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(START + at), "endTimeUnixNano": str(START + at + 10**9)}
    events = [{"name": "exception", "attributes": [attribute("exception.type", error)]}] if error else []
    found = [attribute(key.replace("__", "."), value) for key, value in said.items()]
    status = {"code": 2, "message": SECRET} if error else {}
    whole = {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": parent,
        "name": SECRET,
        "status": status,
        "events": events,
    }
    return {**whole, **times, "attributes": [*found, attribute("gen_ai.input.messages", SECRET)]}


def chat(name: str, parent: str = "", *, sent: int = 100, received: int = 7, **more: Any) -> dict[str, Any]:
    usage = {NEW["in"]: sent, NEW["out"]: received, NEW["model"]: "m", "gen_ai.provider.name": "openai"}
    return span(name, parent, **{"gen_ai.operation.name": "chat", **usage, **more})


def agent(name: str, parent: str = "", **more: Any) -> dict[str, Any]:
    sums = {NEW["in"]: 10**6, NEW["out"]: 10**5}  # what is below it, said again
    return span(name, parent, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **sums, **more})


def batch(*spans: object) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def read_spans(tmp_path: Path, *spans: object, **options: Any) -> Settlements:
    (tmp_path / "spans.jsonl").write_text(json.dumps(batch(*spans)), encoding="utf-8")
    return read(tmp_path / "spans.jsonl", **options)


@pytest.mark.parametrize("names", [NEW, OLD, VENDOR, DRAFT, INFERENCE])
def test_every_naming_generation_gives_the_same_counts(tmp_path, names: dict[str, str]) -> None:
    said = {
        names["op"]: "LLM" if names is INFERENCE else "chat",
        names["model"]: "m",
        names["in"]: 100,
        names["out"]: 7,
    }
    said |= {names["read"]: 60, names["write"]: 10, names["reasoning"]: 2}
    table = read_spans(tmp_path, span("a", **said))
    wanted = {"run": "t1", "node": "0", "calls": 1, "model": "m", "input_total": 100, "input_fresh": 30}
    wanted |= {"cache_read": 60, "cache_write": 10, "output": 7, "reasoning": 2, "duration_ns": 10**9}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted


def test_agent_spans_are_nodes_and_their_sums_are_not_added(tmp_path) -> None:
    spans = [
        agent("root"),
        chat("c1", "root"),
        agent("child", "root"),
        chat("c2", "child", sent=50),
        span("x", "child"),
    ]
    nodes = read_spans(tmp_path, *spans).nodes.set_index("node")
    assert nodes["input_total"].to_dict() == {"root": 100, "child": 50}
    assert nodes[["parent", "depth", "starts", "calls"]].to_numpy().tolist() == [[pd.NA, 0, 1, 1], ["root", 1, 0, 1]]
    assert set(nodes["record_unit"]) == {"node"}


def test_calls_outside_an_agent_belong_to_the_trace_itself(tmp_path) -> None:
    tool = span("t", "a", **{"gen_ai.operation.name": "execute_tool"})
    nodes = read_spans(tmp_path, chat("c0"), agent("a"), chat("c1", "a"), tool).nodes.set_index("node")
    assert nodes[["parent", "depth"]].to_numpy().tolist() == [[pd.NA, 0], ["0", 1]]
    assert nodes["tool_calls"].to_dict() == {"0": 0, "a": 1}


def test_a_model_span_around_another_is_left_out_unless_only_it_tells_usage(tmp_path) -> None:
    told = read_spans(tmp_path, chat("outer"), chat("inner", "outer"))
    assert (told.nodes["input_total"].tolist(), told.nodes["calls"].tolist()) == ([100], [1])
    silent = span("inner", "outer", **{"gen_ai.operation.name": "chat"})
    wrapped = read_spans(tmp_path, chat("outer"), silent)
    assert (wrapped.nodes["input_total"].tolist(), wrapped.nodes["calls"].tolist()) == ([100], [1])
    assert "1 model span(s) wrap others and were left out" in " ".join(told.report.notes)


def test_a_span_that_comes_twice_counts_once_and_loops_of_parents_end(tmp_path) -> None:
    table = read_spans(tmp_path, chat("a", "b"), chat("a", "b"), agent("b", "c"), agent("c", "b"))
    assert table.nodes["calls"].sum() == 1
    assert "1 span(s) came more than once" in " ".join(table.report.notes)


def test_a_trace_may_lie_in_several_files(tmp_path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(batch(agent("root")), indent=1), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps(batch(chat("c", "root"))) + "\n\n", encoding="utf-8")
    assert read(tmp_path).nodes[["node", "calls"]].to_numpy().tolist() == [["root", 1]]


def test_an_older_emitter_that_leaves_cached_tokens_out_is_told_by_its_rows(tmp_path) -> None:
    cached = {NEW["read"]: 500}
    table = read_spans(tmp_path, chat("a", sent=100, **cached), chat("b", sent=900, at=1, **cached))
    assert table.calls is not None
    assert table.calls["input_total"].tolist() == [600, 1_400]
    assert "2 row(s) count cached or reasoning tokens otherwise" in " ".join(table.report.notes)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("agents.exceptions.MaxTurnsExceeded", ["exhausted", "limit", "steps-exhausted"]),
        ("TimeoutError", ["timed_out", "limit", "time-exhausted"]),
        ("asyncio.CancelledError", ["cancelled", "user", pd.NA]),
        ("openai.APIConnectionError", ["failed", "infrastructure", pd.NA]),
        ("ValueError", ["failed", pd.NA, pd.NA]),
        ("", ["completed", "none", pd.NA]),
    ],
)
def test_the_class_of_an_error_says_how_an_agent_ended(tmp_path, error: str, expected: list[object]) -> None:
    node = read_spans(tmp_path, agent("a", error=error), chat("c", "a")).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


@pytest.mark.parametrize("error", ["", "APIError"])
def test_a_call_without_usage_makes_the_sums_a_lower_bound(tmp_path, error: str) -> None:
    silent = span("b", error=error, **{"gen_ai.operation.name": "chat"})
    nodes = read_spans(tmp_path, chat("a"), silent).nodes
    assert nodes[["calls", "input_total", "usage_known"]].iloc[0].tolist() == [2, 100, False]


def test_cost_is_taken_where_a_vendor_has_it_and_unknown_otherwise(tmp_path) -> None:
    nodes = read_spans(tmp_path, chat("a", **{"llm.cost.total": 0.25}), chat("b", trace="t2")).nodes.set_index("run")
    assert nodes["cost_nusd"].tolist() == [250_000_000, pd.NA]


def test_a_run_can_be_the_conversation(tmp_path) -> None:
    told = {"gen_ai.conversation.id": "conv"}
    nodes = read_spans(tmp_path, chat("a", **told), chat("b", trace="t2", **told), unit="session").nodes
    assert nodes[["run", "node", "session"]].to_numpy().tolist() == [["conv", "t1", "conv"], ["conv", "t2", "conv"]]


def test_a_bad_span_is_set_aside_and_no_text_is_taken(tmp_path) -> None:
    bad = chat("b", **{NEW["in"]: -5})
    table = read_spans(tmp_path, chat("a"), bad, {"spanId": 3}, chat("c", error=SECRET))
    assert len(table.report.set_aside) == 2
    assert table.calls is not None
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 500), st.booleans()), min_size=1, max_size=7))
def test_every_leaf_call_is_counted_exactly_once_in_any_tree(tmp_path_factory, drawn) -> None:
    spans = [
        (chat if leaf else agent)(
            str(number), str(parent % number) if number else "", **({"sent": sent} if leaf else {})
        )
        for number, (parent, sent, leaf) in enumerate(drawn)
    ]
    parents = {one["parentSpanId"] for one in spans}
    calls = [one for one, (_, _, leaf) in zip(spans, drawn, strict=True) if leaf]
    table = read_spans(tmp_path_factory.mktemp("t"), *spans)
    leaves = [one for one in calls if not _below(one["spanId"], spans, {c["spanId"] for c in calls})]
    assert table.nodes["calls"].sum() == len(leaves)
    assert len(parents) <= len(spans)


def _below(name: str, spans: list[dict[str, Any]], calls: set[str]) -> bool:
    """Whether a model span has another one somewhere below it."""
    children = [one["spanId"] for one in spans if one["parentSpanId"] == name]
    return any(child in calls or _below(child, spans, calls) for child in children)
