"""A delegation plan as a workload: each node becomes an agent under a root that makes no calls.

Nodes run in the plan's order. A node that is not in the background is awaited, and one that does not complete ends the
plan. A background node runs beside those after it; the run ends when it has ended too, the plan's own time does not
wait for it. Effort selects a variant of the model (:func:`plan_provider`); a batch node has half prices.
"""

from __future__ import annotations

from asyncio import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lab import draws
from harness_lab.agents import Harness
from harness_lab.agents.ports import Child, Children
from harness_lab.delegation.charges import BATCH_TIER_DISCOUNT
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Outcome
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.pricing import Price, PriceTable
from harness_lab.pricing import _rules as price_rules
from harness_lab.providers import MockProvider
from harness_lab.simulate.engine import World
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.runtime import SimRuntime, _park
from harness_lab.simulate.workload import Agent, AgentProfile, Workload
from harness_lab.stats.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from harness_lab.agents.ports import Brain
    from harness_lab.delegation import DispatchNode, OuterPlan
    from harness_lab.policies import Policy
    from harness_lab.simulate.kernel import Process
    from harness_lab.simulate.rows import Rows
    from harness_lab.usage import Amounts

ROOT = "(plan)"
"""Name of the root that dispatches; it makes no calls."""
EFFORT_OUTPUT = {"low": 0.5, "medium": 1.0, "high": 2.0, "max": 4.0}
"""Output tokens of a variant that was not given, against its model's own: an assumption, not a measurement."""
MAX_NODES = 1000
_NOT_ASKED: Amounts = (None,) * len(CHANNELS)


def variant(node: DispatchNode) -> str:
    """Return the name of the model that answers for a node: ``model@effort``, and ``+batch`` on the batch tier."""
    return f"{node.model}@{node.effort}{'+batch' if node.batch else ''}"


def plan_provider(plan: OuterPlan, provider: MockProvider) -> MockProvider:
    """Return a provider with the variants that a plan calls.

    Parameters
    ----------
    plan : OuterPlan
        The plan.
    provider : MockProvider
        It has ``model@effort`` for each node, or else ``model``: then the variant answers with output tokens times
        :data:`EFFORT_OUTPUT`, at the model's price and latency. On the batch tier prices are halved.

    Raises
    ------
    InputError
        If a model is missing, or an effort is neither in the provider nor in the table.
    """
    models, prices = dict(provider.models), dict(provider.prices.models)
    for node in plan.nodes:
        name = f"{node.model}@{node.effort}"
        if name not in models:
            if node.model not in models:
                expected = f"one of {sorted(provider.models)}, or one that has {name}"
                raise InputError(f"model of node {node.name!r}", expected=expected, got=node.model)
            models[name] = replace(
                models[node.model], output_tokens=scaled(models[node.model].output_tokens, _effort(node))
            )
        tiers = prices.get(name, prices.get(node.model))
        for wanted, given in ((name, tiers), (f"{name}+batch", tiers and tuple(map(_half, tiers)))):
            models.setdefault(wanted, models[name])
            if given:
                prices.setdefault(wanted, given)
    table = PriceTable(prices, source=provider.prices.source, date=provider.prices.date)
    return MockProvider(models=models, prices=table)


def plan_workload(plan: OuterPlan, agents: Mapping[str, AgentProfile]) -> PlanWorkload:
    """Return a plan as a workload.

    Parameters
    ----------
    plan : OuterPlan
        The plan; at most a thousand nodes.
    agents : mapping of str to AgentProfile
        What a native subagent does, by node name or else by target. Its model is replaced by the node's variant.

    Raises
    ------
    InputError
        If a node has no profile, one of its profile's children is not among the agents, or the plan is empty.
    """
    if not 0 < len(plan.nodes) <= MAX_NODES:
        raise InputError("nodes of the plan", expected=f"1 to {MAX_NODES}", got=len(plan.nodes))
    own: dict[str, AgentProfile] = dict(agents)
    for node in plan.nodes:
        profile = agents.get(node.name, agents.get(node.target))
        if profile is None or node.name == ROOT:
            expected = f"a profile for the node or for its target {node.target!r}"
            raise InputError(f"agents, for node {node.name!r}", expected=expected, got=sorted(agents))
        own[node.name] = replace(profile, model=variant(node))
    return PlanWorkload(agents=own, root=ROOT, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWorkload(Workload):
    """A workload whose root dispatches a plan; made by :func:`plan_workload`.

    Parameters
    ----------
    plan : OuterPlan
        The plan.
    """

    plan: OuterPlan

    def __post_init__(self) -> None:
        below = {rule.agent for profile in self.agents.values() for rule in profile.spawns}
        missing = sorted((below | {node.name for node in self.plan.nodes}) - set(self.agents))
        if missing:
            raise InputError("agents", expected="a profile for every node and every child", got=f"none for {missing}")

    def models(self) -> list[str]:
        """Return the models that the plan calls, its children's included, sorted."""
        seen: set[str] = set()
        todo = [node.name for node in self.plan.nodes]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += [rule.agent for rule in self.agents[name].spawns]
        return sorted({self.agents[name].model for name in seen})

    def compile(self) -> dict[str, Agent]:
        """Make the draw tables of every agent, and the root that dispatches them."""
        agents: dict[str, Agent] = {}
        for name, profile in self.agents.items():
            agents[name] = Agent(name, profile, agents)
        root: Any = Dispatcher(self.plan, dict(agents))
        agents[ROOT] = root
        return agents


class Dispatcher:
    """The root: starts the nodes of a plan in order; makes no calls."""

    __slots__ = ("_agents", "_plan", "name")

    def __init__(self, plan: OuterPlan, agents: Mapping[str, Agent]) -> None:
        self.name = ROOT
        self._plan = plan
        self._agents = agents

    def brain(self, key: int, runtime: PlanRuntime) -> Brain:
        """Return the brain of one run."""
        for i, node in enumerate(self._plan.nodes):
            runtime.detach = node.background
            ends = yield Children([self._child(node, i, key)])
            if ends and ends[0].outcome is not Outcome.COMPLETED:
                yield Children([])
                return End(Outcome.FAILED, ends[0].stopped_by, ends[0].cause or Cause.NONE)
        yield Children([])  # what runs in the background belongs to the run
        return COMPLETED

    def _child(self, node: DispatchNode, i: int, key: int) -> Child:
        agent = self._agents[node.name]
        brain = partial(agent.brain, draws.child_key(key, i, 0))
        floor_key = agent.profile.floor_key
        return Child(agent=node.name, budget=_NOT_ASKED, call=i, slot=0, brain=brain, floor_key=floor_key)


class PlanRuntime(SimRuntime):
    """A runtime on which a dispatcher may start children without waiting for them.

    Attributes
    ----------
    detach : bool
        Whether the next children are started only; asked once. An empty group of children waits for all of these.
    root : Process or None
        Who dispatches: cancelling it cancels what runs in the background.
    """

    __slots__ = ("_background", "_waiter", "detach", "root")

    def __init__(self) -> None:
        super().__init__()
        self.detach = False
        self.root: Process | None = None
        self._background: dict[Process, None] = {}
        self._waiter: Process | None = None

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, End]]) -> list[End]:
        """Run jobs side by side; start them only if told to; wait for the background if there are none."""
        detach, self.detach = self.detach, False
        if detach:
            for job in jobs:
                self._background[self.kernel.spawn(job, "background", self._ended)] = None
            return []
        try:
            if jobs:
                return await super().gather(jobs)
            await self._join()
            return []
        except CancelledError:
            if self.kernel.current is self.root:
                await self._stop()
            raise

    async def _join(self) -> None:
        self._waiter = self.kernel.current
        while self._background:
            await _park()

    async def _stop(self) -> None:
        """Cancel what runs in the background and wait until it has ended."""
        for process in list(self._background):
            self.kernel.cancel(process)
        self._waiter = self.kernel.current
        while self._background:  # a second cancellation must not leave it behind
            try:
                await _park()
            except CancelledError:
                continue

    def _ended(self, process: Process) -> None:
        del self._background[process]
        if not self._background and self._waiter is not None:
            self.kernel.wake(self._waiter)


class PlanWorld(World):
    """What all runs of a plan share."""

    __slots__ = ()

    def _on_kernel(self, run: int, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        runtime = PlanRuntime()
        harness = Harness(runtime, policy, self.model, rows, keep_calls=keep_calls)
        dispatcher: Any = self.agent
        brain = partial(dispatcher.brain, draws.run_key(self.seed, run), runtime)
        runtime.root = runtime.kernel.spawn(harness.run(self.agent.name, self.budget, brain), f"run {run}")
        runtime.kernel.run()

    def _on_asyncio(self, run: int, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        raise InputError("engine", expected="kernel: plans run on it alone", got="asyncio")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExperiment(Experiment):
    """An experiment whose workload is a :class:`PlanWorkload`."""

    def _compiled(self, workload: Workload, provider: MockProvider) -> World:
        return PlanWorld(workload.compile()[ROOT], workload.budget, provider.compile(), self.seed)


def scaled(distribution: Distribution, factor: float) -> Distribution:
    """Return the distribution of `factor` times the quantity.

    Examples
    --------
    >>> scaled(Distribution.of("lognorm", s=0.5, scale=100), 2).ppf([0.5]).tolist()
    [200.0]
    """
    low, high = (None if end is None else end * factor for end in (distribution.low, distribution.high))
    if distribution.values:
        return replace(distribution, values=tuple(v * factor for v in distribution.values), low=low, high=high)
    params = {"loc": 0.0, "scale": 1.0, **dict(distribution.params)}
    changed = {name: value * factor if name in ("loc", "scale") else value for name, value in params.items()}
    return Distribution.of(distribution.dist, low=low, high=high, **changed)


def _effort(node: DispatchNode) -> float:
    if node.effort not in EFFORT_OUTPUT:
        expected = f"one of {', '.join(EFFORT_OUTPUT)}, or a model {node.model}@{node.effort} of the provider"
        raise InputError(f"effort of node {node.name!r}", expected=expected, got=node.effort)
    return EFFORT_OUTPUT[node.effort]


def _half(price: Price) -> Price:
    """Return a price on the batch tier."""
    ppm = round((1 - BATCH_TIER_DISCOUNT) * 1_000_000)
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    known = {name: value for name in names if (value := getattr(price, name)) is not None}
    return replace(price, **{name: price_rules.half_even(value * ppm, 1_000_000) for name, value in known.items()})
