from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

DATA = Path(__file__).parents[2] / ".." / "shared" / "data" / "openhands-output"
SECRET = "the secret plan of Kim Doe"  # noqa: S105


def record(**changes: Any) -> dict[str, Any]:
    usage = {"model": "v/m", "completion_tokens": 7, "cache_read_tokens": 10, "cache_write_tokens": 5}
    usages = [{**usage, "prompt_tokens": prompt, "response_id": f"r{prompt}"} for prompt in (50, 80)]
    total = {"prompt_tokens": 130, "completion_tokens": 14, "cache_read_tokens": 20, "cache_write_tokens": 10}
    costs = [{"model": "v/m", "cost": 0.25, "timestamp": 1.0}, {"model": "v/m", "cost": 0.5, "timestamp": 2.0}]
    latencies = [{"model": "v/m", "latency": 1.5, "response_id": "r80"}]
    metrics = {"accumulated_cost": 0.75, "accumulated_token_usage": total, "costs": costs, "max_budget_per_task": 2.0}
    metrics |= {"token_usages": usages, "response_latencies": latencies}
    history = [
        {"timestamp": "2026-01-01T10:00:00", "source": "user", "action": "message", "message": SECRET},
        {"timestamp": "2026-01-01T10:00:30", "source": "agent", "action": "finish", "llm_metrics": metrics},
    ]
    metadata = {"agent_class": "CodeActAgent", "llm_config": {"model": "v/m"}, "max_iterations": 50}
    whole = {
        "instance_id": "demo-1",
        "instruction": SECRET,
        "metadata": metadata,
        "metrics": metrics,
        "history": history,
    }
    return {**whole, "error": None, **changes}


def read_lines(tmp_path: Path, *records: object) -> Settlements:
    (tmp_path / "output.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return read(tmp_path / "output.jsonl")


def test_a_line_becomes_one_node_and_its_calls(tmp_path) -> None:
    table = read_lines(tmp_path, record())
    node = table.nodes.iloc[0]
    wanted = {"run": "demo-1", "agent": "CodeActAgent", "served_model": "v/m", "calls": 2, "outcome": "completed"}
    wanted |= {"input_total": 130, "input_fresh": 100, "cache_read": 20, "cache_write": 10, "output": 14}
    wanted |= {"cost_nusd": 750_000_000, "ceiling_calls": 50, "ceiling_cost": 2 * 10**9, "duration_ns": 30 * 10**9}
    assert node[list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert table.calls["cost_nusd"].tolist() == [250_000_000, 500_000_000]
    assert table.calls["duration_ns"].tolist() == [pd.NA, 1_500_000_000]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("RuntimeError: Agent reached maximum iteration. Max: 50", ["exhausted", "limit", "steps-exhausted"]),
        ("RuntimeError: Agent reached maximum budget for task", ["exhausted", "limit", "cost-exhausted"]),
        ("AgentStuckInLoopError: Agent got stuck in a loop", ["failed", "model", pd.NA]),
        ("litellm.APIConnectionError", ["failed", "infrastructure", pd.NA]),
        (SECRET, ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_error_says_which_limit_or_failure(tmp_path, error: str, expected: list[object]) -> None:
    node = read_lines(tmp_path, record(error=error)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_record_that_stops_without_finishing_is_unknown(tmp_path) -> None:
    history = [{"timestamp": "2026-01-01T10:00:00", "action": "run"}]
    assert read_lines(tmp_path, record(history=history)).nodes["outcome"].tolist() == ["unknown"]


def test_a_cost_of_zero_without_priced_calls_is_unknown(tmp_path) -> None:
    one = record()
    one["metrics"] |= {"accumulated_cost": 0.0, "costs": []}
    assert read_lines(tmp_path, one).nodes["cost_nusd"].isna().all()


def test_a_run_whose_sum_is_not_that_of_its_calls_is_noted(tmp_path) -> None:
    one = record()
    one["metrics"]["accumulated_token_usage"]["prompt_tokens"] = 131
    table = read_lines(tmp_path, one)
    assert table.nodes["input_total"].tolist() == [131]
    assert "output.jsonl:1: the run's own prompt tokens are not the sum of its 2 calls" in table.report.notes[0]


def test_resolved_fills_delivered(tmp_path) -> None:
    assert read_lines(tmp_path, record(report={"resolved": False})).nodes["delivered"].tolist() == [False]


def test_a_bad_line_is_set_aside_and_no_text_is_taken(tmp_path) -> None:
    table = read_lines(tmp_path, record(error=SECRET), {"instance_id": SECRET[:10], "metrics": {"costs": [-1]}}, [3])
    assert (table.report.read, table.report.kept) == (3, 1)
    assert [item.line for item in table.report.set_aside] == [2, 3]
    assert table.calls is not None
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")
@pytest.mark.parametrize("name", ["output.jsonl", "resolver_output_old_format.jsonl"])
def test_all_recorded_runs_equal_their_own_figures(name: str) -> None:
    table = read(DATA / name)
    assert table.calls is not None
    for line, node in zip((DATA / name).read_text().splitlines(), table.nodes.to_dict("records"), strict=True):
        metrics = json.loads(line)["metrics"]
        usages, costs = (
            metrics.get("token_usages", []),
            [one if isinstance(one, float) else one["cost"] for one in metrics["costs"]],
        )
        own = table.calls[table.calls["run"] == node["run"]]
        assert node["calls"] == len(own) == len(usages or costs)
        if usages:
            assert node["input_total"] == own["input_total"].sum() == sum(one["prompt_tokens"] for one in usages)
            assert node["output"] == own["output"].sum() == sum(one["completion_tokens"] for one in usages)
        assert (0 if pd.isna(node["cost_nusd"]) else node["cost_nusd"]) == round(metrics["accumulated_cost"] * 1e9)
        assert sum(own["cost_nusd"].dropna()) == sum(round(cost * 1e9) for cost in costs)
