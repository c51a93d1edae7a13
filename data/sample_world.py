"""The synthetic world: what agents need when nothing limits them, and how ceilings cut it.

The parameters are the constants below; ``make_sample.py`` draws the shipped data from them and computes the truth.
Only uniform draws are taken from the generator, so the result does not hang on how a library draws a normal.

How a node comes about
----------------------
1. Without any limit, a node needs ``calls`` model calls: log-normal around its path's median, times an effect of its
   user and one of its repository, which all nodes of a run share. Its prompt starts at the path's fixed part plus the
   task, grows by each call's output and tool result, and is sent again with every call. A cache gives back what was
   sent before, most of the time.
2. It may fail at one of these calls, chosen evenly, whatever the limits.
3. Limits then cut it: before each call the spend so far is held against the ceilings that were drawn for the node
   **at random** (not by difficulty). The call that crosses a cost ceiling is still charged in full.

A run is one lead, which starts its workers and reviewers after its first call; a child goes on when its lead is
stopped. Usage goes unreported at random. So the truth of a path is what steps 1 and 2 give for a fresh user and
repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

RUNS = 2_400
USERS, REPOS = 60, 24
USER_SD, REPO_SD = 0.12, 0.10  # of the effects on log(calls)
WORKERS = (0.35, 0.35, 0.20, 0.10)  # probability of 0, 1, 2, 3 workers under a lead
REVIEWER = 0.6  # probability of one reviewer
UNKNOWN_USAGE = 0.03  # of nodes whose last call did not report its usage
CACHE_HIT = 0.92
MAX_CALLS = 60

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPath:
    """One path (agent, backend, model, context) and what its nodes need. Pairs are (median, sd of the logarithm)."""

    agent: str
    backend: str
    model: str
    fixed: int  # prompt tokens before the task
    task: tuple[float, float]
    calls: tuple[float, float]
    output: tuple[float, float]
    growth: tuple[float, float]  # tool result after each call, tokens
    prices: tuple[int, int, int, int]  # fresh, cache read, cache write, output; nano-dollars per token
    writes: bool  # whether what is new in a prompt is written to the cache, at its price
    fails: float  # probability
    infrastructure: float  # share of failures that are not the model's
    ceilings: tuple[tuple[float, int | None, int | None], ...]  # (probability, calls, nano-dollars); the rest has none

    @property
    def context(self) -> dict[str, object]:
        """The fields of the context policy."""
        return {"client": "synthetic", "version": "1", "fixed_prompt_tokens": self.fixed, "agent": self.agent}


PATHS = (
    AgentPath(
        agent="lead",
        backend="synth-cli",
        model="synth-large",
        fixed=11_200,
        task=(500, 0.5),
        calls=(12, 0.50),
        output=(180, 0.7),
        growth=(900, 0.8),
        prices=(3_000, 300, 3_750, 15_000),
        writes=True,
        fails=0.05,
        infrastructure=0.6,
        ceilings=((0.30, None, 150_000_000), (0.25, None, 300_000_000), (0.25, 20, None)),
    ),
    AgentPath(
        agent="worker",
        backend="synth-cli",
        model="synth-medium",
        fixed=7_400,
        task=(800, 0.5),
        calls=(9, 0.55),
        output=(240, 0.7),
        growth=(1_300, 0.8),
        prices=(1_000, 100, 1_250, 5_000),
        writes=True,
        fails=0.06,
        infrastructure=0.5,
        ceilings=((0.35, None, 40_000_000), (0.35, None, 100_000_000)),
    ),
    AgentPath(
        agent="reviewer",
        backend="synth-api",
        model="synth-small",
        fixed=2_600,
        task=(2_000, 0.3),
        calls=(8, 0.50),
        output=(260, 0.6),
        growth=(1_100, 0.7),
        prices=(400, 40, 0, 1_600),
        writes=False,
        fails=0.04,
        infrastructure=0.7,
        ceilings=((0.30, None, 10_000_000), (0.35, None, 22_000_000)),
    ),
)

_GRID = (np.arange(4_096) + 0.5) / 4_096
_NORMAL = np.array([NormalDist().inv_cdf(float(u)) for u in _GRID])


def normal(uniform: Floats) -> Floats:
    """Return normal deviates for uniform ones, by a table of 4,096 quantiles (cut at 3.67 standard deviations)."""
    deviates: Floats = np.interp(uniform, _GRID, _NORMAL)
    return deviates


def lognormal(uniform: Floats, spread: tuple[float, float]) -> Ints:
    """Return whole log-normal numbers with the given (median, sd of the logarithm)."""
    return np.rint(spread[0] * np.exp(spread[1] * normal(uniform))).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What nodes need without limits: one row per node, one column per call (ignore columns past the last)."""

    ends_at: Ints  # calls until the node completes or fails
    fails: NDArray[np.bool_]
    infrastructure: NDArray[np.bool_]
    fresh: Ints
    read: Ints
    write: Ints
    output: Ints
    cost: Ints
    latency_ns: Ints

    @property
    def prompt(self) -> Ints:
        """Prompt tokens of each call."""
        return self.fresh + self.read + self.write


def draw_needs(rng: np.random.Generator, path: AgentPath, effect: Floats) -> Needs:
    """Draw what ``len(effect)`` nodes of a path need; `effect` shifts log(calls)."""
    nodes = len(effect)
    shape = (nodes, MAX_CALLS)
    median, sd = path.calls
    calls = np.rint(median * np.exp(effect + sd * normal(rng.random(nodes)))).astype(np.int64).clip(1, MAX_CALLS)
    fails = rng.random(nodes) < path.fails
    fail_at = 1 + np.floor(rng.random(nodes) * calls).astype(np.int64)
    infrastructure = rng.random(nodes) < path.infrastructure
    task = lognormal(rng.random(nodes), path.task)
    output = lognormal(rng.random(shape), path.output)
    growth = output + lognormal(rng.random(shape), path.growth)
    prompt = (path.fixed + task)[:, None] + np.cumsum(growth, axis=1) - growth
    known = np.concatenate([np.full((nodes, 1), path.fixed), prompt[:, :-1]], axis=1)
    read = np.where(rng.random(shape) < CACHE_HIT, known, 0)
    new = prompt - read
    write, fresh = (new, np.zeros_like(new)) if path.writes else (np.zeros_like(new), new)
    per_token = zip(path.prices, (fresh, read, write, output), strict=True)
    latency = 1_200_000_000 + output * lognormal(rng.random(shape), (12_000_000, 0.3))
    return Needs(
        ends_at=np.where(fails, fail_at, calls),
        fails=fails,
        infrastructure=infrastructure,
        fresh=fresh,
        read=read,
        write=write,
        output=output,
        cost=sum((price * count for price, count in per_token), start=np.zeros_like(new)),
        latency_ns=latency,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The nodes of all runs: run, number within the run (0 is the lead), path."""

    run: Ints
    node: Ints
    path: Ints
    user: Ints
    repo: Ints
    effect: Floats


def draw_tree(rng: np.random.Generator) -> Tree:
    """Draw users, repositories and children of every run."""
    user, repo = (np.floor(rng.random(RUNS) * count).astype(np.int64) for count in (USERS, REPOS))
    effect = USER_SD * normal(rng.random(USERS))[user] + REPO_SD * normal(rng.random(REPOS))[repo]
    workers = np.searchsorted(np.cumsum(WORKERS), rng.random(RUNS), side="right")
    reviewers = (rng.random(RUNS) < REVIEWER).astype(np.int64)
    size = 1 + workers + reviewers
    run = np.repeat(np.arange(RUNS), size)
    node = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    path = np.where(node == 0, 0, np.where(node <= workers[run], 1, 2))
    return Tree(run=run, node=node, path=path, user=user[run], repo=repo[run], effect=effect[run])


def draw_ceilings(rng: np.random.Generator, path: AgentPath, nodes: int) -> tuple[Ints, Ints]:
    """Draw each node's ceilings on calls and on cost, at random; 0 stands for none."""
    shares = np.cumsum([share for share, _, _ in path.ceilings])
    arm = np.searchsorted(shares, rng.random(nodes), side="right")
    arms = (*path.ceilings, (0.0, None, None))
    calls, cost = (np.array([ceiling[place] or 0 for ceiling in arms])[arm] for place in (1, 2))
    return calls, cost


def stop_at(needs: Needs, calls: Ints, cost: Ints) -> Ints:
    """Return how many calls each node makes before a ceiling stops it (MAX_CALLS + 1: never)."""
    spent = np.cumsum(needs.cost, axis=1)
    crossed = (spent >= cost[:, None]) & (cost[:, None] > 0)
    by_cost = np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, MAX_CALLS + 1)
    return np.minimum(by_cost, np.where(calls > 0, calls, MAX_CALLS + 1))
