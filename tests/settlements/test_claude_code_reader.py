from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

SESSION = "5e551077-0000-4000-8000-000000000001"


class Transcript:
    """Lines of a made-up transcript; time goes on by a second a line."""

    def __init__(self, session: str = SESSION, *, version: str = "2.1.120", **fixed: Any) -> None:
        self.fixed = {"sessionId": session, "version": version, "isSidechain": False, "cwd": "/home/demo", **fixed}
        self.lines: list[dict[str, Any]] = []

    def add(self, kind: str, **more: Any) -> Transcript:
        stamp = f"2026-05-01T10:{len(self.lines) // 60:02d}:{len(self.lines) % 60:02d}.000Z"
        ident = f"u{len(self.lines)}"
        self.lines.append({"type": kind, "uuid": ident, "timestamp": stamp, **self.fixed, **more})
        return self

    def prompt(self, text: str = "hello", **more: Any) -> Transcript:
        return self.add("user", message={"role": "user", "content": text}, **more)

    def answer(
        self,
        ident: str,
        output: int = 50,
        *,
        fresh: int = 10,
        read: int = 1_000,
        write: int = 200,
        stop: str | None = "end_turn",
        block: dict[str, Any] | None = None,
        request: str | None = None,
        model: str = "claude-opus-4-5",
        **more: Any,
    ) -> Transcript:
        usage = {
            "input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write,
            "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output,
        }
        content = [block or {"type": "text", "text": "fine"}]
        message = {"id": ident, "model": model, "role": "assistant", "content": content, "stop_reason": stop}
        return self.add("assistant", message={**message, "usage": usage}, requestId=request or f"req-{ident}", **more)

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines))
        return path


TOOL = {"type": "tool_use", "name": "Bash", "id": "t1", "input": {"command": "ls"}}


def load(path: Path, **options: Any) -> Settlements:
    return read(path, **options)


def one(path: Path, **options: Any) -> pd.Series:
    table = load(path, **options)
    assert len(table) == 1
    return table.nodes.iloc[0]


def test_a_session_becomes_one_node_with_disjoint_counts(tmp_path: Path) -> None:
    made = Transcript().prompt().answer("msg_a", stop="tool_use", block=TOOL).answer("msg_b", 70, read=1_200)
    table = load(made.write(tmp_path / f"{SESSION}.jsonl"))
    wanted = {"run": SESSION, "node": "0", "depth": 0, "agent": "claude-code", "record_unit": "session", "calls": 2}
    wanted |= {"input_fresh": 20, "cache_read": 2_200, "cache_write": 400, "input_total": 2_620, "output": 120}
    wanted |= {"outcome": "completed", "cause": "none", "client_version": "2.1.120", "tool_calls": 1}
    wanted |= {"served_model": "claude-opus-4-5", "backend": "anthropic", "duration_ns": 2 * 10**9, "usage_known": True}
    assert table.nodes.iloc[0][list(wanted)].to_dict() == wanted
    assert table.calls is not None
    assert table.calls["call"].tolist() == [0, 1]


def test_a_reply_written_as_many_lines_counts_once_with_its_largest_output(tmp_path: Path) -> None:
    made = Transcript().prompt()
    for _ in range(19):
        made.answer("r1", 384)
    made.answer("r2", 384)
    for output in (1, 120, 384):
        made.answer("r3", output)
    table = load(made.write(tmp_path / "s.jsonl"))
    assert table.nodes[["calls", "output"]].iloc[0].tolist() == [3, 1_152]
    assert any("20 repeated a call of their own file" in note for note in table.report.notes)


def test_a_first_line_with_more_output_than_the_last_wins_too(tmp_path: Path) -> None:
    node = one(Transcript().answer("a", 300).answer("a", 5).write(tmp_path / "s.jsonl"))
    assert node[["calls", "output"]].tolist() == [1, 300]


def test_the_same_message_under_another_request_is_another_call(tmp_path: Path) -> None:
    made = Transcript().answer("a", request="r1").answer("a", request="r2").answer("a", request="r2")
    assert one(made.write(tmp_path / "s.jsonl"))["calls"] == 2


def test_a_sidechain_that_replays_a_message_under_another_request_is_no_new_call(tmp_path: Path) -> None:
    made = Transcript().answer("a", request="r1").answer("a", request="r2", isSidechain=True, agentId="btw")
    node = one(made.write(tmp_path / "s.jsonl"))
    assert node[["node", "calls"]].tolist() == ["0", 1]


def test_the_main_threads_copy_wins_over_a_sidechains_whatever_came_first(tmp_path: Path) -> None:
    made = Transcript().answer("a", request="r2", isSidechain=True, agentId="btw").answer("a", request="r1")
    assert one(made.write(tmp_path / "s.jsonl"))["node"] == "0"


def test_a_resumed_session_in_a_second_file_is_one_run_and_counts_repeated_calls_once(tmp_path: Path) -> None:
    first = Transcript().prompt().answer("a").answer("b")
    first.write(tmp_path / f"{SESSION}.jsonl")
    first.answer("c").write(tmp_path / "resumed.jsonl")
    table = load(tmp_path)
    assert table.nodes[["run", "calls"]].iloc[0].tolist() == [SESSION, 3]
    assert any("2 one of another file" in note for note in table.report.notes)


def test_a_forked_session_does_not_pay_for_its_parents_calls(tmp_path: Path) -> None:
    Transcript("parent").prompt().answer("a").answer("b").write(tmp_path / "z-parent.jsonl")
    copied = {"forkedFrom": {"sessionId": "parent"}}
    made = Transcript("fork").prompt(**copied).answer("a", **copied).answer("b", **copied).answer("c")
    made.write(tmp_path / "a-fork.jsonl")
    nodes = load(tmp_path).nodes.set_index("run")
    assert nodes["calls"].to_dict() == {"parent": 2, "fork": 1}


def test_subagents_in_their_own_files_are_children_of_the_session(tmp_path: Path) -> None:
    main = Transcript().prompt().answer("a", stop="tool_use", block=TOOL)
    result = {
        "status": "completed",
        "agentId": "ag1",
        "totalTokens": 9,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    content = [{"type": "tool_result", "content": "done"}]
    main.add("user", message={"role": "user", "content": content}, toolUseResult=result).answer("b")
    main.write(tmp_path / "projects" / "p" / f"{SESSION}.jsonl")
    folder = tmp_path / "projects" / "p" / SESSION / "subagents"
    sub = Transcript(isSidechain=True, agentId="ag1").prompt().answer("c", model="claude-haiku-4-5", stop="tool_use")
    sub.write(folder / "agent-ag1.jsonl")
    (folder / "agent-ag1.meta.json").write_text('{"agentType": "Explore"}')
    nodes = load(tmp_path).nodes.set_index("node")
    assert nodes.loc["0", ["calls", "starts", "parent"]].fillna("-").tolist() == [2, 1, "-"]
    child = nodes.loc["ag1", ["run", "parent", "depth", "agent", "calls", "outcome", "served_model"]].tolist()
    assert child == [SESSION, "0", 1, "Explore", 1, "completed", "claude-haiku-4-5"]


def test_a_subagent_started_by_a_subagent_lies_below_it(tmp_path: Path) -> None:
    Transcript().prompt().answer("a").write(tmp_path / f"{SESSION}.jsonl")
    result = {"status": "completed", "agentId": "deep", "usage": {"input_tokens": 1, "output_tokens": 1}}
    content = [{"type": "tool_result", "content": "done"}]
    upper = Transcript(isSidechain=True, agentId="upper").answer("b")
    upper.add("user", message={"role": "user", "content": content}, toolUseResult=result)
    upper.write(tmp_path / SESSION / "subagents" / "agent-upper.jsonl")
    deep = Transcript(isSidechain=True, agentId="deep").answer("c")
    deep.write(tmp_path / SESSION / "subagents" / "agent-deep.jsonl")
    nodes = load(tmp_path).nodes.set_index("node")
    assert nodes.loc["deep", ["parent", "depth"]].tolist() == ["upper", 2]


def progress(made: Transcript, ident: str, output: int) -> Transcript:
    inner = Transcript().answer(ident, output, stop=None).lines[0]
    return made.add("progress", data={"type": "agent_progress", "agentId": "ag1", "message": inner})


def test_progress_lines_stand_in_for_a_subagent_without_a_file(tmp_path: Path) -> None:
    made = progress(progress(Transcript().prompt().answer("a"), "s1", 3), "s1", 40)
    nodes = load(made.write(tmp_path / "s.jsonl")).nodes.set_index("node")
    assert nodes["calls"].to_dict() == {"0": 1, "ag1": 1}
    assert nodes.loc["ag1", "output"] == 40


def test_progress_lines_add_nothing_to_a_subagent_that_has_a_file(tmp_path: Path) -> None:
    progress(Transcript().prompt().answer("a"), "s1", 40).write(tmp_path / f"{SESSION}.jsonl")
    sub = Transcript(isSidechain=True, agentId="ag1").answer("s1", 40).answer("s2", 7)
    sub.write(tmp_path / SESSION / "subagents" / "agent-ag1.jsonl")
    nodes = load(tmp_path).nodes.set_index("node")
    assert nodes.loc["ag1", ["calls", "output"]].tolist() == [2, 47]


def test_older_sidechains_in_the_main_file_become_nodes_by_their_chain_of_parents(tmp_path: Path) -> None:
    made = Transcript().prompt().answer("m")
    for ident, uuid, parent in (("x1", "a1", None), ("y1", "b1", None), ("x2", "a2", "a1"), ("y2", "b2", "b1")):
        made.answer(ident, isSidechain=True, uuid=uuid, parentUuid=parent)
    nodes = load(made.write(tmp_path / "s.jsonl")).nodes
    assert sorted(nodes["calls"]) == [1, 2, 2]
    assert nodes["parent"].fillna("-").tolist().count("0") == 2


def test_a_finished_subagent_without_any_calls_is_told_of(tmp_path: Path) -> None:
    result = {"status": "completed", "agentId": "gone", "usage": {"input_tokens": 1, "output_tokens": 1}}
    content = [{"type": "tool_result", "content": "done"}]
    made = Transcript().answer("a").add("user", message={"role": "user", "content": content}, toolUseResult=result)
    assert any(
        "1 finished subagent(s) have no calls" in note for note in load(made.write(tmp_path / "s.jsonl")).report.notes
    )


def test_turns_are_runs_on_request(tmp_path: Path) -> None:
    made = Transcript().answer("zero").prompt("first").answer("a", stop="tool_use", block=TOOL)
    made.answer("b").prompt("/clear").prompt("second").answer("c")
    nodes = load(made.write(tmp_path / "s.jsonl"), unit="turn").nodes.set_index("run")
    assert nodes["calls"].to_dict() == {f"{SESSION}#0": 1, f"{SESSION}#1": 2, f"{SESSION}#3": 1}
    assert set(nodes["record_unit"]) == {"turn"}
    assert nodes["session"].unique().tolist() == [SESSION]


def test_lines_that_are_no_prompts_begin_no_turn(tmp_path: Path) -> None:
    made = Transcript().prompt("first").answer("a").prompt("x", isMeta=True).prompt("x", isCompactSummary=True)
    made.add("user", message={"role": "user", "content": [{"type": "tool_result", "content": "r"}]})
    made.prompt("<local-command-stdout>x</local-command-stdout>").answer("b")
    assert one(made.write(tmp_path / "s.jsonl"), unit="turn")["calls"] == 2


LIMIT = "You've hit your session limit"
API = {"isApiErrorMessage": True, "model": "<synthetic>"}


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (lambda t: t.answer("z", stop="end_turn"), ["completed", "none", pd.NA]),
        (lambda t: t.answer("z", stop=None), ["completed", "none", pd.NA]),
        (lambda t: t.answer("z", stop="tool_use", block=TOOL), ["unknown", pd.NA, pd.NA]),
        (lambda t: t.answer("z", stop="max_tokens"), ["exhausted", "limit", pd.NA]),
        (lambda t: t.answer("z", stop="refusal"), ["failed", "model", pd.NA]),
        (lambda t: t.prompt("[Request interrupted by user]"), ["cancelled", "user", "cancelled"]),
        (lambda t: t.prompt("more"), ["unknown", pd.NA, pd.NA]),
        (
            lambda t: t.answer("z", block={"type": "text", "text": LIMIT}, **API),
            ["exhausted", "limit", "budget-exhausted"],
        ),
        (
            lambda t: t.answer("z", block={"type": "text", "text": "API Error: 529 Overloaded"}, **API),
            ["failed", "infrastructure", pd.NA],
        ),
    ],
)
def test_how_the_last_turn_ended_is_how_the_session_ended(tmp_path: Path, last: Any, expected: list[object]) -> None:
    made = Transcript().prompt().answer("a")
    last(made)
    node = one(made.write(tmp_path / "s.jsonl"))
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_messages_of_the_client_itself_are_no_calls(tmp_path: Path) -> None:
    made = Transcript().prompt().answer("a").answer("n", 0, model="<synthetic>")
    table = load(made.write(tmp_path / "s.jsonl"))
    assert table.nodes["calls"].tolist() == [1]
    assert any("1 message(s) of the client itself" in note for note in table.report.notes)


def test_retries_are_attempts(tmp_path: Path) -> None:
    made = Transcript().prompt().add("system", subtype="api_error", retryAttempt=1).answer("a")
    assert one(made.write(tmp_path / "s.jsonl"))[["calls", "attempts"]].tolist() == [1, 2]


LONG = {"type": "text", "text": "x" * 3_600}


@pytest.mark.parametrize(("version", "stop"), [("2.1.29", None), ("2.0.76", None)])
def test_placeholder_outputs_are_kept_and_flagged(tmp_path: Path, version: str, stop: str | None) -> None:
    made = Transcript(version=version).prompt().answer("a", 3, stop=stop, block=LONG)
    table = load(made.write(tmp_path / "s.jsonl"))
    assert table.nodes[["output", "placeholder_calls", "usage_known"]].iloc[0].tolist() == [3, 1, True]
    assert table.calls is not None
    assert table.calls[["output_placeholder", "output_chars"]].iloc[0].tolist() == [True, 3_600]


def test_placeholder_outputs_are_estimated_or_dropped_only_on_request(tmp_path: Path) -> None:
    path = Transcript(version="2.1.29").answer("a", 3, stop=None, block=LONG).write(tmp_path / "s.jsonl")
    assert one(path, placeholders="estimated")["output"] == 1_000
    dropped = one(path, placeholders="unknown")
    assert pd.isna(dropped["output"])
    assert dropped[["input_total", "usage_known"]].tolist() == [1_210, True]


@pytest.mark.parametrize(("version", "stop"), [("2.1.29", "end_turn"), ("2.1.97", None), ("2.1.7", None)])
def test_counts_that_are_final_or_plausible_are_not_doubted(tmp_path: Path, version: str, stop: str | None) -> None:
    node = one(Transcript(version=version).answer("a", 50, stop=stop).write(tmp_path / "s.jsonl"))
    assert node["placeholder_calls"] == 0


def test_contexts_differ_by_version_and_by_the_size_of_the_first_prompt(tmp_path: Path) -> None:
    Transcript("s1").answer("a", read=40_000).write(tmp_path / "1.jsonl")
    Transcript("s2").answer("b", read=41_000).write(tmp_path / "2.jsonl")
    Transcript("s3").answer("c", read=80_000).write(tmp_path / "3.jsonl")
    Transcript("s4", version="2.1.121").answer("d", read=40_000).write(tmp_path / "4.jsonl")
    nodes = load(tmp_path).nodes.set_index("run")
    assert nodes.loc["s1", "context"] == nodes.loc["s2", "context"]
    assert nodes["context"].nunique() == 3
    assert nodes["context_inferred"].all()


def test_counts_that_are_none_are_set_aside_with_file_line_and_reason(tmp_path: Path) -> None:
    made = Transcript().answer("a").answer("b", -5).answer("c", 10**12).answer("d", read=2.5)  # type: ignore[arg-type]
    table = load(made.write(tmp_path / "s.jsonl"))
    assert table.nodes["calls"].tolist() == [1]
    assert [item.line for item in table.report.set_aside] == [2, 3, 4]
    assert all("should be a whole number" in item.reason for item in table.report.set_aside)


def test_a_line_cut_short_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    path = Transcript().answer("a").answer("b").write(tmp_path / "s.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    table = load(path)
    assert table.nodes["calls"].tolist() == [1]
    assert "cut short" in table.report.set_aside[0].reason


def test_half_a_surrogate_pair_in_a_text_does_no_harm(tmp_path: Path) -> None:
    path = Transcript().answer("a", block={"type": "text", "text": "\ud83d"}).write(tmp_path / "s.jsonl")
    assert one(path)["calls"] == 1


def test_a_call_without_input_counts_makes_the_sums_lower_bounds(tmp_path: Path) -> None:
    made = Transcript().answer("a").answer("b")
    del made.lines[1]["message"]["usage"]["input_tokens"]
    node = one(made.write(tmp_path / "s.jsonl"))
    assert node[["calls", "input_total", "usage_known"]].tolist() == [2, 1_210, False]


def test_no_text_of_a_transcript_enters_the_table(tmp_path: Path) -> None:
    secret = "the secret plan of Kim Doe"  # noqa: S105
    block = {"type": "text", "text": secret}
    made = Transcript(version=secret).prompt(secret).answer("a", block=block, stop=secret, model=secret)
    table = load(made.write(tmp_path / "s.jsonl"))
    assert table.calls is not None
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()
