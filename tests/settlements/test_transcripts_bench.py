"""The benchmark of reading transcripts: its made-up files, and memory that follows the calls, not the bytes."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from harness_lab.bench.records import records_memory, records_speed
from harness_lab.bench.transcripts import write_transcripts
from harness_lab.settlements.files import find
from harness_lab.settlements.readers import ReadOptions
from harness_lab.settlements.readers.claude_code import ClaudeCodeReader


def peak(folder: Path) -> tuple[int, int]:
    """Return the peak of what reading a folder takes, bytes, and the calls read."""
    files = find([folder]).files
    tracemalloc.start()
    output = ClaudeCodeReader().read(files, ReadOptions())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most, len(output.calls.frame())


def test_made_up_transcripts_are_read_whole(tmp_path: Path) -> None:
    calls = write_transcripts(tmp_path, size_mb=1)
    output = ClaudeCodeReader().read(find([tmp_path]).files, ReadOptions())
    assert len(output.calls.frame()) == calls
    assert not output.set_aside


def test_the_same_seed_makes_the_same_transcripts(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_transcripts(tmp_path / name, size_mb=0.2, seed=seed)
    a, b, c = ([path.read_bytes() for path in sorted((tmp_path / name).rglob("*.jsonl"))] for name in "abc")
    assert a == b != c


def test_memory_follows_the_calls_and_not_the_size_of_the_texts(tmp_path: Path) -> None:
    write_transcripts(tmp_path / "thin", size_mb=2)
    for path in (tmp_path / "thin").rglob("*.jsonl"):  # the same calls, with ten times the text
        longer = []
        for line in path.read_text().splitlines():
            told = json.loads(line)
            if "toolUseResult" in told:
                told["toolUseResult"]["stdout"] = "x" * 60_000
            longer.append(json.dumps(told, separators=(",", ":")))
        fat = tmp_path / "fat" / path.name
        fat.parent.mkdir(exist_ok=True)
        fat.write_text("\n".join(longer) + "\n")
    (thin, calls), (thick, same) = peak(tmp_path / "thin"), peak(tmp_path / "fat")
    size = sum(path.stat().st_size for path in (tmp_path / "fat").iterdir())
    assert calls == same
    assert size > 15 * 2**20
    assert thick < thin + 2**20


def test_a_call_takes_less_than_two_kilobytes(tmp_path: Path) -> None:
    write_transcripts(tmp_path / "small", size_mb=2)
    write_transcripts(tmp_path / "large", size_mb=8)
    (small, few), (large, many) = peak(tmp_path / "small"), peak(tmp_path / "large")
    assert (large - small) / (many - few) < 2_048


@pytest.mark.slow
def test_the_benchmark_gives_figures() -> None:
    found = records_speed(quick=True)
    assert found["value"] > 10  # type: ignore[operator]
    assert found["same_tokens"] in (None, True)
    assert records_memory(size_mb=32)["share_of_input"] < 0.2  # type: ignore[operator]
