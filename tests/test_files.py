"""Files are written whole or not at all, and never in the place of something that is no file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from harness_lab import files
from harness_lab.cli.app import app
from harness_lab.errors import InputError


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")
    assert files.write_text(place, "new é") == place
    assert place.read_bytes() == "new é".encode()
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_after_an_exception_the_old_file_is_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")
    with pytest.raises(UnicodeEncodeError), files.replacing(place) as beside:
        beside.write_text("half \ud800", encoding="utf-8")
    assert place.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_a_pipe_is_refused_and_stays_a_pipe(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a pipe"):
        files.write_text(a_pipe(tmp_path), "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


def test_a_folder_and_a_socket_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket has to be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        for name, kind in ((".", "a folder"), ("s", "a socket")):
            with pytest.raises(InputError, match=kind):
                files.write_text(name, "text")


def test_a_device_is_refused_before_anything_is_written_beside_it() -> None:
    with pytest.raises(InputError, match="a device"):
        files.target(os.devnull)


def test_a_link_stays_and_the_file_behind_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "a.txt")
    files.write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "a.txt").read_text() == "text"


def test_links_in_a_circle_and_missing_folders_and_nul_bytes_are_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for name in ("a", "nowhere/x", "x\0y", "x" * 300):
        with pytest.raises(InputError, match="expected"):
            files.write_text(tmp_path / name, "text")


def test_every_command_that_writes_a_file_refuses_a_pipe(tmp_path: Path) -> None:
    records = tmp_path / "records.csv"
    pd.DataFrame({"run": ["a", "b"], "cost_usd": [1.0, 2.0]}).to_csv(records, index=False)
    pipe = a_pipe(tmp_path)
    result = CliRunner().invoke(app, ["read", str(records), "--format", "flat", "--out", str(pipe)])
    assert isinstance(result.exception, InputError)
    assert "a pipe" in str(result.exception)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_two_files_of_one_folder_are_written_at_once(tmp_path: Path) -> None:
    with files.replacing(tmp_path / "a") as first, files.replacing(tmp_path / "b") as second:
        first.write_text("1")
        second.write_text("2")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "2"]
