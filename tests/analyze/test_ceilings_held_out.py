"""A ceiling chosen on one part of a recorded set, checked on the other: at random, by cluster, in time.

What a run used is taken as what it needs. Sets of fewer than 200 runs are left out: 155 sessions of Claude Code (their
turns are here), 123 runs of Codex, 93 headless runs of Claude Code, 69 rows of a leaderboard.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pytest
import recorded_sets
from recorded_sets import DATA
from scipy.stats import binomtest

from harness_lab.analyze import ceiling, drift
from harness_lab.analyze.ceilings import COLUMN_OF

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the recorded sets are not here")

CHANNELS = {
    "mini-swe-agent-traj": ("calls", "input", "tokens", "cost", "time"),
    "trae-trajectory": ("calls", "input", "tokens", "time"),
    "claude-code-transcripts": ("calls", "input"),
    "aider-analytics": ("input", "tokens", "cost"),
    "azure-llm-2023 code": ("input", "tokens"),
    "azure-llm-2023 conv": ("input", "tokens"),
    "mooncake-trace": ("input", "tokens"),
}
"""Every set of at least 200 runs, and what it records of them."""
CASES = [(name, channel) for name, channels in CHANNELS.items() for channel in channels]
SPLITS = ("random", "cluster", "time")


class Checked(NamedTuple):
    """A ceiling that was chosen on one part and held against the other."""

    target: float
    kept: float
    p_value: float
    why: list[str]
    """Columns that drifted; looked for only where the promise is rejected."""


@cache
def records(name: str) -> tuple[pd.DataFrame, str]:
    """Return the runs of a set and the column by which they resemble each other."""
    if name == "claude-code-transcripts":
        return turns(), "session"
    make, cluster = recorded_sets.SETS[name]
    frame = make().nodes.reset_index(drop=True)
    start = frame["start_ns"] if frame["start_ns"].notna().all() else frame[cluster].rank(method="first")  # by day
    return frame.assign(outcome="completed", stopped_by=None, start_ns=start), cluster


def turns() -> pd.DataFrame:
    """Return 1,008 turns of interactive sessions."""
    calls = pd.read_csv(DATA / "claude-code-transcripts" / "calls.csv")
    calls = calls[calls["duplicate_of_other_file"].fillna(0).astype(str).isin(("0", "False", "0.0"))]
    parts = ["input_tokens", "cache_write_5m", "cache_write_1h", "cache_read_tokens"]
    calls = calls.assign(whole=calls[parts].fillna(0).sum(axis=1), start=pd.to_datetime(calls["ts"], format="ISO8601"))
    by = calls.groupby(["session", "turn"])
    found = by.agg(input_total=("whole", "sum"), start=("start", "min"), calls=("whole", "size")).reset_index()
    start = found["start"].dt.tz_localize(None).astype("datetime64[ns]").astype(np.int64)
    used = found[["input_total", "calls"]].astype("Int64")
    return found.assign(run=range(len(found)), start_ns=start, outcome="completed", **used)


def amounts(frame: pd.DataFrame, channel: str) -> pd.Series[float]:
    if channel == "tokens":
        return (frame["input_total"] + frame["output"]).astype("Float64")
    return frame[COLUMN_OF[channel]].astype("Float64")


def known(name: str, channel: str) -> tuple[pd.DataFrame, str]:
    frame, cluster = records(name)
    frame = frame[amounts(frame, channel).notna()].reset_index(drop=True)
    assert len(frame) >= 200
    return frame, cluster


def halves(frame: pd.DataFrame, cluster: str, split: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    if split == "random":
        first = rng.permutation(len(frame)) < len(frame) / 2
    elif split == "time":
        first = frame["start_ns"].rank(method="first").to_numpy(dtype=np.float64) <= len(frame) / 2
    else:
        labels = frame[cluster].unique()
        first = frame[cluster].isin(rng.permutation(labels)[: len(labels) // 2]).to_numpy(dtype=bool)
    return frame[first].reset_index(drop=True), frame[~first].reset_index(drop=True)


def chosen(frame: pd.DataFrame, channel: str, cluster: str) -> Iterator[tuple[float, int]]:
    """Yield (target, ceiling) from the largest target on; with clusters first, without where they are too few."""
    for group in (cluster, None):
        for target in (0.95, 0.9, 0.8, 0.7, 0.5):
            found = ceiling(frame, channel, target=target, cluster=group).ceiling  # type: ignore[arg-type]
            if found is not None:
                yield target, found


def check(name: str, channel: str, split: str, seed: int) -> Checked:
    frame, cluster = known(name, channel)
    chose, other = halves(frame, cluster, split, seed)
    target, limit = next(chosen(chose, channel, cluster))
    kept = int((amounts(other, channel) <= limit).sum())
    p = float(binomtest(kept, len(other), target, alternative="less").pvalue)
    column = "input_total" if channel == "tokens" else COLUMN_OF[channel]  # all but a few tokens are of prompts
    why = [one.column for one in drift(chose, other, columns=[column], cluster=None).moved] if p < 0.01 else []
    return Checked(target, kept / len(other), p, why)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("name", "channel"), CASES)
def test_a_promise_made_on_one_half_holds_on_the_other_or_the_drift_says_why(
    name: str, channel: str, split: str
) -> None:
    found = check(name, channel, split, seed=1)
    if split == "random":
        assert found.p_value >= 0.01, found
    elif found.p_value < 0.01:
        assert found.why == ["input_total" if channel == "tokens" else COLUMN_OF[channel]], found


@pytest.mark.slow
@pytest.mark.parametrize("split", ["random", "cluster"])
@pytest.mark.parametrize(("name", "channel"), CASES)
def test_over_many_splits_promises_are_seldom_rejected_and_never_without_a_reason(
    name: str, channel: str, split: str
) -> None:
    found = [check(name, channel, split, seed) for seed in range(2, 22)]
    broken = [one for one in found if one.p_value < 0.01]
    if split == "random":
        assert len(broken) <= 2, broken
    else:
        assert all(one.why for one in broken), broken
