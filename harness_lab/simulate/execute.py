"""Carrying an experiment out: blocks in order, told how far, stopped early by a person or by a narrow interval."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from harness_lab.simulate.backends import choose, run_on
from harness_lab.simulate.blocks import Keep, packed, pieces, simulate_block, simulate_packed
from harness_lab.simulate.precision import FIRST, Precision, Watch
from harness_lab.simulate.progress import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from harness_lab.simulate.backends import Backend
    from harness_lab.simulate.blocks import Block, Piece
    from harness_lab.simulate.engines import Choice
    from harness_lab.simulate.experiment import Experiment
    from harness_lab.simulate.progress import Progress

ALL, CANCELLED = "all runs", "cancelled"
FAST_TREES = 40
"""Trees that the fast engine simulates while the kernel simulates one."""
PRECISE, NOT_PRECISE = "precise enough", "not precise enough after all runs"


@dataclass(slots=True, kw_only=True)
class Way:
    """How an experiment is carried out; nothing of it changes a row.

    Parameters
    ----------
    keep : Keep
        What is kept.
    backend, workers, block
        Where, by how many, and in which pieces.
    progress : bool, None or callable
        Who is told.
    cancelled : callable or None
        Asked after each block; True stops.
    until : Precision or None
        When to stop before all runs are simulated.
    engines : dict of (scenario, policy) to Choice
        What simulates each policy in each scenario, and why.
    """

    keep: Keep
    engines: dict[tuple[int, int], Choice]
    backend: Backend
    workers: int | None
    block: int
    progress: Progress = None
    cancelled: Callable[[], bool] | None = None
    until: Precision | None = None


@dataclass(slots=True)
class Ended:
    """How it went.

    Parameters
    ----------
    how : str
        ``all runs``, ``cancelled``, ``precise enough`` or ``not precise enough after all runs``.
    done : dict of (scenario, policy) to int
        Runs simulated.
    precision : dict or None
        What was wanted and reached.
    """

    how: str = ALL
    done: dict[tuple[int, int], int] = field(default_factory=dict)
    precision: dict[str, Any] | None = None

    @property
    def runs(self) -> int:
        """Runs that every policy has in every scenario."""
        return min(self.done.values(), default=0)


def execute(experiment: Experiment, runs: Sequence[int], way: Way, take: Callable[[Piece, Block], None]) -> Ended:
    """Simulate, and hand over each block of runs as it is done under every policy, in order.

    Whoever stops early has the same runs of all policies.

    Raises
    ------
    KeyboardInterrupt
        If it is interrupted before the first block is done under all; later it stops and keeps what there is.
    """
    places = list(product(range(len(experiment.scene())), range(len(experiment.policies))))
    ended = Ended(done=dict.fromkeys(places, 0))
    watch = None if way.until is None else Watch(way.until)
    reporter = Reporter(way.progress, len(runs) * len(places))
    try:
        _rounds(experiment, runs, way, take, ended, watch, reporter)
    except KeyboardInterrupt:
        if not any(ended.done.values()):
            raise
        ended.how = CANCELLED
    finally:
        reporter.close()
    ended.precision = None if watch is None else watch.report()
    return ended


def _rounds(
    experiment: Experiment, runs: Sequence[int], way: Way, take: Callable[[Piece, Block], None], ended: Ended,
    watch: Watch | None, reporter: Reporter,
) -> None:  # fmt: skip
    """Simulate in one round, or in rounds with a look at the intervals after each."""
    first, last = 0, len(runs) if watch is None else min(FIRST, len(runs))
    while True:
        with closing(_blocks(experiment, runs[first:last], way)) as blocks:
            whole: list[tuple[Piece, Block]] = []
            for piece, block in blocks:
                whole.append((piece, block))
                if len(whole) == len(ended.done):
                    _hand_over(whole, take, ended, watch)
                    whole = []
                reporter.advance(len(piece.runs))
                if ended.runs and way.cancelled is not None and way.cancelled():
                    ended.how = CANCELLED
                    return
        if watch is None:
            return
        needed = watch.needed(last)
        if needed <= last:
            ended.how = PRECISE
            return
        if last == len(runs):
            ended.how = NOT_PRECISE
            return
        first, last = last, min(needed, len(runs))


def _hand_over(
    whole: Sequence[tuple[Piece, Block]], take: Callable[[Piece, Block], None], ended: Ended, watch: Watch | None
) -> None:
    for piece, block in whole:
        take(piece, block)
        place = (piece.scenario, piece.policy)
        ended.done[place] += len(piece.runs)
        if watch is not None:
            watch.take(*place, block.nodes)


def _blocks(experiment: Experiment, runs: Sequence[int], way: Way) -> Generator[tuple[Piece, Block], None, None]:
    scene = experiment.scene()
    used = {place: choice.engine for place, choice in way.engines.items()}
    quick = {scenario for (scenario, _), engine in used.items() if engine == "fast"}
    worlds = [(one.name, experiment.world(one.name, fast=i in quick)) for i, one in enumerate(scene)]
    weight = sum(1 / FAST_TREES if engine == "fast" else 1.0 for engine in used.values())
    backend, workers = choose(way.backend, way.workers, trees=int(len(runs) * weight))
    found = list(pieces(runs, scenarios=len(scene), policies=len(experiment.policies), block=way.block))
    work: Callable[..., Block] = simulate_block
    sent: list[Any] = worlds
    if backend != "serial":
        work, sent = simulate_packed, [(name, packed(world)) for name, world in worlds]
    jobs = (
        (work, (*sent[one.scenario], experiment.policies[one.policy], one.runs, _keep(way, one))) for one in found
    )  # fmt: skip
    yield from zip(found, run_on(backend, workers, jobs), strict=True)


def _keep(way: Way, piece: Piece) -> Keep:
    return way.keep._replace(engine=way.engines[piece.scenario, piece.policy].engine)
