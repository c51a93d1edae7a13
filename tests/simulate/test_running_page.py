"""The page on running experiments is a program that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import run_page

if TYPE_CHECKING:
    import pytest


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_page("running.md", quicker=("runs=200", "runs=40"))
    said = capsys.readouterr().out
    for words in ("differs from", "not precise enough after all runs 40", "ceilings on cost", "Run 17 under"):
        assert words in said
    assert "Assumes oblivious agents" in said
