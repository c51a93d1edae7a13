"""An agent that starts others whenever it can is stopped by each limit alone, and the rows name that limit."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.outcome import Code
from harness_lab.policies import (
    PRESETS,
    PolicySpec,
    call_holds,
    hard_cap,
    iteration_budget,
    preset,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload
from harness_lab.stats import Distribution

ONE, TWO, TEN = (Distribution.constant(n) for n in (1, 2, 10))
ALONE: dict[Code, PolicySpec] = {
    Code.MAX_DEPTH: tree_limits(max_depth=4),
    Code.MAX_CALLS: tree_limits(max_calls=40),
    Code.MAX_CONCURRENT: tree_limits(max_concurrent=7),
    Code.DEADLINE: tree_limits(timeout_s=6),
    Code.STEPS_EXHAUSTED: shared_ledger(50),
    Code.COST_EXHAUSTED: shared_ledger(10**6, 0.05),
    Code.TIME_EXHAUSTED: shared_ledger(10**6, None, 6),
    Code.BUDGET_EXHAUSTED: reservation_pool(tokens=900),
    Code.COST_CAP_WOULD_EXCEED: hard_cap(0.05),
    Code.ITERATIONS_EXHAUSTED: iteration_budget(50, whose="tree"),
}


def explosion(policy: PolicySpec) -> Any:
    """Run an agent that makes two calls and asks for two of its own kind after each."""
    spawns = (Spawn(agent="root", count=2, after=(0,)), Spawn(agent="root", count=2, after=(1,)))
    agent = AgentProfile(model="m", calls=TWO, startup_tokens=TEN, spawns=spawns)
    model = ModelProfile(output_tokens=ONE, latency_s=ONE, max_output_tokens=1)
    prices = PriceTable({"m": (Price.usd_per_million(input=100, output=0),)})
    world = Experiment(
        workload=Workload(agents={"root": agent}, root="root"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(policy,),
        runs=1,
    )
    return world.run().settlements.nodes


@pytest.mark.parametrize("code", ALONE, ids=str)
def test_each_limit_alone_ends_the_explosion_and_is_named(code: Code) -> None:
    nodes = explosion(ALONE[code])
    stopped = nodes[nodes["outcome"] != "completed"]
    named = set(stopped["stopped_by"].dropna())
    assert str(code) in named
    assert named <= {str(code), "parent-ended"}
    assert (nodes["starts"].sum() + 1) == (nodes["outcome"] != "denied").sum() < 1_500


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_ends_it(name: str) -> None:
    nodes = explosion(preset(name))
    assert (nodes["outcome"] == "denied").any()
    assert (nodes["outcome"] != "denied").sum() <= 1 + 4 + 16


def test_starts_are_counted_exactly() -> None:
    nodes = explosion(tree_limits(max_calls=40))
    assert (nodes["outcome"] != "denied").sum() == 41
    assert explosion(call_holds(calls=30))["calls"].sum() == 30
