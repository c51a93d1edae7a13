"""A new user's way: from Claude Code's records in a home of one's own to a tuned config, by the README's lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import run

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS = 60


def line(kind: str, at: int, session: str, message: dict[str, object]) -> str:
    stamp = f"2026-09-{1 + at // 86_400:02d}T{at // 3_600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}.000Z"
    frame = {"type": kind, "uuid": f"{session}-{at}", "timestamp": stamp, "sessionId": session, "version": "2.1.120"}
    return json.dumps({**frame, "isSidechain": False, "cwd": "/home/ann/shop", "message": message})


def session(name: str, calls: int, began: int) -> str:
    lines, cached = [line("user", began, name, {"role": "user", "content": "please"})], 0
    for call in range(calls):
        new = 400 if call else 18_000
        usage = {"input_tokens": 9, "cache_read_input_tokens": cached, "cache_creation_input_tokens": new}
        stop = "end_turn" if call == calls - 1 else "tool_use"
        block = {"type": "text", "text": "fine"} if stop == "end_turn" else {"type": "tool_use", "id": f"t{call}"}
        message = {"id": f"{name}-{call}", "model": "claude-sonnet-4-5", "role": "assistant", "stop_reason": stop}
        message |= {"content": [block], "usage": {**usage, "output_tokens": 300}}
        lines.append(line("assistant", began + 20 * call + 5, name, message))
        cached += new
    return "\n".join(lines) + "\n"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".claude" / "projects" / "-home-ann-shop"
    folder.mkdir(parents=True)
    for k in range(SESSIONS):
        name = f"5e551077-0000-4000-8000-{k:012d}"
        (folder / f"{name}.jsonl").write_text(session(name, 2 + k * 7 % 19, k * 9_000))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_records_without_costs_say_what_to_do_about_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("read") == 0
    assert f"Claude Code: {SESSIONS} file(s)" in capsys.readouterr().out
    assert run("read", home / "home" / ".claude" / "projects", "--out", "settlements.parquet") == 0
    assert run("ceiling", "settlements.parquet", "--target", "0.85") == 1
    assert "A ceiling on prompt tokens (channel input) needs none" in " ".join(capsys.readouterr().out.split())
    assert (
        run("ceiling", "settlements.parquet", "--channel", "input", "--target", "0.85", "--write", "config.json") == 0
    )


def test_list_prices_make_a_config_that_reads_back_holds_and_is_exported(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    projects = home / "home" / ".claude" / "projects"
    assert run("read", projects, "--recompute", "--out", "settlements.parquet") == 0
    for command in (["quality"], ["floors"], ["limits"], ["ceiling", "--target", "0.85", "--write", "config.json"]):
        assert run(command[0], "settlements.parquet", *command[1:]) == 0
    assert run("check", "config.json", "--against", "settlements.parquet") == 0
    assert run("export", "config.json", "--target", "claude-code", "--out", "made") == 0
    assert "cost_usd" in (home / "config.json").read_text()
    assert "--max-budget-usd" in " ".join(path.read_text() for path in (home / "made").rglob("*") if path.is_file())
