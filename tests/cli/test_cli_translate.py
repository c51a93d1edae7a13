"""Limits of one system become a file for another from the command line, read back from where it was written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.cli import main

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["translate", *map(str, arguments)])
    return int(ended.value.code or 0)


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    file = tmp_path / "limits.toml"
    file.write_text("recursion_limit = 25\n")
    return file


def test_a_graphs_limit_becomes_options_of_an_sdk_with_the_share_that_is_treated_differently(
    limits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--from", "langgraph", "--to", "claude-agent-sdk", limits, "--runs", 20) == 0
    told = capsys.readouterr().out
    assert "'max_turns': 12" in told
    assert "on deep-research, 20 runs, seed 0" in told
    assert "(95 %, n = 20, Wilson)" in told


def test_files_are_written_and_read_back_from_where_they_are(limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = limits.parent / "project"
    arguments = ("--from", "langgraph", "--to", "claude-code", limits, "--agent", "searcher", "--runs", 10)
    assert run(*arguments, "--out", folder) == 0
    told = capsys.readouterr()
    assert (folder / "claude-flags.txt").read_text() == "--max-turns 12\n"
    assert "maxTurns: 12" in (folder / ".claude/agents/searcher.md").read_text()
    assert "read back: the same limits" in told.err
    assert "Treated differently: 0 " in told.out


def test_what_was_written_is_a_source_again(limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = limits.parent / "project"
    run("--from", "langgraph", "--to", "claude-code", limits, "--agent", "searcher", "--runs", 5, "--out", folder)
    capsys.readouterr()
    assert run("--from", "claude-code", "--to", "openai-agents", folder, "--runs", 5, "--json") == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert data["said"]["--max-turns"] == 12
    assert "MAX_TURNS_AS_TOOL = {'searcher': 12}" in data["files"]["run_limits.py"]


def test_json_has_every_figure_with_its_interval(limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--from", "langgraph", "--to", "litellm", limits, "--runs", 10, "--workload", "coding-agent", "--json")
    assert run(*arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["treated_differently"]["n"] == 10
    assert set(data["kinds"]) == {"ended earlier", "ended later", "start refused", "start let in", "waits otherwise"}
    assert {"cannot_be_said", "stands_in", "in_vain", "not_simulated", "target_defaults", "wrote"} <= set(data)


def test_a_graph_of_other_steps_is_another_count(limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--from", "langgraph", "--to", "openai-agents", limits, "--graph-steps", "6+4", "--runs", 2)
    assert run(*arguments) == 0
    assert "'max_turns': 4" in capsys.readouterr().out


def test_a_pipe_and_a_file_in_the_way_are_refused_in_one_line(limits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(limits.parent / "pipe")
    for out in (limits.parent / "pipe", limits / "below" / "limits.py"):
        assert run("--from", "langgraph", "--to", "openai-agents", limits, "--runs", 1, "--out", out) == 2
        told = capsys.readouterr().err
        assert "expected a" in told
        assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("--from", "fax", "--to", "litellm"), "--from: expected one of claude-code, codex"),
        (("--from", "langgraph", "--to", "fax"), "--to: expected one of claude-code, codex"),
        (("--from", "prism", "--to", "litellm"), "got 'recursion_limit'"),
        (
            ("--from", "langgraph", "--to", "litellm", "--workload", "nowhere"),
            "expected a file, or one of coding-agent",
        ),
        (("--from", "langgraph", "--to", "litellm", "--form", "php"), "form of litellm: expected one of json"),
        (("--from", "langgraph", "--to", "litellm", "--graph-steps", "many"), "BASE+EACH"),
    ],
)
def test_misuse_is_one_line(
    limits: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], match: str
) -> None:
    assert run(*arguments, limits, "--runs", 2) == 2
    told = capsys.readouterr().err
    assert match in told
    assert told.count("\n") == 1


def test_limits_that_cannot_be_said_at_all_are_not_written_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, written = tmp_path / "limits.toml", tmp_path / "config.py"
    place.write_text("max_cost_usd = 100000\n", encoding="utf-8")  # never reached, so nothing stands in for it
    arguments = ("--from", "prism", "--to", "langgraph", place, "--workload", "coding-agent", "--runs", 3)
    code = run(*arguments, "--out", written)
    told = capsys.readouterr()
    assert (code, written.exists()) == (1, False)
    assert "nothing can be said to LangGraph" in told.out
    assert "bound in 0 of 3 runs" in told.out
    assert "nothing was written: the file would limit nothing there" in told.err
    assert run(*arguments, "--out", written, "--allow-empty") == 0
    assert written.read_text("utf-8").strip().endswith("{}")
