from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import Settlements, read
from harness_lab.settlements.readers.flat import look_up
from harness_lab.settlements.readers.words import parse_values

MINI = Path(__file__).parents[2] / ".." / "shared" / "data" / "mini-swe-agent-traj"

OWN = "run,node,agent,outcome,input_total,cache_read,output,cost_usd,start\n"


def write(tmp_path: Path, text: str, name: str = "runs.csv") -> Path:
    place = tmp_path / name
    place.write_text(text, encoding="utf-8")
    return place


def only_reason(table: Settlements) -> str:
    (item,) = table.report.set_aside
    return str(item)


def test_our_own_columns_need_no_map(tmp_path) -> None:
    row = read(write(tmp_path, OWN + "a,0,lead,completed,100,60,7,0.25,2026-03-02T08:00:00Z\n")).nodes.iloc[0]
    assert (row["input_fresh"], row["cache_write"], row["cost_nusd"]) == (40, 0, 250_000_000)
    assert (row["start_ns"], row["source"], row["line"]) == (1_772_438_400_000_000_000, "runs.csv", 2)
    assert row["cost_source"] == "recorded"


def test_a_map_picks_columns_constants_and_dollars(tmp_path) -> None:
    text = "id;spend;prompt;who;model\n7;0.1;50;kim;m\n"
    columns = {"run": "id", "cost_usd": "spend", "input_total": "prompt", "backend": "=pi", "record_unit": "=call"}
    row = read(write(tmp_path, text), columns=columns).nodes.iloc[0]
    assert row[["run", "cost_nusd", "input_total", "backend", "record_unit"]].tolist() == ["7", 10**8, 50, "pi", "call"]
    assert row[["user", "model"]].isna().all()


def test_empty_fields_are_unknown_and_not_zero(tmp_path) -> None:
    row = read(write(tmp_path, OWN + "a,0,,,,,,,\n")).nodes.iloc[0]
    assert row[["agent", "input_total", "output", "cost_nusd", "start_ns"]].isna().all()
    assert row["outcome"] == "unknown"


def test_a_table_with_a_strange_column_does_not_stop_the_reading_of_its_folder(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text('{"run": "a", "node": "0"}\n{"run": "b", "node": "0", "outptu": 5}\n')
    (tmp_path / "b.jsonl").write_text('{"run": "c", "node": "0"}\n')
    table = read(tmp_path, ids="kept")
    assert table.nodes["run"].tolist() == ["a", "c"]
    assert "outptu: Extra inputs are not permitted" in str(table.report.set_aside[0])


def test_nan_is_how_other_programs_write_unknown(tmp_path) -> None:
    table = read(write(tmp_path, OWN + "a,0,lead,completed,NaN,,7,nan,\n"))
    assert table.nodes[["input_total", "output", "cost_nusd"]].to_numpy(na_value=-1).tolist() == [[-1, 7, -1]]
    lines = write(tmp_path, '{"run": "a", "outcome": NaN, "output": NaN}\n', "log.jsonl")
    assert read(lines).nodes[["outcome", "output"]].to_numpy(na_value=-1).tolist() == [["unknown", -1]]
    assert not table.report.set_aside


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a,0,lead,completed,100,60,-7,0.25,", "runs.csv:2: output: should be greater than or equal to 0, got '-7'"),
        ("a,0,lead,completed,100,60,7,Infinity,", "runs.csv:2: cost_usd: should be a finite number of dollars"),
        ("a,0,lead,completed,100,160,7,0.25,", "runs.csv:2: cache_read 160 + cache_write 0 exceed input_total 100"),
        ("a,0,lead,completed,1e3,60,7,0.25,", "runs.csv:2: input_total: should be a valid integer"),
        ("a,0,lead,completed,100,60,7,0.25,noon", "runs.csv:2: start: should be"),
        ("a,0,lead", "runs.csv:2: 3 fields where the header has 9; cut short?"),
        ("a,0,lead,completed,100,60,7,0.25,,,", "runs.csv:2: 11 fields where the header has 9"),
    ],
)
def test_a_bad_row_is_set_aside_with_file_line_and_reason(tmp_path, line: str, reason: str) -> None:
    table = read(write(tmp_path, f"{OWN}{line}\nb,0,lead,completed,100,60,7,0.25,\n"))
    assert table.nodes["run"].tolist() == ["b"]
    assert only_reason(table).startswith(reason)
    assert (table.report.read, table.report.kept) == (2, 1)


def test_json_lines_hold_nested_values_and_a_cut_line_is_set_aside(tmp_path) -> None:
    good = json.dumps({"id": 1, "usage": {"prompt_tokens": 9}, "meta": '{"cost": 0.5}'})
    place = write(tmp_path, f"{good}\n\n{good[:20]}\n[1]\n", "log.jsonl")
    table = read(place, columns={"run": "id", "input_total": "usage.prompt_tokens", "cost_usd": "meta.cost"})
    assert table.nodes[["input_total", "cost_nusd"]].to_numpy().tolist() == [[9, 500_000_000]]
    reasons = [str(item) for item in table.report.set_aside]
    assert reasons[0].startswith("log.jsonl:3: not valid JSON")
    assert reasons[1] == "log.jsonl:4: a JSON object was expected, got a list"


def test_a_json_array_a_gzip_file_and_parquet_are_read_alike(tmp_path) -> None:
    rows = [{"run": "a", "output": 5}, {"run": "b", "output": 6}]
    write(tmp_path, json.dumps(rows), "array.json")
    (tmp_path / "lines.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    pd.DataFrame(rows).to_parquet(tmp_path / "table.parquet")
    for name in ("array.json", "lines.jsonl.gz", "table.parquet"):
        table = read(tmp_path / name, columns={"run": "run", "output": "output"})
        assert table.nodes[["run", "output"]].to_numpy().tolist() == [["a", 5], ["b", 6]]


def test_a_column_that_does_not_exist_is_an_error_that_lists_those_that_do(tmp_path) -> None:
    place = write(tmp_path, "id,spend\n1,2\n")
    with pytest.raises(
        InputError, match=r"^column map for runs\.csv: expected columns that exist \(id, spend\), got 'cost'"
    ):
        read(place, columns={"run": "id", "cost_usd": "cost"})


def test_a_field_that_does_not_exist_is_an_error_that_names_the_closest(tmp_path) -> None:
    with pytest.raises(InputError, match=r"^column map: .*got 'cost_us'. Did you mean cost_usd\?") as error:
        read(write(tmp_path, "id\n1\n"), columns={"cost_us": "id"})
    assert len(str(error.value)) < 200


def test_a_map_that_is_turned_round_is_told_so(tmp_path) -> None:
    with pytest.raises(InputError, match=r"FIELD=COLUMN.*Write run=JobID"):
        read(write(tmp_path, "JobID\n1\n"), columns={"JobID": "run"})


def test_the_usual_words_for_no_number_are_unknown(tmp_path) -> None:
    rows = "".join(f"{i},0,,ok,{word},,{word},{word},\n" for i, word in enumerate(("n/a", "NA", "null", "-", "none")))
    table = read(write(tmp_path, OWN + rows))
    assert not table.report.set_aside
    assert table.nodes[["input_total", "output", "cost_nusd"]].isna().all(axis=None)


def test_columns_that_are_not_ours_need_a_map(tmp_path) -> None:
    place = write(tmp_path, "id,spend\n1,2\n")
    with pytest.raises(ReadError, match=r"got 'id, spend'\. .*--map run=id") as error:
        read(place)
    assert len(str(error.value)) < 300
    with pytest.raises(InputError, match=r"give a map for these columns: id, spend"):
        read(place, format="flat")


def test_rows_without_names_are_named_by_line_and_rows_of_one_run_are_numbered(tmp_path) -> None:
    unnamed = read(write(tmp_path, "t\n5\n6\n"), columns={"output": "t"}).nodes
    assert unnamed["run"].tolist() == ["runs.csv:2", "runs.csv:3"]
    calls = read(write(tmp_path, "s,t\nx,5\nx,6\n"), columns={"run": "s", "output": "t"}).nodes
    assert calls["node"].tolist() == ["0", "1"]


def test_a_second_row_of_the_same_node_is_a_duplicate_or_a_contradiction(tmp_path) -> None:
    table = read(write(tmp_path, "run,node,output\na,0,5\na,0,5\na,0,6\n"))
    assert (table.report.kept, table.report.duplicates) == (1, 1)
    assert only_reason(table) == "runs.csv:4: node 0 of run a came before in this file, with other figures"


def test_times_without_a_zone_are_read_as_utc_and_noted(tmp_path) -> None:
    table = read(write(tmp_path, "run,start\na,2026-03-02 08:00:00\n"))
    assert table.nodes["start_ns"].iloc[0] == 1_772_438_400_000_000_000
    assert "runs.csv: 1 row(s) have times without a zone; read as UTC" in table.report.notes


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"", "an empty file"),
        (b"run,output\n", "no rows"),
        (b"PAR1garbage", "binary content|no known format"),
        (b"\x00\x01\x02", "binary content"),
        ("run,output\na,5\n".encode("utf-16"), "binary content"),
        (b"run,run\na,b\n", "twice"),
    ],
)
def test_a_file_that_is_no_table_is_an_error_that_says_what_was_expected(tmp_path, content: bytes, got: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ReadError, match=rf"^x\.csv: expected .*({got})"):
        read(tmp_path / "x.csv")


def test_a_very_long_line_is_set_aside_and_reading_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("harness_lab.settlements.files.lines.__kwdefaults__", {"max_bytes": 40})
    place = write(tmp_path, '{"run": "a"}\n{"run": "' + "x" * 500 + '"}\n{"run": "c"}\n', "log.jsonl")
    table = read(place)
    assert table.nodes["run"].tolist() == ["a", "c"]
    assert only_reason(table) == "log.jsonl:2: the line is too long"


def test_a_line_in_another_encoding_is_set_aside(tmp_path) -> None:
    (tmp_path / "x.csv").write_bytes("run,user\na,Zoë\n".encode() + "b,Zoë\n".encode("latin-1"))
    table = read(tmp_path / "x.csv")
    assert table.nodes["user"].tolist() == ["Zoë"]
    assert only_reason(table) == "x.csv:3: not UTF-8"


def test_a_row_of_a_newer_schema_is_set_aside(tmp_path) -> None:
    table = read(write(tmp_path, "run,schema_version\na,1\nb,4\n"))
    assert table.nodes["run"].tolist() == ["a"]
    assert only_reason(table) == "runs.csv:3: schema_version: should be at most 3, got '4'"


def test_our_own_parquet_comes_back_with_its_calls(tmp_path) -> None:
    calls = {"run": ["a"], "node": ["0"], "call": [0]}
    Settlements.from_columns({"run": ["a"], "node": ["0"]}, calls).to_parquet(tmp_path / "t.parquet")
    table = read(tmp_path)
    assert (len(table), table.report.notes) == (1, ())
    assert table.calls is not None
    assert table.calls["call"].tolist() == [0]


def test_nested_look_up_prefers_a_column_of_that_very_name() -> None:
    assert look_up({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert look_up({"a": "{not json"}, "a.b") is None
    assert look_up({"a": 3}, "a.b") is None


@pytest.mark.skipif(not MINI.is_dir(), reason="the recorded data are not here")
def test_all_240_recorded_runs_are_read_with_the_preset() -> None:
    table = read(MINI / "runs.csv", columns="mini-swe-agent-runs")
    recorded = pd.read_csv(MINI / "runs.csv", dtype={"instance_cost": str})
    assert table.report.read == table.report.kept == 240
    assert table.nodes["input_total"].tolist() == recorded["prompt_tokens"].tolist()
    assert table.nodes["calls"].sum() == recorded["api_calls"].sum()
    assert (
        table.cost_usd.map("{:.9f}".format).tolist()
        == recorded["instance_cost"].astype(float).map("{:.9f}".format).tolist()
    )
    assert table.nodes["delivered"].sum() == recorded["resolved"].sum()
    assert set(table.nodes["outcome"]) == {"completed"}


def test_an_outcome_that_is_not_understood_keeps_its_row_as_unknown_and_one_note_says_so(tmp_path) -> None:
    rows = "a,0,,stopped: budget,100,60,7,0.25,\nb,0,,me@firm.example,1,0,1,9,\nc,0,,ok,1,0,1,1,\n"
    table = read(write(tmp_path, OWN + rows), ids="kept")
    assert table.nodes["outcome"].tolist() == ["unknown", "unknown", "completed"]
    assert table.nodes["cost_nusd"].tolist() == [250_000_000, 9 * 10**9, 10**9]
    (note,) = [note for note in table.report.notes if "not understood" in note]
    assert note.startswith(
        "2 row(s) have an outcome that is not understood and are kept as unknown: stopped: budget; 1 "
    )
    assert "exhausted" in note
    assert "firm" not in note


def test_a_user_says_what_the_words_of_a_table_mean(tmp_path) -> None:
    place = write(tmp_path, "id,end\n1,stopped: budget\n2,ok\n")
    values = parse_values(["outcome:stopped: budget=exhausted"])
    table = read(place, columns={"run": "id", "outcome": "end"}, values=values)
    assert table.nodes["outcome"].tolist() == ["exhausted", "completed"]
    assert not [note for note in table.report.notes if "not understood" in note]


def test_a_map_of_values_that_means_nothing_is_refused(tmp_path) -> None:
    place = write(tmp_path, OWN)
    for values in ({"outcome": {"x": "splendid"}}, {"ending": {"x": "failed"}}):
        with pytest.raises(InputError, match=r"^map of values: expected"):
            read(place, values=values)
    with pytest.raises(InputError, match=r"FIELD:VALUE=MEANING"):
        parse_values(["outcome=failed"])
