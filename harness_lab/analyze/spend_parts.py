"""The figures of a split of spend, each with its interval: from leaving blocks of whole clusters out in turn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import Floats, label
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable
from harness_lab.stats.skewed import skewed_ends, skewness

if TYPE_CHECKING:
    from collections.abc import Sequence

FACTORS: Final = ("mix", "tokens", "price")
MIN_RUNS: Final = 10
_TOTALS: Final = len(FACTORS) + 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """Sums by (block, group): nodes, tokens, cost; and runs by block."""

    cells: Floats
    runs: Floats
    blocks: int
    few: NotEstimable | None
    clusters: int | None
    df: float
    unknown: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figures:
    """All figures of a split.

    Parameters
    ----------
    old, new : Estimate
        Mean spend per run, dollars.
    effects : dict of str to Estimate
        Of all groups together.
    groups : DataFrame
        As :class:`harness_lab.analyze.SpendSplit` has it.
    """

    old: Estimate
    new: Estimate
    effects: dict[str, Estimate]
    groups: pd.DataFrame


def figures_of(a: Side, b: Side, keys: Sequence[tuple[Any, ...]], confidence: float) -> Figures:
    """Estimate every figure of the split from side `a` to side `b`, whole and by group."""
    whole = [side.cells.sum(axis=1) for side in (a, b)]
    runs = [float(side.runs.sum()) for side in (a, b)]
    figures = _figures(whole[0], runs[0], whole[1], runs[1])
    influences = [_influences(a, b, figures, later=later) for later in (False, True)]
    interval = _Maker(a, b, influences, confidence)
    n = (int(runs[0]), int(runs[1]))
    effects = figures[_TOTALS:].reshape(len(FACTORS), len(keys))
    groups = _frame(whole, runs, effects, keys)
    few = [_few(a, b, group) for group in range(len(keys))]
    for factor, name in enumerate(FACTORS):
        found = [
            interval(_TOTALS + factor * len(keys) + group, float(effects[factor, group]), sum(n), few=few[group])
            for group in range(len(keys))
        ]
        groups[f"{name}_usd_low"] = pd.array([one.low for one in found], dtype="float64")
        groups[f"{name}_usd_high"] = pd.array([one.high for one in found], dtype="float64")
    groups["note"] = ["" if one is None else str(one) for one in few]
    return Figures(
        old=interval(3, float(figures[3]), n[0]), new=interval(4, float(figures[4]), n[1]),
        effects={name: interval(place, float(figures[place]), sum(n)) for place, name in enumerate(FACTORS)},
        groups=groups,
    )  # fmt: skip


def _few(a: Side, b: Side, group: int) -> NotEstimable | None:
    """Return why a group has no interval: on a side that has it, it is in too few runs or clusters."""
    for side in (a, b):
        nodes = side.cells[0, :, group]
        sizes = nodes[nodes > 0]
        if side.few is not None:
            return side.few
        if not sizes.size:
            continue
        if side.clusters is None and sizes.size < MIN_RUNS:
            return NotEstimable(reason=f"{sizes.size} run(s) with this group", needs_n=MIN_RUNS)
        few = None if side.clusters is None else too_few_clusters(sizes.size, effective_clusters(sizes))
        if few is not None:
            return few
    return None


def _figures(old: Floats, runs_old: float, new: Floats, runs_new: float) -> Floats:
    """Return the effects, the mean before and after, and the effects of each group, in one line."""
    effects = _effects(old, runs_old, new, runs_new)
    means = (old[2].sum() / runs_old, new[2].sum() / runs_new)
    return np.concatenate([effects.sum(axis=1), means, effects.ravel()])


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the estimate of a figure from the influences of the blocks of both sides."""

    a: Side
    b: Side
    influences: list[Floats]
    confidence: float

    def __call__(self, place: int, value: float, n: int, *, few: NotEstimable | None = None) -> Estimate:
        method = "jackknife of runs" if self.a.clusters is None else "jackknife of whole clusters"
        clusters = None if self.a.clusters is None else self.a.clusters + (self.b.clusters or 0)
        few = few or self.a.few or self.b.few
        if few is not None:
            return Estimate(value=value, interval=few, n=n, method="Shapley split", unit="$", clusters=clusters)
        both = np.concatenate([part[:, place] for part in self.influences])
        each = [float(part[:, place] @ part[:, place]) for part in self.influences]
        df = max(
            min(side.df for side, spread in zip((self.a, self.b), each, strict=True) if spread > 0 or not any(each)),
            1.0,
        )
        below, above = skewed_ends(
            float(np.sqrt(sum(each))), skewness(both), units=both.size, df=df, confidence=self.confidence
        )
        name = f"{method}, skew-corrected t"
        interval = Interval(
            low=value - float(below), high=value + float(above), confidence=self.confidence, method=name
        )  # fmt: skip
        return Estimate(value=value, interval=interval, n=n, method="Shapley split", unit="$", clusters=clusters)


def _influences(a: Side, b: Side, figures: Floats, *, later: bool) -> Floats:
    """Return how far each block of one side moves each figure: from leaving the blocks out in turn."""
    side, other = (b, a) if later else (a, b)
    found = np.empty((side.blocks, figures.size))
    whole, fixed = side.cells.sum(axis=1), other.cells.sum(axis=1)
    for block in range(side.blocks):
        mine, runs = whole - side.cells[:, block], float(side.runs.sum() - side.runs[block])
        if runs <= 0:
            found[block] = figures
            continue
        pair = ((mine, runs), (fixed, float(other.runs.sum())))
        (w0, r0), (w1, r1) = pair[::-1] if later else pair
        found[block] = _figures(w0, r0, w1, r1)
    g = side.blocks
    return np.asarray((found.mean(axis=0) - found) * np.sqrt((g - 1) / max(g, 1)))


def _effects(old: Floats, runs_old: float, new: Floats, runs_new: float) -> Floats:
    """Shapley effects of nodes per run, tokens per node and price per token, shape (3, groups)."""
    factors = np.stack([_factors(old, runs_old), _factors(new, runs_new)])
    other = factors[::-1]
    factors = np.where(np.isnan(factors), np.where(np.isnan(other), 0.0, other), factors)
    effects = np.zeros((3, old.shape[1]))
    for order in permutations(range(3)):
        state = [0, 0, 0]
        value = factors[0].prod(axis=0)
        for factor in order:
            state[factor] = 1
            moved = factors[state[0], 0] * factors[state[1], 1] * factors[state[2], 2]
            effects[factor] += (moved - value) / 6
            value = moved
    return effects


def _factors(cells: Floats, runs: float) -> Floats:
    """Nodes per run, tokens per node, dollars per token of each group; NaN where a group has none."""
    nodes, tokens, cost = cells
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack(
            [nodes / runs, np.where(nodes > 0, tokens / nodes, np.nan), np.where(tokens > 0, cost / tokens, np.nan)]
        )


def _frame(whole: list[Floats], runs: list[float], effects: Floats, keys: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    found: dict[str, Any] = {"group": [label(key) for key in keys]}
    for word, cells, n in zip(("old", "new"), whole, runs, strict=True):
        nodes, tokens, price = _factors(cells, n)
        found |= {
            f"nodes_per_run_{word}": nodes,
            f"tokens_per_node_{word}": tokens,
            f"usd_per_million_{word}": price * 1e6,
        }
    return pd.DataFrame(found | {f"{name}_usd": effects[place] for place, name in enumerate(FACTORS)})
