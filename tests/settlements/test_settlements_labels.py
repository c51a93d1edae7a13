from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import read

if TYPE_CHECKING:
    from pathlib import Path


def records(tmp_path: Path) -> Path:
    rows = "run,node,parent,delivered,repo\na,0,,,\na,1,0,,\nb,0,,no,old\nc,0,,,\n"
    (tmp_path / "runs.csv").write_text(rows)
    return tmp_path / "runs.csv"


def labels(tmp_path: Path, text: str) -> Path:
    (tmp_path / "labels.csv").write_text(text)
    return tmp_path / "labels.csv"


def test_a_judgement_goes_to_the_root_and_a_group_to_every_node(tmp_path) -> None:
    given = labels(tmp_path, "run,delivered,score,repo\na,yes,0.5,new\nb,,,\nelsewhere,no,,\n")
    table = read(records(tmp_path), labels=given)
    assert table.nodes["delivered"].tolist() == [True, pd.NA, False, pd.NA]
    assert table.nodes["repo"].tolist() == ["new", "new", "old", pd.NA]
    assert table.nodes["score"].tolist() == [0.5, pd.NA, pd.NA, pd.NA]
    assert table.report.notes[-1] == "labels: 2 of 3 label(s) found their run (3 runs)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,passed\na,1\n", r"labels\.csv:2: expected the columns run and any of delivered"),
        ("delivered\nyes\n", r"labels\.csv:2: expected the columns run"),
        ("run,delivered\na,perhaps\n", r"labels\.csv:2: expected labels of the right type, got .delivered: "),
        ("run,delivered\na,1\na,0\n", r"labels\.csv:3: expected one label for each run, got 'a'"),
        ("run,delivered\na\n", r"labels\.csv:2: expected a row of labels"),
    ],
)
def test_labels_that_do_not_fit_are_an_error_with_their_line(tmp_path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(records(tmp_path), labels=labels(tmp_path, text))


def test_a_labels_file_that_is_missing_is_an_error(tmp_path) -> None:
    with pytest.raises(ReadError, match=r"expected a file or folder that exists"):
        read(records(tmp_path), labels=tmp_path / "none.csv")
    with pytest.raises(ReadError, match=r"expected one labels file, got 'a folder'"):
        read(records(tmp_path), labels=tmp_path)


def test_verdicts_in_other_words_say_whether_it_was_delivered(tmp_path) -> None:
    rows = "run,tests_passed,merged,thumbs,repository\na,yes,yes,up,new\nb,yes,no,,\nc,,,unknown,\n"
    table = read(records(tmp_path), labels=labels(tmp_path, rows))
    assert table.nodes["delivered"].tolist() == [True, pd.NA, False, pd.NA]
    assert table.nodes["repo"].tolist()[:2] == ["new", "new"]
    with pytest.raises(InputError, match=r"labels\.csv:2: expected labels of the right type"):
        read(records(tmp_path), labels=labels(tmp_path, "run,thumbs\na,sideways\n"))


def test_what_is_given_as_delivered_wins_over_verdicts(tmp_path) -> None:
    table = read(records(tmp_path), labels=labels(tmp_path, "run,delivered,merged\na,yes,no\n"))
    assert table.nodes["delivered"].tolist()[0] is True
