from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105


def trial(
    mode: str = "unset", *, resolved: bool | None = True, name: str = "t.1-of-1", **changes: Any
) -> dict[str, Any]:
    times = {"agent_started_at": "2026-01-01T10:00:00+00:00", "agent_ended_at": "2026-01-01T10:01:00+00:00"}
    whole = {"trial_name": name, "task_id": "t", "instruction": SECRET, "is_resolved": resolved, "failure_mode": mode}
    return {**whole, "total_input_tokens": 900, "total_output_tokens": 50, "parser_results": None, **times, **changes}


def read_one(tmp_path, data: object, name: str = "results.json") -> Settlements:
    (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
    return read(tmp_path)


def test_a_trial_becomes_one_node(tmp_path) -> None:
    node = read_one(tmp_path, trial()).nodes.iloc[0]
    wanted = {"run": "t.1-of-1", "record_unit": "run", "outcome": "completed", "delivered": True, "input_total": 900}
    wanted |= {"output": 50, "duration_ns": 60 * 10**9, "start_ns": 1_767_261_600 * 10**9, "usage_known": True}
    assert node[list(wanted)].to_dict() == wanted
    assert node[["input_fresh", "cache_read", "cost_nusd"]].isna().all()


@pytest.mark.parametrize(
    ("mode", "resolved", "expected"),
    [
        ("agent_timeout", True, ["timed_out", "limit", "time-exhausted"]),
        ("context_length_exceeded", False, ["failed", "model", pd.NA]),
        ("agent_installation_failed", None, ["denied", "infrastructure", pd.NA]),
        ("test_timeout", None, ["completed", "none", pd.NA]),
        ("unknown_agent_error", False, ["failed", pd.NA, pd.NA]),
        ("unset", None, ["unknown", pd.NA, pd.NA]),
        (SECRET, False, ["completed", "none", pd.NA]),
    ],
)
def test_the_failure_mode_says_how_it_ended(tmp_path, mode, resolved, expected) -> None:
    table = read_one(tmp_path, trial(mode, resolved=resolved))
    assert table.nodes.iloc[0][["outcome", "cause", "stopped_by"]].tolist() == expected
    assert table.nodes["delivered"].tolist() == [pd.NA if resolved is None else resolved]
    assert "Kim" not in table.nodes.to_json() + table.summary()


@pytest.mark.parametrize("count", [0, None])
def test_counts_of_zero_and_null_are_both_unknown(tmp_path, count: int | None) -> None:
    node = read_one(tmp_path, trial(total_input_tokens=count, total_output_tokens=count)).nodes.iloc[0]
    assert node[["input_total", "output"]].isna().all()
    assert not node["usage_known"]


def test_a_run_that_says_its_trials_again_adds_nothing(tmp_path) -> None:
    trials = [trial(name="a"), trial(name="b", resolved=False)]
    read_one(tmp_path, {"id": "r", "n_resolved": 1, "accuracy": 0.5, "results": trials})
    (tmp_path / "a").mkdir()
    table = read_one(tmp_path, trials[0], name="a/results.json")
    assert (table.report.read, table.report.kept, table.report.duplicates) == (3, 2, 1)


def test_a_trial_of_a_run_that_cannot_be_taken_is_set_aside_alone(tmp_path) -> None:
    whole = {"n_resolved": 1, "accuracy": 1, "results": [trial(), 7, trial(name="c", total_input_tokens=-1)]}
    table = read_one(tmp_path, whole)
    assert [item.line for item in table.report.set_aside] == [2, 3]
    assert len(table) == 1
