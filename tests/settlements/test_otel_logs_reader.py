from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105
END = 1_767_261_600_000_000_000


def event(name: str, *, at: int = 0, **said: object) -> dict[str, Any]:
    pairs = [{"key": "event.name", "value": {"stringValue": name}}, {"key": "prompt", "value": {"stringValue": SECRET}}]
    for key, value in said.items():
        kind = {int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
        pairs.append({"key": key.replace("__", "."), "value": {kind: value}})
    return {"timeUnixNano": str(END + at * 10**9), "body": {"stringValue": name}, "attributes": pairs}


def request(*, at: int = 0, sequence: int = 1, session: str = "s1", **more: object) -> dict[str, Any]:
    counts = {"input_tokens": "10", "output_tokens": 20, "cache_read_tokens": 300, "cache_creation_tokens": 40}
    about = {"model": "m", "cost_usd": 0.25, "duration_ms": 2_000, "session__id": session, "event__sequence": sequence}
    return event("claude_code.api_request", at=at, **{**counts, **about, **more})


def codex(kind: str = "response.completed", *, at: int = 0, **more: object) -> dict[str, Any]:
    counts = {
        "input_token_count": 1_200,
        "cached_token_count": 600,
        "output_token_count": 450,
        "reasoning_token_count": 50,
    }
    about = {"event__kind": kind, "conversation__id": "c1", **(counts if kind == "response.completed" else {})}
    return event("codex.sse_event", at=at, **{**about, **more})


def read_logs(tmp_path: Path, *records: object) -> Settlements:
    batch = {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}
    (tmp_path / "logs.jsonl").write_text(json.dumps(batch), encoding="utf-8")
    return read(tmp_path / "logs.jsonl")


def test_requests_of_a_session_are_the_calls_of_one_node(tmp_path) -> None:
    table = read_logs(
        tmp_path, request(at=9, sequence=2), request(), event("claude_code.user_prompt", session__id="s1")
    )
    wanted = {"run": "s1", "record_unit": "session", "agent": "claude-code", "model": "m", "calls": 2}
    wanted |= {"input_total": 700, "input_fresh": 20, "cache_read": 600, "cache_write": 80, "output": 40}
    wanted |= {"cost_nusd": 500_000_000, "start_ns": END - 2 * 10**9, "duration_ns": 11 * 10**9, "outcome": "unknown"}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert "telemetry: events that are no calls: 1 claude_code.user_prompt" in table.report.notes


def test_the_short_event_name_is_understood_too(tmp_path) -> None:
    one = request()
    one["attributes"][0]["value"] = {"stringValue": "api_request"}
    assert read_logs(tmp_path, one).nodes["calls"].tolist() == [1]


def test_an_api_error_is_a_failed_call_and_the_sums_a_lower_bound(tmp_path) -> None:
    failed = event("claude_code.api_error", at=1, session__id="s1", model="m", error=SECRET, status_code=529)
    table = read_logs(tmp_path, request(), failed)
    assert table.nodes[["calls", "input_total", "usage_known"]].iloc[0].tolist() == [2, 350, False]
    assert table.calls is not None
    assert table.calls["status"].tolist() == ["completed", "failed"]
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


def test_an_event_that_comes_twice_counts_once(tmp_path) -> None:
    table = read_logs(tmp_path, request(), request(), request(sequence=2))
    assert table.nodes["calls"].tolist() == [2]
    assert "telemetry: 1 event(s) came more than once and count once" in table.report.notes


def test_codex_counts_cached_tokens_inside_and_names_its_model_elsewhere(tmp_path) -> None:
    start = event("codex.conversation_starts", conversation__id="c1", model="gpt-m")
    node = read_logs(tmp_path, start, codex(), codex("response.output_item.done")).nodes.iloc[0]
    wanted = {"run": "c1", "agent": "codex", "model": "gpt-m", "calls": 1, "input_total": 1_200, "input_fresh": 600}
    wanted |= {"cache_read": 600, "output": 450, "reasoning": 50}
    assert node[list(wanted)].to_dict() == wanted
    assert pd.isna(node["cost_nusd"])


def test_a_failed_codex_response_is_a_failed_call(tmp_path) -> None:
    table = read_logs(tmp_path, codex(), codex("response.failed", at=5))
    assert table.nodes[["calls", "output", "usage_known"]].iloc[0].tolist() == [2, 450, False]


def test_a_bad_count_sets_the_event_aside(tmp_path) -> None:
    table = read_logs(tmp_path, request(), request(output_tokens=-3, session="s2"))
    assert table.nodes["run"].tolist() == ["s1"]
    assert [item.reason for item in table.report.set_aside] == [
        "output_tokens: should be a whole number, at least 0, got -3"
    ]
