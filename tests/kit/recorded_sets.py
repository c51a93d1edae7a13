"""The recorded sets of at least 200 runs, as settlements; read in place, never copied."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab.settlements import Settlements, read

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[3] / "shared" / "data"
NS = 1_000_000_000


def mini_swe_agent() -> Settlements:
    """240 runs of one agent with 9,385 calls; runs of one repository resemble each other."""
    place = DATA / "mini-swe-agent-traj"
    runs, calls = pd.read_csv(place / "runs.csv"), pd.read_csv(place / "calls.csv")
    calls = calls.sort_values(["instance_id", "call"])
    took = (-calls.groupby("instance_id")["created"].diff(-1)).fillna(0) * NS
    made = pd.DataFrame(
        {
            "run": calls["instance_id"],
            "node": "0",
            "call": calls["call"] - 1,
            "attempt": 0,
            "model": "gemini",
            "status": "completed",
            "input_total": calls["prompt_tokens"],
            "input_fresh": calls["prompt_tokens"] - calls["cached_tokens"],
            "cache_read": calls["cached_tokens"],
            "cache_write": 0,
            "output": calls["completion_tokens"],
            "cost_nusd": (calls["cost"] * 1e9).round(),
            "cost_source": "recorded",
            "start_ns": calls["created"] * NS,
            "duration_ns": took.round(),
        }
    )
    nodes = pd.DataFrame(
        {
            "run": runs["instance_id"],
            "node": "0",
            "agent": "coder",
            "model": "gemini",
            "outcome": "completed",
            "delivered": runs["resolved"].astype(bool),
            "calls": runs["api_calls"],
            "input_total": runs["prompt_tokens"],
            "input_fresh": runs["prompt_tokens"] - runs["cached_tokens"],
            "cache_read": runs["cached_tokens"],
            "cache_write": 0,
            "output": runs["completion_tokens"],
            "cost_nusd": (runs["instance_cost"] * 1e9).round(),
            "cost_source": "recorded",
            "start_ns": runs["first_created"] * NS,
            "duration_ns": (runs["last_created"] - runs["first_created"]) * NS,
            "repo": runs["instance_id"].str.split("__").str[0],
        }
    )
    return Settlements.from_columns(nodes, made)


def trae() -> Settlements:
    """275 of 411 runs, those that made a call; no call rows. Runs of one day resemble each other."""
    runs = pd.read_csv(DATA / "trae-trajectory" / "runs.csv")
    runs = runs[runs["llm_calls"] > 0]
    ends = {"completed": "completed", "limit_steps": "exhausted", "limit_time": "timed_out", "killed": "cancelled"}
    split = runs["provider"] != "bedrock"
    nodes = pd.DataFrame(
        {
            "run": runs["run"],
            "node": "0",
            "agent": "coder",
            "model": runs["model"],
            "backend": runs["provider"],
            "outcome": runs["end_kind"].map(ends).fillna("failed"),
            "calls": runs["llm_calls"],
            "input_total": runs["input_tokens"],
            "input_fresh": (runs["input_tokens"] - runs["cache_read_tokens"]).where(split),
            "cache_read": runs["cache_read_tokens"].where(split),
            "cache_write": runs["cache_write_tokens"].where(split),
            "output": runs["output_tokens"],
            "duration_ns": (runs["duration_s"] * NS).round(),
            "repo": runs["repo"] + " " + runs["model"],
            "session": runs["start_time"].str[:10],
        }
    )
    return Settlements.from_columns(nodes)


def aider() -> Settlements:
    """3,218 sessions without call rows; those of one day resemble each other."""
    table = read(DATA / "aider-analytics", ids="kept")
    day = (table.nodes["start_ns"] // (86_400 * NS)).astype("string")
    return Settlements.from_columns(table.nodes.assign(session=day))


def azure(service: str) -> Settlements:
    """Requests of one service in one hour, each a run of one call; those of one minute resemble each other."""
    rows = pd.read_csv(DATA / "azure-llm-2023" / f"AzureLLMInferenceTrace_{service}.csv")
    at = pd.to_datetime(rows["TIMESTAMP"]).astype("datetime64[ns]").astype("int64")
    return _requests(rows["ContextTokens"], rows["GeneratedTokens"], at, at // (60 * NS))


def mooncake() -> Settlements:
    """4,000 requests of a conversation service; those of one minute resemble each other."""
    lines = (DATA / "mooncake-trace" / "conversation_trace.jsonl").read_text("utf-8").splitlines()
    rows = pd.DataFrame([json.loads(line) for line in lines])
    at = rows["timestamp"] * 1_000_000
    return _requests(rows["input_length"], rows["output_length"], at, at // (60 * NS))


def _requests(prompt: pd.Series[int], output: pd.Series[int], at: pd.Series[int], group: pd.Series[int]) -> Settlements:
    nodes = pd.DataFrame({"run": [str(i) for i in range(len(prompt))], "node": "0", "agent": "client", "model": "m"})
    nodes = nodes.assign(
        outcome="completed", calls=1, input_total=prompt.to_numpy(), output=output.to_numpy(), start_ns=at.to_numpy(),
        session=[str(value) for value in group],
    )  # fmt: skip
    return Settlements.from_columns(nodes)


SETS: dict[str, tuple[Callable[[], Settlements], str]] = {
    "mini-swe-agent-traj": (mini_swe_agent, "repo"),
    "trae-trajectory": (trae, "session"),
    "aider-analytics": (aider, "session"),
    "azure-llm-2023 code": (partial(azure, "code"), "session"),
    "azure-llm-2023 conv": (partial(azure, "conv"), "session"),
    "mooncake-trace": (mooncake, "session"),
}
"""Name of each set, what reads it, and the column by which its runs resemble each other."""
