"""The table of what a limit means is that of the answers that are stored, and those are today's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lab.adapters import found_version, named, names
from harness_lab.conformance import run_adapter, shipped
from harness_lab.conformance.answers import read_answers
from harness_lab.conformance.table import page, table
from harness_lab.errors import ReadError

DOCS = Path(__file__).parents[2] / "docs"
STORED = DOCS / "conformance"
PINS = ("peers/agents.txt", "peers/bernstein.txt", "agents/hermes.txt")
STALE = "stale: docs/conformance/refresh writes it anew"


def test_the_table_is_that_of_the_stored_answers() -> None:
    assert table(read_answers(STORED)) == (DOCS / "conformance-table.md").read_text("utf-8"), STALE


def test_so_is_every_page() -> None:
    for report in read_answers(STORED):
        assert page(report) == (STORED / f"{report.adapter}.md").read_text("utf-8"), STALE


def test_every_adapter_has_answers_to_every_case_and_no_failure() -> None:
    stored = {report.adapter: report for report in read_answers(STORED)}
    assert set(stored) == set(names()), STALE
    assert sum(bool(report.version) for report in stored.values()) >= 6
    for report in stored.values():
        areas = ("ruler", "public-cases", *named(report.adapter).areas)
        asked = [one["id"] for area in areas for one in shipped(area)]
        assert [result.id for result in report.results] == asked, STALE
        assert not report.failed, report.adapter


def test_the_versions_are_those_that_the_peers_are_pinned_to() -> None:
    pins = "\n".join((DOCS.parent / "tests" / name).read_text("utf-8") for name in PINS)
    for report in read_answers(STORED):
        if report.package not in ("", "prism-ai-harness"):  # that one is installed with the development tools
            assert f"\n{report.package}=={report.version}\n" in f"\n{pins}\n", (report.adapter, STALE)


def test_every_deviation_has_a_scenario() -> None:
    for report in read_answers(STORED):
        for result in report.results:
            assert bool(result.scenario) == (result.word == "deviating"), (report.adapter, result.id)


@pytest.mark.parametrize("name", ["check-then-add", "prism-ai-harness"])
def test_what_can_be_asked_here_answers_as_it_is_stored(name: str) -> None:
    adapter = named(name)
    stored = json.loads((STORED / f"{name}.json").read_text("utf-8"))
    if found_version(adapter) != stored["version"]:
        pytest.skip(f"{adapter.package} is not installed as {stored['version']}")
    assert json.loads(json.dumps(run_adapter(adapter).to_data())) == stored, STALE


def test_a_folder_without_answers_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="files that conformance --adapter NAME --json printed, got 'no JSON file'"):
        read_answers(tmp_path)
    (tmp_path / "x.json").write_text("[]", "utf-8")
    with pytest.raises(ReadError, match="what conformance --adapter NAME --json prints, got 'TypeError"):
        read_answers(tmp_path)
