"""Damaged files: every reader takes what it can, sets the rest aside, and never stops or drops in silence."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from damage import damaged

from harness_lab.errors import InputError
from harness_lab.settlements import Settlements, read

FILES = 2_000
BATCH = 50
LINES = ["run,node,outcome,input_total,cache_read,output,cost_usd,start"]
LINES += [f"r{number},0,completed,{100 * number},{number},7,0.5,2026-03-02T08:00:00Z" for number in range(1, 12)]
ROWS = [{"run": f"r{number}", "node": "0", "output": number, "usage_known": True} for number in range(8)]
TRAJECTORY = {
    "info": {"exit_status": "Submitted", "model_stats": {"instance_cost": 0.5, "api_calls": 1}, "mini_version": "2"},
    "messages": [
        {"extra": {"response": {"model": "m", "created": 5, "usage": {"prompt_tokens": 3, "completion_tokens": 2}}}}
    ],
    "instance_id": "x",
}


def parquet(*, ours: bool) -> bytes:
    """Return a small table as Parquet bytes, written by us or by somebody else."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "t.parquet"
        if ours:
            Settlements.from_columns(pd.DataFrame(ROWS)).to_parquet(place)
        else:
            pd.DataFrame(ROWS).to_parquet(place)
        return place.read_bytes()


SEEDS = {
    "packed.jsonl.gz": gzip.compress("\n".join(map(json.dumps, ROWS)).encode()),
    "own.parquet": parquet(ours=True),
    "other.parquet": parquet(ours=False),
    "table.csv": "\n".join(LINES).encode(),
    "log.jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "one.traj.json": json.dumps(TRAJECTORY).encode(),
}


@pytest.mark.parametrize("name", list(SEEDS))
def test_two_thousand_damaged_files_in_folders_never_crash_a_reader_and_none_vanishes(
    tmp_path: Path, name: str
) -> None:
    rng = random.Random(name)  # noqa: S311
    for batch in range(FILES // BATCH):
        folder = tmp_path / str(batch)
        folder.mkdir()
        for number in range(BATCH):
            (folder / f"f{number}-{name}").write_bytes(damaged(SEEDS[name], rng, exchange=False))
        (folder / "good.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
        table = read(folder, ids="kept")
        report = table.report
        assert report.read == report.kept + report.duplicates + len(report.set_aside)
        mentioned = {*table.nodes["source"], *(item.file for item in report.set_aside)}
        lost = [file for file in folder.iterdir() if f"{batch}/{file.name}" not in mentioned]
        told = report.duplicates + sum(int(note.split()[0]) for note in report.notes if "were left alone" in note)
        own = int(table.nodes["source"].isna().any())  # a table of ours keeps the sources it has, and this one has none
        assert len(lost) <= told + own


@pytest.mark.parametrize("name", list(SEEDS))
def test_a_damaged_file_that_is_named_is_read_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)  # noqa: S311
    messages: list[str] = []
    for _ in range(40):
        (tmp_path / name).write_bytes(damaged(SEEDS[name], rng, exchange=False))
        try:
            table = read(tmp_path / name)
        except InputError as error:
            messages.append(str(error))
            continue
        report = table.report
        assert report.read == report.kept + report.duplicates + len(report.set_aside)
        table.to_parquet(tmp_path / "out.parquet")
    assert not [message for message in messages if "\n" in message]


def test_a_parquet_file_that_holds_fewer_rows_than_it_says_is_told(tmp_path: Path) -> None:
    place = tmp_path / "short.parquet"
    place.write_bytes(parquet(ours=False))
    with pq.ParquetFile(place) as file:
        column = file.metadata.row_group(0).column(3)
    content = bytearray(place.read_bytes())
    content[column.data_page_offset : column.data_page_offset + column.total_compressed_size] = bytes(
        column.total_compressed_size
    )
    place.write_bytes(bytes(content))
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps(ROWS[0]) + "\n")
    table = read(tmp_path, ids="kept")
    assert [item.file for item in table.report.set_aside] == [f"{tmp_path.name}/short.parquet"]
