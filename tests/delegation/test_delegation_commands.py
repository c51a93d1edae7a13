"""The commands that verify journals and audit logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.cli import main
from harness_lab.delegation import AuditChainStore, DispatchNode, RunJournal, dispatch_node

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"0123456789abcdef-test"


def _run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("HARNESS_LAB_AUDIT_KEY", KEY.decode())
    journal, chain = RunJournal("run-1", tmp_path), AuditChainStore(tmp_path / "audit")
    for i in range(3):
        dispatch_node(DispatchNode(f"n{i}", "claude", "m", "low", "p", {}), {}, journal=journal, chain=chain)
    (log,) = (tmp_path / "audit").glob("*.jsonl")
    return {"journal": journal, "path": journal.path, "log": log, "folder": tmp_path}


def test_an_intact_journal_is_said_to_be_intact(run: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("journal", "verify", run["path"], "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["intact"], said["identity"], said["count"]) == (True, "unverifiable", 3)
    assert said["unauthenticated_fields"] == ["elapsed_s", "ts"]


def test_a_broken_journal_is_said_to_break_at_its_first_wrong_line(
    run: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run["path"].write_text(run["path"].read_text().replace('"n1"', '"nX"'))
    assert _run("journal", "verify", run["path"]) == 1
    said = capsys.readouterr().out
    assert "step 1: event_hash mismatch" in said
    assert "from line 2 on" in said


def test_a_seal_finds_a_missing_end(run: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    seal = run["folder"] / "seal.json"
    seal.write_text(json.dumps(run["journal"].seal().to_dict()))
    assert _run("journal", "verify", run["path"], "--seal", seal) == 0
    run["path"].write_text("".join(run["path"].read_text().splitlines(keepends=True)[:2]))
    assert _run("journal", "verify", run["path"]) == 0
    assert _run("journal", "verify", run["path"], "--seal", seal, "--json") == 1
    assert '"identity": "mismatched"' in capsys.readouterr().out


def test_an_audit_log_breaks_at_file_and_line(run: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("audit", "verify", run["log"].parent, "--journal", run["path"]) == 0
    assert "3 entries in 1 files: intact" in capsys.readouterr().out
    run["log"].write_text(run["log"].read_text().replace('"node_name": "n2"', '"node_name": "nX"'))
    assert _run("audit", "verify", run["log"], "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["errors"][0].startswith(f"{run['log'].name}:3: HMAC mismatch")


def test_a_log_whose_end_is_missing_disagrees_with_its_journal(
    run: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run["log"].write_text("".join(run["log"].read_text().splitlines(keepends=True)[:2]))
    assert _run("audit", "verify", run["log"]) == 0
    assert _run("audit", "verify", run["log"], "--journal", run["path"]) == 1
    assert "step 2: 'n2' is in the journal and not in the audit log" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["journal", "audit"])
def test_a_file_that_is_not_there_is_misuse_in_one_line(
    run: dict[str, Any], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(command, "verify", run["folder"] / "none.jsonl") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_or_readable_key_is_misuse_in_one_line(
    run: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HARNESS_LAB_AUDIT_KEY")
    assert _run("audit", "verify", run["log"]) == 2
    key = run["folder"] / "key"
    key.write_bytes(KEY + b"\n")
    key.chmod(0o644)
    assert _run("audit", "verify", run["log"], "--key-file", key) == 2
    key.chmod(0o600)
    assert _run("audit", "verify", run["log"], "--key-file", key) == 0
    assert "0600" in capsys.readouterr().err
