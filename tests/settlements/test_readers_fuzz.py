"""Damaged files of every benchmark, trace and telemetry format: no crash and no silent drop."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage import damaged

from harness_lab.errors import InputError
from harness_lab.settlements import read
from harness_lab.settlements.files import MAX_LINE_BYTES

FILES = 2_000
USAGE = {"input_tokens": 90, "output_tokens": 7, "total_tokens": 97, "input_tokens_details": {"cached_tokens": 30}}


def otlp(key: str, value: object) -> dict[str, Any]:
    return {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": value}}


def spans(name: str) -> bytes:
    said = [otlp("gen_ai.operation.name", "chat"), otlp("gen_ai.usage.input_tokens", 90)]
    said += [otlp("gen_ai.usage.output_tokens", "7"), otlp("gen_ai.usage.cache_read.input_tokens", 30)]
    times = {"startTimeUnixNano": "1767261600000000000", "endTimeUnixNano": "1767261601000000000"}
    agent = {"traceId": name, "spanId": "a", **times, "attributes": [otlp("gen_ai.operation.name", "invoke_agent")]}
    call = {"traceId": name, "spanId": "b", "parentSpanId": "a", **times, "attributes": said, "status": {"code": 2}}
    return json.dumps(
        {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [agent, call]}]}]}
    ).encode()


def logs(name: str) -> bytes:
    said = [otlp("event.name", "claude_code.api_request"), otlp("session.id", name), otlp("input_tokens", 9)]
    said += [otlp("output_tokens", 7), otlp("cache_read_tokens", 30), otlp("duration_ms", 20), otlp("cost_usd", "0.5")]
    record = {"timeUnixNano": "1767261600000000000", "body": {"stringValue": "x"}, "attributes": said}
    other = {**record, "attributes": [otlp("event.name", "codex.sse_event"), otlp("event.kind", "response.failed")]}
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, other]}]}]}).encode()


def langfuse(name: str) -> bytes:
    row = {"id": name, "traceId": name, "type": "GENERATION", "startTime": "2026-01-01T10:00:00Z", "model": "m"}
    usage = {"input": 40, "input_cached_tokens": 50, "output": 7, "total": 97}
    rows = [
        {**row, "usageDetails": usage, "costDetails": {"total": 0.5}, "level": "ERROR"},
        {**row, "traceId": name + "b"},
    ]
    return "\n".join(map(json.dumps, rows)).encode()


def inspect(name: str) -> dict[str, Any]:
    used = {"input_tokens": 60, "input_tokens_cache_read": 30, "output_tokens": 7, "total_tokens": 97}
    event = {"event": "model", "timestamp": "2026-01-01T10:00:00Z", "output": {"usage": used, "time": 1.5}}
    sample = {"id": name, "epoch": 1, "model_usage": {"v/m": used}, "total_time": 3, "scores": {"s": {"value": "C"}}}
    about = {"run_id": "r", "eval_id": "e", "config": {"time_limit": 60}}
    return {"version": 2, "status": "success", "eval": about, "samples": [{**sample, "events": [event]}]}


def packed(name: str) -> bytes:
    log = inspect(name)
    with zipfile.ZipFile(target := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(log.pop("samples")[0]))
        archive.writestr("header.json", json.dumps(log))
    return target.getvalue()


def swe(name: str) -> bytes:
    stats = {"instance_cost": 0.5, "tokens_sent": 900, "tokens_received": 30, "api_calls": 3}
    config = json.dumps({"agent": {"model": {"name": name, "per_instance_cost_limit": 3.0}, "tools": {}}})
    info = {"exit_status": "submitted (exit_cost)", "model_stats": stats}
    return json.dumps({"trajectory": [{"action": ""}], "info": info, "replay_config": config}).encode()


def harbor(name: str) -> bytes:
    used = {"n_input_tokens": 900, "n_cache_tokens": 700, "n_output_tokens": 50, "cost_usd": 0.25}
    config = {"agent": {"override_timeout_sec": 600}, "timeout_multiplier": 2.0}
    clock = {"started_at": "2026-01-01T10:00:00Z", "finished_at": "2026-01-01T10:05:00"}
    whole = {"trial_name": name, "config": config, "agent_result": used, "agent_execution": clock}
    return json.dumps({**whole, "verifier_result": {"rewards": {"reward": 1.0}}, "exception_info": None}).encode()


def bench(name: str) -> bytes:
    trial = {"trial_name": name, "failure_mode": "unset", "is_resolved": True, "total_input_tokens": 9}
    return json.dumps(
        {"results": [trial, {**trial, "trial_name": name + "b", "agent_started_at": "2026-01-01"}]}
    ).encode()


def trae(name: str) -> bytes:
    used = {"input_tokens": 50, "output_tokens": 7, "cache_read_input_tokens": 30, "reasoning_tokens": 2}
    call = {"timestamp": "2026-01-01T10:00:01", "provider": "openai", "response": {"model": "m", "usage": used}}
    whole = {"start_time": "2026-01-01T10:00:00", "end_time": "2026-01-01T10:01:00", "max_steps": 9, "success": True}
    return json.dumps(
        {"model": name, **whole, "llm_interactions": [call, call], "agent_steps": [{"error": "x"}]}
    ).encode()


def openhands(name: str) -> bytes:
    used = {"prompt_tokens": 90, "completion_tokens": 7, "cache_read_tokens": 30, "response_id": "r"}
    metrics = {
        "accumulated_cost": 0.5,
        "accumulated_token_usage": used,
        "token_usages": [used],
        "costs": [{"cost": 0.5}],
    }
    history = [{"timestamp": "2026-01-01T10:00:00", "action": "finish"}]
    one = {
        "instance_id": name,
        "metadata": {"max_iterations": 50},
        "metrics": metrics,
        "history": history,
        "error": None,
    }
    return "\n".join([json.dumps(one), json.dumps({**one, "instance_id": name + "b"})]).encode()


def aider(name: str) -> bytes:
    said = {"main_model": name, "prompt_tokens": 90, "completion_tokens": 7, "cost": 0.5}
    one = {"event": "message_send", "properties": said, "user_id": "u", "time": 1_738_368_963}
    return "\n".join([json.dumps(one), json.dumps({**one, "event": "exit"}), json.dumps(one)]).encode()


def exercise(name: str) -> bytes:
    whole = {"testcase": name, "model": "m", "tests_outcomes": [False, True], "cost": 0.5, "duration": 12.5}
    return json.dumps({**whole, "prompt_tokens": 90, "completion_tokens": 8, "thinking_tokens": 2}).encode()


def sdk(name: str) -> bytes:
    whole = {"requests": 2, **USAGE, "request_usage_entries": [USAGE, USAGE]}
    return "\n".join(
        [json.dumps({"run": name, "usage": whole, "error": "MaxTurnsExceeded"}), json.dumps(whole)]
    ).encode()


Maker = Callable[[str], bytes]

SEEDS: dict[str, tuple[str, str, Maker]] = {
    "swe-agent": ("swe-agent", ".traj", swe),
    "otel": ("otel", ".jsonl", spans),
    "otel-logs": ("otel-logs", ".jsonl", logs),
    "langfuse": ("langfuse", ".jsonl", langfuse),
    "inspect": ("inspect", ".json", lambda name: json.dumps(inspect(name)).encode()),
    "inspect-packed": ("inspect", ".eval", packed),
    "harbor": ("harbor", ".json", harbor),
    "terminal-bench": ("terminal-bench", ".json", bench),
    "trae": ("trae", ".json", trae),
    "openhands": ("openhands", ".jsonl", openhands),
    "aider-analytics": ("aider-analytics", ".jsonl", aider),
    "aider-benchmark": ("aider-benchmark", ".json", exercise),
    "agents-sdk": ("agents-sdk", ".jsonl", sdk),
}


@pytest.mark.parametrize("name", list(SEEDS))
def test_two_thousand_damaged_files_neither_crash_a_reader_nor_vanish(tmp_path: Path, name: str) -> None:
    reader, suffix, make = SEEDS[name]
    rng = random.Random(name)  # noqa: S311
    paths = [tmp_path / f"f{number}{suffix}" for number in range(FILES)]
    for number, path in enumerate(paths):
        path.write_bytes(damaged(make(f"n{number}"), rng))
    table = read(paths, format=reader)
    report = table.report
    assert report.read == report.kept + report.duplicates + len(report.set_aside)
    told = " ".join(report.notes)
    mentioned = set(table.nodes["source"]) | {item.file for item in report.set_aside}
    lost = [path.name for path in paths if path.name not in mentioned and f"{path.name}:" not in told]
    merged = {"otel", "otel-logs", "langfuse"} & {reader}  # one trace or session may lie in several files
    assert len(lost) <= report.duplicates + (FILES // 20 if merged else 0)
    assert not [item for item in report.set_aside if "\n" in item.reason]
    table.to_parquet(tmp_path / "out.parquet")


@pytest.mark.parametrize("name", list(SEEDS))
def test_an_undamaged_seed_is_read_whole(tmp_path: Path, name: str) -> None:
    reader, suffix, make = SEEDS[name]
    (tmp_path / f"seed{suffix}").write_bytes(make("n"))
    table = read(tmp_path / f"seed{suffix}")
    assert not table.report.set_aside
    assert len(table) >= 1
    assert table.nodes["output"].notna().any() or reader == "terminal-bench"


@pytest.mark.parametrize(
    "content", [b"\x00" * 4_000, b"{" * 4_000, b"[" * 60_000, b"\xff\xfe{\x00}\x00", b"null", b"{}", b"7\n"]
)
@pytest.mark.parametrize("name", list(SEEDS))
def test_files_of_nothing_are_set_aside_or_noted(tmp_path: Path, name: str, content: bytes) -> None:
    reader, suffix, make = SEEDS[name]
    (tmp_path / f"bad{suffix}").write_bytes(content)
    (tmp_path / f"good{suffix}").write_bytes(make("n"))
    table = read([tmp_path / f"bad{suffix}", tmp_path / f"good{suffix}"], format=reader)
    assert any(item.file.endswith(f"bad{suffix}") for item in table.report.set_aside) or table.report.notes
    assert len(table) >= 1


@pytest.mark.parametrize("name", ["otel", "otel-logs", "langfuse", "openhands", "aider-analytics", "agents-sdk"])
def test_a_file_of_rubbish_lines_is_set_aside_in_a_bounded_list(tmp_path: Path, name: str) -> None:
    reader, suffix, make = SEEDS[name]
    content = b"\n".join([make("n").splitlines()[0], *[b"{x"] * 3_000])
    (tmp_path / f"rubbish{suffix}").write_bytes(content)
    report = read(tmp_path / f"rubbish{suffix}", format=reader).report
    assert len(report.set_aside) == 1_001
    assert "2,000 more" in report.set_aside[-1].reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["otel", "otel-logs", "langfuse", "openhands", "aider-analytics", "agents-sdk"])
def test_a_line_of_a_gigabyte_stays_within_bounds(tmp_path: Path, name: str) -> None:
    reader, suffix, make = SEEDS[name]
    place = tmp_path / f"long{suffix}"
    with place.open("wb") as file:
        file.write(make("n") + b'\n{"x": "')
        for _ in range(64):
            file.write(b"y" * 2**24)
        file.write(b'"}\n' + make("m"))
    tracemalloc.start()
    table = read(place, format=reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_LINE_BYTES
    assert len(table) >= 2
    assert any("long" in item.reason for item in table.report.set_aside)


def test_a_named_file_of_no_format_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "x.json")
    assert "\n" not in str(caught.value)
