"""Damaged files: every reader takes what it can, sets the rest aside, and never stops or drops in silence."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from pathlib import Path

import pandas as pd
import pytest

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
EVIL = [
    b"NaN",
    b"-1",
    b"9" * 400,
    b"1e999",
    b'"',
    b"\x00",
    b"\xff\xfe",
    b"{",
    b"[" * 2_000,
    b"null",
    b"true",
    b"\n",
    b",",
    b"\xed\xa0\x80",
    b'"\\ud800"',
]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return `content` cut, spliced or overwritten at one to four places."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        kind = rng.randrange(4)
        if kind == 0:
            content = content[:to]
        elif kind == 1:
            content = content[:at] + content[min(to, at + 30) :]
        else:
            content = content[:at] + rng.choice(EVIL) + content[at + rng.randrange(4) :]
        content = content or b"x"
    return content


@pytest.mark.parametrize("name", list(SEEDS))
def test_two_thousand_damaged_files_in_folders_never_crash_a_reader_and_none_vanishes(
    tmp_path: Path, name: str
) -> None:
    rng = random.Random(name)  # noqa: S311
    for batch in range(FILES // BATCH):
        folder = tmp_path / str(batch)
        folder.mkdir()
        for number in range(BATCH):
            (folder / f"f{number}-{name}").write_bytes(damaged(SEEDS[name], rng))
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
        (tmp_path / name).write_bytes(damaged(SEEDS[name], rng))
        try:
            table = read(tmp_path / name)
        except InputError as error:
            messages.append(str(error))
            continue
        report = table.report
        assert report.read == report.kept + report.duplicates + len(report.set_aside)
        table.to_parquet(tmp_path / "out.parquet")
    assert not [message for message in messages if "\n" in message]
