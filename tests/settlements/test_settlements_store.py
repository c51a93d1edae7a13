from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from harness_lab.errors import ReadError
from harness_lab.settlements import SCHEMA_VERSION, Settlements
from harness_lab.settlements.store import VERSION_KEY, calls_path, stored_version

ONE = Settlements.from_columns({"run": "a", "node": ["0"], "output": [5]})


def test_the_schema_version_is_in_the_file(tmp_path) -> None:
    place = ONE.to_parquet(tmp_path / "one.parquet")
    assert stored_version(pq.read_schema(place).metadata) == SCHEMA_VERSION


def test_a_table_of_a_newer_version_is_refused(tmp_path) -> None:
    place = ONE.to_parquet(tmp_path / "one.parquet")
    newer = pq.read_table(place).replace_schema_metadata({VERSION_KEY: b"4"})
    pq.write_table(newer, place)
    with pytest.raises(ReadError, match=r"^schema_version: expected at most 3, got 4.*newer harness_lab"):
        Settlements.from_parquet(place)


def test_a_table_whose_rows_contradict_the_schema_is_refused(tmp_path) -> None:
    place = ONE.to_parquet(tmp_path / "one.parquet")
    stored = pq.read_table(place)
    bad = stored.set_column(stored.schema.get_field_index("output"), "output", [[-5]])
    pq.write_table(bad, place)
    with pytest.raises(ReadError, match=r"nodes\.output: expected at least 0, got -5"):
        Settlements.from_parquet(place)


def test_a_report_that_cannot_be_read_does_not_stop_the_table(tmp_path) -> None:
    place = ONE.to_parquet(tmp_path / "one.parquet")
    pq.write_table(pq.read_table(place).replace_schema_metadata({VERSION_KEY: b"1"}), place)
    assert Settlements.from_parquet(place).report.kept == 1


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path) -> None:
    folder = tmp_path / "year=2026"
    folder.mkdir()
    place = ONE.to_parquet(folder / "one.parquet")
    pd.testing.assert_frame_equal(Settlements.from_parquet(place).nodes, ONE.nodes)


def test_calls_lie_beside_their_nodes(tmp_path) -> None:
    assert calls_path(tmp_path / "runs.parquet") == tmp_path / "runs.calls.parquet"


def test_a_stored_table_of_version_1_is_read_with_what_it_could_not_know_unknown() -> None:
    place = Path(__file__).parent / "stored" / "version-1.parquet"
    assert stored_version(pq.read_schema(place).metadata) == 1
    table = Settlements.from_parquet(place)
    assert table.nodes["schema_version"].tolist() == [SCHEMA_VERSION] * 3
    assert table.nodes[["run", "input_total", "cost_nusd"]].to_numpy(na_value=-1).tolist() == [
        ["a", 110, 1_000],
        ["a", 200, -1],
        ["b", -1, -1],
    ]
    assert table.calls["input_total"].tolist() == [110, 150, 50]
    for new in (table.nodes["placeholder_calls"], table.calls["output_placeholder"], table.calls["output_chars"]):
        assert new.isna().all()


def test_a_stored_table_of_version_2_is_read_and_its_calls_belong_to_the_policy_of_their_run() -> None:
    place = Path(__file__).parent / "stored" / "version-2.parquet"
    assert stored_version(pq.read_schema(place).metadata) == 2
    assert "policy" not in pq.read_schema(calls_path(place)).names
    table = Settlements.from_parquet(place)
    assert table.nodes["schema_version"].tolist() == [SCHEMA_VERSION] * 3
    assert table.nodes["model_usage"].isna().all()
    chosen = table.where(node="1")
    assert chosen.calls[["policy", "scenario"]].drop_duplicates().to_numpy().tolist() == [["p", "base"]]
    assert chosen.calls["output"].tolist() == [3, 4]
