from __future__ import annotations

import importlib
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from harness_lab.settlements import discover

if TYPE_CHECKING:
    from pathlib import Path


def touch(path: Path, *, at: int = 1_772_438_400) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (at, at))


def test_the_usual_places_are_counted_by_name(tmp_path) -> None:
    touch(tmp_path / "home/.claude/projects/p/s.jsonl")
    touch(tmp_path / "home/.claude/projects/p/s/subagents/agent-1.jsonl", at=1_772_524_800)
    touch(tmp_path / "home/.codex/sessions/2026/03/02/rollout-x.jsonl")
    touch(tmp_path / "home/.codex/sessions/notes.txt")
    found = {item.tool: item for item in discover(tmp_path / "home", cwd=tmp_path)}
    assert {tool: item.files for tool, item in found.items()} == {"Claude Code": 2, "Codex CLI": 1}
    assert found["Claude Code"].newest == datetime(2026, 3, 3, 8, tzinfo=UTC)
    assert found["Claude Code"].complete


def test_every_tool_that_is_looked_for_has_a_reader(tmp_path) -> None:
    for place in (".claude/projects/p/s.jsonl", ".codex/sessions/2026/s.jsonl", ".pi/agent/sessions/x/s.jsonl"):
        touch(tmp_path / place)
    touch(tmp_path / ".gemini/tmp/h/chats/session-1.json")
    found = discover(tmp_path, cwd=tmp_path / "empty")
    assert [one.tool for one in found if one.readable] == ["Claude Code", "Codex CLI", "pi", "Gemini CLI"]


def test_a_format_without_a_reader_says_so(tmp_path, monkeypatch) -> None:
    module = importlib.import_module("harness_lab.settlements.discover")
    monkeypatch.setattr(module, "READERS", tuple(one for one in module.READERS if one.name != "pi"))
    touch(tmp_path / "home/.pi/agent/sessions/x/s.jsonl")
    touch(tmp_path / "work/run/a.traj.json")
    pi, mini = discover(tmp_path / "home", cwd=tmp_path / "work")
    assert (pi.readable, pi.command) == (False, "(reader planned)")
    assert (mini.readable, mini.command) == (True, f"harness-lab read {tmp_path / 'work'} --out settlements.parquet")
    assert "floors" in mini.answers
    assert str(mini).startswith(f"mini-SWE-agent: 1 file(s) in {tmp_path / 'work'}, newest 2026-03-02.")


def test_nothing_is_found_where_nothing_is(tmp_path) -> None:
    assert discover(tmp_path, cwd=tmp_path) == []


def test_no_file_is_opened(tmp_path, monkeypatch) -> None:
    touch(tmp_path / ".gemini/tmp/h/chats/session-1.json")
    os.chmod(tmp_path / ".gemini/tmp/h/chats/session-1.json", 0)
    monkeypatch.setattr("builtins.open", lambda *_: pytest.fail("a file was opened"))
    assert [item.tool for item in discover(tmp_path, cwd=tmp_path)] == ["Gemini CLI"]


def test_counting_is_bounded_and_links_are_not_followed(tmp_path, monkeypatch) -> None:
    for number in range(30):
        touch(tmp_path / f".claude/projects/p{number}/s.jsonl")
    (tmp_path / ".claude/projects/loop").symlink_to(tmp_path / ".claude/projects")
    assert discover(tmp_path, cwd=tmp_path)[0].files == 30
    monkeypatch.setattr(sys.modules[discover.__module__], "MAX_ENTRIES", 40)
    (item,) = discover(tmp_path, cwd=tmp_path)
    assert not item.complete
    assert "or more file(s)" in str(item)


def test_environment_variables_name_other_places_unless_a_home_is_given(tmp_path, monkeypatch) -> None:
    touch(tmp_path / "elsewhere/sessions/rollout-x.jsonl")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [item.tool for item in discover(cwd=tmp_path / "elsewhere")] == ["Codex CLI"]
    assert discover(tmp_path, cwd=tmp_path / "elsewhere") == []


def test_hidden_and_dependency_folders_beside_the_work_are_passed_over(tmp_path) -> None:
    touch(tmp_path / "work/.venv/a.traj.json")
    touch(tmp_path / "work/node_modules/a.traj.json")
    assert discover(tmp_path / "home", cwd=tmp_path / "work") == []
