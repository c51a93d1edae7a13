"""Experiments: workloads and providers under several policies, on the same luck."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab import draws
from harness_lab.errors import InputError
from harness_lab.settlements import Settlements
from harness_lab.simulate import fast as fast_engine
from harness_lab.simulate.blocks import Keep
from harness_lab.simulate.engines import choose_engine
from harness_lab.simulate.execute import Way, execute
from harness_lab.simulate.manifest import config_digest, manifest_of
from harness_lab.simulate.reacting import aside
from harness_lab.simulate.result import Result
from harness_lab.simulate.scenario import Scenario
from harness_lab.simulate.stream import StoredResult, TableFile
from harness_lab.simulate.workload import Workload, check_models
from harness_lab.simulate.worlds import build_world
from harness_lab.usage import count

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from harness_lab.policies import PolicySpec
    from harness_lab.providers import MockProvider
    from harness_lab.simulate.backends import Backend
    from harness_lab.simulate.blocks import Block, Piece
    from harness_lab.simulate.engine import World
    from harness_lab.simulate.engines import Choice, WantedEngine
    from harness_lab.simulate.execute import Ended
    from harness_lab.simulate.precision import Precision
    from harness_lab.simulate.progress import Progress

BLOCK = 250
"""Runs simulated at a time; it changes nothing but the size of a piece of work."""
FAST_BLOCK = 5_000
"""The same for the fast engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A workload and a provider under several policies, in one scenario or in many.

    Parameters
    ----------
    workload : Workload
        What agents do.
    provider : MockProvider
        What answers their calls.
    policies : tuple of PolicySpec
        Compared on the same luck; names differ.
    runs : int
        Trees under each policy.
    seed : int
        Names the luck. Same seed, same results: on every engine, for any number of workers, and for a run alone.
    name : str
        The column `scenario` of the rows where there are no scenarios.
    backend : str
        The column `backend` of the rows.
    scenarios : tuple of Scenario
        Worlds in which every policy is simulated on the same luck: changes of the workload or the provider; names
        differ. Empty: the experiment's own world alone.

    Examples
    --------
    >>> from harness_lab.policies import shared_ledger, unlimited
    >>> from harness_lab.providers import MockProvider, ModelProfile
    >>> from harness_lab.simulate.workload import AgentProfile, Workload
    >>> from harness_lab.stats.distributions import Distribution
    >>> three, many = Distribution.constant(3), Distribution.constant(1000)
    >>> agent = AgentProfile(model="m", calls=three, startup_tokens=many)
    >>> model = ModelProfile(output_tokens=Distribution.constant(10), latency_s=Distribution.constant(1))
    >>> experiment = Experiment(
    ...     workload=Workload(agents={"solo": agent}, root="solo"),
    ...     provider=MockProvider(models={"m": model}),
    ...     policies=(unlimited(), shared_ledger(2)),
    ...     runs=4,
    ... )
    >>> experiment.run().settlements.nodes["calls"].tolist()
    [3, 3, 3, 3, 2, 2, 2, 2]
    """

    workload: Workload
    provider: MockProvider
    policies: tuple[PolicySpec, ...]
    runs: int = 2000
    seed: int = 0
    name: str = "experiment"
    backend: str = "mock"
    scenarios: tuple[Scenario, ...] = ()

    def __post_init__(self) -> None:
        if count("runs", self.runs, maximum=100_000_000) == 0:
            raise InputError("runs", expected="at least 1", got=0)
        count("seed", self.seed, maximum=draws.MASK)
        names = [policy.name for policy in self.policies]
        if not names or len(set(names)) < len(names):
            raise InputError("policies", expected="at least one, with different names", got=names)
        scenarios = [scenario.name for scenario in self.scenarios]
        if len(set(scenarios)) < len(scenarios):
            raise InputError("scenarios", expected="different names", got=scenarios)
        for scenario in self.scene():
            workload, provider = self._in(scenario)
            check_models(workload, list(provider.models))

    def with_policies(self, *policies: PolicySpec) -> Experiment:
        """Return a copy with other policies."""
        return replace(self, policies=policies)

    def run(
        self,
        *,
        engine: WantedEngine = "auto",
        backend: Backend = "auto",
        workers: int | None = None,
        calls: bool = False,
        decisions: bool = False,
        only: Iterable[int] | None = None,
        until: Precision | None = None,
        progress: Progress = None,
        cancelled: Callable[[], bool] | None = None,
        block: int | None = None,
    ) -> Result:
        """Simulate.

        Parameters
        ----------
        engine : {"auto", "kernel", "asyncio", "fast"}
            The virtual-time kernel, the same loop on a virtual asyncio loop, or the compiled engine for a declared
            family of worlds and policies (:mod:`harness_lab.simulate.fast`). ``auto`` takes that one where it can be
            used and pays; the manifest says which was taken for each policy, and why. Results are identical.
        backend : {"auto", "serial", "loky", "dask", "ray"}
            Where blocks of runs are simulated; ``auto`` starts worker processes from 3,000 trees on. ``dask`` uses the
            client of this session, ``ray`` the cluster that it is connected to. Results are identical.
        workers : int, optional
            Worker processes; the number of cores, or all of a cluster's, if None.
        calls : bool
            Keep a row of every call.
        decisions : bool
            Keep every answer of every policy.
        only : iterable of int, optional
            Numbers of the runs to simulate; all if None. A run alone is the same as among others.
        until : Precision, optional
            Stop when intervals are narrow enough; `runs` is then the most that are simulated.
        progress : bool, None or callable
            None draws a bar with the time left on standard error if that is a terminal or this is a notebook, True
            always, False never; a callable is told (trees done, trees in all).
        cancelled : callable, optional
            Asked after each block; when it says True, what is done is returned. So is it after Ctrl-C.
        block : int, optional
            Runs of a block; 250 if None, 5,000 where all are simulated by the fast engine.

        Raises
        ------
        InputError
            If a choice does not exist.
        """
        chosen = self._chosen(only)
        keep = Keep("kernel", calls, decisions, self.backend)
        way = self._way(self.engines(engine, keep, trees=len(chosen)), keep, backend, workers, block)
        way.progress, way.cancelled, way.until = progress, cancelled, until
        found: dict[tuple[int, int], list[Block]] = {}

        def take(piece: Piece, made: Block) -> None:
            found.setdefault((piece.scenario, piece.policy), []).append(made)

        ended = execute(self, chosen, way, take)
        blocks = [made for place in sorted(found) for made in found[place]]
        return self._result(blocks, way, ended)

    def stream(
        self,
        path: str | os.PathLike[str],
        *,
        engine: WantedEngine = "auto",
        backend: Backend = "auto",
        workers: int | None = None,
        calls: bool = False,
        only: Iterable[int] | None = None,
        until: Precision | None = None,
        progress: Progress = None,
        cancelled: Callable[[], bool] | None = None,
        block: int | None = None,
    ) -> StoredResult:
        """Simulate, and write each block of runs to a file as it is done: memory stays flat however many there are.

        Parameters
        ----------
        path : path
            The settlement table (Parquet); it is in its place once all is written. The manifest is in its metadata.
        engine, backend, workers, calls, only, until, progress, cancelled, block
            As for :meth:`run`.

        Raises
        ------
        InputError
            If a choice does not exist, or `path` cannot be written.
        """
        chosen = self._chosen(only)
        keep = Keep("kernel", calls, False, self.backend)
        way = self._way(self.engines(engine, keep, trees=len(chosen)), keep, backend, workers, block)
        way.progress, way.cancelled, way.until = progress, cancelled, until
        outcomes: dict[str, dict[str, int]] = {}
        with TableFile(path, calls=calls) as file:

            def take(piece: Piece, made: Block) -> None:
                file.add(made)
                roots = made.nodes.loc[made.nodes["parent"].isna(), "outcome"].value_counts()
                counts = outcomes.setdefault(self.policies[piece.policy].name, {})
                for outcome, n in roots.items():
                    counts[str(outcome)] = counts.get(str(outcome), 0) + int(n)

            ended = execute(self, chosen, way, take)
            manifest = manifest_of(self, engines=way.engines, ended=ended) | {"outcomes": outcomes}
            file.seal(manifest)
        return StoredResult(path=file.path, manifest=manifest)

    def digest(self) -> str:
        """Return a SHA-256 of the whole configuration."""
        return config_digest(self)

    def scene(self) -> tuple[Scenario, ...]:
        """Return the scenarios; the experiment's own world if there are none."""
        return self.scenarios or (Scenario(name=self.name),)

    def in_scenario(self, scenario: str | None = None) -> Experiment:
        """Return the experiment in one scenario only, the first if None; the same luck.

        Raises
        ------
        InputError
            If there is no scenario of that name.
        """
        one = self._named(scenario)
        return replace(self, scenarios=(one,)) if self.scenarios else self

    def meets(self) -> bool:
        """Whether runs meet one another, many at once in a period; then periods are independent, and runs are not."""
        return any(self._in(scenario)[0].arrivals is not None for scenario in self.scene())

    def engines(self, wanted: WantedEngine, keep: Keep, *, trees: int) -> dict[tuple[int, int], Choice]:
        """Return what simulates each policy in each scenario (both by their place), and why.

        Raises
        ------
        InputError
            If an engine cannot be used, or a policy is shared by runs and every run is alone.
        """
        for scenario in self.scene():
            workload, _ = self._in(scenario)
            shared = [policy.name for policy in self.policies if policy.scope != "run"]
            if shared and workload.arrivals is None and not workload.faults:
                hint = "Workload(arrivals=Arrivals(period_s=86_400, per_day=40)) lets runs meet it together"
                raise InputError("workload", expected=f"arrivals, for {', '.join(shared)}", got="runs alone", hint=hint)
        more = " and ".join(word for word, kept in (("calls", keep.calls), ("decisions", keep.decisions)) if kept)
        return {
            (i, j): choose_engine(wanted, *self._in(scenario), policy, trees=trees, keeps=more or None)
            for i, scenario in enumerate(self.scene())
            for j, policy in enumerate(self.policies)
        }

    def world(self, scenario: str | None = None, *, fast: bool = False) -> World:
        """Return the compiled agents and provider of a scenario, the first if None: what an engine runs.

        Parameters
        ----------
        scenario : str, optional
            Its name.
        fast : bool
            Whether for the fast engine too.

        Raises
        ------
        InputError
            If there is no scenario of that name.
        """
        workload, provider = self._in(self._named(scenario))
        world = self._compiled(workload, provider)
        if fast:
            world.constants = fast_engine.constants(workload, provider)
        return world

    def _named(self, scenario: str | None) -> Scenario:
        scene = {one.name: one for one in self.scene()}
        name = next(iter(scene)) if scenario is None else scenario
        if name not in scene:
            raise InputError("scenario", expected=f"one of {', '.join(scene)}", got=name)
        return scene[name]

    def _compiled(self, workload: Workload, provider: MockProvider) -> World:
        return build_world(workload, provider, self.seed)

    def _in(self, scenario: Scenario) -> tuple[Workload, MockProvider]:
        return (
            self.workload if scenario.workload is None else scenario.workload,
            self.provider if scenario.provider is None else scenario.provider,
        )

    def _chosen(self, only: Iterable[int] | None) -> Sequence[int]:
        if only is None:
            return range(self.runs)
        return [count("run", run, maximum=self.runs - 1) for run in only]

    @staticmethod
    def _way(
        engines: dict[tuple[int, int], Choice], keep: Keep, backend: Backend, workers: int | None, block: int | None
    ) -> Way:
        if block is None:
            block = FAST_BLOCK if all(choice.engine == "fast" for choice in engines.values()) else BLOCK
        if count("block", block) == 0:
            raise InputError("block", expected="at least 1", got=block)
        return Way(keep=keep, engines=engines, backend=backend, workers=workers, block=block)

    def _result(self, blocks: list[Block], way: Way, ended: Ended) -> Result:
        def joined(frames: list[pd.DataFrame | None]) -> pd.DataFrame | None:
            kept = [frame for frame in frames if frame is not None]
            return pd.concat(kept, ignore_index=True) if kept else None

        nodes, calls = joined([block.nodes for block in blocks]), joined([block.calls for block in blocks])
        table = Settlements.from_columns({} if nodes is None else nodes, calls)
        decisions = joined([block.decisions for block in blocks])
        manifest = manifest_of(self, engines=way.engines, ended=ended)
        reacts = any(one.reaction is not None for one in self.workload.agents.values())
        beside = None if reacts else partial(aside, self)
        return Result(settlements=table, manifest=manifest, decisions=decisions, beside=beside)
