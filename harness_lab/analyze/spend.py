"""A change of spend split into volume, mix, tokens and price.

References
----------
.. [1] Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of Games II, 307-317.
   https://doi.org/10.1515/9781400881970-018 (the split that does not depend on the order of the factors)
.. [2] Ang, B. W. (2004). Decomposition analysis for policymaking in energy: which is the preferred method? Energy
   Policy 32(9), 1131-1139. https://doi.org/10.1016/S0301-4215(03)00076-4
.. [3] Kott, P. S. (2001). The delete-a-group jackknife. Journal of Official Statistics 17(4), 521-526.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import (
    Bools,
    Data,
    Floats,
    Ints,
    as_names,
    column,
    group_codes,
    label,
    nodes_of,
    numbers,
    row_codes,
)
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.sample import take
from harness_lab.errors import InputError
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence, with_unit
from harness_lab.stats.skewed import skewed_ends, skewness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

FACTORS: Final = ("mix", "tokens", "price")
_MAX_BLOCKS: Final = 200
_MIN_RUNS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SpendSplit:
    """Why spend changed.

    Parameters
    ----------
    old, new : Estimate
        Mean spend per run, dollars.
    effects : dict of str to Estimate
        ``mix`` (which groups ran how often per run), ``tokens`` (per node of a group) and ``price`` (dollars per token
        of a group), dollars per run. They sum to the change of the mean.
    volume_usd : float
        What the number of runs alone changed in the total.
    totals_usd : tuple of float
        Total spend of the earlier and the later runs.
    runs, unknown : tuple of int
        Runs in the split; runs left out because a cost or a token count is unknown.
    groups : DataFrame
        Per group: ``group``, nodes per run, tokens per node, dollars per million tokens, before and after, and the
        three effects in dollars per run.
    by : tuple of str
        The columns that make a group.
    cluster : str or None
        Column whose rows were taken as alike.
    """

    old: Estimate
    new: Estimate
    effects: dict[str, Estimate]
    volume_usd: float
    totals_usd: tuple[float, float]
    runs: tuple[int, int]
    unknown: tuple[int, int]
    groups: pd.DataFrame
    by: tuple[str, ...]
    cluster: str | None

    @property
    def change_usd(self) -> float:
        """Change of the mean spend per run, dollars: the sum of the effects."""
        return float((self.new.value or 0.0) - (self.old.value or 0.0))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per figure: ``figure, unit`` and the fields of the estimate."""
        figures = {"earlier spend per run": self.old, "later spend per run": self.new, **self.effects}
        return pd.DataFrame([{"figure": name, "unit": "$ per run", **one.record()} for name, one in figures.items()])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw which part of the change came from mix, tokens and price; return the axes."""
        from harness_lab.plots import plot_split

        return plot_split(self.to_frame(), ax=ax)

    def summary(self) -> str:
        """Return the split in plain text."""
        before, after = self.totals_usd
        lines = [
            f"Spend ${before:,.2f} -> ${after:,.2f}; runs {self.runs[0]:,} -> {self.runs[1]:,} (volume alone: "
            f"{_signed(self.volume_usd)}).",
            f"Per run: {self.old} -> {self.new}. The change of {_signed(self.change_usd)} is:",
        ]
        words = {
            "mix": f"mix (which {' / '.join(self.by)} ran how often)", "tokens": "tokens per node",
            "price": "price per token",
        }  # fmt: skip
        lines += [f"- {words[name]}: {one}" for name, one in self.effects.items()]
        if any(self.unknown):
            lines.append(
                f"Left out because spend or tokens are unknown: {self.unknown[0]} and {self.unknown[1]} run(s)."
            )
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the split means, what it does not, and what to do next."""
        return (
            "Mean spend per run is, summed over groups, nodes per run x tokens per node x price per token. Each "
            "factor's effect is its average over all orders in which the three can change, so the effects sum to the "
            "change and do not depend on an order. Price is dollars per token as paid: a list price that changed, and "
            "also another share of cached or output tokens. A group that only one side has counts as mix.\n"
            "Intervals leave out blocks of whole clusters on both sides in turn.\n"
            "Next: reprice(...) shows the list-price part alone; drift(...) shows which quantity moved since when."
        )

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {_signed(one.value or 0.0)}" for name, one in self.effects.items())
        return f"SpendSplit({_signed(self.change_usd)} per run: {parts})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _signed(usd: float) -> str:
    return f"{'-' if usd < 0 else '+'}{with_unit(abs(usd), '$')}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """Sums by (block, group): nodes, tokens, cost; and runs by block."""

    cells: Floats
    runs: Floats
    blocks: int
    few: NotEstimable | None
    clusters: int | None
    df: float
    unknown: int
    name: str | None


def spend_split(
    old: Data, new: Data, *, by: str | Sequence[str] = ("agent", "model"), confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> SpendSplit:  # fmt: skip
    """Split a change of spend into volume, mix, tokens and price.

    Parameters
    ----------
    old, new : Settlements or DataFrame
        Nodes, earlier and later.
    by : str or sequence of str
        Columns that make a group; columns that neither side has are left out.
    confidence : float, default 0.95
        Confidence of each interval.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    SpendSplit

    Raises
    ------
    InputError
        If a side has no run of known spend and tokens.

    Notes
    -----
    Shapley's split [1]_ of a product, one of the two that are recommended for complete decompositions [2]_; standard
    errors by a delete-a-group jackknife [3]_ of the clusters (or runs) of each side.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(20), "outcome": "completed", "input_total": 1000, "output": 0,
    ...     "cost_nusd": 2_000_000})
    >>> found = spend_split(runs, runs.assign(cost_nusd=3_000_000))
    >>> {name: round(one.value, 6) for name, one in found.effects.items()}
    {'mix': 0.0, 'tokens': 0.0, 'price': 0.001}
    """
    check_confidence(confidence)
    frames = [nodes_of(data) for data in (old, new)]
    names = tuple(name for name in as_names(by) if any(name in frame.columns for frame in frames))
    both = pd.concat([_columns(frame, names, later) for later, frame in enumerate(frames)], ignore_index=True)
    codes, keys = group_codes(both, names)
    later = both["_later"].to_numpy(dtype=bool)
    sides = [_side(both[mask].reset_index(drop=True), codes[mask], len(keys), cluster) for mask in (~later, later)]
    for side, word in zip(sides, ("earlier", "later"), strict=True):
        if not side.runs.sum():
            raise InputError(f"{word} records", expected="runs of known spend and tokens", got="none")
    return _split(sides[0], sides[1], keys, names, confidence)


def _columns(frame: pd.DataFrame, names: tuple[str, ...], later: int) -> pd.DataFrame:
    wanted = {*names, "policy", "scenario", "run", "outcome", "cause", "cost_nusd", "input_total", "output",
              "usage_known", "cost_source", "user", "repo", "session"}  # fmt: skip
    found = {name: column(frame, name) for name in sorted(wanted)}
    found["tokens"] = column(frame, "input_total") + column(frame, "output")
    return pd.DataFrame(found).assign(_later=later)


def _side(rows: pd.DataFrame, group: Ints, groups: int, cluster: str | None) -> _Side:
    run = row_codes(rows, ("policy", "scenario", "run"))
    tokens, cost = numbers(rows, "tokens"), numbers(rows, "cost_nusd") * 1e-9
    known = _known(rows, tokens, cost)
    bad = np.zeros(int(run.max(initial=-1)) + 1, dtype=bool)
    bad[run[~known]] = True
    keep = ~bad[run]
    kept = rows[keep].reset_index(drop=True)
    name, labels = choose_cluster(kept, cost[keep], None if cluster is None else cluster)
    own = np.unique(run[keep], return_inverse=True)[1]
    first = np.unique(own, return_index=True)[1]
    if name == "run" or labels is None:
        name, unit = None, np.arange(first.size)
    else:
        unit = np.unique(labels[first], return_inverse=True)[1]
    few, df, clusters = _worth(unit, clustered=name is not None)
    block = _blocks(unit)
    blocks = int(block.max(initial=-1)) + 1
    flat = block[own] * groups + group[keep]
    started = np.where(rows["outcome"][keep].fillna("") == "denied", 0.0, 1.0)
    cells: Floats = np.stack([
        np.bincount(flat, weights=part, minlength=blocks * groups).reshape(blocks, groups)
        for part in (started, np.nan_to_num(tokens[keep]), np.nan_to_num(cost[keep]))
    ])  # fmt: skip
    runs = np.bincount(block, minlength=blocks).astype(np.float64)
    return _Side(
        cells=cells, runs=runs, blocks=blocks, few=few, df=df, clusters=clusters, unknown=int(bad.sum()), name=name
    )


def _known(rows: pd.DataFrame, tokens: Floats, cost: Floats) -> Bools:
    """Rows whose tokens and cost are whole; a node that was denied used nothing."""
    whole = take(rows.assign(outcome="completed"), "cost_nusd", cluster=None).kept
    lower = take(rows.assign(outcome="completed"), "tokens", cluster=None).kept
    denied = (rows["outcome"] == "denied").fillna(value=False).to_numpy(dtype=bool)
    return (whole & lower & ~np.isnan(tokens) & ~np.isnan(cost)) | denied


def _worth(unit: Ints, *, clustered: bool) -> tuple[NotEstimable | None, float, int | None]:
    sizes = np.bincount(unit).astype(np.float64)
    if not clustered:
        few = None if sizes.size >= _MIN_RUNS else NotEstimable(reason=f"{sizes.size} run(s)", needs_n=_MIN_RUNS)
        return few, max(sizes.size - 1.0, 1.0), None
    effective = effective_clusters(sizes)
    return too_few_clusters(sizes.size, effective), max(effective - 1, 1.0), sizes.size


def _blocks(unit: Ints) -> Ints:
    """Put units into at most 200 blocks at random, so that the jackknife leaves each out once."""
    count = int(unit.max(initial=-1)) + 1
    if count <= _MAX_BLOCKS:
        return unit
    return np.asarray(np.random.default_rng(0).permutation(count)[unit] % _MAX_BLOCKS)


def _split(a: _Side, b: _Side, keys: list[tuple[Any, ...]], by: tuple[str, ...], confidence: float) -> SpendSplit:
    whole = [side.cells.sum(axis=1) for side in (a, b)]
    runs = [float(side.runs.sum()) for side in (a, b)]
    effects = _effects(whole[0], runs[0], whole[1], runs[1])
    figures = np.append(effects.sum(axis=1), [w[2].sum() / r for w, r in zip(whole, runs, strict=True)])
    influences = [_influences(a, b, figures, later=later) for later in (False, True)]
    interval = _Maker(a, b, influences, confidence)
    means = figures[3:]
    n = (int(runs[0]), int(runs[1]))
    average = float(means.mean())
    return SpendSplit(
        old=interval(3, float(means[0]), n[0]), new=interval(4, float(means[1]), n[1]),
        effects={name: interval(place, float(figures[place]), sum(n)) for place, name in enumerate(FACTORS)},
        volume_usd=(runs[1] - runs[0]) * average, totals_usd=(float(whole[0][2].sum()), float(whole[1][2].sum())),
        runs=n, unknown=(a.unknown, b.unknown), groups=_frame(whole, runs, effects, keys), by=by,
        cluster=a.name or b.name,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the estimate of a figure from the influences of the blocks of both sides."""

    a: _Side
    b: _Side
    influences: list[Floats]
    confidence: float

    def __call__(self, place: int, value: float, n: int) -> Estimate:
        method = "jackknife of runs" if self.a.clusters is None else "jackknife of whole clusters"
        clusters = None if self.a.clusters is None else self.a.clusters + (self.b.clusters or 0)
        few = self.a.few or self.b.few
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


def _influences(a: _Side, b: _Side, figures: Floats, *, later: bool) -> Floats:
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
        found[block] = np.append(_effects(w0, r0, w1, r1).sum(axis=1), [w0[2].sum() / r0, w1[2].sum() / r1])
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


def _frame(whole: list[Floats], runs: list[float], effects: Floats, keys: list[tuple[Any, ...]]) -> pd.DataFrame:
    found: dict[str, Any] = {"group": [label(key) for key in keys]}
    for word, cells, n in zip(("old", "new"), whole, runs, strict=True):
        nodes, tokens, price = _factors(cells, n)
        found |= {
            f"nodes_per_run_{word}": nodes,
            f"tokens_per_node_{word}": tokens,
            f"usd_per_million_{word}": price * 1e6,
        }
    return pd.DataFrame(found | {f"{name}_usd": effects[place] for place, name in enumerate(FACTORS)})
