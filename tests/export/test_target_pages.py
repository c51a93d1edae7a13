"""The docs have a page for every target, whose table of settings is the one of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lab.cli import main
from harness_lab.export import TARGETS
from harness_lab.export.pages import knob_table, target_list
from harness_lab.export.schema import FILE, schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", TARGETS)
def test_a_page_says_how_to_load_the_file_and_what_is_lost(name: str) -> None:
    page = (DOCS / "targets" / f"{name}.md").read_text("utf-8")
    assert f"--target {name}" in page
    assert "## How to load it" in page
    assert "## What is lost" in page
    assert "## What is simulated" in page
    assert not TARGETS[name].knobs or knob_table(TARGETS[name]) in page


def test_every_target_stands_in_the_list_of_pages() -> None:
    page = (DOCS / "targets" / "README.md").read_text("utf-8")
    assert [name for name in TARGETS if f"[{name}]({name}.md)" not in page] == []


def test_the_schema_in_the_docs_is_the_one_that_is_shipped() -> None:
    import json

    assert json.loads((DOCS / FILE).read_text("utf-8")) == schema()


def test_the_command_lists_targets_and_the_settings_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in ((["targets"], target_list()), (["targets", "codex"], knob_table(TARGETS["codex"]))):
        with pytest.raises(SystemExit):
            main(arguments)
        assert text in capsys.readouterr().out
