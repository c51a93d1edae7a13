"""SimPy as an oracle: agents written as a SimPy model, which knows nothing of the kernel, give the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lab.bench import simpy_agents, simpy_events
from harness_lab.bench.trees import SLOTS, TIMEOUT_S, money, tree_experiment
from harness_lab.policies import PolicySpec, compose, reservation_pool, shared_ledger, tree_limits
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, fast
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
KEPT = {"keep_calls": False, "keep_decisions": False}


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows.nodes, key=lambda row: row[:2])


def check_all_agree(experiment: Experiment, funds: PolicySpec, *, slots: int, timeout_s: float) -> None:
    """Hold the kernel against SimPy (both ways), the virtual loop and the fast engine."""
    world, spec, runs = experiment.world(fast=True), experiment.policies[0], range(experiment.runs)
    expected = in_order(simpy_agents.simulate(world, funds, runs, slots=slots, timeout_s=timeout_s))
    kernel = world.block(spec, runs, engine="kernel", **KEPT)[0]
    assert in_order(kernel) == expected
    assert in_order(simpy_events.simulate(world, spec, runs)) == expected
    assert world.block(spec, runs, engine="asyncio", **KEPT)[0].nodes == kernel.nodes
    if fast.installed():
        assert fast.why_not(experiment.workload, experiment.provider, spec) is None
        one, two = (experiment.run(engine=e, backend="serial").digest() for e in ("kernel", "fast"))  # type: ignore[arg-type]
        assert one == two


def random_case(seed: int) -> tuple[Experiment, PolicySpec, int, float]:
    """Make a random tree with no two events at one instant but those that must be.

    Either money is short and no child waits, or children wait for slots and money is not short: what a child that waits
    hears when money runs out is this policy's own way, which a SimPy user would not write.
    """
    luck = Random(seed)  # noqa: S311 - no secret
    crowded, kids = luck.random() < 0.5, luck.randint(1, 4)
    slots, timeout = luck.randint(1, kids) if crowded else kids * 2, luck.choice([20.0, 60.0, 400.0])
    scarce = 1 if crowded else luck.choice([1, 20, 40])
    unknown: Any = luck.choice(["release", "charge-hold"])
    ledger = shared_ledger(2_000 // scarce, 20.0 / scarce, luck.choice([None, 90]), unknown_usage=unknown)
    if crowded:
        ledger = shared_ledger(10_000, unknown_usage=unknown)
    funds = compose(ledger, reservation_pool(tokens=4_000_000 // scarce, unknown_usage=unknown), name="funds")
    limits = tree_limits(
        3, slots, None, timeout, concurrency="parent", max_wait_s=99_999 if crowded else None
    )  # fmt: skip
    ask = amounts(tokens=luck.choice([None, 20_000, 90_000]))
    experiment = Experiment(
        workload=_workload(luck, kids, ask),
        provider=_provider(luck, sure=crowded),
        policies=(compose(funds, limits, name="both"),),
        runs=2,
        seed=seed,
    )
    return experiment, funds, slots, timeout


def _workload(luck: Random, kids: int, ask: Any) -> Workload:
    names = ["a", "b", "c"][: luck.choice([2, 2, 3])]
    agents = {}
    for name, below in zip(names, [*names[1:], None], strict=True):
        budget = ask if name == "a" else amounts()
        rules = () if below is None else (Spawn(agent=below, count=kids, budget=budget, after=(1, 3), chance=0.8),)
        agents[name] = AgentProfile(
            model="m",
            calls=Distribution.of("uniform", loc=1, scale=7),
            startup_tokens=Distribution.of("lognorm", s=0.6, scale=2000),
            growth_tokens=Distribution.of("gamma", a=2, scale=400),
            tool_s=Distribution.of("expon", scale=luck.choice([0.5, 4])),
            failure_rate=luck.choice([0.0, 0.2]),
            spawns=rules,
            max_attempts=luck.randint(1, 3),
            backoff_s=1.25,
        )
    return Workload(agents=agents, root="a")


def _provider(luck: Random, *, sure: bool) -> MockProvider:
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.9, scale=400),
        latency_s=Distribution.of("lognorm", s=0.6, scale=5),
        seconds_per_output_token=luck.choice([0.0, 0.011]),
        error_rate=luck.choice([0.0, 0.1]),
        unreported_rate=0.0 if sure else luck.choice([0.0, 0.05]),
        cache_share=luck.choice([0.0, 0.7]),
    )
    price = Price.usd_per_million(input=3, output=15, cache_read=0.3)
    return MockProvider(models={"m": model}, prices=PriceTable({"m": (price,)}))


@settings(RELAXED, max_examples=25)
@given(st.integers(0, 2**32))
def test_simpy_and_all_engines_agree_on_random_trees(seed: int) -> None:
    experiment, funds, slots, timeout = random_case(seed)
    check_all_agree(experiment, funds, slots=slots, timeout_s=timeout)


def test_simpy_and_all_engines_agree_on_the_trees_of_the_benchmark() -> None:
    check_all_agree(tree_experiment(60), money(), slots=SLOTS, timeout_s=TIMEOUT_S)


@pytest.mark.slow
@settings(RELAXED, max_examples=3_000)
@given(st.integers(0, 2**32))
def test_simpy_and_all_engines_agree_on_many_random_trees(seed: int) -> None:
    experiment, funds, slots, timeout = random_case(seed)
    check_all_agree(experiment, funds, slots=slots, timeout_s=timeout)
