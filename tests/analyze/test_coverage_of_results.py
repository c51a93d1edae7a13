"""Intervals of results against known truths, clustered: a small version, and 2,000 repetitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import (
    break_even_runs,
    cheapest_ceiling,
    floor_costs,
    hold_sizes,
    limit_report,
    reprice,
    spend_split,
)  # fmt: skip
from harness_lab.pricing import Price, PriceTable
from harness_lab.stats.estimates import Estimate

TABLE = PriceTable({"m": (Price.usd_per_million(input=2, output=2),)})


def clustered(seed: int, users: int = 30, each: int = 10, *, scale: float = 1.0) -> pd.DataFrame:
    """Make runs of users who resemble themselves: tokens, spend, and whether they complete."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), each)
    level = rng.normal(0, 0.5, users)[user]
    tokens = np.exp(9 + level + rng.normal(0, 0.5, user.size))
    done = rng.random(user.size) < 1 / (1 + np.exp(level - 1.5))
    frame = {"run": range(user.size), "user": [f"{seed}-{u}" for u in user], "model": "m", "output": 0}
    frame |= {"outcome": np.where(done, "completed", "exhausted"), "input_total": tokens.astype(np.int64)}
    frame |= {"stopped_by": np.where(done, None, "cost-exhausted"), "input_fresh": tokens.astype(np.int64)}
    frame |= {"cost_nusd": (tokens * 1000 * scale).astype(np.int64), "cache_read": 0, "cache_write": 0}
    return pd.DataFrame(frame)


def split(seed: int) -> Estimate:
    return spend_split(clustered(2 * seed), clustered(2 * seed + 1, scale=1.5), by="model").effects["tokens"]


def ended(seed: int) -> Estimate:
    return limit_report(clustered(seed)).uses[0].ended


def wasted(seed: int) -> Estimate:
    return limit_report(clustered(seed)).wasted[()]


def change(seed: int) -> Estimate:
    return reprice(clustered(seed), TABLE).change


def break_even(seed: int) -> Estimate:
    return break_even_runs(clustered(seed), fee_usd=1.0)


def falsely_refused(seed: int) -> tuple[float, float]:
    row = floor_costs(clustered(seed), candidates=[8000]).frame.iloc[0]
    return float(row["falsely_refused_low"]), float(row["falsely_refused_high"])


def overshoot(seed: int) -> tuple[float, float]:
    row = hold_sizes(clustered(seed), "input_total", pool=40_000, at_once=5, holds=[8000], level="run").frame.iloc[0]
    return float(row["overshoot_chance_low"]), float(row["overshoot_chance_high"])


def truths() -> dict[str, float]:
    """Return what a population of 40,000 users has."""
    big = clustered(10**6, users=40_000)
    good, tokens = (big["outcome"] == "completed").to_numpy(), big["input_total"].to_numpy()
    cost = big["cost_nusd"].to_numpy() * 1e-9
    rows = hold_sizes(big, "input_total", pool=40_000, at_once=5, holds=[8000], level="run").frame.iloc[0]
    return {
        "split": 0.0, "ended": 1 - good.mean(), "wasted": cost[~good].sum() / cost.sum(), "change": cost.mean(),
        "break_even": 1 / cost.mean(), "falsely_refused": (tokens[good] < 8000).mean(),
        "overshoot": float(rows["overshoot_chance"]),
    }  # fmt: skip


ASKED = {
    "split": split, "ended": ended, "wasted": wasted, "change": change, "break_even": break_even,
    "falsely_refused": falsely_refused, "overshoot": overshoot,
}  # fmt: skip


@pytest.mark.parametrize("repeats", [60, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_of_results_cover_clustered_truth(name: str, repeats: int) -> None:
    truth, held = truths()[name], 0
    for seed in range(repeats):
        found = ASKED[name](seed)
        low, high = (found.low, found.high) if isinstance(found, Estimate) else found
        held += bool(low is not None and low <= truth <= high)
    assert binomtest(held, repeats, 0.95, alternative="less").pvalue > 0.01, held / repeats


@pytest.mark.slow
def test_the_saving_of_a_ceiling_covers_over_2000_repetitions() -> None:
    held = 0
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        lost = rng.random(300) < 0.1
        usd = np.where(lost, 11.0, np.round(rng.uniform(0.1, 1.0, 300), 2))
        frame = {"run": range(300), "outcome": np.where(lost, "failed", "completed")}
        runs = pd.DataFrame(frame | {"cost_nusd": (usd * 1e9).astype(np.int64)})
        held += bool(cheapest_ceiling(runs, failure_usd=5).saving.holds(1.0))
    assert binomtest(held, 2000, 0.95, alternative="less").pvalue > 0.01, held / 2000
