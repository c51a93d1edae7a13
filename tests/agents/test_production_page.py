"""The page on production is a program that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import run_page

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("production.md")
