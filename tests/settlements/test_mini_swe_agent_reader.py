from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

MINI = Path(__file__).parents[2] / ".." / "shared" / "data" / "mini-swe-agent-traj"
SECRET = "the secret plan of Kim Doe"  # noqa: S105


def answer(created: int, prompt: int, *, cached: int | None = 0, cost: float | None = 0.01) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    usage = {"prompt_tokens": prompt, "completion_tokens": 7, "prompt_tokens_details": details, "cost": cost}
    response = {"provider": "Google", "model": "served/m", "created": created, "usage": usage}
    return {"role": "assistant", "content": SECRET, "extra": {"response": response}}


def trajectory(*answers: dict[str, Any], status: str = "Submitted", cost: float = 0.02, **agent: Any) -> dict[str, Any]:
    config = {
        "agent": {"step_limit": 250, "cost_limit": 3.0, **agent},
        "model": {"model_name": "asked/m"},
        "agent_type": "minisweagent.agents.default.DefaultAgent",
        "model_type": "minisweagent.models.openrouter_model.OpenRouterModel",
    }
    stats = {"instance_cost": cost, "api_calls": len(answers)}
    info = {
        "exit_status": status,
        "submission": SECRET,
        "model_stats": stats,
        "mini_version": "1.15.0",
        "config": config,
    }
    messages = [{"role": "system", "content": SECRET}, *answers]
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": "demo__demo-1"}


def read_one(tmp_path: Path, document: dict[str, Any]) -> Settlements:
    (tmp_path / "demo.traj.json").write_text(json.dumps(document), encoding="utf-8")
    return read(tmp_path / "demo.traj.json")


def test_a_trajectory_becomes_one_node_and_its_calls(tmp_path) -> None:
    table = read_one(tmp_path, trajectory(answer(100, 50), answer(130, 90, cached=50)))
    node = table.nodes.iloc[0]
    wanted = {"run": "demo__demo-1", "agent": "mini-swe-agent", "backend": "openrouter", "model": "asked/m", "calls": 2}
    wanted |= {
        "served_model": "served/m",
        "outcome": "completed",
        "cause": "none",
        "input_total": 140,
        "cache_read": 50,
    }
    wanted |= {
        "output": 14,
        "cost_nusd": 20_000_000,
        "duration_ns": 30 * 10**9,
        "usage_known": True,
        "overspent": False,
    }
    assert node[list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert table.calls["input_fresh"].tolist() == [50, 40]
    assert table.calls["call"].tolist() == [0, 1]


def test_ceilings_are_kept_and_zero_means_none(tmp_path) -> None:
    node = read_one(tmp_path, trajectory(answer(1, 5), wall_time_limit_seconds=60)).nodes.iloc[0]
    assert node[["ceiling_calls", "ceiling_cost", "ceiling_time_ns"]].tolist() == [250, 3 * 10**9, 60 * 10**9]
    node = read_one(tmp_path, trajectory(answer(1, 5), step_limit=0, cost_limit=0.0)).nodes.iloc[0]
    assert node[["ceiling_calls", "ceiling_cost", "ceiling_time_ns", "overspent"]].isna().all()


@pytest.mark.parametrize(
    ("status", "agent", "expected"),
    [
        ("LimitsExceeded", {"step_limit": 2}, ["exhausted", "limit", "steps-exhausted"]),
        ("LimitsExceeded", {"cost_limit": 0.02}, ["exhausted", "limit", "cost-exhausted"]),
        ("LimitsExceeded", {}, ["exhausted", "limit", pd.NA]),
        ("TimeExceeded", {}, ["timed_out", "limit", "time-exhausted"]),
        ("RepeatedFormatError", {}, ["failed", "model", pd.NA]),
        ("APIConnectionError", {}, ["failed", "infrastructure", pd.NA]),
        ("ZeroDivisionError", {}, ["failed", pd.NA, pd.NA]),
        ("", {}, ["unknown", pd.NA, pd.NA]),
    ],
)
def test_the_exit_status_says_how_it_ended(
    tmp_path, status: str, agent: dict[str, Any], expected: list[object]
) -> None:
    document = trajectory(answer(1, 5), answer(2, 6), status=status, **agent)
    assert read_one(tmp_path, document).nodes.iloc[0][["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_call_without_usage_makes_the_sums_unknown(tmp_path) -> None:
    silent = answer(2, 6)
    del silent["extra"]["response"]["usage"]
    node = read_one(tmp_path, trajectory(answer(1, 5), silent)).nodes.iloc[0]
    assert node[["input_total", "output", "cache_read"]].isna().all()
    assert not node["usage_known"]
    assert node["cost_nusd"] == 20_000_000


def test_calls_that_are_not_recorded_make_the_sums_unknown(tmp_path) -> None:
    document = trajectory(answer(1, 5))
    document["info"]["model_stats"]["api_calls"] = 3
    node = read_one(tmp_path, document).nodes.iloc[0]
    assert (node["calls"], node["usage_known"]) == (3, False)
    assert pd.isna(node["input_total"])


def test_cached_tokens_that_were_not_reported_are_unknown(tmp_path) -> None:
    node = read_one(tmp_path, trajectory(answer(1, 5, cached=None))).nodes.iloc[0]
    assert node["input_total"] == 5
    assert node[["input_fresh", "cache_read", "cache_write"]].isna().all()


def test_a_cost_of_zero_is_unknown_unless_every_call_says_so(tmp_path) -> None:
    unpriced = read_one(tmp_path, trajectory(answer(1, 5, cost=None), cost=0.0)).nodes.iloc[0]
    assert unpriced[["cost_nusd", "cost_source"]].isna().all()
    free = read_one(tmp_path, trajectory(answer(1, 5, cost=0.0), cost=0.0)).nodes.iloc[0]
    assert free["cost_nusd"] == 0


def test_the_newer_format_has_its_cost_on_the_message(tmp_path) -> None:
    message = answer(1, 5, cost=None)
    message["extra"]["cost"] = 0.0123
    table = read_one(tmp_path, trajectory(message) | {"trajectory_format": "mini-swe-agent-1.1"})
    assert table.calls is not None
    assert table.calls["cost_nusd"].tolist() == [12_300_000]


def test_no_text_of_the_record_enters_the_table(tmp_path) -> None:
    templates = {"system_template": SECRET, "instance_template": SECRET}
    table = read_one(tmp_path, trajectory(answer(1, 5), status=SECRET, **templates))
    assert table.calls is not None
    everything = table.nodes.to_json() + table.calls.to_json() + table.summary()
    assert "secret" not in everything
    assert "Kim" not in everything
    assert table.nodes["outcome"].tolist() == ["failed"]


def test_contexts_differ_by_template_and_are_inferred_without(tmp_path) -> None:
    first = read_one(tmp_path, trajectory(answer(1, 5), system_template="a")).nodes.iloc[0]
    second = read_one(tmp_path, trajectory(answer(1, 5), system_template="b")).nodes.iloc[0]
    hidden = read_one(tmp_path, trajectory(answer(1, 5))).nodes.iloc[0]
    assert len({first["context"], second["context"], hidden["context"]}) == 3
    assert (first["context_inferred"], hidden["context_inferred"]) == (False, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"info": {"exit_status"', "not valid JSON"),
        ('{"messages": []}', "not a trajectory: it has no 'info'"),
        ('{"info": {"model_stats": {"api_calls": -3}}}', "api_calls: should be a whole number, at least 0, got -3"),
        ('{"info": {"model_stats": {"instance_cost": NaN}}}', "should be a finite number of dollars"),
        ('{"info": {"config": {"agent": {"step_limit": "many"}}}}', "step_limit: should be a whole number"),
        ('{"a": ' + "[" * 100_000, "nested too deeply|not valid JSON"),
    ],
)
def test_a_trajectory_that_cannot_be_read_is_set_aside(tmp_path, text: str, reason: str) -> None:
    (tmp_path / "bad.traj.json").write_text(text, encoding="utf-8")
    (tmp_path / "good.traj.json").write_text(json.dumps(trajectory(answer(1, 5))), encoding="utf-8")
    table = read(tmp_path)
    assert len(table) == 1
    (item,) = table.report.set_aside
    assert item.file.endswith("/bad.traj.json")
    assert any(part in item.reason for part in reason.split("|"))


@pytest.mark.skipif(not MINI.is_dir(), reason="the recorded data are not here")
def test_all_35_recorded_trajectories_equal_their_rows() -> None:
    nodes = read(MINI, format="mini-swe-agent").nodes.set_index("run").sort_index()
    rows = pd.read_csv(MINI / "runs.csv", index_col="instance_id").loc[nodes.index]
    assert len(nodes) == 35
    pairs = {"calls": "api_calls", "input_total": "prompt_tokens", "cache_read": "cached_tokens"}
    pairs |= {"output": "completion_tokens", "reasoning": "reasoning_tokens", "ceiling_calls": "step_limit"}
    for column, recorded in pairs.items():
        assert nodes[column].tolist() == rows[recorded].tolist()
    assert nodes["cost_nusd"].tolist() == (rows["instance_cost"] * 1e9).round().astype(int).tolist()
    assert (nodes["duration_ns"] // 10**9).tolist() == (rows["last_created"] - rows["first_created"]).tolist()


@pytest.mark.skipif(not MINI.is_dir(), reason="the recorded data are not here")
def test_all_recorded_calls_equal_their_rows() -> None:
    calls = read(MINI, format="mini-swe-agent").calls
    assert calls is not None
    recorded = pd.read_csv(MINI / "calls.csv")
    recorded = recorded[recorded["instance_id"].isin(calls["run"])].sort_values(["instance_id", "call"])
    ours = calls.sort_values(["run", "call"])
    for column, name in (
        ("input_total", "prompt_tokens"),
        ("cache_read", "cached_tokens"),
        ("output", "completion_tokens"),
    ):
        assert ours[column].tolist() == recorded[name].tolist()
    assert ours["cost_nusd"].tolist() == (recorded["cost"] * 1e9).round().astype(int).tolist()
