from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105


def trial(exception: str | None = None, *, reward: object = 1.0, **changes: Any) -> dict[str, Any]:
    used = {
        "n_input_tokens": 900,
        "n_cache_tokens": 700,
        "n_output_tokens": 50,
        "cost_usd": 0.25,
        "rollout_details": None,
    }
    clock = {"started_at": "2026-01-01T10:00:00Z", "finished_at": "2026-01-01T10:05:00Z"}
    info = {"name": "claude-code", "version": "2.1", "model_info": {"name": "m", "provider": "anthropic"}}
    agent = {"name": "claude-code", "model_name": "anthropic/m", "override_timeout_sec": 600, "max_timeout_sec": None}
    whole = {"trial_name": "task__1", "task_name": "task", "source": "terminal-bench", "agent_info": info}
    whole |= {"config": {"agent": agent, "timeout_multiplier": 2.0}, "agent_result": used, "agent_execution": clock}
    failed = None if exception is None else {"exception_type": exception, "exception_message": SECRET}
    whole |= {"verifier_result": {"rewards": {"reward": reward}}, "exception_info": failed}
    return {**whole, "started_at": "2026-01-01T09:58:00Z", "finished_at": "2026-01-01T10:06:00Z", **changes}


def read_one(tmp_path: Path, data: object) -> Settlements:
    (tmp_path / "result.json").write_text(json.dumps(data), encoding="utf-8")
    return read(tmp_path / "result.json")


def test_a_trial_becomes_one_node(tmp_path) -> None:
    node = read_one(tmp_path, trial()).nodes.iloc[0]
    wanted = {
        "run": "task__1",
        "agent": "claude-code",
        "model": "anthropic/m",
        "backend": "anthropic",
        "delivered": True,
    }
    wanted |= {"input_total": 900, "cache_read": 700, "output": 50, "cost_nusd": 250_000_000, "usage_known": True}
    wanted |= {"duration_ns": 300 * 10**9, "ceiling_time_ns": 1_200 * 10**9, "outcome": "completed", "score": 1.0}
    assert node[list(wanted)].to_dict() == wanted
    assert node[["input_fresh", "cache_write", "calls"]].isna().all()


@pytest.mark.parametrize(
    ("exception", "expected"),
    [
        ("AgentTimeoutError", ["timed_out", "limit", "time-exhausted"]),
        ("AgentSetupTimeoutError", ["denied", "infrastructure", pd.NA]),
        ("EnvironmentStartTimeoutError", ["denied", "infrastructure", pd.NA]),
        ("VerifierTimeoutError", ["completed", "none", pd.NA]),
        ("CancelledError", ["cancelled", "user", pd.NA]),
        ("APIConnectionError", ["failed", "infrastructure", pd.NA]),
        ("NonZeroAgentExitCodeError", ["failed", pd.NA, pd.NA]),
    ],
)
def test_the_exception_says_how_it_ended(tmp_path, exception: str, expected: list[object]) -> None:
    node = read_one(tmp_path, trial(exception)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_a_trial_that_timed_out_may_have_delivered(tmp_path) -> None:
    node = read_one(tmp_path, trial("AgentTimeoutError", reward=1)).nodes.iloc[0]
    assert (node["outcome"], node["delivered"]) == ("timed_out", True)


@pytest.mark.parametrize(
    ("reward", "expected"), [(0, [0.0, False]), (0.4, [0.4, False]), (None, [pd.NA, pd.NA]), ("high", [pd.NA, pd.NA])]
)
def test_the_reward_is_the_score_and_a_whole_one_delivered(tmp_path, reward, expected) -> None:
    assert read_one(tmp_path, trial(reward=reward)).nodes.iloc[0][["score", "delivered"]].tolist() == expected


def test_counts_that_are_null_are_unknown(tmp_path) -> None:
    nothing = dict.fromkeys(("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd"))
    node = read_one(tmp_path, trial(agent_result=nothing)).nodes.iloc[0]
    assert node[["input_total", "cache_read", "output", "cost_nusd"]].isna().all()
    assert not node["usage_known"]


def test_counts_of_several_steps_are_added(tmp_path) -> None:
    parts = [{"agent_result": trial()["agent_result"]}] * 2
    node = read_one(tmp_path, trial(agent_result=None, step_results=parts)).nodes.iloc[0]
    assert node[["input_total", "output", "cost_nusd"]].tolist() == [1_800, 100, 500_000_000]


def test_local_times_are_unknown_and_noted(tmp_path) -> None:
    clock = {"started_at": "2026-01-01T10:00:00.5", "finished_at": "2026-01-01T10:00:10.5"}
    table = read_one(tmp_path, trial(agent_execution=clock))
    assert table.nodes["start_ns"].isna().all()
    assert table.nodes["duration_ns"].tolist() == [10 * 10**9]
    assert "1 local time(s) without a zone" in table.report.notes[0]


def test_the_sums_of_a_job_are_not_added_to_its_trials(tmp_path) -> None:
    for number, folder in enumerate(("job/a", "job/b"), start=1):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "result.json").write_text(json.dumps(trial(trial_name=f"t{number}")), encoding="utf-8")
    job = {"id": "j", "n_total_trials": 2, "stats": {"n_input_tokens": 1_800}}
    (tmp_path / "job" / "result.json").write_text(json.dumps(job), encoding="utf-8")
    table = read(tmp_path)
    assert table.nodes["input_total"].sum() == 1_800
    assert "1 job result(s) hold sums over trials and were left out" in table.report.notes


def test_no_text_of_the_record_enters_the_table(tmp_path) -> None:
    table = read_one(tmp_path, trial(SECRET))
    assert "Kim" not in table.nodes.to_json() + table.summary()
