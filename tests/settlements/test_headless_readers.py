"""Headless runs: Claude Code's result message and streams, and what codex exec prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105
MODEL = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 700, "cacheCreationInputTokens": 40}
USAGE = {"input_tokens": 4, "output_tokens": 3, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 40}


def result(**more: Any) -> dict[str, Any]:
    told = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 7, "duration_ms": 2_500}
    told |= {"session_id": "h1", "total_cost_usd": 0.0123456789, "usage": USAGE, "result": SECRET}
    return {**told, "modelUsage": {"claude-opus-4-5": MODEL, "claude-haiku-4-5": MODEL}, **more}


def load(path: Path, *messages: Any, **options: Any) -> Settlements:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    return read(path, **options)


def one(path: Path, *messages: Any, **options: Any) -> pd.Series:
    table = load(path, *messages, **options)
    assert len(table) == 1
    return table.nodes.iloc[0]


def test_a_result_covers_every_model_and_its_cost_is_exact(tmp_path: Path) -> None:
    node = one(tmp_path / "out.txt", result())
    wanted = {"run": "h1", "agent": "claude-code", "record_unit": "headless-run", "iterations": 7, "input_fresh": 20}
    wanted |= {"cache_read": 1_400, "cache_write": 80, "output": 10, "cost_nusd": 12_345_679, "usage_known": True}
    wanted |= {"served_model": "claude-haiku-4-5 + claude-opus-4-5", "duration_ns": 2_500_000_000}
    assert node[list(wanted)].to_dict() == wanted
    assert pd.isna(node["calls"])


def test_what_each_model_used_is_kept_apart_and_adds_up_to_the_node(tmp_path: Path) -> None:
    node = one(tmp_path / "out.txt", result())
    told = json.loads(node["model_usage"])
    assert sorted(told) == ["claude-haiku-4-5", "claude-opus-4-5"]
    for column in ("input_fresh", "cache_read", "cache_write", "output"):
        assert sum(model[column] for model in told.values()) == node[column]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, ["completed", "none", pd.NA]),
        ({"subtype": "error_max_turns"}, ["exhausted", "limit", "steps-exhausted"]),
        ({"subtype": "error_max_budget_usd"}, ["exhausted", "limit", "cost-exhausted"]),
        ({"subtype": "error_max_structured_output_retries"}, ["failed", "model", pd.NA]),
        ({"subtype": "error_during_execution", "is_error": True}, ["failed", pd.NA, pd.NA]),
        ({"is_error": True, "result": "Claude AI usage limit reached|1"}, ["exhausted", "limit", "budget-exhausted"]),
        ({"is_error": True, "result": "API Error: 500"}, ["failed", "infrastructure", pd.NA]),
        ({"subtype": "error_of_tomorrow"}, ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_subtype_says_how_it_ended_and_at_which_limit(
    tmp_path: Path, told: dict[str, Any], expected: list[object]
) -> None:
    assert one(tmp_path / "out.txt", result(**told))[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_cost_of_zero_is_unknown_only_if_tokens_were_used(tmp_path: Path) -> None:
    assert pd.isna(one(tmp_path / "out.txt", result(total_cost_usd=0))["cost_nusd"])
    nothing = {"modelUsage": {}, "usage": dict.fromkeys(USAGE, 0)}
    assert one(tmp_path / "out.txt", result(total_cost_usd=0, **nothing))["cost_nusd"] == 0


INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "h1",
    "tools": ["Bash", "Read"],
    "cwd": "/w",
    "model": "opus",
}


def answer(ident: str, output: int, **usage: int) -> dict[str, Any]:
    message = {"id": ident, "model": "claude-opus-4-5", "usage": {**USAGE, "output_tokens": output, **usage}}
    return {"type": "assistant", "session_id": "h1", "parent_tool_use_id": None, "message": message}


def test_a_stream_has_calls_and_a_context(tmp_path: Path) -> None:
    table = load(tmp_path / "out.jsonl", INIT, answer("a", 1), answer("a", 9), answer("b", 2), result())
    node = table.nodes.iloc[0]
    assert node[["calls", "model", "output", "repo"]].tolist() == [2, "opus", 10, "/w"]
    assert table.calls is not None
    assert table.calls["output"].tolist() == [9, 2]
    other = one(tmp_path / "two.jsonl", {**INIT, "tools": ["Bash"]}, result())
    assert other["context"] != node["context"]


def test_a_stream_without_a_result_is_a_lower_bound_of_unknown_end(tmp_path: Path) -> None:
    node = one(tmp_path / "out.jsonl", INIT, answer("a", 9), answer("b", 2))
    assert node[["output", "input_fresh", "usage_known", "outcome"]].tolist() == [11, 8, False, "unknown"]
    assert pd.isna(node["cost_nusd"])


def test_several_results_of_one_conversation_are_one_run_with_the_last_totals(tmp_path: Path) -> None:
    node = one(tmp_path / "out.jsonl", INIT, result(), result(total_cost_usd=0.5))
    assert node[["cost_nusd", "iterations", "duration_ns"]].tolist() == [500_000_000, 14, 5 * 10**9]


def test_a_result_is_found_in_lists_and_between_other_output(tmp_path: Path) -> None:
    assert one(tmp_path / "list.json", [INIT, result()])["cost_nusd"] == 12_345_679
    (tmp_path / "noise.txt").write_text(f"warning: old node\n{json.dumps(result())}\n")
    table = read(tmp_path / "noise.txt")
    assert table.nodes["cost_nusd"].tolist() == [12_345_679]
    assert [item.line for item in table.report.set_aside] == [1]
    (tmp_path / "pretty.json").write_text(json.dumps(result(), indent=2))
    assert read(tmp_path / "pretty.json").nodes["cost_nusd"].tolist() == [12_345_679]


def test_no_text_of_a_result_enters_the_table(tmp_path: Path) -> None:
    table = load(tmp_path / "out.txt", result(subtype=SECRET, errors=[SECRET]))
    assert "Kim" not in table.nodes.to_json() + table.summary()


def test_a_turn_does_not_apply_to_a_headless_run(tmp_path: Path) -> None:
    table = load(tmp_path / "out.txt", result(), unit="turn")
    assert table.nodes["record_unit"].tolist() == ["headless-run"]
    assert any("does not apply" in note for note in table.report.notes)


BANNER = "\n".join(
    [
        "OpenAI Codex v0.87.0 (research preview)",
        "--------",
        "workdir: /repo",
        "model: gpt-5",
        "provider: openai",
        "approval: never",
        "reasoning effort: high",
        "session id: c1",
        "--------",
        f"user\n{SECRET}\nmodel: fake\n",
    ]
)


def log(path: Path, end: str, **journal: Any) -> pd.Series:
    path.mkdir(exist_ok=True)
    (path / "codex_stderr.txt").write_text(BANNER + end)
    if journal:
        about = {"status": journal.pop("status", None), "codex_cli": {"time_budget_minutes": 120, **journal}}
        (path / "journal.json").write_text(json.dumps(about))
    return read(path / "codex_stderr.txt").nodes.iloc[0]


@pytest.mark.parametrize("end", ["tokens used\n1,234,567\n", "[2026-01-01T10:00:00] tokens used: 1,234,567\n"])
def test_a_text_log_has_one_mixed_figure(tmp_path: Path, end: str) -> None:
    node = log(tmp_path / "r", f"tokens used\n5\nmore\n{end}")
    wanted = {"run": "c1", "agent": "codex", "backend": "openai", "model": "gpt-5", "blended_tokens": 1_234_567}
    wanted |= {"client_version": "0.87.0", "outcome": "unknown", "record_unit": "headless-run"}
    assert node[list(wanted)].to_dict() == wanted
    assert node[["input_total", "output", "usage_known"]].isna().all()


def test_a_log_that_just_stops_has_unknown_usage(tmp_path: Path) -> None:
    assert pd.isna(log(tmp_path / "r", "exec\nls\n")["blended_tokens"])


@pytest.mark.parametrize(
    ("end", "journal", "expected"),
    [
        ("", {"status": "success", "returncode": 0, "duration_s": 9.5}, ["completed", "none", pd.NA]),
        ("", {"status": "error", "returncode": 1, "duration_s": 9.5}, ["failed", pd.NA, pd.NA]),
        ("", {"status": "error", "returncode": 1, "duration_s": 7_201}, ["timed_out", "limit", "time-exhausted"]),
        ("ERROR: usage limit\n", {"status": "error", "returncode": 1}, ["exhausted", "limit", "budget-exhausted"]),
        ("ERROR: stream disconnected\n", {}, ["failed", "infrastructure", pd.NA]),
    ],
)
def test_the_log_and_the_journal_beside_it_say_how_it_ended(
    tmp_path: Path, end: str, journal: dict[str, Any], expected: list[object]
) -> None:
    node = log(tmp_path / "r", end, **journal)
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected
    assert pd.isna(node["ceiling_time_ns"]) if not journal else node["ceiling_time_ns"] == 7_200 * 10**9


def events(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "thread.started", "thread_id": "c2"}, {"type": "turn.started"}, *more]


def done(given: int, cached: int, output: int) -> dict[str, Any]:
    return {
        "type": "turn.completed",
        "usage": {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output},
    }


def test_of_json_events_the_last_running_total_counts(tmp_path: Path) -> None:
    node = one(tmp_path / "out.jsonl", *events(done(25, 5, 1), done(100, 60, 15)))
    wanted = {"run": "c2", "input_total": 100, "input_fresh": 40, "cache_read": 60, "output": 15, "iterations": 2}
    assert node[list(wanted)].to_dict() == wanted
    assert node["outcome"] == "completed"


def test_a_failed_turn_says_why(tmp_path: Path) -> None:
    failed = {"type": "turn.failed", "error": {"message": "You've hit your usage limit"}}
    node = one(tmp_path / "out.jsonl", *events(done(25, 5, 1), failed))
    assert node[["outcome", "stopped_by"]].tolist() == ["exhausted", "budget-exhausted"]
