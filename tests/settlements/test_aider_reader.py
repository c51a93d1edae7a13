from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
LOG = DATA / "aider-analytics" / "analytics.jsonl"
BOARD = DATA / "aider-leaderboard" / "polyglot_leaderboard.yml"


def event(name: str, **properties: Any) -> dict[str, Any]:
    return {"event": name, "properties": properties, "user_id": "u-1", "time": 1_738_368_963}


def message(sent: int, received: int, cost: float) -> dict[str, Any]:
    counts = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    return event("message_send", main_model="v/m", edit_format="diff", cost=cost, total_cost=9.0, **counts)


def read_log(tmp_path: Path, *events: object) -> Settlements:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    return read(tmp_path / "a.jsonl")


def test_a_message_is_a_call_of_its_own(tmp_path) -> None:
    table = read_log(tmp_path, event("launched"), message(4848, 344, 0.019704), event("exit", reason="/exit"))
    wanted = {"run": "a.jsonl:2", "record_unit": "call", "model": "v/m", "calls": 1, "input_total": 4848, "output": 344}
    wanted |= {"cost_nusd": 19_704_000, "outcome": "completed", "start_ns": 1_738_368_963 * 10**9, "user": "u-1"}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert table.report.notes == ("a.jsonl: events that are no calls: 1 launched, 1 exit",)


def test_zeros_that_stand_for_unknown_stay_unknown(tmp_path) -> None:
    nodes = read_log(tmp_path, message(100, 0, 0.1), message(0, 5, 0.1), message(100, 5, 0)).nodes
    assert nodes["outcome"].tolist() == ["unknown", "completed", "completed"]
    assert nodes["input_total"].tolist() == [100, pd.NA, 100]
    assert nodes["output"].tolist() == [pd.NA, 5, 5]
    assert nodes["cost_nusd"].tolist() == [10**8, 10**8, pd.NA]
    assert nodes["usage_known"].tolist() == [False, False, True]


def test_an_exception_is_a_failed_call_with_unknown_usage(tmp_path) -> None:
    node = read_log(tmp_path, event("launched"), event("message_send_exception")).nodes.iloc[0]
    assert (node["outcome"], node["usage_known"]) == ("failed", False)
    assert node[["input_total", "output", "cost_nusd"]].isna().all()


def exercise(**changes: Any) -> dict[str, Any]:
    whole = {
        "testcase": "bowling",
        "model": "v/m",
        "edit_format": "whole",
        "tests_outcomes": [False, True],
        "cost": 0.5,
    }
    counts = {"prompt_tokens": 900, "completion_tokens": 80, "thinking_tokens": 20, "duration": 12.5}
    return {**whole, **counts, **changes}


def read_exercise(tmp_path: Path, data: object) -> Settlements:
    folder = tmp_path / "run-1" / "python" / "exercises" / "practice" / "bowling"
    folder.mkdir(parents=True)
    (folder / ".aider.results.json").write_text(json.dumps(data), encoding="utf-8")
    return read(tmp_path / "run-1")


def test_an_exercise_is_a_run_and_its_last_try_says_whether_it_delivered(tmp_path) -> None:
    node = read_exercise(tmp_path, exercise()).nodes.iloc[0]
    wanted = {"delivered": True, "iterations": 2, "input_total": 900, "output": 80, "reasoning": 20}
    wanted |= {"cost_nusd": 500_000_000, "duration_ns": 12_500_000_000, "outcome": "completed"}
    assert node[list(wanted)].to_dict() == wanted
    assert node["run"].endswith("run-1/python/bowling")


def test_an_exercise_that_was_only_set_up_never_finished(tmp_path) -> None:
    node = read_exercise(
        tmp_path, exercise(tests_outcomes=[], cost=0, prompt_tokens=0, completion_tokens=0)
    ).nodes.iloc[0]
    assert node["outcome"] == "unknown"
    assert node[["delivered", "input_total", "output", "cost_nusd"]].isna().all()


@pytest.fixture(scope="module")
def recorded() -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    if not LOG.is_file():
        pytest.skip("the recorded data are not here")
    events = [json.loads(line) for line in LOG.read_text().splitlines()]
    return read(LOG).nodes, [one for one in events if one["event"] == "message_send"]


def test_all_recorded_messages_equal_their_events(recorded) -> None:
    nodes, events = recorded
    sent = nodes[nodes["source_status"] == "message_send"]
    assert len(sent) == len(events) == 3_193
    for column, name in (("input_total", "prompt_tokens"), ("output", "completion_tokens")):
        assert sent[column].fillna(0).tolist() == [one["properties"][name] for one in events]
    costs = [round(one["properties"]["cost"] * 1e9) for one in events]
    assert sent["cost_nusd"].fillna(0).tolist() == costs
    assert sent["cost_nusd"].isna().sum() == costs.count(0) == 960
    assert (len(nodes) - len(sent)) == 25  # the exceptions


@pytest.mark.skipif(not BOARD.is_file(), reason="the recorded data are not here")
def test_the_leaderboard_is_read_through_its_column_map(tmp_path) -> None:
    rows = pytest.importorskip("yaml").safe_load(BOARD.read_text())
    text = "\n".join(json.dumps(row, default=str) for row in rows)
    (tmp_path / "board.jsonl").write_text(text, encoding="utf-8")
    nodes = read(tmp_path / "board.jsonl", columns="aider-leaderboard").nodes
    assert len(nodes) == len(rows) == 69
    assert nodes["cost_nusd"].fillna(0).sum() == sum(round(row.get("total_cost", 0) * 1e9) for row in rows)
    assert nodes["input_total"].fillna(0).sum() == sum(row.get("prompt_tokens") or 0 for row in rows)
    assert nodes["score"].tolist() == [row["pass_rate_2"] for row in rows]
    assert set(nodes["record_unit"]) == {"benchmark"}
