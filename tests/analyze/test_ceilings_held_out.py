"""A ceiling chosen on one part of a recorded set, checked on the other: at random, by cluster, in time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import ceiling, drift

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
SPLITS = ("random", "cluster", "time")


def mini_swe() -> tuple[pd.DataFrame, str]:
    table = pd.read_csv(DATA / "mini-swe-agent-traj" / "runs.csv")
    frame = {"run": table["instance_id"], "repo": table["instance_id"].str.rsplit("-", n=1).str[0]}
    frame |= {"cost_nusd": (table["instance_cost"] * 1e9).round().astype("Int64"), "start_ns": table["first_created"]}
    return pd.DataFrame(frame), "cost"


def trae() -> tuple[pd.DataFrame, str]:
    table = pd.read_csv(DATA / "trae-trajectory" / "runs.csv").dropna(subset=["duration_s"])
    frame = pd.DataFrame({"run": table["run"], "repo": table["repo"], "start_ns": range(len(table))})
    return frame.assign(duration_ns=(table["duration_s"] * 1e9).round().astype("Int64")), "time"


def turns() -> tuple[pd.DataFrame, str]:
    calls = pd.read_csv(DATA / "claude-code-transcripts" / "calls.csv")
    calls = calls[calls["duplicate_of_other_file"].fillna(0).astype(str).isin(("0", "False", "0.0"))]
    parts = ["input_tokens", "cache_write_5m", "cache_write_1h", "cache_read_tokens"]
    calls = calls.assign(whole=calls[parts].fillna(0).sum(axis=1), start=pd.to_datetime(calls["ts"], format="ISO8601"))
    found = calls.groupby(["session", "turn"]).agg(input_total=("whole", "sum"), start=("start", "min")).reset_index()
    start = found["start"].dt.tz_localize(None).astype("datetime64[ns]").astype(np.int64)
    return found.assign(
        run=range(len(found)), start_ns=start, input_total=found["input_total"].astype("Int64")
    ), "input"


def azure(name: str) -> tuple[pd.DataFrame, str]:
    table = pd.read_csv(DATA / "azure-llm-2023" / f"AzureLLMInferenceTrace_{name}.csv")
    return pd.DataFrame(
        {"run": range(len(table)), "input_total": table["ContextTokens"], "start_ns": range(len(table))}
    ), "input"


def mooncake() -> tuple[pd.DataFrame, str]:
    table = pd.read_json(DATA / "mooncake-trace" / "conversation_trace.jsonl", lines=True)
    return pd.DataFrame(
        {"run": range(len(table)), "input_total": table["input_length"], "start_ns": table["timestamp"]}
    ), "input"


def aider() -> tuple[pd.DataFrame, str]:
    lines = (DATA / "aider-analytics" / "analytics.jsonl").read_text("utf-8").splitlines()
    events = pd.DataFrame([json.loads(line) for line in lines if line.strip()])
    sent = events.assign(session=(events["event"] == "launched").cumsum())[events["event"] == "message_send"]
    tokens = sent["properties"].map(lambda p: p.get("prompt_tokens"))
    found = pd.DataFrame(
        {"run": range(len(sent)), "session": sent["session"], "input_total": tokens, "start_ns": sent["time"]}
    )
    return found.dropna().astype({"input_total": np.int64}).reset_index(drop=True), "input"


SETS = {
    "mini-swe-agent-traj": mini_swe, "trae-trajectory": trae, "claude-code-transcripts": turns,
    "aider-analytics": aider,
    "azure-llm-2023/code": lambda: azure("code"), "azure-llm-2023/conv": lambda: azure("conv"),
    "mooncake-trace": mooncake,
}  # fmt: skip


def halves(frame: pd.DataFrame, split: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    rng = np.random.default_rng(seed)
    cluster = next((name for name in ("repo", "session") if name in frame.columns), None)
    if split == "cluster" and cluster is None:
        return None
    if split == "random":
        first = rng.permutation(len(frame)) < len(frame) / 2
    elif split == "time":
        first = frame["start_ns"].rank(method="first").to_numpy() <= len(frame) / 2
    else:
        labels = frame[cluster].unique()
        first = frame[cluster].isin(rng.permutation(labels)[: len(labels) // 2]).to_numpy()
    return frame[first].reset_index(drop=True), frame[~first].reset_index(drop=True)


def chosen(frame: pd.DataFrame, channel: str) -> tuple[float, int] | None:
    """Choose for the largest target that the half supports; with clusters first, without where they are too few."""
    for cluster in ("auto", None):
        for target in (0.95, 0.9, 0.8):
            found = ceiling(frame, channel, target=target, cluster=cluster).ceiling
            if found is not None:
                return target, found
    return None


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", SETS)
def test_a_promise_made_on_one_half_holds_on_the_other_or_the_drift_says_why(name: str, split: str) -> None:
    if not (DATA / name.split("/")[0]).is_dir():
        pytest.skip("recorded runs are not here")
    frame, channel = SETS[name]()
    assert len(frame) >= 200
    parts = halves(frame.assign(outcome="completed"), split, seed=1)
    if parts is None:
        pytest.skip("no clusters are recorded")
    target, limit = chosen(parts[0], channel)
    column = {"cost": "cost_nusd", "time": "duration_ns", "input": "input_total"}[channel]
    kept = int((parts[1][column] <= limit).sum())
    broken = binomtest(kept, len(parts[1]), target, alternative="less").pvalue < 0.01
    if split == "random":
        assert not broken
    elif broken:
        assert [one.column for one in drift(*parts, columns=[column], cluster=None).moved] == [column]
