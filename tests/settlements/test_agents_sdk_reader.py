from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read


def usage(sent: int, received: int, *, cached: int = 0, **more: Any) -> dict[str, Any]:
    counts = {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received}
    details = {"input_tokens_details": {"cached_tokens": cached}, "output_tokens_details": {"reasoning_tokens": 3}}
    return {"requests": 1, **counts, **details, **more}


def read_lines(tmp_path, *records: object) -> Settlements:
    (tmp_path / "usage.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return read(tmp_path / "usage.jsonl")


def test_a_usage_becomes_one_node_and_its_entries_calls_that_are_not_added(tmp_path) -> None:
    entries = [usage(100, 5), usage(200, 6, cached=80)]
    whole = usage(300, 11, cached=80, requests=2, request_usage_entries=entries)
    table = read_lines(
        tmp_path, {"run": "r1", "session": "s", "model": "m", "cost_usd": 0.5, "usage": whole, "error": None}
    )
    wanted = {"run": "r1", "session": "s", "calls": 2, "input_total": 300, "input_fresh": 220, "cache_read": 80}
    wanted |= {"output": 11, "reasoning": 3, "cost_nusd": 500_000_000, "outcome": "completed", "usage_known": True}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert table.calls["input_fresh"].tolist() == [100, 120]


def test_a_bare_usage_is_named_by_its_line_and_its_end_is_unknown(tmp_path) -> None:
    table = read_lines(tmp_path, usage(10, 5), usage(10, 5))
    assert table.nodes["run"].tolist() == ["usage.jsonl:1", "usage.jsonl:2"]
    assert set(table.nodes["outcome"]) == {"unknown"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("MaxTurnsExceeded", ["exhausted", "limit", "steps-exhausted"]),
        ("KeyboardInterrupt", ["cancelled", "user", pd.NA]),
        ("RateLimitError", ["failed", "infrastructure", pd.NA]),
        ("ModelBehaviorError", ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_exception_says_how_it_ended(tmp_path, error: str, expected: list[object]) -> None:
    node = read_lines(tmp_path, {"usage": usage(10, 5), "error": error, "requests": 1} | usage(10, 5)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_no_requests_are_unknown_usage(tmp_path) -> None:
    empty = usage(0, 0, requests=0, output_tokens_details=None)
    node = read_lines(tmp_path, empty).nodes.iloc[0]
    assert node[["input_total", "output"]].isna().all()
    assert not node["usage_known"]


def test_a_total_tells_that_cached_tokens_are_beside_the_input(tmp_path) -> None:
    table = read_lines(tmp_path, usage(1_000, 200, cached=500, total_tokens=1_700))
    assert table.nodes[["input_total", "input_fresh"]].iloc[0].tolist() == [1_500, 1_000]


def test_a_total_that_fits_neither_is_flagged_and_not_guessed(tmp_path) -> None:
    table = read_lines(tmp_path, usage(1_000, 200, cached=500, total_tokens=1_450))
    assert table.nodes["input_total"].isna().all()
    assert "usage.jsonl: 1 row(s) whose total fits no reading; their tokens are unknown" in table.report.notes
