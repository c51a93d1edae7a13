"""The public test doubles: what keeps its promises passes, and each broken promise is named."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from harness_lab.agents import Call, Reply
from harness_lab.policies import call_holds, compose, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import SimRuntime
from harness_lab.stats import Distribution
from harness_lab.testing import NotAsPromised, ScriptedModel, check_policy, check_provider


@pytest.mark.parametrize(
    "spec",
    [
        unlimited(),
        shared_ledger(5, max_cost_usd=0.2),
        reservation_pool(tokens=3_000, cost_usd=0.3),
        call_holds(tokens=5_000, cost_usd=2),
        compose(tree_limits(max_depth=1, max_calls=3), reservation_pool(calls=9), name="both"),
    ],
    ids=lambda spec: str(spec.name),
)
def test_the_policies_of_the_house_keep_their_promises(spec: Any) -> None:
    check_policy(partial(spec.start, "run"), trees=15)


class Broken:
    """A ledger with one broken promise."""

    def __init__(self, broken: str) -> None:
        self._broken = broken
        self._inner = shared_ledger(3).start("run")
        self.channels, self.blocking = self._inner.channels, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def would(self, ask: Any, now: Any) -> Any:
        return None if self._broken == "would" else self._inner.would(ask, now)

    def settle(self, step: Any, use: Any, now: Any) -> None:
        if self._broken == "settle":
            return
        self._inner.settle(step, use, now)

    def close(self, node: Any, use: Any, end: Any, now: Any) -> None:
        if self._broken != "close":
            self._inner.close(node, use, end, now)


@pytest.mark.parametrize(
    ("broken", "told"), [("would", r"would\(\) said"), ("settle", "settled twice"), ("close", "is still open")]
)
def test_a_broken_promise_of_a_policy_is_named(broken: str, told: str) -> None:
    with pytest.raises(NotAsPromised, match=told):
        check_policy(lambda: Broken(broken))


def a_world() -> Any:
    runtime = SimRuntime()

    def run(job: Any) -> None:
        runtime.kernel.spawn(job)
        runtime.kernel.run()

    return runtime, run


def test_the_mock_keeps_the_promises_of_a_provider() -> None:
    profile = ModelProfile(
        output_tokens=Distribution.of("expon", scale=99), latency_s=Distribution.constant(1), cache_ttl_s=60
    )
    prices = PriceTable({"m": (Price.usd_per_million(input=1, output=2),)})
    reply = check_provider(
        MockProvider(models={"m": profile}, prices=prices).compile(), a_world, Call("m", 5, 0, 0, 900, 100)
    )
    assert reply.input_fresh == 900


def test_a_broken_promise_of_a_provider_is_named() -> None:
    much = ScriptedModel([Reply("completed", 900, 0, 0, 10, 1, 1)], bound=(1, 800, None, None, None))
    with pytest.raises(NotAsPromised, match="input: 900 were used and at most 800 stated"):
        check_provider(much, a_world, Call("m", 5, 0, 0, 900))
    luck = iter(range(9))

    class Random(ScriptedModel):
        def fresh(self) -> ScriptedModel:
            return ScriptedModel([Reply("completed", next(luck), 0, 0, 10, 1, 1)])

    with pytest.raises(NotAsPromised, match="the same call came back as"):
        check_provider(Random([]), a_world, Call("m", 5, 0, 0, 900))
