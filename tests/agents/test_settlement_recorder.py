"""Settlement rows from a live run, read back by the flat reader."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.agents import (
    AgentRuntime,
    ModelError,
    ModelResponse,
    ModeRegistry,
    Participant,
    SettlementRecorder,
    ToolCall,
)
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.settlements import CALL_COLUMNS, NODE_COLUMNS, SCHEMA_VERSION, read
from harness_lab.usage import TokenCounts

CONFIG = {
    "modes": {
        "chat": {"model": "big", "max_steps": 5, "subagents": {"dig": {"mode": "child", "max_steps": 1}}},
        "child": {"model": "small"},
    }
}
USED = TokenCounts(input_fresh=900, cache_read=50, cache_write=50, output=100)


def _run(target: Any, script: dict[str, list[Any]], **options: Any) -> None:
    recorder = SettlementRecorder(target, wall=lambda: 1_700_000_000_000_000_000, **options)
    runtime = AgentRuntime(ScriptedClient(by_model=script), ModeRegistry(CONFIG), recorder=recorder)
    session = runtime.sessions.session("support", participant=Participant("User", 7)).using_model("big", provider="lab")
    asyncio.run(runtime.send(session, "a secret prompt"))


def _script() -> dict[str, list[Any]]:
    ask = ModelResponse(tool_calls=[ToolCall(id="c", name="dig", arguments={"task": "t"})], cost_usd=0.01, usage=USED)
    answer = ModelResponse(text="found", cost_usd=0.002, usage=USED, served_model="small-2")
    return {"big": [ask, says("done", cost_usd=0.03)], "small": [answer]}


def test_a_live_runs_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    _run(file, _script(), labels={"task_kind": "law"})
    nodes = read(file).nodes.sort_values("depth").reset_index(drop=True)
    root, child = nodes.loc[0], nodes.loc[1]
    assert list(nodes["outcome"]) == ["completed", "completed"]
    assert (child["parent"], child["run"]) == (root["node"], root["run"])
    assert (child["input_total"], child["output"], child["cost_nusd"]) == (1000, 100, 2_000_000)
    assert (root["calls"], root["starts"], root["tool_calls"], root["cost_nusd"]) == (2, 1, 1, 40_000_000)
    assert root["input_fresh"] is read(file).nodes["input_fresh"].dtype.na_value  # one call reported no tokens
    assert (child["model"], child["served_model"], child["agent"], child["backend"]) == (
        "small",
        "small-2",
        "dig",
        "lab",
    )
    assert (root["task_kind"], child["ask_calls"], child["ceiling_calls"]) == ("law", 1, 1)
    assert root["start_ns"] + root["duration_ns"] == 1_700_000_000_000_000_000


def test_refused_and_cut_off_nodes_have_rows_too(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    ask = calls("dig", task="t", cost_usd=0.01)
    _run(file, {"big": [ask] * 4, "small": [calls("none"), says("x"), says("y")]})
    nodes = read(file).nodes
    assert sorted(nodes["outcome"]) == ["completed", "denied", "exhausted", "failed"]
    assert set(nodes["stopped_by"].dropna()) == {"steps-exhausted"}


def test_no_text_of_a_conversation_is_written(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    _run(file, _script())
    text = file.read_text(encoding="utf-8")
    assert "secret" not in text
    assert "found" not in text


def test_rows_carry_the_version_of_the_settlement_table_and_only_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    _run(file, _script())
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert set(rows[0]) <= {column.name for column in NODE_COLUMNS} | {"call_rows"}
    assert all(set(call) <= {column.name for column in CALL_COLUMNS} for row in rows for call in row["call_rows"])


def test_the_calls_of_a_live_run_are_in_the_calls_table(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    broken = ModelError("gone", cost_usd=0.001)
    _run(file, _script() | {"small": [broken]})
    records = read(file)
    assert records.calls is not None
    calls_of = records.calls.merge(records.nodes[["node", "agent"]], on="node")
    lead, child = (calls_of[calls_of["agent"] == agent].sort_values("call") for agent in ("chat", "dig"))
    assert list(lead["status"]) == ["completed", "completed"]
    assert list(lead["cost_nusd"]) == [10_000_000, 30_000_000]
    assert (lead["input_fresh"].iloc[0], lead["cache_read"].iloc[0], lead["output"].iloc[0]) == (900, 50, 100)
    assert lead["input_fresh"].isna().iloc[1]  # not reported
    assert (list(child["status"]), list(child["model"])) == (["failed"], ["small"])
    assert set(lead["run"]) == set(records.nodes["run"])
    starts = records.nodes.set_index("node")["start_ns"]
    assert (calls_of["start_ns"] >= calls_of["node"].map(starts)).all()


@pytest.mark.parametrize("odd", [5, [5], [{"call": -1}], [{"no": 1}]])
def test_calls_that_are_none_set_their_row_aside(tmp_path: Path, odd: Any) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"run": "r", "node": "n", "call_rows": odd}) + "\n" + json.dumps({"run": "s"}) + "\n")
    records = read(file)
    assert (len(records.nodes), records.calls) == (1, None)
    assert records.report.set_aside[0].line == 1


def test_a_disk_that_is_full_does_not_take_the_run_down(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="a settlement row could not be written"):
        _run(tmp_path / "no" / "such" / "folder.jsonl", _script())
