"""The same agents on a real clock, a minute in three seconds: the simulation says what happens there.

Children race for slots and for money, and on a real clock a race is decided by jitter: the simulator's answer is one
legal order of several. So a few trees may differ; in a study of 200 such trees 196 to 197 did not, and the time that a
tree takes differed by 0.2 % in the median.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab import draws
from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.bench.trees import tree_experiment
from harness_lab.simulate.rows import Rows

if TYPE_CHECKING:
    import selectors

SCALE = 20
TREES = 100
_DECIDED = slice(1, 18)  # path, outcome, counts, cost; not times, nor the bill of a call that was stopped half-way


class _Scaled:
    """A selector that waits a part of the time that it is told to."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector

    def select(self, timeout: float | None = None) -> Any:
        return self._selector.select(timeout if timeout is None else timeout / SCALE)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)


class ScaledLoop(asyncio.SelectorEventLoop):
    """An ordinary event loop on a clock that runs fast and begins at 0."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        super().__init__()
        self._selector: Any = _Scaled(self._selector)

    def time(self) -> float:
        return (time.monotonic() - self._began) * SCALE


async def live(experiment: Any) -> dict[int, list[tuple[Any, ...]]]:
    """Run all trees of an experiment at once on the running loop."""
    world, spec, runtime = experiment.world(), experiment.policies[0], AsyncioRuntime()

    async def tree(run: int) -> Rows:
        rows, policy = Rows(), spec.start(str(run), None, runtime.now())
        harness = Harness(runtime, policy, world.model.fresh(), rows)
        brain = partial(world.agent.brain, draws.run_key(world.seed, run))
        await harness.run(world.agent.name, world.budget, brain)
        return rows

    found = await asyncio.gather(*(tree(run) for run in range(experiment.runs)))
    return {run: rows.nodes for run, rows in enumerate(found)}


@pytest.mark.slow
def test_a_real_clock_agrees_with_the_simulation() -> None:
    experiment = tree_experiment(TREES)
    loop = ScaledLoop()
    try:
        measured = loop.run_until_complete(live(experiment))
    finally:
        loop.close()
    same, errors = 0, []
    for run in range(TREES):
        rows, _ = experiment.world().block(
            experiment.policies[0], [run], engine="kernel", keep_calls=False, keep_decisions=False
        )
        simulated, real = (sorted(nodes, key=lambda row: row[1]) for nodes in (rows.nodes, measured[run]))
        same += [row[_DECIDED] for row in simulated] == [row[_DECIDED] for row in real]
        errors.append(abs(real[0][21] / simulated[0][21] - 1))
    assert same >= 0.95 * TREES
    assert statistics.median(errors) < 0.005
