"""The agent tree that the engines are measured on: three levels, shared money, slots, time limits, failing calls.

Up to 12 calls at the root and two fan-outs of three; a child makes up to 6 calls and may fan out once more; its
children make up to 4. Two children of one parent work at once, the third waits for a slot; a child lives one minute at
most; 3 % of the calls fail and are retried.
"""

from __future__ import annotations

from harness_lab.policies import PolicySpec, compose, reservation_pool, shared_ledger, tree_limits
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

SLOTS = 2
TIMEOUT_S = 60.0


def money() -> PolicySpec:
    """Return what may be spent: a ledger over the tree and a pool from which children are given their share."""
    ledger = shared_ledger(200, 20.0, unknown_usage="charge-hold")
    return compose(ledger, reservation_pool(tokens=2_000_000, unknown_usage="charge-hold"), name="money")


def tree_policy() -> PolicySpec:
    """Return the same money, under limits on depth, starts, slots and time."""
    limits = tree_limits(2, SLOTS, 30, TIMEOUT_S, concurrency="parent", max_wait_s=3600)
    return compose(money(), limits, name="money in a tree")


def tree_experiment(runs: int) -> Experiment:
    """Return the trees under :func:`tree_policy`."""
    return Experiment(workload=_workload(), provider=_provider(), policies=(tree_policy(),), runs=runs, name="trees")


def _workload() -> Workload:
    child = Spawn(agent="child", count=3, budget=amounts(tokens=90_000), after=(3, 7), chance=0.6)
    grandchild = Spawn(agent="grandchild", count=3, after=(2,), chance=0.3)
    return Workload(
        agents={
            "root": _agent(12, spawns=(child,)),
            "child": _agent(6, spawns=(grandchild,)),
            "grandchild": _agent(4),
        },
        root="root",
    )


def _agent(calls: int, *, spawns: tuple[Spawn, ...] = ()) -> AgentProfile:
    return AgentProfile(
        model="m",
        calls=Distribution.constant(calls),
        startup_tokens=Distribution.of("lognorm", s=0.8, scale=1500),
        growth_tokens=Distribution.of("lognorm", s=0.8, scale=1500),
        spawns=spawns,
    )


def _provider() -> MockProvider:
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.9, scale=400),
        latency_s=Distribution.of("lognorm", s=0.6, scale=6),
        error_rate=0.03,
    )
    return MockProvider(models={"m": model}, prices=PriceTable({"m": (Price.usd_per_million(input=3, output=15),)}))
