"""Random small worlds in which things happen at the same instant all the time, and one fixed busy world."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    Grant,
    PolicySpec,
    ReservationPoolSpec,
    RuntimeFloorsSpec,
    SharedLedgerSpec,
    TreeLimitsSpec,
    unlimited,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import Amounts, amounts

PATH = FloorKey(backend="b", model="m")
LEVELS = ("a", "b", "c", "d", "e", "f", "g")
UNKNOWN = ("release", "charge-hold")


def random_experiment(seed: int) -> Experiment:
    """Make an experiment under one random composition of modules, and under no limit."""
    luck = Random(seed)  # noqa: S311 - no secret
    return Experiment(
        workload=_workload(luck),
        provider=_provider(luck),
        policies=(_policy(luck), unlimited()),
        runs=luck.randint(1, 3),
        seed=luck.randint(0, 99),
    )


def _whole(luck: Random, *values: int) -> Distribution:
    """A constant, so that ties are common, or a few whole values."""
    if luck.random() < 0.6:
        return Distribution.constant(luck.choice(values))
    return Distribution.empirical([luck.choice(values) for _ in range(3)])


def _ask(luck: Random) -> Amounts:
    prompt = luck.choice([None, None, 30, 60, 200])
    tokens = None if prompt is None else luck.choice([None, 60, 200])
    return amounts(calls=luck.choice([None, None, 1, 3]), input=prompt, tokens=tokens)


def _spawn(luck: Random, below: tuple[str, ...]) -> Spawn:
    return Spawn(
        agent=luck.choice(below),
        count=luck.choice([1, 1, 2, 3]),
        after=luck.choice([(0,), (0,), (0, 1), (1,)]),
        chance=luck.choice([1.0, 1.0, 0.5]),
        budget=_ask(luck),
    )


def _profile(luck: Random, below: tuple[str, ...]) -> AgentProfile:
    return AgentProfile(
        model="m",
        calls=_whole(luck, 1, 2, 3),
        startup_tokens=_whole(luck, 10, 20),
        growth_tokens=_whole(luck, 0, 5),
        tool_s=_whole(luck, 0, 1, 9),
        failure_rate=luck.choice([0.0, 0.0, 0.1]),
        spawns=tuple(_spawn(luck, below) for _ in range(luck.choice([1, 1, 2]))) if below else (),
        max_attempts=luck.randint(1, 3),
        backoff_s=luck.choice([0, 1]),
        floor_key=luck.choice([None, PATH]),
    )


def _workload(luck: Random) -> Workload:
    levels = LEVELS[: luck.choice([2, 3, 5, 7])]
    agents = {name: _profile(luck, levels[i + 1 : i + 3]) for i, name in enumerate(levels)}
    return Workload(agents=agents, root="a")


def _provider(luck: Random) -> MockProvider:
    model = ModelProfile(
        output_tokens=_whole(luck, 0, 5, 9),
        latency_s=_whole(luck, 0, 1, 2),
        error_rate=luck.choice([0.0, 0.0, 0.3]),
        unreported_rate=luck.choice([0.0, 0.0, 0.1]),
        cache_share=luck.choice([0.0, 0.5]),
        cache_write_share=luck.choice([0.0, 0.5]),
        max_output_tokens=8,
    )
    price = Price.usd_per_million(input=1, output=2, cache_read=0.1, cache_write=1.25)
    return MockProvider(models={"m": model}, prices=PriceTable({"m": (price,)} if luck.random() < 0.8 else {}))


def _policy(luck: Random) -> PolicySpec:
    wait = luck.choice([None, 0, 1, 4, 9])
    modules = [
        (0.4, _ledger(luck)),
        (0.4, _pool(luck)),
        (0.8, _tree(luck, per_tree=wait is None and luck.random() < 0.5)),
        (0.2, RuntimeFloorsSpec(table=FloorTable((FloorRow(key=PATH, floor=50),)))),
    ]
    luck.shuffle(modules)
    chosen = tuple(module for chance, module in modules if luck.random() < chance)
    return PolicySpec(name="random", modules=chosen, max_wait_s=wait)


def _ledger(luck: Random) -> SharedLedgerSpec:
    return SharedLedgerSpec(
        max_steps=luck.choice([5, 20, 200]),
        max_cost_usd=luck.choice([None, None, 4e-4]),
        max_seconds=luck.choice([None, None, 9]),
        unknown_usage=luck.choice(UNKNOWN),  # type: ignore[arg-type]
    )


def _pool(luck: Random) -> ReservationPoolSpec:
    return ReservationPoolSpec(
        calls=luck.choice([None, 20]),
        input=luck.choice([None, 200, 900]),
        tokens=luck.choice([None, None, 900]),
        cost_usd=luck.choice([None, None, 1e-4]),
        inside=luck.choice(["stop", "record"]),  # type: ignore[arg-type]
        unknown_usage=luck.choice(UNKNOWN),  # type: ignore[arg-type]
    )


def _tree(luck: Random, *, per_tree: bool) -> TreeLimitsSpec:
    return TreeLimitsSpec(
        max_depth=luck.choice([None, None, None, 2, 4]),
        max_concurrent=luck.choice([None, 1, 2, 3]),
        max_calls=luck.choice([None, None, None, 6]),
        timeout_s=luck.choice([None, 0, 1, 3, 5, 7]),
        concurrency="tree" if per_tree else "parent",
    )


@pytest.fixture(scope="session")
def experiments() -> st.SearchStrategy[Experiment]:
    """Return a strategy of random experiments; the first policy is random, the second none."""
    return st.integers(0, 2**32).map(random_experiment)


class Watched:
    """A policy that keeps count of the tickets that are open."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.modules = policy.modules
        self.tick, self.cancel = policy.tick, policy.cancel
        self.open: set[Any] = set()

    def spawn(self, ask: Any, now: Any) -> Any:
        return self._seen(self.policy.spawn(ask, now))

    def admit(self, ask: Any, now: Any) -> Any:
        return self._seen(self.policy.admit(ask, now))

    def settle(self, step: Any, use: Any, now: Any) -> None:
        self.policy.settle(step, use, now)
        self.open.discard(step)

    def close(self, node: Any, use: Any, end: Any, now: Any) -> None:
        self.policy.close(node, use, end, now)
        self.open.discard(node)

    def outbox(self) -> Any:
        for news in self.policy.outbox():
            self._seen(getattr(news, "grant", None))
            yield news

    def _seen(self, answer: Any) -> Any:
        if isinstance(answer, Grant):
            self.open.add(answer.ticket)
        return answer


class Kept:
    """A policy specification that keeps what it started."""

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        self.started: list[Watched] = []

    def start(self, run: str) -> Watched:
        self.started.append(Watched(self.spec.start(run)))
        return self.started[-1]


@pytest.fixture(scope="session")
def kept() -> type[Kept]:
    return Kept


@pytest.fixture
def busy() -> Experiment:
    """One fixed experiment in which every kind of limit is met."""
    profile = AgentProfile(
        model="m",
        calls=Distribution.of("uniform", loc=1, scale=7),
        startup_tokens=Distribution.of("lognorm", s=0.5, scale=9_000, high=60_000),
        growth_tokens=Distribution.of("gamma", a=2, scale=800),
        tool_s=Distribution.of("expon", scale=3),
    )
    ask = amounts(tokens=90_000)
    root = AgentProfile(
        model="m",
        calls=Distribution.of("uniform", loc=2, scale=5),
        startup_tokens=Distribution.constant(12_000),
        tool_s=Distribution.constant(2),
        spawns=(Spawn(agent="kid", count=3, budget=ask, after=(0, 2)), Spawn(agent="kid", chance=0.2, budget=ask)),
    )
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.8, scale=400, high=4_000),
        latency_s=Distribution.of("gamma", a=2, scale=2),
        error_rate=0.03,
        unreported_rate=0.01,
        cache_share=0.8,
        max_output_tokens=4_000,
    )
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})
    specs = (
        PolicySpec(name="ledger", modules=(SharedLedgerSpec(max_steps=25, max_cost_usd=1.0, max_seconds=150),)),
        PolicySpec(name="pool", modules=(ReservationPoolSpec(tokens=400_000),), max_wait_s=30),
        PolicySpec(
            name="tree",
            modules=(TreeLimitsSpec(max_depth=1, max_concurrent=2, max_calls=5, timeout_s=45),),
            max_wait_s=60,
        ),
    )
    return Experiment(
        workload=Workload(agents={"root": root, "kid": profile}, root="root"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(*specs, unlimited()),
        runs=40,
        seed=7,
    )
