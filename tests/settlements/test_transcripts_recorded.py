"""The transcript readers on real recorded files, against the totals beside them and against ccusage's own answers."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.settlements import Settlements, read

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
CLAUDE, CODEX, PI = DATA / "claude-code-transcripts", DATA / "codex-rollout", DATA / "pi-session"
GEMINI, EXEC, RESULT = DATA / "gemini-cli-session", DATA / "codex-exec-log", DATA / "claude-code-result-json"
FORKED, SMOKE = CODEX / "archived-fork-33ce-3869", CODEX / "harness-smoke"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")

PARTS = {
    "input_fresh": "input_tokens",
    "cache_write": "cache_write_tokens",
    "cache_read": "cache_read_tokens",
    "output": "output_tokens",
}

WORDS = ("inputTokens", "cacheCreationTokens", "cacheReadTokens", "outputTokens", "totalTokens")

CCUSAGE = {
    tool: dict(zip(WORDS, figures, strict=True))
    for tool, figures in {
        "claude": (26_151, 4_831_056, 82_319_936, 83_540, 87_260_683),
        "codex forked": (1_703_587, 0, 13_549_696, 55_895, 15_309_178),
        "codex smoke": (15, 0, 0, 2, 17),
        "pi": (1_049, 4_296_232, 43_229_469, 83_156, 47_609_906),
        "gemini": (31_156, 0, 149_184, 787, 182_454),
    }.items()
}
"""Totals of ``ccusage <tool> session --json --offline``, version 20.0.24, on these files."""


def total(table: Settlements, column: str) -> int:
    return int(table.nodes[column].sum())


def claude_calls() -> pd.DataFrame:
    """Return the recorded calls of the transcripts that are here, without those that another file has too."""
    sessions, calls = pd.read_csv(CLAUDE / "sessions.csv"), pd.read_csv(CLAUDE / "calls.csv")
    here = sessions.loc[sessions["raw_file"] == 1, "session"]
    return calls[calls["session"].isin(here) & (calls["duplicate_of_other_file"] == 0)]


@pytest.fixture(scope="module")
def claude() -> Settlements:
    return read(CLAUDE / "projects", ids="kept")


def main(table: Settlements) -> pd.DataFrame:
    return table.nodes[table.nodes["node"] == "0"]


def test_claude_sessions_equal_their_recorded_calls(claude: Settlements) -> None:
    rows = claude_calls()
    rows["run"] = rows["session"].str.removesuffix("b")  # a second file of the same session
    rows["cache_write_tokens"] = rows["cache_write_5m"] + rows["cache_write_1h"]
    rows["output_tokens"] = rows["output_tokens_recorded"]
    wanted = rows.groupby("run").agg({"call": "size", "cache_write_1h": "sum", **dict.fromkeys(PARTS.values(), "sum")})
    nodes = main(claude).set_index("run").sort_index()
    assert len(nodes) == len(wanted) == 28
    for column, recorded in {"calls": "call", "cache_write_1h": "cache_write_1h", **PARTS}.items():
        assert nodes[column].tolist() == wanted[recorded].tolist(), column


def test_claude_calls_equal_their_rows_one_by_one(claude: Settlements) -> None:
    assert claude.calls is not None
    ours = claude.calls[claude.calls["node"] == "0"]
    keys = ["start_ns", "input_fresh", "cache_read", "cache_write", "output"]
    rows = claude_calls()
    stamps = pd.to_datetime(rows["ts"]).dt.as_unit("ns").astype("int64")
    write = rows["cache_write_5m"] + rows["cache_write_1h"]
    told = [stamps, rows["input_tokens"], rows["cache_read_tokens"], write, rows["output_tokens_recorded"]]
    assert sorted(ours[keys].itertuples(index=False, name=None)) == sorted(zip(*told, strict=True))


def test_what_the_progress_lines_add_to_claudes_sessions_are_their_subagents(claude: Settlements) -> None:
    added = claude.nodes[claude.nodes["node"] != "0"]
    assert (len(added), int(added["calls"].sum())) == (9, 104)
    assert added["parent"].eq("0").all()
    seen = {
        (inner["message"]["id"], inner.get("requestId"))
        for path in CLAUDE.glob("projects/*/*.jsonl")
        for line in path.read_text().splitlines()
        if (told := json.loads(line)).get("type") == "progress" and (inner := told["data"]["message"])
    }
    assert len(seen) == 104


@functools.cache
def same_instant(session: str) -> tuple[int, ...]:
    """Return when a session has a prompt at the very time of another one, sorted.

    What the client itself writes about a command looks like prompts here, since the texts were taken out.
    """
    stamps = []
    for line in (CLAUDE / "projects" / "-work-project" / f"{session}.jsonl").read_text().splitlines():
        told = json.loads(line)
        content = told.get("message", {}).get("content")
        result = isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
        if told["type"] == "user" and not result and not told.get("isMeta"):
            stamps.append(pd.Timestamp(told["timestamp"]).as_unit("ns").value)
    return tuple(stamp for at, stamp in enumerate(stamps) if stamp in stamps[:at])


def test_claude_turns_are_those_of_the_recorded_calls() -> None:
    table = read(CLAUDE / "projects", ids="kept", unit="turn")
    assert table.calls is not None
    rows = claude_calls()
    stamps = pd.to_datetime(rows["ts"]).dt.as_unit("ns").astype("int64")
    recorded = dict(zip(zip(rows["session"], stamps, strict=True), rows["turn"], strict=True))
    twice = {session.removesuffix("b") for session in rows["session"] if session.endswith("b")}
    compared = 0
    for run, node, start in table.calls[["run", "node", "start_ns"]].itertuples(index=False):
        session, _, turn = run.partition("#")
        if node == "0" and session not in twice:
            unseen = sum(stamp <= start for stamp in same_instant(session))
            assert int(turn) + unseen == recorded[session, start]
            compared += 1
    assert compared == len(claude_calls()) - claude_calls()["session"].str.removesuffix("b").isin(twice).sum()


def test_codex_forks_equal_the_hand_made_oracle_but_for_repeated_rows() -> None:
    oracle = json.loads((FORKED / "manifest.json").read_text())["oracle"]
    repeated: dict[str, int] = {}
    for name in ("parent", "child"):
        before = None
        for line in (FORKED / "codex-home" / "archived_sessions" / f"{name}.jsonl").read_text().splitlines():
            info = json.loads(line)["payload"].get("info")
            if info and info["total_token_usage"] == before:
                repeated[name] = repeated.get(name, 0) + info["last_token_usage"]["total_tokens"]
            before = info["total_token_usage"] if info else before
    table = read(FORKED / "codex-home", ids="kept")
    used = table.nodes.set_index("run")[["input_total", "output"]].sum(axis=1).to_dict()
    assert used["parent-session"] == oracle["parentLastTokens"] - repeated["parent"]
    own = oracle["dedupedLastTokens"] - oracle["copiedPrefixLastTokens"]
    assert used["child-session"] == own - (repeated["child"] - repeated["parent"])


def test_codex_history_is_as_long_as_the_manifests_say() -> None:
    for folder, length in ((FORKED, 135), (SMOKE, 1)):
        notes = read(folder / "codex-home").report.notes
        assert any(note.startswith(f"codex: {length} token count(s) are history") for note in notes)


def test_pi_turns_equal_their_rows() -> None:
    rows = pd.read_csv(PI / "turns.csv").set_index("turn")
    nodes = read(PI / "sessions", ids="kept", unit="turn").nodes
    nodes.index = nodes["run"].str.partition("#")[2].astype(int)
    nodes = nodes.sort_index()
    assert nodes["calls"].tolist() == rows["model_calls"].tolist()
    ended = rows["last_stop_reason"].tolist()
    assert [own for own in nodes["source_status"] if own in {"stop", "aborted", "toolUse"}] == [
        recorded for recorded in ended if recorded != "error"
    ]
    silent = nodes["input_total"].isna()  # every message of these turns was aborted before anything was counted
    assert (rows.loc[silent, ["input", "output", "cache_read", "cache_write", "cost_usd"]] == 0).all().all()
    assert silent.sum() == 9
    for column, name in (("input_fresh", "input"), *((name, name) for name in ("output", "cache_read", "cache_write"))):
        assert nodes.loc[~silent, column].tolist() == rows.loc[~silent, name].tolist()
    rounded = rows["cost_usd"] * 10**9  # to the micro-dollar
    assert (nodes["cost_nusd"] - rounded)[~silent].abs().max() <= 501


def test_pi_costs_are_exact_to_the_nano_dollar() -> None:
    (path,) = (PI / "sessions").glob("*.jsonl")
    costs = [
        Decimal(str(message["usage"]["cost"]["total"]))
        for line in path.read_text().splitlines()
        if (message := json.loads(line).get("message", {})).get("usage")
    ]
    assert total(read(PI / "sessions"), "cost_nusd") == int((sum(costs) * 10**9).to_integral_value())


def test_gemini_chats_equal_their_messages() -> None:
    used = [
        message["tokens"]
        for path in GEMINI.glob("tmp/*/chats/*.json")
        for message in json.loads(path.read_text())["messages"]
        if message["type"] == "gemini"
    ]
    table = read(GEMINI / "tmp")
    assert total(table, "calls") == len(used) == 15
    assert total(table, "input_total") + total(table, "output") == sum(one["total"] for one in used)
    assert total(table, "reasoning") == sum(one["thoughts"] for one in used)
    assert table.nodes["usage_known"].all()


def test_codex_exec_logs_equal_their_rows() -> None:
    rows = pd.read_csv(EXEC / "runs.csv").set_index("run")
    nodes = exec_nodes()
    assert len(nodes) == 123
    used = nodes["blended_tokens"]
    assert used.isna().sum() == rows["tokens_used"].isna().sum() == 110
    assert used.dropna().astype(int).tolist() == rows["tokens_used"].dropna().astype(int).tolist()
    assert (nodes["outcome"] == "completed").tolist() == (rows["status"] == "success").tolist()
    assert (nodes["duration_ns"] / 1e9).astype(float).round(6).tolist() == rows["duration_s"].round(6).tolist()
    assert (nodes["ceiling_time_ns"] == rows["time_budget_min"] * 60 * 10**9).all()
    assert nodes["client_version"].tolist() == rows["codex_version"].tolist()
    assert nodes["model"].tolist() == rows["model"].tolist()


def exec_nodes() -> pd.DataFrame:
    nodes = read(sorted(EXEC.glob("runs/*/codex_stderr.txt")), ids="kept").nodes
    return nodes.set_index("run").sort_index()


def result_nodes() -> pd.DataFrame:
    nodes = read(sorted(RESULT.glob("runs/*/claude_code_stdout.txt")), ids="kept").nodes
    nodes.index = nodes["run"].str.removeprefix("session-")
    return nodes.sort_index()


def test_headless_claude_runs_equal_their_rows() -> None:
    rows, nodes = pd.read_csv(RESULT / "runs.csv").set_index("run"), result_nodes()
    assert len(nodes) == 93
    costs = [int((Decimal(str(cost)) * 10**9).to_integral_value()) for cost in rows["total_cost_usd"]]
    assert nodes["cost_nusd"].tolist() == costs
    assert nodes["iterations"].tolist() == rows["num_turns"].tolist()
    assert (nodes["duration_ns"] // 10**6).tolist() == rows["duration_ms"].tolist()
    assert (nodes["outcome"] == "completed").tolist() == (rows["subtype"] == "success").tolist()
    assert (nodes["ceiling_time_ns"] == 120 * 60 * 10**9).all()


def test_headless_claude_runs_have_more_tokens_than_their_rows_by_the_helper_model() -> None:
    rows, nodes = pd.read_csv(RESULT / "runs.csv").set_index("run"), result_nodes()
    keys = {"input_fresh": "inputTokens", "output": "outputTokens"}
    keys |= {"cache_read": "cacheReadInputTokens", "cache_write": "cacheCreationInputTokens"}
    for run, row in nodes.iterrows():
        told = json.loads((RESULT / "runs" / str(run) / "claude_code_stdout.txt").read_text())
        for column, key in keys.items():
            all_models = sum(model[key] for model in told["modelUsage"].values())
            assert row[column] == all_models if told["modelUsage"] else row[column] == rows.loc[run, PARTS[column]]
    for column, recorded in PARTS.items():
        assert (nodes[column] >= rows[recorded]).all()
    assert (nodes["cache_read"] == rows["cache_read_tokens"]).all()
    assert (nodes["cache_write"] == rows["cache_write_tokens"]).all()


def ours(tool: str) -> dict[str, int]:
    """Return our totals in ccusage's words."""
    if tool == "claude":  # ccusage leaves progress lines out
        table = read(CLAUDE / "projects", ids="kept").where(node="0")
    elif tool.startswith("codex"):
        table = read((FORKED if tool.endswith("forked") else SMOKE) / "codex-home")
    else:
        table = read(PI / "sessions" if tool == "pi" else GEMINI / "tmp")
    fresh, written, cached, out = (total(table, name) for name in PARTS)
    thoughts = total(table, "reasoning") if tool == "gemini" else 0  # ccusage shows thoughts in the total only
    whole = fresh + written + cached + out
    return dict(zip(WORDS, (fresh, written, cached, out - thoughts, whole), strict=True))


@pytest.mark.parametrize("tool", list(CCUSAGE))
def test_totals_agree_with_those_of_ccusage(tool: str) -> None:
    assert ours(tool) == CCUSAGE[tool]


def places(tool: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment in which ccusage finds the files."""
    home = tmp_path / "home"
    links = {"projects": CLAUDE / "projects", "sessions": PI / "sessions"}
    home.mkdir()
    for name, target in links.items():
        (home / name).symlink_to(target.resolve())
    session = home / "agent" / "sessions" / "--work--"
    session.mkdir(parents=True)
    for path in (PI / "sessions").glob("*.jsonl"):
        shutil.copy(path, session)
    found = {"claude": ("CLAUDE_CONFIG_DIR", home), "pi": ("PI_AGENT_DIR", home / "agent" / "sessions")}
    found |= {
        "codex forked": ("CODEX_HOME", FORKED / "codex-home"),
        "codex smoke": ("CODEX_HOME", SMOKE / "codex-home"),
    }
    name, place = (found | {"gemini": ("GEMINI_DATA_DIR", GEMINI)})[tool]
    return {**os.environ, name: str(place.resolve())}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ccusage") is None, reason="ccusage is not installed")
@pytest.mark.parametrize("tool", list(CCUSAGE))
def test_ccusage_says_what_was_recorded_of_it(tool: str, tmp_path: Path) -> None:
    command = ["ccusage", tool.partition(" ")[0], "session", "--json", "--offline"]
    ran = subprocess.run(command, env=places(tool, tmp_path), capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(ran.stdout)["totals"]
    assert {word: said[word] for word in CCUSAGE[tool]} == CCUSAGE[tool]
