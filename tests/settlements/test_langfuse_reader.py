from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

SECRET = "the secret plan of Kim Doe"  # noqa: S105


def observation(name: str, kind: str = "GENERATION", parent: str | None = None, **changes: Any) -> dict[str, Any]:
    usage = {"input": 40, "input_cached_tokens": 60, "output": 20, "output_reasoning_tokens": 5, "total": 125}
    whole = {"id": name, "traceId": "t1", "type": kind, "parentObservationId": parent, "name": "step", "model": "m"}
    whole |= {"startTime": "2026-01-01T10:00:00.000Z", "endTime": "2026-01-01T10:00:02.500Z", "level": "DEFAULT"}
    whole |= {"input": SECRET, "output": SECRET, "statusMessage": SECRET, "sessionId": "s", "userId": "u"}
    costs = {"input": 0.1, "output": 0.2, "total": 0.3}
    told = kind == "GENERATION"
    return {**whole, "usageDetails": usage if told else {}, "costDetails": costs if told else {}, **changes}


def blob(row: dict[str, Any]) -> dict[str, Any]:
    names = {"traceId": "trace_id", "parentObservationId": "parent_observation_id", "startTime": "start_time"}
    names |= {"endTime": "end_time", "usageDetails": "usage_details", "costDetails": "cost_details"}
    names |= {"model": "provided_model_name", "sessionId": "session_id", "userId": "user_id"}
    found = {names.get(key, key): value for key, value in row.items()}
    return found | {"start_time": "2026-01-01 10:00:00.000000", "end_time": "2026-01-01 10:00:02.500000"}


def write(tmp_path: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    place = tmp_path / f"export.{form.rpartition('-')[2]}"
    if form == "csv":
        with place.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(rows[0])
            for row in rows:
                table.writerow([json.dumps(v) if isinstance(v, dict) else v for v in row.values()])
        return place
    texts = {
        "json": lambda: json.dumps(rows),
        "api-json": lambda: json.dumps({"data": rows, "meta": {"page": 1}}, indent=1),
        "blob-jsonl": lambda: "\n".join(json.dumps(blob(row)) for row in rows),
    }
    place.write_text(texts[form](), encoding="utf-8")
    return place


def read_rows(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> Settlements:
    return read(write(tmp_path, "json", list(rows)), **options)


@pytest.mark.parametrize("form", ["csv", "json", "api-json", "blob-jsonl"])
def test_every_form_of_an_export_says_the_same(tmp_path, form: str) -> None:
    table = read(write(tmp_path, form, [observation("g1"), observation("g2")]))
    wanted = {"run": "t1", "node": "0", "session": "s", "user": "u", "calls": 2, "model": "m", "input_total": 200}
    wanted |= {"input_fresh": 80, "cache_read": 120, "output": 50, "reasoning": 10, "cost_nusd": 600_000_000}
    wanted |= {"start_ns": 1_767_261_600 * 10**9, "duration_ns": 2_500_000_000, "usage_known": True}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


def test_agents_are_nodes_and_other_observations_no_calls(tmp_path) -> None:
    rows = [observation("root", "AGENT"), observation("span", "SPAN", "root"), observation("g", parent="span")]
    rows += [observation("tool", "TOOL", "root"), observation("trace-ish", "EVENT", "root")]
    node = read_rows(tmp_path, *rows).nodes.iloc[0]
    assert node[["node", "agent", "calls", "tool_calls", "input_total"]].tolist() == ["root", "step", 1, 1, 100]


def test_details_inside_the_input_are_told_by_the_total(tmp_path) -> None:
    usage = {"input": 100, "input_cached_tokens": 60, "output": 20, "total": 120}
    table = read_rows(tmp_path, observation("g", usageDetails=usage))
    assert table.nodes[["input_total", "input_fresh", "cache_read"]].iloc[0].tolist() == [100, 40, 60]


@pytest.mark.parametrize("read_key", ["cache_read_input_tokens", "input_cache_read", "input_cached_tokens"])
@pytest.mark.parametrize("write_key", ["cache_creation_input_tokens", "input_cache_creation"])
def test_keys_of_all_spellings_are_parts(tmp_path, read_key: str, write_key: str) -> None:
    usage = {"input": 3, read_key: 500, write_key: 40, "output": 9}
    table = read_rows(tmp_path, observation("g", usageDetails=usage))
    assert table.nodes[["input_total", "input_fresh", "cache_read", "cache_write"]].iloc[0].tolist() == [
        543,
        3,
        500,
        40,
    ]


def test_provided_costs_win_and_no_costs_are_unknown(tmp_path) -> None:
    provided = observation("g", providedCostDetails={"input": 1.0, "output": 0.5})
    assert read_rows(tmp_path, provided).nodes["cost_nusd"].tolist() == [1_500_000_000]
    assert read_rows(tmp_path, observation("g", costDetails={})).nodes["cost_nusd"].isna().all()


def test_an_error_is_a_failure_and_an_open_observation_unknown(tmp_path) -> None:
    failed = read_rows(tmp_path, observation("a", "AGENT", level="ERROR"), observation("g", parent="a"))
    assert failed.nodes[["outcome", "cause"]].iloc[0].tolist() == ["failed", pd.NA]
    still = read_rows(tmp_path, observation("a", "AGENT", endTime=None), observation("g", parent="a"))
    assert still.nodes["outcome"].tolist() == ["unknown"]


def test_a_run_can_be_the_session(tmp_path) -> None:
    rows = [observation("g1"), observation("g2", traceId="t2")]
    assert read_rows(tmp_path, *rows, unit="session").nodes["run"].tolist() == ["s", "s"]


def test_a_bad_row_is_set_aside(tmp_path) -> None:
    table = read_rows(tmp_path, observation("g1"), observation("g2", usageDetails={"input": -4, "output": 1}))
    (item,) = table.report.set_aside
    assert (item.line, item.reason) == (2, "input: should be a whole number, at least 0, got -4")
