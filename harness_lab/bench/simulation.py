"""What simulation costs: a simulated call against a bare generator step, and what a second worker gives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness_lab.bench.timing import entry, ratios
from harness_lab.policies import compose, reservation_pool, shared_ledger, tree_limits
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Generator


def call_ratio(*, quick: bool = False) -> dict[str, object]:
    """Return the CPU time of one simulated model call, in steps of a bare Python generator."""
    runs = 20 if quick else 400
    values = ratios(lambda: _per_call(runs), lambda: _per_step(200_000), repeats=3 if quick else 5)
    return entry(values, "one simulated model call with three real modules in the loop, in bare generator steps")


def workers_speedup(*, quick: bool = False) -> dict[str, object]:
    """Return how much faster two worker processes are than one, wall time; start-up is not counted."""
    experiment = agent_tree(runs=100 if quick else 4000)
    experiment.run(backend="loky", workers=2, only=range(2))
    one = ratios(lambda: _wall(experiment, workers=1), lambda: _wall(experiment, workers=2), repeats=1 if quick else 3)
    return entry(one, "wall time with one worker process over wall time with two")


def agent_tree(*, runs: int) -> Experiment:
    """Return a tree of up to thirteen agents under three composed modules."""
    growth = Distribution.of("lognorm", s=0.9, scale=800)
    child = Spawn(agent="worker", count=3, budget=amounts(tokens=400_000, cost_usd=0.5), chance=0.15)
    agents = {
        "lead": AgentProfile(
            model="m",
            calls=Distribution.of("lognorm", s=0.4, scale=8, high=12),
            startup_tokens=Distribution.of("lognorm", s=0.2, scale=4000),
            growth_tokens=growth,
            spawns=(child,),
        ),
        "worker": AgentProfile(
            model="m",
            calls=Distribution.of("lognorm", s=0.5, scale=5),
            startup_tokens=Distribution.of("lognorm", s=0.2, scale=9000),
            growth_tokens=growth,
        ),
    }
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.9, scale=400),
        latency_s=Distribution.of("lognorm", s=0.6, scale=6),
        error_rate=0.02,
        cache_share=0.8,
    )
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})
    policy = compose(shared_ledger(200, 10.0), reservation_pool(cost_usd=10.0), tree_limits(2, 3, 12, 600))
    return Experiment(
        workload=Workload(agents=agents, root="lead"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(policy,),
        runs=runs,
    )


def _per_call(runs: int) -> float:
    experiment = agent_tree(runs=runs)
    world = experiment.world()
    start = time.process_time()
    rows, _ = world.block(experiment.policies[0], range(runs), engine="kernel", keep_calls=False, keep_decisions=False)
    spent = time.process_time() - start
    return spent / sum(rows.attempts())


def _per_step(size: int) -> float:
    def steps() -> Generator[None, None, None]:
        for _ in range(size):
            yield

    start = time.process_time()
    for _ in steps():
        pass
    return (time.process_time() - start) / size


def _wall(experiment: Experiment, *, workers: int) -> float:
    start = time.perf_counter()
    experiment.run(backend="loky", workers=workers)
    return time.perf_counter() - start
