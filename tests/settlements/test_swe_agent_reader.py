from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

DATA = Path(__file__).parents[2] / ".." / "shared" / "data" / "swe-agent-traj"
SECRET = "the secret plan of Kim Doe"  # noqa: S105


def trajectory(status: str | None = "submitted", *, calls: int = 3, cost: float = 0.5, **model: Any) -> dict[str, Any]:
    step = {"action": SECRET, "observation": SECRET, "response": SECRET, "thought": SECRET, "execution_time": 1.0}
    stats = {"instance_cost": cost, "tokens_sent": 900, "tokens_received": 30, "api_calls": calls, "total_cost": 77.0}
    agent = {
        "model": {"name": "vendor/m", "per_instance_cost_limit": 3.0, "per_instance_call_limit": 0, **model},
        "tools": {"total_execution_timeout": 1800},
        "templates": {"system_template": SECRET},
    }
    info = {"exit_status": status, "model_stats": stats, "submission": SECRET}
    history = [{"role": "system", "content": SECRET}]
    config = json.dumps({"agent": agent})
    return {"environment": "e", "trajectory": [step] * 3, "history": history, "info": info, "replay_config": config}


def read_one(tmp_path: Path, document: object) -> Settlements:
    (tmp_path / "demo__demo-1.traj").write_text(json.dumps(document), encoding="utf-8")
    return read(tmp_path / "demo__demo-1.traj")


def test_a_trajectory_becomes_one_node_with_its_limits(tmp_path) -> None:
    node = read_one(tmp_path, trajectory()).nodes.iloc[0]
    wanted = {"run": "demo__demo-1", "record_unit": "run", "model": "vendor/m", "outcome": "completed", "calls": 3}
    wanted |= {"iterations": 3, "input_total": 900, "output": 30, "cost_nusd": 500_000_000, "usage_known": True}
    wanted |= {"ceiling_cost": 3_000_000_000, "ceiling_time_ns": 1_800 * 10**9, "overspent": False}
    assert node[list(wanted)].to_dict() == wanted
    assert node[["cache_read", "input_fresh", "ceiling_calls", "duration_ns"]].isna().all()


@pytest.mark.parametrize(
    ("status", "model", "expected"),
    [
        ("submitted (exit_cost)", {}, ["exhausted", "limit", "cost-exhausted"]),
        ("exit_cost", {"per_instance_call_limit": 3}, ["exhausted", "limit", "steps-exhausted"]),
        ("exit_total_execution_time", {}, ["timed_out", "limit", "time-exhausted"]),
        ("exit_context", {}, ["failed", "model", pd.NA]),
        ("exit_api", {}, ["failed", "infrastructure", pd.NA]),
        ("exit_error", {}, ["failed", pd.NA, pd.NA]),
        ("skipped", {}, ["denied", "none", pd.NA]),
        (None, {}, ["unknown", pd.NA, pd.NA]),
        (SECRET, {}, ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_exit_status_says_how_it_ended(tmp_path, status, model, expected) -> None:
    node = read_one(tmp_path, trajectory(status, **model)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_limit_stop_that_submitted_keeps_both_words(tmp_path) -> None:
    assert read_one(tmp_path, trajectory("submitted (exit_cost)")).nodes["source_status"][0] == "submitted (exit_cost)"


def test_a_replay_without_tokens_is_unknown_and_not_free(tmp_path) -> None:
    document = trajectory(cost=0)
    document["info"]["model_stats"] |= {"tokens_sent": 0, "tokens_received": 0}
    table = read_one(tmp_path, document)
    assert table.nodes[["calls", "input_total", "output", "cost_nusd"]].isna().all(axis=None)
    assert table.nodes["iterations"].tolist() == [3]
    assert "their usage and cost are unknown, not zero" in table.report.notes[0]


def test_a_cost_of_zero_beside_tokens_is_unknown(tmp_path) -> None:
    node = read_one(tmp_path, trajectory(cost=0)).nodes.iloc[0]
    assert pd.isna(node["cost_nusd"])
    assert node["input_total"] == 900


def test_no_text_of_the_record_enters_the_table(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(SECRET))
    assert "secret" not in table.nodes.to_json() + table.summary()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"trajectory": [], "info": 3}', "not a trajectory"),
        ('{"trajectory": [], "info": {"model_stats": {"api_calls": -3}}}', "api_calls: should be a whole number"),
        ('{"trajectory": [', "not valid JSON"),
        ('{"a":' + "[" * 200_000, "nested too deeply"),
    ],
)
def test_a_trajectory_that_cannot_be_read_is_set_aside(tmp_path, text: str, reason: str) -> None:
    (tmp_path / "bad.traj").write_text(text, encoding="utf-8")
    (item,) = read(tmp_path / "bad.traj").report.set_aside
    assert reason in item.reason


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")
def test_all_recorded_trajectories_equal_their_own_figures() -> None:
    nodes = read(DATA, format="swe-agent").nodes.set_index("run")
    assert len(nodes) == 14
    for path in DATA.glob("*.traj"):
        stats, node = json.loads(path.read_text())["info"]["model_stats"], nodes.loc[path.stem]
        if stats["tokens_sent"] == 0:  # a replay or a demonstration
            assert node[["calls", "input_total", "output", "cost_nusd"]].isna().all()
            continue
        own = [stats["api_calls"], stats["tokens_sent"], stats["tokens_received"], round(stats["instance_cost"] * 1e9)]
        assert node[["calls", "input_total", "output", "cost_nusd"]].tolist() == own
    assert nodes["usage_known"].sum() == 2  # the folder has two model runs; the others are replays
