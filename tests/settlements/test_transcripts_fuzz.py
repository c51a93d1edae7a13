"""Damaged transcripts: every reader takes what it can, sets the rest aside, and never stops or drops in silence."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from damage import damaged

from harness_lab.errors import InputError
from harness_lab.settlements import read
from harness_lab.settlements.files import MAX_LINE_BYTES, RecordFile, find
from harness_lab.settlements.readers import READERS, Reader, ReadOptions
from harness_lab.settlements.readers.claude_lines import Transcripts
from harness_lab.settlements.readers.json_lines import MAX_ASIDE

FILES = 2_000
BATCH = 50
MARKS = (b'"usage"', b'"token_count"', b'"tokens"', b'"assistant"', b'"gemini"')
STAMP = "2026-05-01T10:00:00.000Z"
USED = {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 40, "output_tokens": 5}
USED |= {"cache_creation": {"ephemeral_1h_input_tokens": 7, "ephemeral_5m_input_tokens": 33}}  # type: ignore[dict-item]


def claude() -> list[dict[str, Any]]:
    fixed = {"sessionId": "s@", "version": "2.1.20", "isSidechain": False, "timestamp": STAMP, "cwd": "/w"}
    text = {"type": "text", "text": "one two"}
    message = {"id": "m1@", "model": "claude-x", "role": "assistant", "content": [text], "stop_reason": None}
    answer = {**fixed, "type": "assistant", "requestId": "r1", "message": {**message, "usage": USED}, "uuid": "u2"}
    inner = {"type": "assistant", "message": {**message, "id": "m3@", "usage": USED}, "timestamp": STAMP}
    told = {"type": "agent_progress", "agentId": "a1@", "message": inner}
    finished = {"status": "completed", "agentId": "a1@", "usage": USED, "totalTokens": 9}
    prompt = {**fixed, "type": "user", "parentUuid": None, "message": {"role": "user", "content": "go"}}
    return [
        prompt,
        answer,
        {**answer, "message": {**message, "stop_reason": "end_turn", "usage": {**USED, "output_tokens": 80}}},
        {**answer, "isSidechain": True, "uuid": "u4", "parentUuid": "u3", "costUSD": 0.25},
        {**fixed, "type": "progress", "data": told},
        {**prompt, "message": {"content": [{"type": "tool_result"}]}, "toolUseResult": finished},
        {**fixed, "type": "system", "subtype": "api_error"},
    ]


def codex() -> list[dict[str, Any]]:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        stamp = STAMP if kind == "session_meta" else "2026-05-01T10:00:30.000Z"
        return {"timestamp": stamp, "type": kind, "payload": payload}

    used = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4}
    info = {"total_token_usage": {**used, "total_tokens": 109}, "last_token_usage": {**used, "total_tokens": 109}}
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "agent_role": "x"}}}
    return [
        line("session_meta", id="s@", forked_from_id="p", source=spawn, base_instructions={"text": "t"}),
        line("turn_context", model="gpt"),
        line("event_msg", type="user_message"),
        line("response_item", type="function_call"),
        line("event_msg", type="token_count", info=info),
        line("event_msg", type="error", codex_error_info={"usage_limit_exceeded": {}}),
        line("event_msg", type="turn_aborted", reason="interrupted"),
    ]


def pi() -> list[dict[str, Any]]:
    usage = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 4, "totalTokens": 109, "cost": {"total": 0.5}}
    told = {"role": "assistant", "model": "m", "provider": "p", "usage": usage, "stopReason": "stop", "content": []}
    entry = {"type": "message", "id": "e1@", "timestamp": STAMP}
    return [
        {"type": "session", "version": 3, "id": "s@", "timestamp": STAMP, "cwd": "/w"},
        {**entry, "message": {"role": "user", "content": "go", "timestamp": 1_777_000_000_000}},
        {**entry, "message": told},
        {**entry, "id": "e2@", "message": {**told, "stopReason": "error", "errorMessage": "429"}},
    ]


def gemini() -> list[dict[str, Any]]:
    used = {"input": 100, "output": 5, "cached": 60, "thoughts": 3, "tool": 1, "total": 109}
    told = {"id": "m1@", "timestamp": STAMP, "type": "gemini", "content": "x", "tokens": used, "model": "gemini-x"}
    return [
        {"sessionId": "s@", "projectHash": "00", "startTime": STAMP, "kind": "main"},
        {"id": "m0", "timestamp": STAMP, "type": "user", "content": "go"},
        told,
        {**told, "toolCalls": [{"name": "t"}]},
        {"$set": {"messages": [told]}},
        {"id": "m2", "timestamp": STAMP, "type": "error", "content": "quota"},
    ]


def stream() -> list[dict[str, Any]]:
    model = {"inputTokens": 4, "outputTokens": 5, "cacheReadInputTokens": 7, "cacheCreationInputTokens": 9}
    told = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "duration_ms": 5}
    told |= {"total_cost_usd": 0.5, "usage": USED, "modelUsage": {"m": model}, "session_id": "s@"}
    message = {"id": "m1@", "model": "x", "usage": USED}
    return [
        {"type": "system", "subtype": "init", "session_id": "s@", "tools": ["Bash"], "cwd": "/w"},
        {"type": "assistant", "session_id": "s@", "message": message},
        told,
    ]


def events() -> list[dict[str, Any]]:
    used = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4}
    failed = {"type": "turn.failed", "error": {"message": "usage limit"}}
    return [{"type": "thread.started", "thread_id": "s@"}, {"type": "turn.completed", "usage": used}, failed]


LOG = b"OpenAI Codex v0.60.1\n--------\nmodel: gpt-5\nsession id: s@\n--------\nuser\nhi\ntokens used\n535,917\n"


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records).encode()


SEEDS = {
    "claude-code": lines(*claude()),
    "codex": lines(*codex()),
    "pi": lines(*pi()),
    "gemini-cli": lines(*gemini()),
    "gemini-cli document": json.dumps({**gemini()[0], "messages": gemini()[1:]}).encode(),
    "claude-result": lines(*stream()),
    "claude-result document": json.dumps(stream()[-1], indent=1).encode(),
    "codex-exec": lines(*events()),
    "codex-exec log": LOG,
}


@pytest.mark.parametrize("seed", list(SEEDS))
def test_damaged_transcripts_never_crash_a_reader_and_nothing_is_dropped(tmp_path: Path, seed: str) -> None:
    rng = random.Random(seed)  # noqa: S311
    reader = next(one for one in READERS if one.name == seed.partition(" ")[0])
    for batch in range(FILES // BATCH):
        folder = tmp_path / str(batch)
        folder.mkdir()
        for number in range(BATCH):  # every file has ids of its own, so that none hides another
            content = damaged(SEEDS[seed], rng).replace(b"@", f"-{batch}-{number}".encode())
            (folder / f"{number}.jsonl").write_bytes(content)
        options = ReadOptions(unit=rng.choice([None, "turn"]), placeholders=rng.choice(["recorded", "estimated"]))
        files = find([folder]).files
        output = reader.read(files, options)
        nodes, calls = output.nodes.frame(), output.calls.frame()
        assert output.read == len(nodes) + len(output.set_aside)
        assert set(calls["run"]) <= set(nodes["run"])
        met = {*nodes["source"], *calls["source"], *(item.file for item in output.set_aside)}
        for file in files:
            assert file.name in met or _told(reader, file, options), file.path.read_bytes()


def test_lines_that_are_decoded_fast_and_lines_that_are_parsed_leniently_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)  # noqa: S311
    for number in range(400):
        content = damaged(SEEDS["claude-code"] * rng.randint(1, 2), rng).replace(b"@", f"-{number}".encode())
        (tmp_path / f"{number}.jsonl").write_bytes(content)
    with monkeypatch.context() as slow:
        slow.setattr(Transcripts, "answer", lambda *_: False)
        aside = {item.file for item in read(tmp_path, format="claude-code", ids="kept").report.set_aside}
        for path in tmp_path.iterdir():  # fast decoding passes over broken text that nobody needs, and takes more
            if f"{tmp_path.name}/{path.name}" in aside:
                path.unlink()
        lenient = read(tmp_path, format="claude-code", ids="kept")
    fast = read(tmp_path, format="claude-code", ids="kept")
    assert len(fast) > 100
    pd.testing.assert_frame_equal(fast.nodes, lenient.nodes)
    assert fast.calls is not None
    assert lenient.calls is not None
    pd.testing.assert_frame_equal(fast.calls, lenient.calls)


def _told(reader: Reader, file: RecordFile, options: ReadOptions) -> bool:
    """Whether a file of which nothing was taken or set aside is told of in a note, or has no figures left at all."""
    lines = [line for line in file.path.read_bytes().split(b"\n") if line.strip()[:1] == b"{"]
    bare = not any(mark in line for line in lines for mark in MARKS)
    return bare or bool(reader.read([file], options).notes)


@pytest.mark.parametrize("seed", list(SEEDS))
def test_damaged_transcripts_are_read_to_a_table_that_can_be_stored(tmp_path: Path, seed: str) -> None:
    rng = random.Random(seed)  # noqa: S311
    path, messages = tmp_path / "file.jsonl", []
    for _ in range(30):
        path.write_bytes(damaged(SEEDS[seed], rng))
        try:
            table = read(path)
        except InputError as error:
            messages.append(str(error))
            continue
        report = table.report
        assert report.read == report.kept + report.duplicates + len(report.set_aside)
        table.to_parquet(tmp_path / "out.parquet")
    assert not [message for message in messages if "\n" in message]


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "gemini-cli", "claude-result", "codex-exec"])
def test_a_line_of_any_length_is_passed_over_in_bounded_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.jsonl"
    with path.open("wb") as file:
        file.write(SEEDS[name])
        file.write(b'{"type":"assistant","x":"')
        for _ in range(6):
            file.write(b"A" * MAX_LINE_BYTES)
        file.write(b'"}\n')
    tracemalloc.start()
    table = read(path, format=name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * MAX_LINE_BYTES
    assert len(table)


def test_a_file_of_nothing_but_bad_lines_keeps_a_bounded_report(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(SEEDS["claude-code"] + b"{broken\n" * 5_000)
    report = read(path).report
    assert len(report.set_aside) == MAX_ASIDE + 1
    assert "4,000 more lines" in report.set_aside[-1].reason


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "gemini-cli", "claude-result", "codex-exec"])
def test_a_file_that_cannot_be_read_to_its_end_is_set_aside_from_there(tmp_path: Path, name: str) -> None:
    import gzip

    packed = gzip.compress(SEEDS[name] * 400)
    (tmp_path / "file.jsonl").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "good.jsonl").write_bytes(SEEDS[name])
    report = read(tmp_path, format="auto").report
    assert any("cannot be" in item.reason or "ended" in item.reason for item in report.set_aside)
