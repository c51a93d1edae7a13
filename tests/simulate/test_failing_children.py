"""A child that raises has failed and its tree goes on; a tree that nothing bounds is given up with one clear error."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.ports import Call, Child, Children
from harness_lab.errors import TreeTooLarge
from harness_lab.outcome import Cause, Outcome
from harness_lab.policies import COMPLETED, End, reservation_pool, tree_limits, unlimited
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Spawn, VirtualLoop, Workload
from harness_lab.simulate.engine import ENGINES, LARGEST, Engine
from harness_lab.simulate.rows import Rows
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

ONE = Distribution.constant(1)
FAILED = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)


class Moody:
    """A model that answers like a mock, and raises for some agents."""

    def __init__(self) -> None:
        answers = ModelProfile(output_tokens=ONE, latency_s=ONE)
        self._mock = MockProvider(models={"m": answers}).compile()
        self.bound, self.abandoned = self._mock.bound, self._mock.abandoned

    async def complete(self, runtime: Any, call: Call) -> Any:
        if call.key == 13:
            raise ZeroDivisionError("nobody expected this")
        return await self._mock.complete(runtime, call)


def solo(key: int) -> Any:
    yield Call("m", key, 0, 0, 10)
    return COMPLETED


def _kid(slot: int, key: int) -> Child:
    return Child(agent="kid", budget=amounts(calls=1), call=0, slot=slot, brain=lambda: solo(key))


def lead(told: list[Any]) -> Any:
    kids = [_kid(slot, key) for slot, key in enumerate((1, 13, 2))]
    ends = yield Children(kids)
    told.extend(ends)
    yield Call("m", 3, 1, 0, 10)
    return COMPLETED


def play(engine: Engine, policy: Any, rows: Rows, brain: Any) -> None:
    loop, sim = VirtualLoop(), SimRuntime()
    harness = Harness(sim if engine == "kernel" else AsyncioRuntime(loop), policy, Moody(), rows)
    main = harness.run("lead", amounts(), brain)
    if engine == "kernel":
        sim.kernel.spawn(main, "main")
        sim.kernel.run()
    else:
        loop.run_until_complete(main)
        loop.run_on()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_child_that_raises_has_failed_and_its_parent_and_siblings_go_on(engine: Engine) -> None:
    policy, rows = reservation_pool(calls=9).start(), Rows()
    told: list[Any] = []
    play(engine, policy, rows, lambda: lead(told))
    assert told == [COMPLETED, FAILED, COMPLETED]
    assert policy.modules[0].pool.held() == (0, 0, 0, 0, 0)  # type: ignore[attr-defined]
    assert len(rows.nodes) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_the_error_of_a_root_is_raised(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError):
        play(engine, unlimited().start(), Rows(), lambda: solo(13))


def endless(children: int, policy: Any) -> Experiment:
    self_spawning = Spawn(agent="root", count=children, after=(0,))
    agent = AgentProfile(model="m", calls=ONE, startup_tokens=ONE, spawns=(self_spawning,))
    provider = MockProvider(models={"m": ModelProfile(output_tokens=ONE, latency_s=ONE)})
    return Experiment(
        workload=Workload(agents={"root": agent}, root="root"), provider=provider, policies=(policy,), runs=1
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_of_agents_that_never_ends_is_given_up(engine: Engine) -> None:
    with pytest.raises(TreeTooLarge, match=r"^tree too large \(policy unlimited, run 0\): .* tree_limits\(max_depth"):
        endless(1, unlimited()).run(engine=engine)


def test_a_tree_that_grows_in_width_is_given_up_and_the_error_survives_a_worker() -> None:
    with pytest.raises(TreeTooLarge) as caught:
        endless(40, unlimited()).run()
    assert LARGEST[0] < caught.value.nodes <= LARGEST[0] + 40
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_the_same_agents_under_a_limit_end() -> None:
    nodes = endless(1, tree_limits(max_depth=3)).run().settlements.nodes
    assert nodes["outcome"].tolist().count("completed") == 4
