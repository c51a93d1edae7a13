from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.settlements import PRESETS, Settlements, read
from harness_lab.settlements.readers.presets import Preset

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
SECRET = "the secret plan of Kim Doe"  # noqa: S105


def request(name: str, **changes: Any) -> dict[str, Any]:
    usage = {"prompt_tokens_details": {"cached_tokens": 700}, "cache_creation_input_tokens": 100}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 5}}
    whole = {"request_id": name, "call_type": "acompletion", "api_key": SECRET, "spend": 0.25, "total_tokens": 950}
    whole |= {"prompt_tokens": 900, "completion_tokens": 50, "model": "m-2026", "model_group": "m", "status": "success"}
    whole |= {"startTime": "2026-01-01T10:00:00Z", "endTime": "2026-01-01T10:00:02Z", "custom_llm_provider": "openai"}
    whole |= {"metadata": {"usage_object": usage}, "cache_hit": "False", "session_id": "s", "team_id": "t", "user": "u"}
    return {**whole, "messages": {"text": SECRET}, **changes}


def read_requests(tmp_path: Path, form: str, *rows: dict[str, Any]) -> Settlements:
    place = tmp_path / f"spend.{form}"
    if form == "csv":
        with place.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(rows[0])
            for row in rows:
                table.writerow([json.dumps(v) if isinstance(v, dict) else v for v in row.values()])
    else:
        whole = {"json": list(rows), "page": {"data": list(rows), "total": len(rows), "page": 1}}
        text = "\n".join(map(json.dumps, rows)) if form == "jsonl" else json.dumps(whole[form], indent=1)
        place.write_text(text, encoding="utf-8")
    return read(place, columns="litellm")


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "page"])
def test_spend_logs_say_the_same_as_dump_and_as_answer(tmp_path, form: str) -> None:
    table = read_requests(tmp_path, form, request("r1"), request("r2"))
    wanted = {"run": "r1", "record_unit": "call", "session": "s", "team": "t", "user": "u", "backend": "openai"}
    wanted |= {"input_total": 900, "input_fresh": 100, "cache_read": 700, "cache_write": 100, "output": 50}
    wanted |= {"reasoning": 5, "cost_nusd": 250_000_000, "duration_ns": 2 * 10**9, "outcome": "completed", "calls": 1}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert len(table) == 2
    assert "Kim" not in table.nodes.to_json() + table.summary()


def test_a_failure_is_unknown_usage_and_not_free(tmp_path) -> None:
    failed = request("r", status="failure", spend=0, prompt_tokens=0, completion_tokens=0, metadata="{}")
    node = read_requests(tmp_path, "jsonl", failed).nodes.iloc[0]
    assert (node["outcome"], node["usage_known"]) == ("failed", False)
    assert node[["input_total", "output", "cost_nusd"]].isna().all()


def test_an_answer_from_the_own_cache_called_no_model_and_cost_nothing(tmp_path) -> None:
    node = read_requests(tmp_path, "jsonl", request("r", cache_hit="True", spend=0)).nodes.iloc[0]
    assert node[["calls", "input_total", "output", "cost_nusd"]].tolist() == [0, 0, 0, 0]


def test_spend_of_zero_beside_tokens_is_unknown(tmp_path) -> None:
    node = read_requests(tmp_path, "jsonl", request("r", spend=0.0)).nodes.iloc[0]
    assert (node["input_total"], pd.isna(node["cost_nusd"])) == (900, True)


def test_older_logs_without_some_columns_are_read_all_the_same(tmp_path) -> None:
    rows = [{key: value for key, value in request("r").items() if key not in {"status", "session_id", "team_id"}}]
    node = read_requests(tmp_path, "jsonl", *rows).nodes.iloc[0]
    assert (node["outcome"], pd.isna(node["session"])) == ("completed", True)


def test_a_file_of_another_kind_is_refused_with_the_column_it_lacks(tmp_path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^column map for x\.csv: expected columns that exist .* got 'request_id'"):
        read(tmp_path / "x.csv", columns="litellm")


def test_a_request_without_an_answer_failed(tmp_path) -> None:
    text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    text += "5,1,2.5,ChatGPT,472,18,490,Conversation log\n45,,9,GPT-4,1087,0,1087,API log\n"
    (tmp_path / "b.csv").write_text(text, encoding="utf-8")
    table = read(tmp_path / "b.csv", columns="burstgpt")
    wanted = ["start_ns", "duration_ns", "outcome", "input_total", "output"]
    assert table.nodes[wanted].to_numpy().tolist() == [
        [5 * 10**9, 2_500_000_000, "completed", 472, 18],
        [45 * 10**9, 9 * 10**9, "failed", 1_087, pd.NA],
    ]
    assert "times count from the trace's own start" in table.report.notes[0]


@pytest.mark.parametrize("stamp", ["-1", '"noon"', "1e30", "NaN"])
def test_an_arrival_that_is_none_sets_the_row_aside(tmp_path, stamp: str) -> None:
    sizes = '"input_length": 1, "output_length": 2}'
    text = f'{{"timestamp": 0, {sizes}\n{{"timestamp": {stamp}, {sizes}'
    (tmp_path / "m.jsonl").write_text(text, encoding="utf-8")
    table = read(tmp_path / "m.jsonl", columns="mooncake")
    assert (len(table), [item.line for item in table.report.set_aside]) == (1, [2])


def test_every_preset_is_a_map_of_fields_that_exist() -> None:
    from harness_lab.settlements.readers.flat import check_map

    for name, preset in PRESETS.items():
        check_map(preset)
        assert dict(preset)
        if isinstance(preset, Preset):
            assert preset.required, name


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")
@pytest.mark.parametrize(("name", "rows"), [("code", 5_291), ("conv", 11_619)])
def test_all_recorded_requests_of_azure_equal_their_rows(name: str, rows: int) -> None:
    place = DATA / "azure-llm-2023" / f"AzureLLMInferenceTrace_{name}.csv"
    table = read(place, columns="azure-llm")
    with place.open() as file:
        recorded = list(csv.DictReader(file))
    assert len(table) == len(recorded) == rows
    assert table.nodes["input_total"].tolist() == [int(row["ContextTokens"]) for row in recorded]
    assert table.nodes["output"].tolist() == [int(row["GeneratedTokens"]) for row in recorded]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for row, start in list(zip(recorded, table.nodes["start_ns"], strict=True))[::97]:
        moment = datetime.fromisoformat(row["TIMESTAMP"][:26]).replace(tzinfo=UTC)
        assert row["TIMESTAMP"].endswith("0")  # so that microseconds are exact
        assert start == (moment - epoch) // timedelta(microseconds=1) * 1_000
    assert any("without a zone" in note for note in table.report.notes)


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")
def test_all_recorded_requests_of_mooncake_equal_their_rows() -> None:
    place = DATA / "mooncake-trace" / "conversation_trace.jsonl"
    nodes = read(place, columns="mooncake").nodes
    recorded = [json.loads(line) for line in place.read_text().splitlines()]
    assert len(nodes) == len(recorded) == 4_000
    assert nodes["input_total"].tolist() == [row["input_length"] for row in recorded]
    assert nodes["output"].tolist() == [row["output_length"] for row in recorded]
    assert nodes["start_ns"].tolist() == [row["timestamp"] * 1_000_000 for row in recorded]
