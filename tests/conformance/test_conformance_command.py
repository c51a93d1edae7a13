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
