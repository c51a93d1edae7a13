"""The public cases of enforcement and trees: all of them are there, and a changed number is found."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.cli import main
from harness_lab.conformance import run, shipped

ENFORCEMENT = {*range(1, 4), *range(8, 24), *range(25, 29), 34, *range(49, 56), 59}
TREES = {*range(4, 8), 24, *range(29, 34), 35, 37, 38, *range(56, 59)}


def case(name: str) -> dict[str, Any]:
    return copy.deepcopy(next(one for one in shipped("public-cases") if one["id"] == name))


def word(given: dict[str, Any]) -> str:
    return run([given]).results[0].word


def test_every_case_of_enforcement_and_trees_is_there() -> None:
    found = {int(one["id"].split("-")[1]) for one in shipped("public-cases")}
    assert found == ENFORCEMENT | TREES


def test_each_case_says_what_it_is_about_and_has_a_name_of_its_own() -> None:
    cases = shipped("public-cases")
    assert all(one["about"] for one in cases)
    assert len({one["id"] for one in cases}) == len(cases)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("A-05", "limits", [3, 1]),
        ("A-07", "max_concurrent", 3),
        ("A-24", "need", 20),
        ("A-28", "chain", [1000, 4000, 6001]),
        ("A-31", "spawns", 4),
        ("A-32", "stop_at_s", 7),
        ("A-33", "limits", [0, 1, 4]),
        ("A-35", "per_session", 11),
        ("A-37", "limit", 31),
        ("A-49", "budget", 9700),
        ("A-51", "requests", [[200000, 1001], [200001, 1000], [150000, 0], [150000, 0]]),
        ("A-53", "factor_ppm", 250000),
        ("A-55", "zone", "Asia/Tokyo"),
        ("A-56", "limit_s", 2),
        ("A-57", "timeout_s", 16),
        ("A-58", "waits_s", 20000),
        ("A-59", "measured", [10818, 12400]),
    ],
)
def test_a_case_with_another_number_in_it_no_longer_passes(name: str, key: str, value: Any) -> None:
    changed = case(name)
    changed["given"][key] = value
    assert word(changed) == "failed"


def test_they_are_counted_apart_and_each_that_does_not_apply_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps([case("A-14-open"), case("A-25"), case("A-50")]))
    with pytest.raises(SystemExit) as left:
        main(["conformance", "--list", "--json", "--cases", str(file)])
    told = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert told["public-cases"] == {"passed": 1, "deviating": 1, "not_applicable": 1, "failed": 0}
    assert all(row["reason"] for row in told["rows"])
