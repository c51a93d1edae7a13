"""``harness-lab conformance``: counts, a listing, any file of the same shapes, and the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.cli import main
from harness_lab.conformance import run, shipped

if TYPE_CHECKING:
    from pathlib import Path


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["conformance", *arguments])
    out = capsys.readouterr()
    return left.value.code, out.out, out.err


def a_file(folder: Path, cases: Any) -> str:
    file = folder / "mine.json"
    file.write_text(json.dumps(cases))
    return str(file)


def test_the_counts_of_the_package_s_own_cases_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(["--json"], capsys)
    counts = json.loads(out)
    assert counts == run().to_dict()
    assert code == (1 if any(words["failed"] for words in counts.values()) else 0)


def test_a_file_in_which_nothing_fails_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(["--cases", a_file(tmp_path, shipped("delegation"))], capsys)
    assert (code, err) == (0, "")
    assert out.splitlines()[1].split() == ["delegation", "51", "1", "0", "0"]


def test_the_listing_names_what_did_not_pass_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [*shipped("delegation"), {"id": "odd", "area": "nowhere", "given": {}, "when": {}, "then": {"x": 1}}]
    code, out, _ = told(["--list", "--cases", a_file(tmp_path, cases)], capsys)
    assert code == 1
    assert out.splitlines()[-2:] == [
        "delegation  b-ledger-float-drift  deviating: "
        "money is whole nano-dollars: ten charges of 0.1 reach a limit of 1.0",
        "mine  odd  failed: unknown shape: no area of that name",
    ]


@pytest.mark.parametrize("cases", [{}, "none", 3])
def test_a_file_without_a_list_is_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: Any
) -> None:
    code, out, err = told(["--cases", a_file(tmp_path, cases)], capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "expected a JSON list of cases" in err


def test_a_file_that_is_not_there_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(["--cases", str(tmp_path / "none.json")], capsys)
    assert (code, len(err.splitlines())) == (2, 1)


def test_somebody_else_s_limiter_is_asked_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(["--adapter", "check-then-add", "--case", "cost-last-call", "--list"], capsys)
    assert (code, err) == (0, "")
    assert "ruler  cost-last-call  deviating: admitted: 2 instead of 1; refused: 0 instead of 1" in out
    assert "    counter = Counter(max_calls=None, max_tokens=None, max_cost_usd=1.0)" in out


def test_all_that_it_answered_is_printed_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(["--adapter", "check-then-add", "--case", "at-once", "--json"], capsys)
    data = json.loads(out)
    assert data["counts"] == {"ruler": {"passed": 0, "deviating": 1, "not_applicable": 0, "failed": 0}}
    assert (data["adapter"], data["version"], data["rows"][0]["word"]) == ("check-then-add", None, "deviating")


def test_an_adapter_that_breaks_off_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BROKEN, "utf-8")
    code, out, _ = told(["--adapter", f"{file}:Mine", "--case", "limit-of-3", "--list"], capsys)
    assert code == 1
    assert "ruler  limit-of-3  failed: ZeroDivisionError: division by zero" in out


BROKEN = """
from harness_lab.adapters import Adapter

class Mine(Adapter):
    def __init__(self, *, calls=3):
        pass
    def before_call(self, call):
        1 / 0
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--adapter", "no-such"], "adapter: expected one of check-then-add"),
        (["--case", "no-such"], "case: expected the id of a case"),
        (["--case", "at-once", "--cases", "x.json"], "--case: expected --cases or --case, got 'both'"),
        (["--table", "table.md", "--answers", "nowhere"], "nowhere: expected files that conformance --adapter NAME"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = told(arguments, capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_the_table_and_its_pages_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(["--adapter", "check-then-add", "--json"], capsys)
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "mine.json").write_text(out, "utf-8")
    code, _, _ = told(["--table", str(tmp_path / "table.md")], capsys)
    assert code == 0
    assert "| five calls that ask at once under a limit of 3 | 3 | **5** |" in (tmp_path / "table.md").read_text(
        "utf-8"
    )
    assert "### ruler / at-once" in (tmp_path / "conformance" / "check-then-add.md").read_text("utf-8")
