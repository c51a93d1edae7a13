from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

PRICED = 0.0125


def session(ident: str = "s1", **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": ident, "timestamp": "2026-05-01T10:00:00Z", "cwd": "/w", **more}


def said(second: int, role: str, **message: Any) -> dict[str, Any]:
    stamp = f"2026-05-01T10:00:{second:02d}Z"
    inner = {"role": role, "content": [], "timestamp": 1_777_000_000_000 + second, **message}
    return {"type": "message", "id": f"e{second}", "timestamp": stamp, "message": inner}


def answer(second: int, *, stop: str = "stop", cost: float = PRICED, total: int | None = 1_150, **more: Any) -> Any:
    usage = {"input": 100, "output": 50, "cacheRead": 900, "cacheWrite": 100, "cost": {"total": cost}}
    usage |= {} if total is None else {"totalTokens": total}
    told = {"provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": stop, "usage": usage, **more}
    return said(second, "assistant", **told)


def load(path: Path, *lines: dict[str, Any], **options: Any) -> Settlements:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(path, **options)


def test_a_session_becomes_one_node_with_cost_and_disjoint_counts(tmp_path: Path) -> None:
    call = {"type": "toolCall", "name": "read"}
    lines = (session(), said(1, "user"), answer(2, stop="toolUse", content=[call]), answer(3, total=None))
    node = load(tmp_path / "a.jsonl", *lines).nodes.iloc[0]
    wanted = {"run": "s1", "agent": "pi", "backend": "anthropic", "model": "claude-sonnet-4-5", "calls": 2}
    wanted |= {"input_fresh": 200, "cache_read": 1_800, "cache_write": 200, "input_total": 2_200, "output": 100}
    wanted |= {"cost_nusd": 25_000_000, "cost_source": "recorded", "outcome": "completed", "tool_calls": 1}
    assert node[list(wanted)].to_dict() == wanted


def test_a_branched_session_repeats_messages_that_count_once_in_the_parent(tmp_path: Path) -> None:
    lines = [session(), said(1, "user"), answer(2)]
    load(tmp_path / "b.jsonl", *lines)
    lines[0] = session("s2", parentSession="b.jsonl")
    load(tmp_path / "a.jsonl", *lines, answer(5))
    nodes = read(tmp_path).nodes.set_index("run")
    assert nodes["calls"].to_dict() == {"s1": 1, "s2": 1}


def test_branches_that_were_left_were_paid_for(tmp_path: Path) -> None:
    lines = (session(), {**answer(2), "parentId": "x"}, {**answer(3), "parentId": "x"})
    assert load(tmp_path / "a.jsonl", *lines).nodes["calls"].tolist() == [2]


ZERO = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}


def test_an_aborted_message_without_usage_is_unknown_and_not_free(tmp_path: Path) -> None:
    table = load(tmp_path / "a.jsonl", session(), answer(2), answer(3, stop="aborted", usage=ZERO))
    node = table.nodes.iloc[0]
    assert node[["calls", "input_total", "usage_known", "outcome"]].tolist() == [2, 1_100, False, "cancelled"]
    assert table.calls is not None
    assert table.calls["status"].tolist() == ["completed", "abandoned"]
    assert table.calls["input_total"].isna().tolist() == [False, True]


def test_a_cost_of_zero_for_tokens_that_were_used_is_unknown(tmp_path: Path) -> None:
    table = load(tmp_path / "a.jsonl", session(), answer(2), answer(3, cost=0))
    assert table.nodes["cost_nusd"].isna().all()
    assert any("cost unknown" in note for note in table.report.notes)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"stop": "length"}, ["exhausted", "limit", pd.NA]),
        ({"stop": "toolUse"}, ["unknown", pd.NA, pd.NA]),
        ({"stop": "aborted"}, ["cancelled", "user", "cancelled"]),
        ({"stop": "error", "errorMessage": "429 rate limit"}, ["failed", "infrastructure", pd.NA]),
        ({"stop": "error", "errorMessage": "usage limit reached"}, ["exhausted", "limit", "budget-exhausted"]),
        ({"stop": "error"}, ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_last_stop_reason_says_how_it_ended(tmp_path: Path, last: dict[str, Any], expected: list[object]) -> None:
    node = load(tmp_path / "a.jsonl", session(), said(1, "user"), answer(2, **last)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_turns_are_runs_on_request(tmp_path: Path) -> None:
    lines = (session(), said(1, "user"), answer(2), said(4, "user"), answer(5), answer(6))
    nodes = load(tmp_path / "a.jsonl", *lines, unit="turn").nodes.set_index("run")
    assert nodes["calls"].to_dict() == {"s1#1": 1, "s1#2": 2}
    assert nodes.loc["s1#1", "duration_ns"] == 10**9


@pytest.mark.parametrize(("total", "fresh"), [(1_150, 100), (150, None), (1_400, None)])
def test_the_total_tells_where_cached_tokens_are_counted(tmp_path: Path, total: int, fresh: int | None) -> None:
    call = answer(2, total=total)
    node = load(tmp_path / "a.jsonl", session(), call).nodes.iloc[0]
    assert node["usage_known"] == (fresh is not None)
    assert pd.isna(node["input_fresh"]) if fresh is None else node["input_fresh"] == fresh


def test_a_cost_that_is_no_number_is_set_aside_with_its_line(tmp_path: Path) -> None:
    table = load(tmp_path / "a.jsonl", session(), answer(2), answer(3, cost=-1.0))
    assert [(item.line, "dollars" in item.reason) for item in table.report.set_aside] == [(3, True)]
