"""Ctrl-C on a simulation: what was done is told, of the same runs under every policy, and the exit code says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import SMALL, run

from harness_lab.simulate.progress import Reporter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an experiment of two blocks of runs which somebody stops after the first, under both policies."""
    advance = Reporter.advance

    def interrupted(reporter: Reporter, trees: int) -> None:
        advance(reporter, trees)
        if reporter._done >= reporter._trees // 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Reporter, "advance", interrupted)
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("runs = 20", "runs = 500"), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_what_was_done_is_told_and_the_exit_code_is_130(
    command: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, file, "--json") == 130
    told = capsys.readouterr()
    manifest = json.loads(told.out)["manifest"]
    assert (manifest["ended"], manifest["runs_done"]) == ("cancelled", 250)
    assert told.err.strip().endswith("stopped before all runs were done; what is told is of the runs that were")


def test_a_sweep_that_is_stopped_tells_what_was_done(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", file, "calls", "--policy", "tight") == 130
    assert "Cancelled after 250 of 500 runs" in capsys.readouterr().out
