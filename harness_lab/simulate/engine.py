"""Engines: run one tree, or a block of them, and give back records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from harness_lab import draws
from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.errors import TreeTooLarge
from harness_lab.policies.log import Decision, Logged
from harness_lab.simulate import fast
from harness_lab.simulate.conservation import check_conserved
from harness_lab.simulate.predraw import RUNS, drawn_ahead
from harness_lab.simulate.rows import Rows
from harness_lab.simulate.runtime import SimRuntime
from harness_lab.simulate.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from harness_lab.agents.ports import WorldModel
    from harness_lab.policies import Policy, PolicySpec
    from harness_lab.simulate.workload import Agent
    from harness_lab.usage import Amounts

Engine = Literal["kernel", "asyncio", "fast"]
ENGINES: tuple[Engine, ...] = ("kernel", "asyncio")
"""Engines for any world. ``kernel``: the virtual-time kernel. ``asyncio``: the same loop on a virtual asyncio loop;
slower, for checking. Beside them stands ``fast``: a declared family of worlds and policies, compiled."""

LARGEST = (25_000, 1_000)
"""Nodes and levels of one tree beyond which a simulation gives it up: agents that start agents may never end."""


class World:
    """What all runs share: the compiled agents and provider, and how to run them.

    Parameters
    ----------
    agent : Agent
        The root's profile, compiled.
    budget : Amounts
        The root's ask.
    model : WorldModel
        Answers calls; each run takes a fresh one, so that what a provider remembers is of one run.
    seed : int
        Names the luck of all runs.
    constants : Constants or None
        The same for the fast engine.
    """

    __slots__ = ("agent", "budget", "constants", "model", "seed")

    def __init__(
        self, agent: Agent, budget: Amounts, model: WorldModel, seed: int, *, constants: fast.Constants | None = None
    ) -> None:
        self.constants = constants
        self.agent = agent
        self.budget = budget
        self.model = model
        self.seed = seed

    def block(
        self, spec: PolicySpec, runs: Sequence[int], *, engine: Engine, keep_calls: bool, keep_decisions: bool
    ) -> tuple[Rows | fast.FastRows, list[tuple[int, Decision]]]:
        """Simulate some runs under one policy.

        Returns
        -------
        rows : Rows or FastRows
            Records of nodes and, if asked, of calls.
        decisions : list of (run, Decision)
            Every answer of the policy, if asked.

        Raises
        ------
        TreeTooLarge
            If a tree grows beyond :data:`LARGEST`.
        NotConserved
            If a run has ended and its books do not close.
        """
        if engine == "fast" and self.constants is not None:
            values = fast.simulate(self.constants, self.seed, spec, runs)
            if values is not None:
                return fast.FastRows(values, self.constants), []
        rows = Rows()
        decisions: list[tuple[int, Decision]] = []
        one = self._on_asyncio if engine == "asyncio" else self._on_kernel
        for run in self.each(runs):
            rows.run, rows.reported_nusd = run, 0
            policy: Policy = spec.start(str(run))
            asked = policy
            if keep_decisions:
                policy = Logged(policy)
            try:
                one(run, policy, rows, keep_calls)
            except TreeTooLarge as large:
                where = f"policy {spec.name}, run {run}"
                raise TreeTooLarge(large.nodes, large.depth, large.at_ns, where) from large
            check_conserved(asked, rows, spec)
            if isinstance(policy, Logged):
                decisions += [(run, decision) for decision in policy.decisions]
        return rows, decisions

    def each(self, runs: Sequence[int]) -> Iterator[int]:
        """Yield runs one by one, with the draws of many made together before."""
        for first in range(0, len(runs), RUNS):
            some = runs[first : first + RUNS]
            with drawn_ahead(self.agent, self.model, self.seed, some):
                yield from some

    def finish(self, nodes: pd.DataFrame) -> pd.DataFrame:
        """Return rows of nodes with what a world tells of them afterwards: here nothing."""
        return nodes

    def _on_kernel(self, run: int, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        runtime = SimRuntime()
        harness = Harness(runtime, policy, self.model.fresh(), rows, keep_calls=keep_calls, largest=LARGEST)
        brain = partial(self.agent.brain, draws.run_key(self.seed, run))
        runtime.kernel.spawn(harness.run(self.agent.name, self.budget, brain), f"run {run}")
        runtime.kernel.run()

    def _on_asyncio(self, run: int, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        loop = VirtualLoop()
        model = self.model.fresh()
        harness = Harness(AsyncioRuntime(loop), policy, model, rows, keep_calls=keep_calls, largest=LARGEST)
        brain = partial(self.agent.brain, draws.run_key(self.seed, run))
        loop.run_until_complete(harness.run(self.agent.name, self.budget, brain))
        loop.run_on()
