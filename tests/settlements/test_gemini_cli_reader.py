from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

HEAD = {"sessionId": "g1", "projectHash": "00ff", "startTime": "2026-05-01T10:00:00Z"}
TOKENS = {"input": 1_000, "output": 40, "cached": 600, "thoughts": 25, "tool": 10, "total": 1_075}


def message(second: int, kind: str = "gemini", **more: Any) -> dict[str, Any]:
    told = {"id": f"m{second}", "timestamp": f"2026-05-01T10:00:{second:02d}.000Z", "type": kind, "content": "x"}
    return {**told, **({"tokens": TOKENS, "model": "gemini-3-pro"} if kind == "gemini" else {}), **more}


def load(path: Path, *messages: dict[str, Any], head: dict[str, Any] = HEAD, **options: Any) -> Settlements:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in (head, *messages)))
    else:
        path.write_text(json.dumps({**head, "messages": messages}, indent=1))
    return read(path, **options)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_chat_becomes_one_node_with_thoughts_in_the_output(tmp_path: Path, suffix: str) -> None:
    node = load(tmp_path / f"session-1.{suffix}", message(1, "user"), message(2), message(4)).nodes.iloc[0]
    wanted = {"run": "g1", "agent": "gemini-cli", "served_model": "gemini-3-pro", "calls": 2, "input_total": 2_020}
    wanted |= {"input_fresh": 820, "cache_read": 1_200, "cache_write": 0, "output": 130, "reasoning": 50}
    wanted |= {"outcome": "completed", "duration_ns": 3 * 10**9, "record_unit": "session", "repo": "00ff"}
    assert node[list(wanted)].to_dict() == wanted


def test_of_a_message_that_is_written_again_the_last_one_counts(tmp_path: Path) -> None:
    grown = {**TOKENS, "output": 90, "total": 1_125}
    lines = (message(2), message(2, tokens=grown), {"$set": {"lastUpdated": "x"}}, {"$rewindTo": "m2"})
    node = load(tmp_path / "session-1.jsonl", *lines).nodes.iloc[0]
    assert node[["calls", "output"]].tolist() == [1, 115]


def test_messages_that_a_compression_puts_in_place_count_once(tmp_path: Path) -> None:
    lines = (message(2), {"$set": {"messages": [message(2), message(3)]}}, message(5))
    assert load(tmp_path / "session-1.jsonl", *lines).nodes["calls"].tolist() == [3]


def test_a_subagents_chat_is_a_node_of_its_parents_run(tmp_path: Path) -> None:
    load(tmp_path / "chats" / "session-1.jsonl", message(2))
    load(tmp_path / "chats" / "g1" / "sub.jsonl", message(3), head={**HEAD, "sessionId": "sub", "kind": "subagent"})
    nodes = read(tmp_path).nodes.set_index("node")
    assert nodes.loc["sub", ["run", "parent", "depth", "agent"]].tolist() == ["g1", "0", 1, "subagent"]


@pytest.mark.parametrize(("total", "expected"), [(1_075, 410), (1_675, 1_010), (1_300, None)])
def test_the_total_tells_where_cached_tokens_are_counted(tmp_path: Path, total: int, expected: int | None) -> None:
    table = load(tmp_path / "session-1.json", message(2, tokens={**TOKENS, "total": total}))
    fresh = table.nodes["input_fresh"].iloc[0]
    assert pd.isna(fresh) if expected is None else fresh == expected
    assert any("fits no convention" in note for note in table.report.notes) == (expected is None)


def test_a_message_without_counts_is_a_call_of_unknown_usage(tmp_path: Path) -> None:
    node = load(tmp_path / "session-1.json", message(2), message(3, tokens=None)).nodes.iloc[0]
    assert node[["calls", "input_total", "usage_known"]].tolist() == [2, 1_010, False]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (message(4, toolCalls=[{"name": "t"}]), ["unknown", pd.NA]),
        (message(4, "user"), ["unknown", pd.NA]),
        (message(4, "info", content="Request cancelled."), ["cancelled", "user"]),
        (message(4, "error", content="[API Error: quota exceeded]"), ["exhausted", "limit"]),
        (message(4, "error", content="[API Error: 503]"), ["failed", "infrastructure"]),
        (message(4, "info", content="a new version is there"), ["completed", "none"]),
    ],
)
def test_the_last_message_says_how_it_ended(tmp_path: Path, last: dict[str, Any], expected: list[object]) -> None:
    node = load(tmp_path / "session-1.json", message(1, "user"), message(2), last).nodes.iloc[0]
    assert node[["outcome", "cause"]].tolist() == expected


def test_turns_are_runs_on_request(tmp_path: Path) -> None:
    lines = (message(1, "user"), message(2), message(3, "user"), message(4), message(5))
    nodes = load(tmp_path / "session-1.json", *lines, unit="turn").nodes.set_index("run")
    assert nodes["calls"].to_dict() == {"g1#1": 1, "g1#2": 2}


def test_counts_that_are_none_are_set_aside(tmp_path: Path) -> None:
    table = load(tmp_path / "session-1.jsonl", message(2), message(3, tokens={**TOKENS, "input": "many"}))
    assert [item.line for item in table.report.set_aside] == [3]
