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
    nodes_of,
    numbers,
    row_codes,
)
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.sample import take
from harness_lab.analyze.spend_parts import FACTORS, MIN_RUNS, Side, figures_of
from harness_lab.errors import InputError
from harness_lab.stats.clusters import effective_clusters, too_few_clusters
from harness_lab.stats.estimates import Estimate, NotEstimable, check_confidence, with_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_MAX_BLOCKS: Final = 200


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
        three effects in dollars per run, each with ``_low`` and ``_high``; ``note`` says where a group is in too few
        runs or clusters for them.
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
        if len(self.groups) > 1:
            lines.append(self._largest())
        if any(self.unknown):
            lines.append(
                f"Left out because spend or tokens are unknown: {self.unknown[0]} and {self.unknown[1]} run(s)."
            )
        return "\n".join(lines)

    def _largest(self) -> str:
        """Write the largest effect of a single group."""
        sizes = self.groups[[f"{name}_usd" for name in FACTORS]].to_numpy(dtype=np.float64)
        group, factor = np.unravel_index(int(np.nanargmax(np.abs(sizes))), sizes.shape)
        row, name = self.groups.iloc[group], FACTORS[factor]
        low, high = row[f"{name}_usd_low"], row[f"{name}_usd_high"]
        ends = row["note"] if np.isnan(low) else f"[{_signed(low)}, {_signed(high)}]"
        return f"The largest part of a single group: {name} of {row['group']}, {_signed(sizes[group, factor])} {ends}."

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


def _side(rows: pd.DataFrame, group: Ints, groups: int, cluster: str | None) -> Side:
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
    return Side(
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
        few = None if sizes.size >= MIN_RUNS else NotEstimable(reason=f"{sizes.size} run(s)", needs_n=MIN_RUNS)
        return few, max(sizes.size - 1.0, 1.0), None
    effective = effective_clusters(sizes)
    return too_few_clusters(sizes.size, effective), max(effective - 1, 1.0), sizes.size


def _blocks(unit: Ints) -> Ints:
    """Put units into at most 200 blocks at random, so that the jackknife leaves each out once."""
    count = int(unit.max(initial=-1)) + 1
    if count <= _MAX_BLOCKS:
        return unit
    return np.asarray(np.random.default_rng(0).permutation(count)[unit] % _MAX_BLOCKS)


def _split(a: Side, b: Side, keys: list[tuple[Any, ...]], by: tuple[str, ...], confidence: float) -> SpendSplit:
    found = figures_of(a, b, keys, confidence)
    runs = (int(a.runs.sum()), int(b.runs.sum()))
    average = ((found.old.value or 0.0) + (found.new.value or 0.0)) / 2
    totals = tuple(float(side.cells[2].sum()) for side in (a, b))
    return SpendSplit(
        old=found.old, new=found.new, effects=found.effects, volume_usd=(runs[1] - runs[0]) * average,
        totals_usd=(totals[0], totals[1]), runs=runs, unknown=(a.unknown, b.unknown), groups=found.groups, by=by,
        cluster=a.name or b.name,
    )  # fmt: skip
