"""Intervals of results against known truths, clustered: a small version, and 2,000 repetitions.

Where each interval that the package prints is held against its truth:

======================================================== ========================================================
mean, share, ratio, clustered difference, lower end      ``stats/test_coverage_of_estimates``, ``stats/test_paired``
mean to the end, incidence and its band, set of the best ``stats/test_coverage_of_estimates``, ``stats/test_incidence``
quantile, median under stops, shift, place of a change   ``stats/test_quantiles``, ``test_survival``, ``test_shift``
race of policies; Holm where all are equal               ``stats/test_selection``; ``stats/test_coverage_of_estimates``
ceiling; month of a flat price                           ``test_analyze_ceilings``; ``test_analyze_prices``
split, limits, reprice, flat price, curve, policies,     here
floor costs, holds, period budget, saving of a ceiling
======================================================== ========================================================
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import (
    break_even_runs,
    ceiling_curve,
    cheapest_ceiling,
    compare,
    flat_price,
    floor_costs,
    hold_sizes,
    limit_report,
    period_budget,
    reprice,
    spend_split,
)  # fmt: skip
from harness_lab.pricing import Price, PriceTable

if TYPE_CHECKING:
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


Ends = tuple[float | None, float | None]


def ends(one: Estimate) -> Ends:
    return one.low, one.high


def row(frame: pd.DataFrame, *names: str) -> dict[str, Ends]:
    first = frame.iloc[0]
    return {name: (float(first[f"{name}_low"]), float(first[f"{name}_high"])) for name in names}


def failing(seed: int, users: int = 30) -> pd.DataFrame:
    """Let what did not complete fail: then no run was stopped."""
    data = clustered(seed, users)
    return data.assign(outcome=data["outcome"].replace("exhausted", "failed"), stopped_by=None, delivered=True)


def stopped(seed: int, users: int = 30) -> pd.DataFrame:
    """Stop runs at limits that do not depend on them, and leave the rest as in :func:`failing`."""
    data, limit = failing(seed, users), np.random.default_rng(seed + 10**7).lognormal(10, 0.5, users * 10)
    cut = limit * 1000 < data["cost_nusd"]
    return data.assign(
        cost_nusd=np.where(cut, limit * 1000, data["cost_nusd"]).astype(np.int64),
        outcome=np.where(cut, "exhausted", data["outcome"]), stopped_by=np.where(cut, "cost-exhausted", None),
    )  # fmt: skip


def two_policies(seed: int, users: int = 30) -> pd.DataFrame:
    first, rng = clustered(seed, users).assign(policy="a"), np.random.default_rng(seed + 10**7)
    lost = rng.random(len(first)) < 0.1
    cost = (first["cost_nusd"] * rng.uniform(0.6, 1.0, len(first))).astype(np.int64)
    outcome = np.where(lost, "failed", first["outcome"])
    return pd.concat([first, first.assign(policy="b", cost_nusd=cost, outcome=outcome)], ignore_index=True)


def split(seed: int) -> dict[str, Ends]:
    sides = [clustered(2 * seed + k, scale=1 + 0.5 * k).assign(agent=lambda d: np.where(d.index % 2, "x", "y"))
             for k in (0, 1)]  # fmt: skip
    found = spend_split(*sides, by="agent")
    group = found.groups.iloc[0]
    effects = {f"{name} effect": ends(one) for name, one in found.effects.items()}
    return effects | {"price effect of a group": (group["price_usd_low"], group["price_usd_high"])}


def limits(seed: int) -> dict[str, Ends]:
    found = limit_report(clustered(seed).assign(wait_ns=lambda d: np.where(d["input_total"] > 12_000, 10**9, 0)))
    use = found.uses[0]
    return {
        "runs ended": ends(use.ended), "nodes ended": ends(use.nodes_ended), "spend of ended": ends(use.spend_usd),
        "wasted share": ends(found.wasted[()]), "waited": ends(found.waited[()]), "seconds": ends(found.waited_s[()]),
    }  # fmt: skip


def prices(seed: int) -> dict[str, Ends]:
    found = reprice(clustered(seed, scale=0.5), TABLE)
    figures = {"recorded": found.recorded, "repriced": found.repriced, "change": found.change}
    return {name: ends(one) for name, one in (figures | {"median": found.quantiles[0.5]}).items()}


def flat(seed: int) -> dict[str, Ends]:
    found = flat_price(clustered(seed), price_usd=0.012)
    names = ("cost", "expected_margin", "loss_run", "loss_size")
    even = break_even_runs(clustered(seed), fee_usd=1.0)
    return {name: ends(getattr(found, name)) for name in names} | {"break even": ends(even)}


def curve(seed: int) -> dict[str, Ends]:
    found = ceiling_curve(failing(seed), candidates=[12e6])
    return row(found, "cut_share", "avoided_share", "sunk_share", "completed_share")


def stopped_curve(seed: int) -> dict[str, Ends]:
    return row(ceiling_curve(stopped(seed), candidates=[12e6]), "completed_share")


def policies(seed: int) -> dict[str, Ends]:
    found = compare(two_policies(seed))
    own = {name: ends(getattr(found.policies[1], name)) for name in ("completed", "spend", "wasted", "wasted_share")}
    return own | {f"less {one.metric}": ends(one.found.difference) for one in found.contrasts}


def floor(seed: int) -> dict[str, Ends]:
    return row(floor_costs(clustered(seed), candidates=[8000]).frame, "falsely_refused", "doomed_through")


def hold(seed: int) -> dict[str, Ends]:
    found = hold_sizes(clustered(seed), "input_total", pool=40_000, at_once=5, holds=[8000], level="run").frame
    return row(found, "overshoot_chance", "false_refusals")


def period(seed: int) -> dict[str, Ends]:
    found = period_budget(clustered(seed, users=60), budget_usd=0.45, period_runs=40, periods=100, samples=60)
    return {"exceeded": ends(found.exceeded), "blocked": ends(found.blocked)}


ASKED = {
    "split": split, "limits": limits, "prices": prices, "flat": flat, "curve": curve, "stopped curve": stopped_curve,
    "policies": policies, "floor": floor, "hold": hold, "period": period,
}  # fmt: skip


@cache
def truths() -> dict[str, dict[str, float]]:
    """Return what a population of 40,000 users has."""
    big, good, two = (make(10**6, 40_000) for make in (clustered, lambda *a: failing(*a)["outcome"], two_policies))
    good, tokens = (good == "completed").to_numpy(), big["input_total"].to_numpy()
    cost = big["cost_nusd"].to_numpy() * 1e-9
    rows = hold_sizes(big, "input_total", pool=40_000, at_once=5, holds=[8000], level="run").frame.iloc[0]
    over, beyond = np.maximum(cost - 0.012, 0), cost > 0.012
    b = two[two["policy"] == "b"].reset_index(drop=True)
    done, paid = (b["outcome"] == "completed").to_numpy(), b["cost_nusd"].to_numpy() * 1e-9
    months = cost.reshape(-1, 40)  # periods of four users, in whose order nothing changes for a sum
    mixed = np.random.default_rng(0).permuted(months, axis=1).cumsum(axis=1) > 0.45
    return {
        "split": {"price effect": 0.5 * cost.mean(), "tokens effect": 0, "mix effect": 0, "price effect of a group":
                  0.25 * cost.mean()},
        "limits": {"runs ended": 1 - good.mean(), "nodes ended": 1 - good.mean(), "spend of ended": cost[~good].mean(),
                   "wasted share": cost[~good].sum() / cost.sum(), "waited": (tokens > 12_000).mean(),
                   "seconds": (tokens > 12_000).mean()},
        "prices": {"recorded": 0.5 * cost.mean(), "repriced": 2 * cost.mean(), "change": 1.5 * cost.mean(),
                   "median": 2 * float(np.median(cost))},
        "flat": {"cost": cost.mean(), "expected_margin": 1 - cost.mean() / 0.012, "loss_run": beyond.mean(),
                 "loss_size": over[beyond].mean(), "break even": 1 / cost.mean()},
        "curve": {"cut_share": beyond.mean(), "avoided_share": over.sum() / cost.sum(),
                  "sunk_share": 0.012 * beyond.sum() / cost.sum(), "completed_share": (good & ~beyond).mean()},
        "stopped curve": {"completed_share": (good & ~beyond).mean()},
        "policies": {"completed": done.mean(), "spend": paid.mean(), "wasted": paid[~done].sum() / done.size,
                     "wasted_share": paid[~done].sum() / paid.sum(), "less completed": done.mean() - good.mean(),
                     "less cost_nusd": paid.mean() - cost.mean(),
                     "less wasted_nusd": (paid[~done].sum() - cost[~good].sum()) / done.size},
        "floor": {"falsely_refused": (tokens[good] < 8000).mean(), "doomed_through": (tokens[~good] >= 8000).mean()},
        "hold": {name: float(rows[name]) for name in ("overshoot_chance", "false_refusals")},
        "period": {"exceeded": mixed[:, -1].mean(), "blocked": mixed.mean()},
    }  # fmt: skip


@pytest.mark.parametrize("repeats", [60, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_of_results_cover_clustered_truth(name: str, repeats: int) -> None:
    truth = truths()[name]
    held = dict.fromkeys(truth, 0)
    for seed in range(repeats):
        for figure, (low, high) in ASKED[name](seed).items():
            held[figure] += bool(low is not None and high is not None and low <= truth[figure] <= high)
    worst = {figure: n / repeats for figure, n in held.items()
             if binomtest(n, repeats, 0.95, alternative="less").pvalue <= 0.01 / len(held)}  # fmt: skip
    assert not worst


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
