"""Experiments: a workload and a provider under several policies, on the same luck."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from harness_lab import draws
from harness_lab.errors import InputError
from harness_lab.settlements import Settlements
from harness_lab.simulate.engine import ENGINES, Engine, World
from harness_lab.simulate.plain import plain
from harness_lab.simulate.result import Result
from harness_lab.simulate.rows import Rows, calls_frame, nodes_frame
from harness_lab.simulate.workload import Workload, check_models
from harness_lab.usage import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness_lab.policies import PolicySpec
    from harness_lab.policies.log import Decision
    from harness_lab.providers import MockProvider

Backend = Literal["auto", "serial", "loky"]
BACKENDS: tuple[Backend, ...] = ("auto", "serial", "loky")
BLOCK = 250
"""Runs simulated at a time; it changes nothing but the size of a piece of work."""
PARALLEL_FROM = 3_000
"""Simulated trees from which starting worker processes pays."""
_COLUMNS = ["run", "node", "question", "call", "attempt", "answer", "deadline_ns"]

Block = tuple[Rows, "list[tuple[int, Decision]]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A workload and a provider under several policies.

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
        The column `scenario` of the rows.
    backend : str
        The column `backend` of the rows.

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

    def __post_init__(self) -> None:
        if count("runs", self.runs, maximum=100_000_000) == 0:
            raise InputError("runs", expected="at least 1", got=0)
        count("seed", self.seed, maximum=draws.MASK)
        names = [policy.name for policy in self.policies]
        if not names or len(set(names)) < len(names):
            raise InputError("policies", expected="at least one, with different names", got=names)
        check_models(self.workload, list(self.provider.models))

    def with_policies(self, *policies: PolicySpec) -> Experiment:
        """Return a copy with other policies."""
        return replace(self, policies=policies)

    def run(
        self,
        *,
        engine: Engine = "kernel",
        backend: Backend = "auto",
        workers: int | None = None,
        calls: bool = False,
        decisions: bool = False,
        only: Iterable[int] | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Result:
        """Simulate.

        Parameters
        ----------
        engine : {"kernel", "asyncio"}
            The virtual-time kernel, or the same loop on a virtual asyncio loop. Results are identical.
        backend : {"auto", "serial", "loky"}
            Where blocks of runs are simulated; ``auto`` starts worker processes from 3,000 trees on.
        workers : int, optional
            Worker processes; the number of cores if None.
        calls : bool
            Keep a row of every call.
        decisions : bool
            Keep every answer of every policy.
        only : iterable of int, optional
            Numbers of the runs to simulate; all if None. A run alone is the same as among others.
        progress : bool or callable
            True draws a bar on standard error; a callable is told (trees done, trees in all).

        Raises
        ------
        InputError
            If a choice does not exist.
        """
        if engine not in ENGINES:
            raise InputError("engine", expected=f"one of {', '.join(ENGINES)}", got=engine)
        chosen = list(range(self.runs)) if only is None else [count("run", run, maximum=self.runs - 1) for run in only]
        pieces = [chosen[i : i + BLOCK] for i in range(0, len(chosen), BLOCK)]
        tasks = [(policy, piece) for policy in self.policies for piece in pieces]
        world = self.world()
        options = {"engine": engine, "keep_calls": calls, "keep_decisions": decisions}
        cores = self._workers(backend, workers, trees=len(chosen) * len(self.policies))
        blocks = _simulate(world, tasks, options, cores, _reporter(progress, len(chosen) * len(self.policies)))
        return self._gather(tasks, blocks, engine=engine, calls=calls, decisions=decisions)

    def digest(self) -> str:
        """Return a SHA-256 of the whole configuration."""
        text = json.dumps(plain(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def world(self) -> World:
        """Return the compiled agents and provider: what an engine runs."""
        agent = self.workload.compile()[self.workload.root]
        return World(agent, self.workload.budget, self.provider.compile(), self.seed)

    @staticmethod
    def _workers(backend: Backend, workers: int | None, *, trees: int) -> int:
        if backend not in BACKENDS:
            raise InputError("backend", expected=f"one of {', '.join(BACKENDS)}", got=backend)
        wanted = count("workers", workers, maximum=4096) if workers is not None else os.cpu_count() or 1
        parallel = backend == "loky" or (backend == "auto" and trees >= PARALLEL_FROM)
        return max(1, wanted) if parallel else 1

    def _gather(
        self,
        tasks: Sequence[tuple[PolicySpec, list[int]]],
        blocks: list[Block],
        *,
        engine: Engine,
        calls: bool,
        decisions: bool,
    ) -> Result:
        node_frames, call_frames, answers = [], [], []
        for policy in self.policies:
            mine = [block for (spec, _), block in zip(tasks, blocks, strict=True) if spec is policy]
            rows = [row for block, _ in mine for row in block.nodes]
            node_frames.append(nodes_frame(rows, policy=policy.name, scenario=self.name, backend=self.backend))
            if calls:
                call_frames.append(calls_frame([row for block, _ in mine for row in block.calls], policy=policy.name))
            answers += [(policy.name, run, *decision) for _, found in mine for run, decision in found]
        kept = pd.DataFrame(answers, columns=["policy", *_COLUMNS]) if decisions else None
        called = pd.concat(call_frames, ignore_index=True) if calls else None
        table = Settlements.from_columns(pd.concat(node_frames, ignore_index=True), called)
        return Result(settlements=table, manifest=self._manifest(engine), decisions=kept)

    def _manifest(self, engine: Engine) -> dict[str, Any]:
        return {
            "experiment": self.name,
            "config_sha256": self.digest(),
            "seed": self.seed,
            "runs": self.runs,
            "policies": [policy.name for policy in self.policies],
            "draws": draws.VERSION,
            "engine": engine,
            "python": platform.python_version(),
            "harness_lab": version("harness-lab"),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
        }


def _simulate(
    world: World,
    tasks: Sequence[tuple[PolicySpec, list[int]]],
    options: dict[str, Any],
    cores: int,
    tell: Callable[[int], None],
) -> list[Block]:
    if cores == 1:
        blocks = []
        for policy, runs in tasks:
            blocks.append(world.block(policy, runs, **options))
            tell(len(runs))
        return blocks
    from joblib import Parallel, delayed

    jobs = (delayed(world.block)(policy, runs, **options) for policy, runs in tasks)
    blocks = []
    for (_, runs), block in zip(tasks, Parallel(n_jobs=cores, return_as="generator")(jobs), strict=True):
        blocks.append(block)
        tell(len(runs))
    return blocks


def _reporter(progress: bool | Callable[[int, int], None], trees: int) -> Callable[[int], None]:
    if callable(progress):
        return _Counter(progress, trees)
    if not progress:
        return lambda _n: None
    from tqdm.auto import tqdm

    bar = tqdm(total=trees, unit="run", file=sys.stderr, leave=False)

    def advance(n: int) -> None:
        bar.update(n)
        if bar.n >= trees:
            bar.close()

    return advance


class _Counter:
    """Tells a caller how many trees are done."""

    __slots__ = ("_done", "_tell", "_trees")

    def __init__(self, tell: Callable[[int, int], None], trees: int) -> None:
        self._tell = tell
        self._trees = trees
        self._done = 0

    def __call__(self, n: int) -> None:
        self._done += n
        self._tell(self._done, self._trees)
