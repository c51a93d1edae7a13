from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

DATA = Path(__file__).parents[2] / ".." / "shared" / "data" / "trae-trajectory"
SECRET = "the secret plan of Kim Doe"  # noqa: S105


def interaction(prompt: int, *, cached: int = 0, provider: str = "openai") -> dict[str, Any]:
    usage = {"input_tokens": prompt, "output_tokens": 7, "cache_read_input_tokens": cached, "reasoning_tokens": 2}
    response = {"content": SECRET, "model": "served-m", "usage": usage, "tool_calls": [{"name": "bash"}]}
    return {"timestamp": "2026-01-01T10:00:01", "provider": provider, "model": "m", "response": response}


def trajectory(
    *calls: dict[str, Any], provider: str = "openai", error: str | None = None, **more: Any
) -> dict[str, Any]:
    steps = [{"step_number": 1, "state": "completed", "error": None}, {"step_number": 2, "error": error}]
    record = {"task": SECRET, "start_time": "2026-01-01T10:00:00", "end_time": "2026-01-01T10:01:00", "model": "m"}
    record |= {"provider": provider, "max_steps": 100, "llm_interactions": list(calls), "agent_steps": steps}
    return {**record, "success": False, "execution_time": 60.0, **more}


def read_one(tmp_path: Path, document: dict[str, Any], journal: dict[str, Any] | None = None) -> Settlements:
    folder = tmp_path / "item-1"
    folder.mkdir()
    (folder / "trajectory.json").write_text(json.dumps(document), encoding="utf-8")
    if journal is not None:
        (folder / "journal.json").write_text(json.dumps(journal), encoding="utf-8")
    return read(folder)


def journal(*, seconds: float, code: int = 0) -> dict[str, Any]:
    return {"status": "error", "trae": {"time_budget_minutes": 60, "returncode": code, "duration_s": seconds}}


def test_a_trajectory_becomes_one_node_and_its_calls(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(interaction(50), interaction(90, cached=60), success=True))
    node = table.nodes.iloc[0]
    wanted = {"run": "item-1", "backend": "openai", "served_model": "served-m", "calls": 2, "tool_calls": 2}
    wanted |= {"input_total": 140, "input_fresh": 80, "cache_read": 60, "output": 14, "reasoning": 4}
    wanted |= {"outcome": "completed", "ceiling_calls": 100, "duration_ns": 60 * 10**9, "overspent": False}
    assert node[list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert table.calls["input_fresh"].tolist() == [50, 30]


def test_a_journal_of_another_agent_is_no_trajectory_record(tmp_path) -> None:
    other = {"status": "success", "claude_code": {"time_budget_minutes": 60, "returncode": 0, "duration_s": 5.0}}
    (tmp_path / "journal.json").write_text(json.dumps(other), encoding="utf-8")
    (tmp_path / "item-1").mkdir()
    (tmp_path / "item-1" / "trajectory.json").write_text(json.dumps(trajectory(interaction(50))), encoding="utf-8")
    report = read(tmp_path).report
    assert (report.kept, report.set_aside) == (1, ())
    assert any("1 file(s) of other kinds were left alone" in note for note in report.notes)


def test_local_times_are_unknown_and_noted(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(interaction(50)))
    assert table.nodes["start_ns"].isna().all()
    assert "TRAE trajectories: 2 local time(s) without a zone; the start is unknown" in table.report.notes


def test_the_convention_of_a_file_is_told_by_its_rows(tmp_path) -> None:
    beside = trajectory(interaction(5, cached=60), interaction(70, cached=60))
    table = read_one(tmp_path, beside)
    assert table.calls is not None
    assert table.calls["input_total"].tolist() == [65, 130]
    assert any("2 row(s) count cached or reasoning tokens otherwise" in note for note in table.report.notes)


def test_a_backend_that_records_no_cache_leaves_the_parts_unknown(tmp_path) -> None:
    node = read_one(tmp_path, trajectory(interaction(50, provider="bedrock"), provider="bedrock")).nodes.iloc[0]
    assert node["input_total"] == 50
    assert node[["input_fresh", "cache_read", "cache_write"]].isna().all()


@pytest.mark.parametrize(
    ("document", "beside", "expected"),
    [
        (trajectory(interaction(5), error="Error code: 429 - slow down"), None, ["failed", "infrastructure", pd.NA]),
        (trajectory(interaction(5), error="tool-call JSON parse error"), None, ["failed", "model", pd.NA]),
        (trajectory(interaction(5), max_steps=2), None, ["exhausted", "limit", "steps-exhausted"]),
        (trajectory(error="auth error"), None, ["denied", "infrastructure", pd.NA]),
        (trajectory(interaction(5)), journal(seconds=3601, code=-9), ["timed_out", "limit", "time-exhausted"]),
        (trajectory(interaction(5)), journal(seconds=63, code=-9), ["cancelled", pd.NA, pd.NA]),
        (trajectory(interaction(5), end_time=""), None, ["unknown", pd.NA, pd.NA]),
    ],
)
def test_the_record_and_its_journal_say_how_it_ended(tmp_path, document, beside, expected) -> None:
    node = read_one(tmp_path, document, beside).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_journal_without_a_trajectory_is_set_aside(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(interaction(5)))
    (tmp_path / "item-2").mkdir()
    (tmp_path / "item-2" / "journal.json").write_text(json.dumps(journal(seconds=1)), encoding="utf-8")
    table = read(tmp_path)
    assert [item.reason for item in table.report.set_aside] == ["a journal without a trajectory beside it"]


def test_no_text_of_the_record_enters_the_table(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(interaction(5), error=SECRET, provider=SECRET))
    assert table.calls is not None
    assert "secret" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


@pytest.fixture
def recorded() -> tuple[pd.DataFrame, pd.DataFrame]:
    if not DATA.is_dir():
        pytest.skip("the recorded data are not here")
    nodes = read(DATA, format="trae").nodes.set_index("run").sort_index()
    return nodes, pd.read_csv(DATA / "runs.csv", index_col="run").loc[nodes.index]


def test_all_50_recorded_trajectories_equal_their_rows(recorded) -> None:
    nodes, rows = recorded
    assert len(nodes) == 50
    pairs = {"calls": "llm_calls", "input_total": "input_tokens", "output": "output_tokens"}
    pairs |= {"reasoning": "reasoning_tokens", "ceiling_calls": "max_steps", "iterations": "agent_steps"}
    for column, name in pairs.items():
        assert nodes[column].tolist() == rows[name].tolist(), column
    assert nodes["cache_read"].fillna(0).tolist() == rows["cache_read_tokens"].tolist()
    assert (nodes["ceiling_time_ns"] // (60 * 10**9)).tolist() == rows["time_budget_min"].tolist()
    ran = rows["execution_time_s"] > 0
    assert (
        nodes.loc[ran, "duration_ns"].tolist() == (rows.loc[ran, "execution_time_s"] * 1e9).round().astype(int).tolist()
    )


def test_all_recorded_ends_are_those_of_the_rows_but_one(recorded) -> None:
    nodes, rows = recorded
    means = {"completed": "completed", "provider_or_parse_error": "failed", "killed": "cancelled", "no_call": "denied"}
    differing = nodes.index[nodes["outcome"].astype(str) != rows["end_kind"].map(means)]
    assert differing.tolist() == ["s0107"]  # it says itself that it did not succeed, and its process returned 1
    assert nodes.loc["s0107", "outcome"] == "failed"
    with (DATA / "runs.csv").open() as file:
        assert next(row for row in csv.DictReader(file) if row["run"] == "s0107")["trae_success"] == "0"
