"""Worlds in which more happens than one run alone: many runs at once, faults, deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab import draws
from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.policies.log import Logged
from harness_lab.simulate.conservation import check_conserved
from harness_lab.simulate.delivery import deliveries
from harness_lab.simulate.engine import LARGEST, World
from harness_lab.simulate.faults import around
from harness_lab.simulate.rows import Rows
from harness_lab.simulate.runtime import SimRuntime
from harness_lab.simulate.scratch import Scratch
from harness_lab.simulate.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from harness_lab.agents.ports import Runtime, WorldModel
    from harness_lab.policies import Policy, PolicySpec
    from harness_lab.policies.log import Decision
    from harness_lab.providers import MockProvider
    from harness_lab.simulate.arrivals import Arriving
    from harness_lab.simulate.engine import Engine
    from harness_lab.simulate.faults import ActiveFault
    from harness_lab.simulate.workload import Agent, Workload


EPOCH_NS = 1_767_571_200 * 10**9
"""Monday, 5 January 2026, 00:00 UTC: when a world without arrivals begins, for policies that read a calendar."""


def build_world(workload: Workload, provider: MockProvider, seed: int) -> World:
    """Return the compiled agents and provider of a workload: the plain world unless more happens in it."""
    agents = workload.compile()
    model = provider.compile()
    if workload.arrivals is not None or workload.faults:
        return BusyWorld(workload, agents, model, seed)
    if any(profile.delivery for profile in workload.agents.values()):
        return DeliveringWorld(workload, agents, model, seed)
    return World(agents[workload.root], workload.budget, model, seed)


class DeliveringWorld(World):
    """A world of which it is told, once its runs have ended, which nodes delivered."""

    __slots__ = ("_agents",)

    def __init__(self, workload: Workload, agents: dict[str, Agent], model: WorldModel, seed: int) -> None:
        super().__init__(agents[workload.root], workload.budget, model, seed)
        self._agents = agents

    def finish(self, nodes: pd.DataFrame) -> pd.DataFrame:
        """Return rows of nodes with their deliveries."""
        nodes["delivered"] = deliveries(nodes, self._agents, self.root_key)
        return nodes

    def root_key(self, run: str) -> int:
        """Return the draw key of a run's root by the name of the run."""
        period, _, number = run.partition(".")
        key = draws.run_key(self.seed, int(period))
        return draws.child_key(key, int(number), 0) if number else key


class BusyWorld(DeliveringWorld):
    """A world with arrivals or faults.

    With arrivals, each run of an experiment is a period: its rows are named ``period.number``, their `session` is the
    period and their `user` who started the run. Runs of one period meet the same provider, and one policy if it is
    shared, so they are not independent of one another; periods are.
    """

    __slots__ = ("_arriving", "_delivers", "_faults")

    def __init__(self, workload: Workload, agents: dict[str, Agent], model: WorldModel, seed: int) -> None:
        super().__init__(workload, agents, model, seed)
        self._faults = workload.faults
        self._arriving: Arriving | None = None if workload.arrivals is None else workload.arrivals.compile()
        self._delivers = any(profile.delivery for profile in workload.agents.values())

    def block(
        self, spec: PolicySpec, runs: Sequence[int], *, engine: Engine, keep_calls: bool, keep_decisions: bool
    ) -> tuple[Rows, list[tuple[Any, Decision]]]:
        """Simulate some runs, or periods, under one policy; see :meth:`World.block`."""
        rows, decisions = Rows(), []
        for run in runs:
            period = _Period(self, spec, run, keep_calls=keep_calls, keep_decisions=keep_decisions)
            try:
                period.play(engine)
            finally:
                period.close()
            for one in period.rows:
                rows.nodes += one.nodes
                rows.calls += one.calls
            decisions += period.decisions()
        return rows, decisions

    def finish(self, nodes: pd.DataFrame) -> pd.DataFrame:
        """Return rows of nodes with what is told afterwards: deliveries, and session and user of runs that arrived."""
        if self._delivers:
            nodes = super().finish(nodes)
        if self._arriving is not None:
            parts = nodes["run"].str.split(".", n=1)
            nodes["session"] = parts.str[0].astype("string")
            users = {run: self._user(self._arriving, run) for run in nodes["run"].unique()}
            nodes["user"] = nodes["run"].map(users).astype("string")
        return nodes

    def _user(self, arriving: Arriving, run: str) -> str:
        period, _, number = run.partition(".")
        return arriving.user(draws.run_key(self.seed, int(period)), int(number))


class _Period:
    """One run, or all runs of one period, under one policy."""

    def __init__(self, world: BusyWorld, spec: PolicySpec, run: int, *, keep_calls: bool, keep_decisions: bool) -> None:
        self._world = world
        self._run = run
        self._spec = spec
        self._key = draws.run_key(world.seed, run)
        self._model = world.model.fresh()
        self._keep_calls = keep_calls
        self._logged: list[tuple[str, Logged]] | None = [] if keep_decisions else None
        self._asked: list[Policy] = []
        self._faults: list[ActiveFault] = [fault.started(self._key) for fault in world._faults]
        arriving = world._arriving
        self._times = [] if arriving is None else arriving.times(self._key)
        self._scratch: Scratch | None = None
        self._policy = self._policies(spec)
        self.rows: list[Rows] = []

    def play(self, engine: Engine) -> None:
        """Let all of it happen."""
        if engine == "kernel":
            runtime = SimRuntime()
            runtime.kernel.spawn(self._all(runtime), f"run {self._run}")
            runtime.kernel.run()
        elif engine == "asyncio":
            loop = VirtualLoop()
            loop.run_until_complete(self._all(AsyncioRuntime(loop)))
            loop.run_on()
        else:
            raise InputError("engine", expected="kernel or asyncio, for arrivals and faults", got=engine)
        self._check()

    def _check(self) -> None:
        """Hold the books of every policy against the rows of the runs that stood under it."""
        if self._faults:
            return  # a dead worker's books are open, and that is what is looked at
        if len(self._asked) == len(self.rows):
            pairs = zip(self._asked, self.rows, strict=True)
        else:
            whole = Rows()
            whole.run = self._run
            whole.reported_nusd = sum(rows.reported_nusd for rows in self.rows)
            pairs = zip(self._asked, [whole], strict=True)
        for policy, rows in pairs:
            check_conserved(policy, rows, self._spec)

    def close(self) -> None:
        """Close the state that its runs shared."""
        if self._scratch is not None:
            self._scratch.close()

    def decisions(self) -> list[tuple[Any, Decision]]:
        """Return every answer of every policy, if they were kept."""
        return [(run, decision) for run, logged in self._logged or () for decision in logged.decisions]

    async def _all(self, runtime: Runtime) -> None:
        outer = runtime
        for fault in reversed(self._faults):
            outer = fault.runtime(outer)
        arriving = self._world._arriving
        if arriving is None:
            await self._tree(outer, str(self._run), self._key, self._policy(str(self._run), 0))
            return
        jobs = []
        for number, at in enumerate(self._times):
            jobs.append(runtime.start(self._arrive(outer, number, at)))
        for job in jobs:
            await job.ended()

    async def _arrive(self, runtime: Runtime, number: int, at: int) -> None:
        await runtime.sleep(at)
        run = f"{self._run}.{number}"
        await self._tree(runtime, run, draws.child_key(self._key, number, 0), self._policy(run, number))

    async def _tree(self, runtime: Runtime, run: str, key: int, policy: Policy) -> None:
        world = self._world
        rows = Rows()
        rows.run = run  # type: ignore[assignment]
        self.rows.append(rows)
        harness = Harness(runtime, policy, self._model, rows, keep_calls=self._keep_calls, largest=LARGEST)
        brain = world.agent.born(key, world.budget)
        if self._faults:
            brain = around(self._faults, brain, world.agent.name, (), key, runtime)
        await harness.run(world.agent.name, world.budget, brain)

    def _policies(self, spec: PolicySpec) -> Callable[[str, int], Policy]:
        """Return what makes the policy of a run by its name and number: its own, or the one of the whole period."""
        arriving = self._world._arriving
        if spec.scope != "run":
            self._scratch = Scratch(spec)
            opened = self._scratch.open
            start = EPOCH_NS if arriving is None else arriving.arrivals.start_ns

            def attached(run: str, number: int) -> Policy:
                now = 0 if arriving is None else self._times[number]
                user = "user-0" if arriving is None else arriving.user(self._key, number)
                return self._around(opened.start(run, {"user": user}, Time(now), wall_ns=start + now), run)

            return attached
        if arriving is not None and arriving.arrivals.shared:
            one = self._around(spec.start(str(self._run)), str(self._run))
            return lambda _run, _number: one
        return lambda run, _number: self._around(spec.start(run), run)

    def _around(self, policy: Policy, run: str) -> Policy:
        self._asked.append(policy)
        for fault in reversed(self._faults):
            policy = fault.policy(policy)
        if self._logged is not None:
            policy = Logged(policy)
            self._logged.append((run, policy))
        return policy
