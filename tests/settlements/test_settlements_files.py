"""Finding files: what cannot be opened is said, loops end, and many files need no memory."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from harness_lab.errors import ReadError
from harness_lab.settlements import files, read
from harness_lab.settlements.files import HEAD_BYTES, MAX_LINE_BYTES, find, lines


def fill(folder: Path, count: int, size: int) -> Path:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:04d}.csv").write_bytes(b"run,node\n" + b"x,0\n" * (size // 4))
    return folder


def test_many_files_are_found_without_holding_what_they_begin_with(tmp_path) -> None:
    folder = fill(tmp_path / "r", 300, HEAD_BYTES)
    tracemalloc.start()
    found = find([folder])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.files) == 300
    assert peak < 4 * 2**20  # their heads together: 19 MiB
    assert found.files[0].head.startswith(b"run,node\n")
    assert len(found.files[0].head) == HEAD_BYTES


def test_a_file_that_goes_away_after_it_was_found_has_no_head(tmp_path) -> None:
    (file,) = find([fill(tmp_path / "r", 1, 8)]).files
    file.path.unlink()
    assert file.head == b""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may read everything")
def test_a_file_that_may_not_be_read_is_set_aside_in_a_folder_and_an_error_alone(tmp_path) -> None:
    folder = fill(tmp_path / "r", 2, 8)
    (folder / "0001.csv").chmod(0)
    assert "Permission denied" in read(folder).report.set_aside[0].reason
    with pytest.raises(ReadError, match=r"^0001\.csv: expected a file that can be opened, got 'Permission denied'"):
        read(folder / "0001.csv")


def test_links_that_lead_in_circles_or_nowhere_end(tmp_path) -> None:
    folder = fill(tmp_path / "r", 1, 8)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    (folder / "gone").symlink_to(folder / "nowhere")
    (folder / "again.csv").symlink_to(folder / "0000.csv")
    found = find([folder, folder / "up" / "r"])
    assert [file.path.name for file in found.files] == ["0000.csv"]
    assert len(found.unreadable) == 6  # each broken link, once from each of the two paths


@pytest.mark.parametrize("size", [MAX_LINE_BYTES + 1, pytest.param(2**30, marks=pytest.mark.slow)])
def test_a_line_without_end_is_passed_over_in_bounded_memory(tmp_path, size: int) -> None:
    place = tmp_path / "long.jsonl"
    with place.open("wb") as file:
        file.write(b"first\n")
        for _ in range(0, size, 2**20):
            file.write(b"x" * 2**20)
        file.write(b"\nlast\n")
    tracemalloc.start()
    found = [(number, None if line is None else line[:5]) for number, line in lines(place)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [(1, b"first"), (2, None), (3, b"last")]
    assert peak < 3 * MAX_LINE_BYTES


def test_folders_of_code_and_source_files_are_passed_over_unless_they_are_named(tmp_path) -> None:
    for inside in (".git", ".venv/lib", "node_modules", "__pycache__", "runs"):
        fill(tmp_path / "work" / inside, 1, 8)
    source = tmp_path / "work" / "make.py"
    source.write_text("x = 1\n")
    assert [file.name for file in find([tmp_path / "work"]).files] == ["work/runs/0000.csv"]
    assert len(find([tmp_path / "work" / ".venv", source]).files) == 2


def test_a_small_packed_file_does_not_become_an_endless_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MIN_TOTAL", 2**20)
    good = b'{"run": "a", "node": "0"}\n'
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(good + b" \n" * 2**24))
    report = read(tmp_path).report
    assert report.kept == 1
    (aside,) = report.set_aside
    assert "unpacks to more than" in aside.reason


def test_packed_records_are_read_as_they_were(tmp_path) -> None:
    rows = b"".join(b'{"run": "r%d", "node": "0"}\n' % number for number in range(5_000))
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(rows[:40_000]) + gzip.compress(rows[40_000:]))
    assert len(read(tmp_path / "rows.jsonl.gz")) == 5_000
