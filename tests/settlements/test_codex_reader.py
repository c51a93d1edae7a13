from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read


class Rollout:
    """Lines of a made-up rollout with a running total; time goes on by five seconds a line."""

    def __init__(self, ident: str, *, hour: int = 10, **meta: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.hour, self.sums = hour, dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens"), 0)
        about = {"id": ident, "cwd": "/home/demo", "cli_version": "0.90.0", "model_provider": "openai"}
        self.add("session_meta", {**about, **meta})
        self.add("turn_context", {"model": "gpt-5.2"})

    def add(self, kind: str, payload: dict[str, Any]) -> Rollout:
        seconds = 5 * len(self.lines)
        stamp = f"2026-05-01T{self.hour:02d}:{seconds // 60:02d}:{seconds % 60:02d}.000Z"
        self.lines.append({"timestamp": stamp, "type": kind, "payload": payload})
        return self

    def event(self, kind: str, **more: Any) -> Rollout:
        return self.add("event_msg", {"type": kind, **more})

    def count(self, given: int = 1_000, cached: int = 600, output: int = 50, *, again: bool = False) -> Rollout:
        last = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output}
        for key, value in last.items():
            self.sums[key] += 0 if again else value
        whole = [{**part, "total_tokens": part["input_tokens"] + part["output_tokens"]} for part in (self.sums, last)]
        return self.event("token_count", info={"total_token_usage": whole[0], "last_token_usage": whole[1]})

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


def load(path: Path, **options: Any) -> Settlements:
    return read(path, **options)


def one(path: Path, **options: Any) -> pd.Series:
    table = load(path, **options)
    assert len(table) == 1
    return table.nodes.iloc[0]


def test_a_session_becomes_one_node_with_disjoint_counts(tmp_path: Path) -> None:
    made = Rollout("s1").event("user_message").count().count(2_000, 900, 70).event("task_complete")
    node = one(made.write(tmp_path / "rollout-1.jsonl"))
    wanted = {"run": "s1", "node": "0", "depth": 0, "agent": "codex", "backend": "openai", "model": "gpt-5.2"}
    wanted |= {"calls": 2, "input_total": 3_000, "input_fresh": 1_500, "cache_read": 1_500, "output": 120}
    wanted |= {"outcome": "completed", "client_version": "0.90.0", "record_unit": "session", "usage_known": True}
    assert node[list(wanted)].to_dict() == wanted


def test_a_count_that_is_told_again_is_no_call(tmp_path: Path) -> None:
    made = Rollout("s1").count().count(again=True).count(again=True).count()
    table = load(made.write(tmp_path / "rollout-1.jsonl"))
    assert table.nodes["calls"].tolist() == [2]
    assert any("2 token count(s) repeat an unchanged total" in note for note in table.report.notes)


def test_two_equal_calls_in_a_row_are_two_calls(tmp_path: Path) -> None:
    assert one(Rollout("s1").count().count().write(tmp_path / "rollout-1.jsonl"))["input_total"] == 2_000


def test_a_total_that_drops_begins_anew(tmp_path: Path) -> None:
    made = Rollout("s1").count().count()
    made.sums = dict.fromkeys(made.sums, 0)
    node = one(made.count(300, 100, 20).write(tmp_path / "rollout-1.jsonl"))
    assert node[["calls", "input_total", "output"]].tolist() == [3, 2_300, 120]


def test_a_step_of_the_total_beyond_the_last_count_is_what_was_used(tmp_path: Path) -> None:
    made = Rollout("s1").count()
    made.sums["input_tokens"] += 500
    assert one(made.count().write(tmp_path / "rollout-1.jsonl"))["input_total"] == 2_500


def fork(parent: Rollout, ident: str, **meta: Any) -> Rollout:
    """Return a session that takes over another one's history, with times of its own."""
    made = Rollout(ident, hour=12, **{"forked_from_id": "parent", **meta})
    for line in parent.lines:
        made.add(line["type"], line["payload"])
    made.sums = dict(parent.sums)
    return made


def test_a_fork_does_not_pay_for_the_history_that_it_took_over(tmp_path: Path) -> None:
    parent = Rollout("parent").event("user_message").count().count(2_000, 0, 9).event("task_complete")
    parent.write(tmp_path / "z" / "rollout-z.jsonl")
    made = (
        fork(parent, "child").event("user_message").count(3_000, 2_000, 5).event("turn_aborted", reason="interrupted")
    )
    made.write(tmp_path / "a" / "rollout-a.jsonl")
    nodes = load(tmp_path).nodes.set_index("run")
    assert nodes["input_total"].to_dict() == {"parent": 3_000, "child": 3_000}
    assert nodes["outcome"].to_dict() == {"parent": "completed", "child": "cancelled"}


def test_a_fork_of_a_fork_is_matched_through_its_parent(tmp_path: Path) -> None:
    first = Rollout("parent").count()
    second = fork(first, "middle").count(20, 0, 2)
    third = fork(second, "last", forked_from_id="middle").count(3, 0, 1)
    for name, made in (("c", first), ("b", second), ("a", third)):
        made.write(tmp_path / f"rollout-{name}.jsonl")
    assert load(tmp_path).nodes.set_index("run")["input_total"].to_dict() == {"parent": 1_000, "middle": 20, "last": 3}


def test_history_without_its_parent_is_told_by_its_time(tmp_path: Path) -> None:
    made = Rollout("child", forked_from_id="gone").count().count().count(7, 0, 1)
    for line in made.lines[:-1]:
        line["timestamp"] = made.lines[0]["timestamp"]
    table = load(made.write(tmp_path / "rollout-1.jsonl"))
    assert table.nodes["input_total"].tolist() == [7]
    assert any("by their time alone" in note for note in table.report.notes)


def test_an_archived_copy_adds_only_what_it_has_more(tmp_path: Path) -> None:
    made = Rollout("s1").event("user_message").count().event("task_complete")
    made.write(tmp_path / "sessions" / "2026" / "rollout-1.jsonl")
    made.event("user_message").count(40, 0, 4).write(tmp_path / "archived_sessions" / "rollout-1.jsonl")
    node = one(tmp_path)
    assert node[["run", "calls", "input_total"]].tolist() == ["s1", 2, 1_040]
    assert node["source"].split("/")[1] == "sessions"


def test_a_spawned_subagent_is_a_node_of_its_parents_run(tmp_path: Path) -> None:
    Rollout("lead").count().write(tmp_path / "rollout-b.jsonl")
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "lead", "depth": 1, "agent_role": "explorer"}}}
    Rollout("sub", source=spawn).count(30, 0, 3).write(tmp_path / "rollout-a.jsonl")
    nodes = load(tmp_path).nodes.set_index("node")
    assert nodes.loc["sub", ["run", "parent", "depth", "agent", "input_total"]].tolist() == [
        "lead",
        "0",
        1,
        "explorer",
        30,
    ]
    assert nodes.loc["0", "starts"] == 1


def test_turns_are_runs_on_request(tmp_path: Path) -> None:
    made = Rollout("s1").event("user_message").count().event("task_complete")
    made.event("user_message").count().count().event("turn_aborted", reason="interrupted")
    nodes = load(made.write(tmp_path / "rollout-1.jsonl"), unit="turn").nodes.set_index("run")
    assert nodes["calls"].to_dict() == {"s1#1": 1, "s1#2": 2}
    assert nodes["outcome"].to_dict() == {"s1#1": "completed", "s1#2": "cancelled"}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"codex_error_info": "usage_limit_exceeded"}, ["exhausted", "limit", "budget-exhausted"]),
        ({"message": "You've hit your usage limit."}, ["exhausted", "limit", "budget-exhausted"]),
        ({"codex_error_info": "context_window_exceeded"}, ["exhausted", "limit", pd.NA]),
        ({"codex_error_info": {"http_connection_failed": {}}}, ["failed", "infrastructure", pd.NA]),
        ({"message": "something else"}, ["failed", pd.NA, pd.NA]),
    ],
)
def test_an_error_says_how_the_session_ended(tmp_path: Path, event: dict[str, Any], expected: list[object]) -> None:
    made = Rollout("s1").event("user_message").count().event("error", **event).event("task_complete")
    node = one(made.write(tmp_path / "rollout-1.jsonl"))
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


def test_tool_calls_are_counted_with_the_call_that_made_them(tmp_path: Path) -> None:
    made = Rollout("s1").add("response_item", {"type": "function_call"}).add("response_item", {"type": "function_call"})
    node = one(made.count().count().write(tmp_path / "rollout-1.jsonl"))
    assert node["tool_calls"] == 2


def test_a_total_that_fits_no_convention_makes_the_usage_unknown(tmp_path: Path) -> None:
    made = Rollout("s1").count()
    made.lines[-1]["payload"]["info"]["last_token_usage"]["total_tokens"] = 1_450
    table = load(made.write(tmp_path / "rollout-1.jsonl"))
    assert not table.nodes["usage_known"].item()
    assert any("fits no convention" in note for note in table.report.notes)


def test_instructions_are_a_digest_and_make_the_context_known(tmp_path: Path) -> None:
    secret = "the secret plan of Kim Doe"  # noqa: S105
    first = one(Rollout("a", base_instructions={"text": secret}).count().write(tmp_path / "rollout-1.jsonl"))
    second = one(Rollout("b", base_instructions={"text": "other"}).count().write(tmp_path / "rollout-2.jsonl"))
    hidden = one(Rollout("c").count().write(tmp_path / "rollout-3.jsonl"))
    assert "Kim" not in first.to_json()
    assert first["context"] != second["context"]
    assert [first["context_inferred"], hidden["context_inferred"]] == [False, True]


def test_counts_that_are_none_are_set_aside_with_their_line(tmp_path: Path) -> None:
    made = Rollout("s1").count().event("token_count", info={"last_token_usage": {"input_tokens": -1}})
    made.event("token_count", info={}).event("token_count", info=None)
    table = load(made.write(tmp_path / "rollout-1.jsonl"))
    assert [item.line for item in table.report.set_aside] == [4, 5]
    assert table.nodes["calls"].tolist() == [1]


def test_sessions_that_name_each_other_as_parents_do_not_hang(tmp_path: Path) -> None:
    Rollout("a", forked_from_id="b").count().write(tmp_path / "rollout-a.jsonl")
    Rollout("b", forked_from_id="a").count(9).write(tmp_path / "rollout-b.jsonl")
    assert len(load(tmp_path)) == 2
