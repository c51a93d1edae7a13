"""M/M/c against Erlang C: the kernel, the runtime and the policy's queue, held against a formula."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import pytest

from harness_lab.outcome import CHANNELS
from harness_lab.policies import COMPLETED, SpawnAsk, Use, tree_limits
from harness_lab.simulate import SimRuntime
from harness_lab.usage import amounts

NOTHING = Use((0,) * len(CHANNELS))


def erlang_c(servers: int, load: float) -> float:
    """Return the chance that a customer of M/M/c has to wait (A. K. Erlang, 1917)."""
    waits = load**servers / factorial(servers) * servers / (servers - load)
    return waits / (sum(load**k / factorial(k) for k in range(servers)) + waits)


def waits_of(servers: int, load: float, customers: int, seed: int) -> Any:
    """Return how long each of many customers waits for one of some slots, in mean times of service."""
    luck = np.random.default_rng(seed)
    arrivals = np.cumsum(luck.exponential(1e9 / load, customers)).astype(int).tolist()
    services = luck.exponential(1e9, customers).astype(int).tolist()
    runtime, waits = SimRuntime(), np.zeros(customers)
    policy = tree_limits(1, servers, max_wait_s=1e7).start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), runtime.now())

    async def customer(i: int) -> None:
        await runtime.sleep(arrivals[i])
        ask = SpawnAsk(root.ticket, ((i, 0, 0),), amounts())
        answer: Any = await runtime.ask(policy, policy.spawn, ask)
        waits[i] = runtime.now() - arrivals[i]
        await runtime.sleep(services[i])
        policy.close(answer.ticket, NOTHING, COMPLETED, runtime.now())
        runtime.drain(policy)

    for i in range(customers):
        runtime.kernel.spawn(customer(i))
    runtime.kernel.run()
    return waits / 1e9


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (3, 2.1), (8, 6.4)])
def test_waiting_in_the_policys_queue_is_erlang_c(servers: int, load: float) -> None:
    waits = waits_of(servers, load, customers=12_000, seed=servers)[1_000:]
    for measured, expected in (
        ((waits > 0).astype(float), erlang_c(servers, load)),
        (waits, erlang_c(servers, load) / (servers - load)),
    ):
        batches = measured.reshape(20, -1).mean(axis=1)
        assert abs(batches.mean() - expected) < 4 * batches.std(ddof=1) / 20**0.5
