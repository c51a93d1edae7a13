from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import formats, read


def csv(path: Path, *rows: str, header: str = "run,node,output") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_files_and_folders_are_read_together_each_file_once(tmp_path) -> None:
    inside = csv(tmp_path / "a" / "b" / "one.csv", "x,0,5")
    csv(tmp_path / "a" / "two.csv", "y,0,6")
    table = read([tmp_path / "a", inside])
    assert sorted(table.nodes["run"]) == ["x", "y"]
    assert (table.report.files, table.report.duplicates) == (2, 0)
    assert table.nodes["source"].tolist() == ["a/two.csv", "a/b/one.csv"]


def test_files_of_other_kinds_in_a_folder_are_left_alone_and_counted(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5")
    (tmp_path / "notes.md").write_text("# notes")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00")
    (note,) = read(tmp_path).report.notes
    assert note.startswith("2 file(s) of other kinds were left alone: ")
    assert note.endswith("notes.md, " + f"{tmp_path.name}/picture.png")


def test_the_same_records_in_two_files_count_once(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5", "y,0,6")
    csv(tmp_path / "copy.csv", "x,0,5", "y,0,6")
    table = read(tmp_path)
    assert (table.report.read, table.report.kept, table.report.duplicates) == (4, 2, 2)


def test_two_runs_of_one_name_in_two_files_stay_apart(tmp_path) -> None:
    csv(tmp_path / "a.csv", "x,0,5", "x,1,6")
    csv(tmp_path / "b.csv", "x,0,7", "x,1,8")
    table = read(tmp_path)
    assert table.nodes[["run", "output"]].to_numpy().tolist() == [["x", 5], ["x", 6], ["x~2", 7], ["x~2", 8]]
    assert table.report.notes == ("1 run(s) share their name with another file's run; renamed to NAME~2 and so on",)


@pytest.mark.parametrize("path", ["no/such/file.csv", "", "x\0y"])
def test_a_path_that_does_not_exist_is_an_error(path: str) -> None:
    with pytest.raises(ReadError, match=r"expected a (file or folder that exists|file)|expected records"):
        read(Path(path) / "nothing-here")


def test_a_folder_without_records_is_an_error_that_lists_the_formats(tmp_path) -> None:
    (tmp_path / "notes.md").write_text("# notes")
    with pytest.raises(ReadError, match=r"expected records: .*mini-SWE-agent trajectory.*CSV.*got 'no records'"):
        read(tmp_path)


def test_an_unknown_format_or_preset_is_an_error_that_lists_those_there_are(tmp_path) -> None:
    place = csv(tmp_path / "one.csv", "x,0,5")
    with pytest.raises(InputError, match=rf"^format: expected auto or one of {', '.join(formats())}, got 'xml'"):
        read(place, format="xml")
    with pytest.raises(InputError, match=r"^columns: expected a column map or one of .*mini-swe-agent-runs"):
        read(place, columns="mine")
    with pytest.raises(InputError, match=r"^columns: expected no column map"):
        read(place, format="mini-swe-agent", columns={"run": "run"})
    assert {"mini-swe-agent", "flat"} <= set(formats())


def test_a_loop_of_links_ends(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.csv").symlink_to(tmp_path / "self.csv")
    table = read(tmp_path)
    assert table.nodes["run"].tolist() == ["x"]
    (item,) = table.report.set_aside
    assert item.reason.startswith("cannot be opened: Too many levels of symbolic links")


def test_a_pipe_is_never_opened(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5")
    os.mkfifo(tmp_path / "pipe.csv")
    assert read(tmp_path).report.set_aside[0].reason == "cannot be opened: not a regular file"
    with pytest.raises(ReadError, match=r"^pipe\.csv: expected a file that can be opened"):
        read(tmp_path / "pipe.csv")


def test_a_broken_table_in_a_folder_is_set_aside_and_named_alone_an_error(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    columns = {"run": "run", "output": "output"}
    (item,) = read(tmp_path, columns=columns).report.set_aside
    assert item.reason.startswith("cannot be read as a table:")
    with pytest.raises(ReadError, match=r"^bad\.parquet: expected"):
        read(tmp_path / "bad.parquet", columns=columns)


def test_what_was_read_is_kept_or_set_aside_or_a_duplicate(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5", "x,0,5", "y,0,-1", "z,0", "x,0,9")
    (tmp_path / "bad.traj.json").write_text("{")
    report = read(tmp_path).report
    assert report.read == 6
    assert report.read == report.kept + report.duplicates + len(report.set_aside)


def test_no_home_directory_gets_into_the_table(tmp_path, monkeypatch) -> None:
    csv(tmp_path / "work" / "one.csv", "x,0,5")
    monkeypatch.chdir(tmp_path / "work")
    assert read(".").nodes["source"].tolist() == ["work/one.csv"]
    assert read(tmp_path / "work" / "one.csv").nodes["source"].tolist() == ["one.csv"]


def test_reading_the_same_files_twice_gives_the_same_table(tmp_path) -> None:
    for number in range(5):
        csv(tmp_path / f"{number}.csv", *(f"r{number}-{row},0,{row}" for row in range(20)))
    assert read(tmp_path).nodes.equals(read(tmp_path).nodes)


def test_reading_loads_no_matplotlib() -> None:
    code = "import sys, harness_lab.settlements; print('matplotlib' in sys.modules, 'scipy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_a_json_file_that_only_looks_like_a_record_is_left_alone(tmp_path) -> None:
    csv(tmp_path / "one.csv", "x,0,5")
    (tmp_path / "package.json").write_text(json.dumps({"name": "x", "info": {}}))
    assert read(tmp_path).report.files == 1
