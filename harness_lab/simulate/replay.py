"""Recorded runs under another policy: what would have been refused, cut, saved or lost.

The recorded calls are made again, in their order, with their sizes, times and pauses, and real modules are asked before
each. Nothing is drawn and no distribution is assumed. Where the record cannot say what would have happened next, the
run is marked and what follows is as it was recorded, never invented.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.pricing import PriceTable
from harness_lab.providers.recorded import RecordedModel
from harness_lab.settlements import Settlements
from harness_lab.simulate.engine import World
from harness_lab.simulate.player import Player
from harness_lab.simulate.profile import Reaction
from harness_lab.simulate.reacting import AT, Aside, run_of, told_by
from harness_lab.simulate.recording import RecordedNode, output_ceilings, recorded_runs
from harness_lab.simulate.replay_result import ReplayResult
from harness_lab.simulate.rows import calls_frame, nodes_frame
from harness_lab.simulate.runtime import SimRuntime
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.simulate.worlds import EPOCH_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness_lab.agents.ports import Runtime
    from harness_lab.policies import Policy, PolicySpec
    from harness_lab.simulate.engine import Engine
    from harness_lab.simulate.rows import Rows

Mark = tuple[str, str, str]
"""Run, node, and what the record cannot say."""


OVERLAPS = "it ran beside others on shared state: runs are played one after another, in the order of their starts"
_YEAR_2000_NS = 946_684_800 * 10**9


class ReplayWorld(World):
    """Recorded runs in virtual time: the world of a replay.

    Parameters
    ----------
    runs : mapping of str to RecordedNode
        The roots, by the name of their run.
    model : RecordedModel
        Answers as recorded.
    reaction : Reaction or None
        Agents that wind down; None: they do what they did.

    Attributes
    ----------
    marks : list of (run, node, why)
        Of the runs played so far, in order.
    """

    __slots__ = ("marks", "reaction", "runs")

    def __init__(self, runs: dict[str, RecordedNode], model: RecordedModel, reaction: Reaction | None = None) -> None:
        self.reaction = reaction
        self.runs = runs
        self.model = model
        self.marks: list[Mark] = []
        self.seed = 0

    def block(
        self, spec: PolicySpec, runs: Sequence[Any], *, engine: Engine, keep_calls: bool, keep_decisions: bool
    ) -> Any:
        """Play some runs under one policy; where its state outlives a run, in the order in which they started."""
        options: dict[str, Any] = {"engine": engine, "keep_calls": keep_calls, "keep_decisions": keep_decisions}
        if spec.scope == "run":
            return super().block(spec, runs, **options)
        ordered = sorted(runs, key=lambda run: self.runs[run].start_ns or 0)
        ends = [(self.runs[run].start_ns or 0) + (self.runs[run].duration_ns or 0) for run in ordered]
        for run, before in zip(ordered[1:], itertools.accumulate(ends, max), strict=False):
            if (self.runs[run].start_ns or 0) < before:
                self.marks.append((run, self.runs[run].name, OVERLAPS))
        return super().block(_Opened(spec, self.runs), ordered, **options)  # type: ignore[arg-type]

    def each(self, runs: Sequence[Any]) -> Iterator[Any]:
        """Yield runs one by one: nothing of them is drawn."""
        return iter(runs)

    def _on_kernel(self, run: Any, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        runtime = SimRuntime()
        runtime.kernel.spawn(self._tree(runtime, run, policy, rows, keep_calls), f"run {run}")
        runtime.kernel.run()
        self._beyond(run)

    def _on_asyncio(self, run: Any, policy: Policy, rows: Rows, keep_calls: bool) -> None:
        loop = VirtualLoop()
        loop.run_until_complete(self._tree(AsyncioRuntime(loop), run, policy, rows, keep_calls))
        loop.run_on()
        self._beyond(run)

    def _beyond(self, run: str) -> None:
        """Mark what the model was asked that no record says."""
        beyond: list[str] = self.model.beyond  # type: ignore[attr-defined]
        self.marks += [(run, self.runs[run].name, why) for why in beyond]
        beyond.clear()

    def _tree(self, runtime: Runtime, run: str, policy: Policy, rows: Rows, keep_calls: bool) -> Any:
        root = self.runs[run]
        harness = Harness(runtime, policy, self.model, rows, keep_calls=keep_calls)
        player = _Marking(run, self.marks, self.reaction)
        return harness.run(root.agent, root.ask, partial(player.brain, root, 0))


class _Opened:
    """A policy whose state outlives a run, opened once: each run starts from it on its recorded day."""

    def __init__(self, spec: PolicySpec, runs: dict[str, RecordedNode]) -> None:
        self.name = spec.name
        self._open = spec.open()
        self._runs = runs

    def start(self, run: str) -> Policy:
        """Make one run's policy on the shared state."""
        root = self._runs[run]
        if root.start_ns is None:
            hint = "a policy that reads the calendar has to know when a run started"
            raise InputError(f"start of run {run}", expected="a recorded start", got=None, hint=hint)
        wall = root.start_ns if root.start_ns >= _YEAR_2000_NS else EPOCH_NS + root.start_ns
        return self._open.start(run, root.groups, Time(0), wall_ns=wall)


class _Marking(Player):
    """Plays a run and writes down where the record cannot say."""

    __slots__ = ("_marks", "_run")

    def __init__(self, run: str, marks: list[Mark], reaction: Reaction | None = None) -> None:
        super().__init__(reaction=reaction)
        self._run = run
        self._marks = marks

    def mark(self, node: RecordedNode, why: str) -> None:
        self._marks.append((self._run, node.name, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Recorded runs, and the policies to play them under.

    Parameters
    ----------
    runs : mapping of str to RecordedNode
        The recorded roots; :meth:`of` makes them from settlements.
    policies : tuple of PolicySpec
        Names differ.
    records : Settlements
        What was recorded, to compare with.
    prices : PriceTable
        Of calls whose cost is not recorded.
    reprice : bool
        Price every call by `prices`.

    Examples
    --------
    >>> from harness_lab.policies import shared_ledger
    >>> rows = {"run": ["a"], "node": "0", "outcome": "completed", "calls": 4, "input_total": 4_000, "output": 40}
    >>> replayed = Replay.of(Settlements.from_columns(rows), (shared_ledger(3),)).run()
    >>> replayed.outcomes()[["calls_made", "calls_recorded", "stopped_by"]].values.tolist()
    [[3, 4, 'steps-exhausted']]
    """

    ENGINES: ClassVar[tuple[str, ...]] = ("kernel", "asyncio")

    runs: dict[str, RecordedNode]
    policies: tuple[PolicySpec, ...]
    records: Settlements
    prices: PriceTable = field(default_factory=PriceTable)
    reprice: bool = False

    def __post_init__(self) -> None:
        names = [policy.name for policy in self.policies]
        if not names or len(set(names)) < len(names):
            raise InputError("policies", expected="at least one, with different names", got=names)

    @classmethod
    def of(
        cls,
        settlements: Settlements,
        policies: Iterable[PolicySpec],
        *,
        runs: Iterable[str] | None = None,
        prices: PriceTable | None = None,
        reprice: bool = False,
    ) -> Replay:
        """Make a replay of recorded runs.

        Parameters
        ----------
        settlements : Settlements
            What was recorded; with call rows, what is cut is known to the call.
        policies : iterable of PolicySpec
            Under which the runs are played.
        runs : iterable of str, optional
            Names of the runs to play; all if None.
        prices : PriceTable, optional
            Prices of calls without a recorded cost, and of worst cases.
        reprice : bool
            Price every call by `prices`.

        Raises
        ------
        InputError
            If a run does not exist, the rows are of several policies, or `reprice` has no prices.
        """
        if reprice and (prices is None or not prices.models):
            raise InputError("prices", expected="prices to reprice by", got=prices)
        if runs is not None:
            wanted = list(dict.fromkeys(runs))
            known = set(settlements.nodes["run"])
            missing = sorted(set(wanted) - known)
            if missing:
                raise InputError("runs", expected=f"some of the {len(known):,} recorded runs", got=missing)
            settlements = settlements.where(run=wanted)
        return cls(
            runs=recorded_runs(settlements),
            policies=tuple(policies),
            records=settlements,
            prices=PriceTable() if prices is None else prices,
            reprice=reprice,
        )

    def world(self, reaction: Reaction | None = None) -> ReplayWorld:
        """Return the recorded runs and what answers them: what an engine plays."""
        ceilings = output_ceilings(self.runs.values())
        return ReplayWorld(self.runs, RecordedModel(self.prices, ceilings, reprice=self.reprice), reaction)

    def aside(self, nodes: pd.DataFrame, *, at: float = AT) -> Aside | None:
        """Play one run with agents that wind down: the first that a limit stopped, else the first.

        Parameters
        ----------
        nodes : DataFrame
            The nodes of the replay.
        at : float
            The share of the policy's limits at which they wind down.
        """
        policy = next((one for one in self.policies if told_by(one) is not None), None)
        if policy is None:
            return None
        mine = nodes[nodes["policy"] == policy.name]
        roots = mine[mine["parent"].isna()]
        stopped = roots.loc[roots["stopped_by"].notna(), "run"]
        run = str((stopped if len(stopped) else roots["run"]).iloc[0])
        world = self.world(Reaction(kind="wind-down", at=at, told=told_by(policy)))
        rows, _ = world.block(policy, [run], engine="kernel", keep_calls=False, keep_decisions=False)
        other = nodes_frame(rows.nodes, policy=policy.name, scenario="replay", backend="recorded")
        oblivious, reacting = run_of(mine[mine["run"] == run]), run_of(other)
        return Aside(policy=policy.name, run=run, at=at, oblivious=oblivious, winding_down=reacting)

    def run(self, *, engine: Engine = "kernel", calls: bool = False, decisions: bool = False) -> ReplayResult:
        """Play every run under every policy.

        Parameters
        ----------
        engine : {"kernel", "asyncio"}
            The virtual-time kernel, or the same loop on a virtual asyncio loop. Results are identical.
        calls : bool
            Keep a row of every call that was made.
        decisions : bool
            Keep every answer of every policy.
        """
        if engine not in self.ENGINES:
            raise InputError("engine", expected=f"one of {', '.join(self.ENGINES)}", got=engine)
        frames, call_frames, marks, kept = [], [], [], []
        for policy in self.policies:
            world = self.world()
            rows, found = world.block(
                policy, list(self.runs), engine=engine, keep_calls=calls, keep_decisions=decisions
            )  # fmt: skip
            frames.append(nodes_frame(rows.nodes, policy=policy.name, scenario="replay", backend="recorded"))
            if calls:
                call_frames.append(calls_frame(rows.calls, policy=policy.name, scenario="replay"))
            marks += [(policy.name, *mark) for mark in dict.fromkeys(world.marks)]
            kept += [(policy.name, *one[:1], *one[1]) for one in found]
        made = pd.concat(call_frames, ignore_index=True) if calls else None
        table = Settlements.from_columns(pd.concat(frames, ignore_index=True), made)
        return ReplayResult(
            settlements=table,
            records=self.records,
            beside=self.aside(table.nodes),
            marks=pd.DataFrame(marks, columns=["policy", "run", "node", "why"], dtype="string"),
            decisions=pd.DataFrame(kept, columns=["policy", "run", *DECISION]) if decisions else None,
        )


DECISION = ["node", "question", "call", "attempt", "answer", "deadline_ns"]
"""Columns of the decisions beside policy and run."""
