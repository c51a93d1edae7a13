"""A block of runs under one policy in one scenario: the piece of work that is handed out, and what comes back."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import cloudpickle
import pandas as pd

from harness_lab.simulate.rows import calls_frame, nodes_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.engine import Engine, World

DECISION_COLUMNS = ["run", "node", "question", "call", "attempt", "answer", "deadline_ns"]


class Piece(NamedTuple):
    """Some runs under one policy in one scenario; both by their place in the experiment."""

    scenario: int
    policy: int
    runs: Sequence[int]


class Block(NamedTuple):
    """The rows of a piece; a frame that was not asked for is None."""

    nodes: pd.DataFrame
    calls: pd.DataFrame | None
    decisions: pd.DataFrame | None


class Keep(NamedTuple):
    """What is kept beside the rows of nodes, and how rows are labelled."""

    engine: Engine
    calls: bool
    decisions: bool
    backend: str


def pieces(runs: Sequence[int], *, scenarios: int, policies: int, block: int) -> Iterator[Piece]:
    """Yield the work, a block of runs under every policy before the next: who stops early has pairs to compare."""
    for first in range(0, len(runs), block):
        some = runs[first : first + block]
        for scenario in range(scenarios):
            for policy in range(policies):
                yield Piece(scenario, policy, some)


def simulate_block(scenario: str, world: World, spec: PolicySpec, runs: Sequence[int], keep: Keep) -> Block:
    """Simulate some runs under one policy, and make columns of them: what a worker does."""
    rows, found = world.block(
        spec, runs, engine=keep.engine, keep_calls=keep.calls, keep_decisions=keep.decisions
    )  # fmt: skip
    nodes = world.finish(nodes_frame(rows.nodes, policy=spec.name, scenario=scenario, backend=keep.backend))
    calls = calls_frame(rows.calls, policy=spec.name, scenario=scenario) if keep.calls else None
    decisions = decisions_frame(found, policy=spec.name) if keep.decisions else None
    return Block(nodes, calls, decisions)


def packed(world: World) -> bytes:
    """Return a world as bytes, to be sent with many blocks: a fitted one takes seconds to pickle."""
    return cloudpickle.dumps(world)  # type: ignore[no-any-return]


def simulate_packed(scenario: str, world: bytes, spec: PolicySpec, runs: Sequence[int], keep: Keep) -> Block:
    """Do as :func:`simulate_block` with a :func:`packed` world, which each worker unpacks once."""
    return simulate_block(scenario, _unpacked(world), spec, runs, keep)


@lru_cache(maxsize=4)
def _unpacked(world: bytes) -> World:
    return cloudpickle.loads(world)  # type: ignore[no-any-return]


def decisions_frame(found: list[tuple[int, Any]], *, policy: str) -> pd.DataFrame:
    """Return decisions as columns: policy and :data:`DECISION_COLUMNS`."""
    answers = [(policy, run, *decision) for run, decision in found]
    return pd.DataFrame(answers, columns=["policy", *DECISION_COLUMNS])
