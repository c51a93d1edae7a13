"""Cancelling, on both runtimes: parent first, then children in order; nobody is left behind, and all ends at once."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness_lab.agents import AsyncioRuntime
from harness_lab.clock import NS_PER_S, Time
from harness_lab.policies import COMPLETED, End, PolicySpec, tree_limits, unlimited
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Spawn, VirtualLoop, Workload
from harness_lab.simulate.engine import ENGINES, Engine
from harness_lab.stats.distributions import Distribution

Main = Callable[[Any, list[str]], Awaitable[Any]]
SECOND = Time(NS_PER_S)


def run(engine: Engine, main: Main) -> list[str]:
    """Run a coroutine on one of the runtimes and return what it logged."""
    log: list[str] = []
    if engine == "kernel":
        runtime = SimRuntime()
        runtime.kernel.spawn(main(runtime, log))  # type: ignore[arg-type]
        runtime.kernel.run()
    else:
        loop = VirtualLoop()
        loop.run_until_complete(main(AsyncioRuntime(loop), log))
    return log


def node(runtime: Any, log: list[str], name: str, *children: Any, ns: int = 9 * NS_PER_S) -> Any:
    """Return a job that works or waits for children, and logs what happens to it."""

    async def job() -> End:
        try:
            await (runtime.gather([child() for child in children]) if children else runtime.sleep(ns))
        except CancelledError:
            log.append(f"{name} cancelled")
            raise
        finally:
            log.append(f"{name} ended")
        return COMPLETED

    return job


@pytest.mark.parametrize("engine", ENGINES)
def test_leaves_are_cancelled_in_creation_order_and_a_parent_ends_after_its_children(engine: Engine) -> None:
    async def main(runtime: Any, log: list[str]) -> None:
        tree = [node(runtime, log, "a", node(runtime, log, "a0"), node(runtime, log, "a1")), node(runtime, log, "b")]
        late = await runtime.until(SECOND, node(runtime, log, "root", *tree)())
        log.append(f"{late} at {runtime.now()}")

    assert run(engine, main) == [
        *["b cancelled", "b ended"],  # the first in creation order that has nobody below
        *["a0 cancelled", "a0 ended", "a1 cancelled", "a1 ended"],
        *["a cancelled", "a ended", "root cancelled", "root ended"],
        f"None at {SECOND}",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_that_ends_in_time_gives_its_end_and_one_at_the_deadline_none(engine: Engine) -> None:
    async def main(runtime: Any, log: list[str]) -> None:
        for ns in (NS_PER_S - 1, NS_PER_S, NS_PER_S + 1):
            end = await runtime.until(Time(runtime.now() + NS_PER_S), node(runtime, [], "job", ns=ns)())
            log.append(f"{end is not None} {runtime.now()}")

    assert run(engine, main) == ["True 999999999", "False 1999999999", "False 2999999999"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_cancel_leaves_no_child_behind(engine: Engine) -> None:
    async def main(runtime: Any, log: list[str]) -> None:
        async def slow() -> End:
            try:
                await runtime.sleep(9 * NS_PER_S)
            except CancelledError:
                await runtime.sleep(3 * NS_PER_S)  # it needs time to end
                log.append(f"slow ended at {runtime.now()}")
                raise
            return COMPLETED

        async def inner() -> Any:
            return await runtime.until(SECOND, runtime.gather([slow()]))

        late = await runtime.until(Time(2 * NS_PER_S), inner())
        log.append(f"outer {late} at {runtime.now()}")

    assert run(engine, main) == [f"slow ended at {4 * NS_PER_S}", f"outer None at {4 * NS_PER_S}"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadline_inside_is_not_taken_for_one_outside(engine: Engine) -> None:
    async def main(runtime: Any, log: list[str]) -> None:
        async def inner() -> Any:
            late = await runtime.until(SECOND, node(runtime, [], "job")())
            log.append(f"inner {late} at {runtime.now()}")
            await runtime.sleep(NS_PER_S // 2)
            return COMPLETED

        late = await runtime.until(Time(2 * NS_PER_S), inner())
        log.append(f"outer {late is not None} at {runtime.now()}")

    assert run(engine, main) == [f"inner None at {SECOND}", f"outer True at {3 * NS_PER_S // 2}"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_child_that_was_cancelled_before_it_began_never_begins(engine: Engine) -> None:
    async def main(runtime: Any, log: list[str]) -> None:
        late = await runtime.until(runtime.now(), node(runtime, log, "root", node(runtime, log, "child"))())
        log.append(str(late))

    assert run(engine, main) == ["root cancelled", "root ended", "None"]


def deep_world(spec: PolicySpec) -> Experiment:
    """Two branches of very different depth under one node, everybody busy when it is stopped."""
    one, long = Distribution.constant(1), Distribution.constant(50)

    def agent(*kinds: str) -> AgentProfile:
        spawns = tuple(Spawn(agent=kind, after=(0,)) for kind in kinds)
        return AgentProfile(
            model="m", calls=Distribution.constant(2), startup_tokens=one, tool_s=one if kinds else long, spawns=spawns
        )

    below = {"x": "pq", "p": "h", "q": "g", "g": "k", "k": "m", "m": "n", "h": "", "n": ""}
    return Experiment(
        workload=Workload(agents={name: agent(*kinds) for name, kinds in (below | {"root": "x"}).items()}, root="root"),
        provider=MockProvider(models={"m": ModelProfile(output_tokens=one, latency_s=one)}),
        policies=(spec,),
        runs=1,
    )


def test_every_cancel_is_delivered_before_any_parent_ends_on_both_runtimes() -> None:
    spec = tree_limits(timeout_s=6.5)
    experiment = deep_world(spec)
    orders = []
    for engine in ENGINES:
        rows, _ = experiment.world().block(spec, [0], engine=engine, keep_calls=False, keep_decisions=False)
        orders.append([row[1].count("/") for row in rows.nodes])  # depth below the node that was stopped
    assert orders == [[2, 5, 1, 4, 3, 2, 1, 0, 0]] * 2


def test_a_child_whose_time_is_up_before_it_begins_makes_no_call_and_spends_nothing_unknown() -> None:
    experiment = deep_world(tree_limits(timeout_s=0))
    nodes = experiment.run(backend="serial").settlements.nodes
    assert nodes["outcome"].tolist() == ["timed_out", "completed"]
    assert nodes["stopped_by"].tolist()[0] == "deadline"
    assert nodes["attempts"].tolist() == [0, 2]
    assert nodes["usage_known"].all()


def test_without_limits_nothing_is_cancelled() -> None:
    outcomes = deep_world(unlimited()).run(backend="serial").settlements.nodes["outcome"]
    assert set(outcomes) == {"completed"}
