"""A config of which a target can express nothing: it is said, nothing is written, and the exit code is 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import run

from harness_lab.export import TARGETS, TunedConfig, export
from harness_lab.export.document import Provenance
from harness_lab.policies import reservation_pool, unlimited

if TYPE_CHECKING:
    from pathlib import Path

NOT_IN_MONEY = ("codex", "openai-agents", "tanstack", "hermes", "langgraph", "crewai")
"""Targets without a setting in dollars."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    provenance = Provenance(date="2026-01-01", harness_lab="0")
    return TunedConfig(reservation_pool(cost_usd=0.5), provenance=provenance).write(tmp_path / "config.json")


@pytest.mark.parametrize("target", NOT_IN_MONEY)
def test_nothing_is_written_unless_asked(config: Path, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = config.parent / "out"
    assert run("export", config, "--target", target, "--out", f"{out}/") == 1
    told = capsys.readouterr().err
    assert f"carries nothing: {TARGETS[target].title} would limit nothing" in told
    assert "nothing was written" in told
    assert not out.exists()
    assert run("export", config, "--target", target, "--out", f"{out}/", "--allow-empty") == 0
    assert any(out.rglob("*"))


def test_as_json_it_says_what_was_lost_and_exits_with_1(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", config, "--target", "langgraph", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["carried"], len(told["losses"])) == ([], 1)


@pytest.mark.parametrize("target", TARGETS)
def test_only_what_is_lost_whole_carries_nothing(target: str) -> None:
    assert export(reservation_pool(cost_usd=0.5), target).carries_nothing == (target in NOT_IN_MONEY)
    assert not export(unlimited(), target).carries_nothing  # there was nothing to carry
