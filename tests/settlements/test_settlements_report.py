from __future__ import annotations

import json

from harness_lab.settlements import ReadReport, SetAside

REPORT = ReadReport(
    files=2,
    read=10,
    kept=6,
    set_aside=(
        SetAside("a.csv", 3, "output: should be greater than or equal to 0, got -5"),
        SetAside("a.csv", 9, "output: should be greater than or equal to 0, got -7"),
        SetAside("b.csv", None, "4 fields where the header has 12; cut short?"),
    ),
    duplicates=1,
    notes=("3 file(s) of other kinds were left alone: x",),
)


def test_the_summary_counts_groups_and_shows_where() -> None:
    text = REPORT.summary(examples=1)
    assert text.startswith("2 file(s); 10 record(s) read, 6 kept, 3 set aside, 1 duplicate(s)\n")
    assert "set aside 2 x output: should be greater than or equal to 0" in text
    assert "a.csv:3: output: should be greater than or equal to 0, got -5" in text
    assert "... and 2 more, in report.set_aside" in text
    assert "note: 3 file(s) of other kinds" in text


def test_reasons_differ_by_kind_and_not_by_figure() -> None:
    assert list(REPORT.reasons().values()) == [2, 1]
    assert "N fields where the header has N; cut short?" in REPORT.reasons()


def test_a_report_survives_json() -> None:
    assert ReadReport.from_dict(json.loads(json.dumps(REPORT.to_dict()))) == REPORT


def test_reports_add_up_and_a_note_is_said_once() -> None:
    both = ReadReport.merge([REPORT, REPORT])
    assert (both.files, both.read, both.kept, len(both.set_aside), both.duplicates) == (4, 20, 12, 6, 2)
    assert both.notes == REPORT.notes


def test_a_record_that_is_a_whole_file_has_no_line() -> None:
    assert str(REPORT.set_aside[2]) == "b.csv: 4 fields where the header has 12; cut short?"
