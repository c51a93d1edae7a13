"""Recorded tokens under other prices: another table, another model's prices, batch shares, cache hit rates."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.beside import beside
from harness_lab.analyze.frames import (
    Bools,
    Data,
    Floats,
    Ints,
    as_names,
    calls_of,
    column,
    group_codes,
    label,
    nodes_of,
    numbers,
    text_codes,
)
from harness_lab.analyze.grouping import AUTO, Clusters, one_row_a_run
from harness_lab.analyze.runs import reduced, tree_of
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, check_confidence, percent
from harness_lab.stats.means import AMOUNT, mean, ratio
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import paired_difference
from harness_lab.stats.quantiles import Quantiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from harness_lab.pricing import PriceTable

KINDS: Final = ("input_fresh", "cache_read", "cache_write", "cache_write_1h", "output")
"""Tokens by price; ``cache_write_1h`` is the part of ``cache_write`` with a price of its own."""
PRICE_EFFECT_ONLY: Final = "price effect only: another model takes other steps; a model effect needs runs of both"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Repriced:
    """What recorded runs would cost under other prices.

    Parameters
    ----------
    recorded, repriced : Estimate
        Mean per run, dollars, over the runs in which both are known.
    change : Estimate
        Paired difference, dollars per run.
    quantiles : dict of float to Estimate
        Quantiles of a run's total under the new prices, dollars; percentiles of totals, not sums of percentiles.
    shares : DataFrame
        ``model, kind, share, low, high``: of the new spend; what a price that rises by 1 % does to spend, in percent.
    notes : tuple of str
        What has to be said: price effect only, tiers that could not be applied, runs left out.
    parts : dict of tuple to tuple of Estimate
        Per group: recorded, repriced, change.
    runs : DataFrame
        One row per run: ``run, recorded_usd, repriced_usd``.
    cluster : str or None
        Column whose rows were taken as alike.
    beside : str
        How the runs ended and whether they delivered, as recorded.
    """

    recorded: Estimate
    repriced: Estimate
    change: Estimate
    quantiles: dict[float, Estimate]
    shares: pd.DataFrame
    notes: tuple[str, ...]
    parts: dict[tuple[Any, ...], tuple[Estimate, Estimate, Estimate]]
    runs: pd.DataFrame
    cluster: str | None
    beside: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per figure (and group): ``group, figure, unit`` and the fields of the estimate."""
        groups = {"all": (self.recorded, self.repriced, self.change)} | {label(k): v for k, v in self.parts.items()}
        rows = [
            {"group": name, "figure": figure, "unit": "$ per run", **one.record()}
            for name, found in groups.items()
            for figure, one in zip(("recorded", "repriced", "change"), found, strict=True)
        ]
        more = [
            {"group": "all", "figure": f"repriced q{q:g}", "unit": "$ per run", **one.scaled(1.0, unit="$").record()}
            for q, one in self.quantiles.items()
        ]
        return pd.DataFrame(rows + more)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the share of spend that each price is responsible for; return the axes."""
        from harness_lab.plots.choice import plot_best

        names = [
            f"{model}: {kind.replace('_', ' ')}"
            for model, kind in zip(self.shares["model"], self.shares["kind"], strict=True)
        ]
        frame = self.shares.assign(policy=names, value=self.shares["share"], unit="", maybe_best=True)
        return plot_best(frame[frame["share"] > 0], ax=ax, metric="share of spend")

    def summary(self) -> str:
        """Return the figures and what has to be said beside them."""
        lines = [f"Per run: {self.recorded} recorded -> {self.repriced} repriced; change {self.change}."]
        lines += [
            f"- {percent(q)} of the runs cost at most {one.scaled(1.0, unit='$')}" for q, one in self.quantiles.items()
        ]
        lines += [f"- {label(key)}: change {found[2]}" for key, found in self.parts.items()]
        lines += [self.beside] if self.beside else []
        return notes_below("\n".join([*lines, *(f"Note: {note}." for note in self.notes)]))

    def explain(self) -> str:
        """Return what the figures mean and what to do next."""
        return (
            "Recorded tokens were priced anew, call by call where call rows are there, since a call's tier goes by its "
            "own prompt. The tokens stay what they were: a cheaper model that takes more steps, or a cache that is hit "
            "less, changes them. Shares say how spend answers to a single price: a share of 0.4 means that this price "
            "up by 10 % makes spend 4 % dearer.\n"
            "Next: flat_price(...) for a price per run, or simulate the other model's own workload."
        )

    def __repr__(self) -> str:
        return f"Repriced(change {self.change.value}, n = {self.change.n:,})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def reprice(
    settlements: Data, prices: PriceTable, *, models: str | Mapping[str, str] | None = None, batch_share: float = 0.0,
    batch_discount: float = 0.5, cache_hit: float | None = None, by: str | Sequence[str] | None = None,
    confidence: float = 0.95, cluster: str | None = AUTO,
) -> Repriced:  # fmt: skip
    """Price recorded tokens anew.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes; call rows beside them, if there are any, are what is priced.
    prices : PriceTable
        The new prices.
    models : str or mapping, optional
        Another model for all, or for each recorded one; labelled as price effect only.
    batch_share, batch_discount : float
        Share of the spend that goes through batch, and the discount there, both in [0, 1].
    cache_hit : float, optional
        Share of the prompt tokens read from the cache, in [0, 1]; as recorded if not given. What is not read keeps its
        recorded proportion of fresh and written tokens.
    by : str or sequence of str, optional
        Columns whose groups are taken apart.
    confidence : float, default 0.95
        Of each interval.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    Repriced

    Raises
    ------
    InputError
        If no run has known tokens and a price.
    """
    check_confidence(confidence)
    for name, value in (("batch_share", batch_share), ("batch_discount", batch_discount), ("cache_hit", cache_hit)):
        if value is not None and not 0 <= value <= 1:
            raise InputError(name, expected="a share in [0, 1]", got=value)
    nodes, calls = nodes_of(settlements), calls_of(settlements)
    rows = nodes if calls is None or not len(calls) else calls
    asked = _models(rows, models)
    parts, tiered = _priced(rows, asked, prices, cache_hit)
    parts *= 1 - batch_share * batch_discount
    notes = [PRICE_EFFECT_ONLY] if models is not None else []
    notes += (
        ["no call rows, so tiers by prompt size could not be applied; the first tier was taken"]
        if tiered and rows is nodes
        else []
    )
    return _result(nodes, rows, parts, asked, notes, as_names(by), confidence, cluster)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Models:
    """The model that each row is priced as: its number, and the names by number."""

    codes: Ints
    names: tuple[str, ...]


def _models(rows: pd.DataFrame, models: str | Mapping[str, str] | None) -> _Models:
    codes, recorded = text_codes(rows, "model")
    if isinstance(models, str):
        return _Models(codes=np.zeros(codes.size, dtype=np.int64), names=(models,))
    names = [name if models is None else models.get(name, name) for name in recorded]
    distinct = sorted(set(names))
    place = np.asarray([distinct.index(name) for name in names], dtype=np.int64)
    return _Models(codes=place[codes], names=tuple(distinct))


def _tokens(rows: pd.DataFrame, cache_hit: float | None) -> Floats:
    """Return tokens by kind, shape (n, 5): fresh, read, short writes, one-hour writes, output; NaN where unknown."""
    fresh, read, write, output = (
        numbers(rows, name) for name in ("input_fresh", "cache_read", "cache_write", "output")
    )
    hour = numbers(rows, "cache_write_1h")
    total = numbers(rows, "input_total")
    fresh = np.where(np.isnan(fresh), total - np.nan_to_num(read) - np.nan_to_num(write), fresh)
    read, write, hour = np.nan_to_num(read), np.nan_to_num(write), np.nan_to_num(hour)
    if cache_hit is not None:
        other = np.maximum(fresh + write, 1e-12)
        scale = total * (1 - cache_hit) / other
        fresh, write, hour = (
            np.where(fresh + write > 0, fresh * scale, total * (1 - cache_hit)),
            write * scale,
            hour * scale,
        )
        read = total * cache_hit
    return np.stack([fresh, read, write - hour, hour, output], axis=1)


def _priced(rows: pd.DataFrame, asked: _Models, prices: PriceTable, cache_hit: float | None) -> tuple[Floats, bool]:
    """Return dollars by kind, shape (n, 5), NaN where a count or a price is unknown; and whether tiers exist."""
    tokens = _tokens(rows, cache_hit)
    whole, tiered = "node" in rows.columns and "call" in rows.columns, False
    first = np.full((len(asked.names) + 1, len(KINDS)), np.nan)
    above = []
    for number, model in enumerate(asked.names):
        tiers = prices.models.get(model, ())
        tiered |= len(tiers) > 1
        if tiers:
            first[number] = tiers[0].rates()
        above += [(number, tier) for tier in tiers[1:] if whole]
    rates = first[asked.codes]
    if above:
        total = numbers(rows, "input_total")
    for number, tier in above:
        rates[(asked.codes == number) & (total > tier.above_input_tokens)] = tier.rates()
    found = tokens * rates * 1e-12
    if "outcome" in rows.columns:
        outcome, words = text_codes(rows, "outcome")
        denied = np.asarray([word == "denied" for word in words], dtype=np.bool_)[outcome]
        found[denied & np.isnan(found).any(axis=1)] = 0.0
    return found, tiered


def _result(
    nodes: pd.DataFrame, rows: pd.DataFrame, parts: Floats, asked: _Models, notes: list[str], by: tuple[str, ...],
    confidence: float, cluster: str | None,
) -> Repriced:  # fmt: skip
    trees = tree_of(nodes)
    runs = reduced(nodes, trees)
    owner = _owners(runs, rows, None if rows is not nodes else trees.codes)
    by_kind = np.stack([np.bincount(owner, weights=part, minlength=len(runs)) for part in parts.T])
    covered = np.bincount(owner, minlength=len(runs)) > 0
    fresh, before = by_kind.sum(axis=0), numbers(runs, "cost_nusd") * 1e-9
    known: Bools = covered & ~np.isnan(fresh)
    if not known.any():
        raise InputError("settlements", expected="runs of known tokens whose models have a price", got="none")
    both = known & ~np.isnan(before)
    left_out = int((~both).sum())
    notes += (
        [f"{left_out:,} of {len(runs):,} run(s) left out: tokens, price or recorded spend unknown"] if left_out else []
    )
    name, labels = Clusters.of(runs, cluster).choose(fresh[both], both if left_out else None)
    found = _figures(before[both], fresh[both], labels, confidence)
    codes, keys = group_codes(runs[both], by) if by else (np.zeros(int(both.sum()), dtype=np.int64), [])
    groups = {}
    for number, one in enumerate(keys):
        inside = codes == number
        groups[one] = _figures(
            before[both][inside], fresh[both][inside], None if labels is None else labels[inside], confidence
        )
    quantiles = Quantiles(fresh[both], confidence=confidence, clusters=labels)
    table = pd.DataFrame({"run": runs["run"], "recorded_usd": before, "repriced_usd": fresh})
    return Repriced(
        recorded=found[0], repriced=found[1], change=found[2], quantiles={q: quantiles.at(q) for q in (0.5, 0.9, 0.95)},
        shares=_shares(parts, asked, owner, both, labels, confidence), notes=tuple(notes), parts=groups, runs=table,
        cluster=name, beside=beside(runs[both]),
    )  # fmt: skip


def _owners(runs: pd.DataFrame, rows: pd.DataFrame, known: Ints | None) -> Ints:
    """Return the run table's row that each priced row belongs to; `known`: by number already."""
    if known is not None and one_row_a_run(runs):
        return known
    key = pd.factorize(pd.concat([runs["run"].astype(str), column(rows, "run").astype(str)]))[0]
    mine, owner = key[: len(runs)], key[len(runs) :]
    if np.unique(mine).size < mine.size:
        expected, hint = "one policy (a run under two is priced twice)", "where(policy=...)"
        raise InputError("settlements", expected=expected, got="several", hint=hint)
    place = np.zeros(int(key.max()) + 1, dtype=np.int64)
    place[mine] = np.arange(len(runs))
    return place[owner]


def _figures(before: Floats, after: Floats, labels: Any, confidence: float) -> tuple[Estimate, Estimate, Estimate]:
    means = [mean(part, confidence=confidence, clusters=labels, unit="$", within=AMOUNT) for part in (before, after)]
    change = paired_difference(before, after, confidence=confidence, clusters=labels, unit="$").difference
    return means[0], means[1], change


def _shares(parts: Floats, asked: _Models, run: Ints, keep: Bools, labels: Any, confidence: float) -> pd.DataFrame:
    rows = []
    known = np.nan_to_num(parts)
    whole = np.bincount(run, weights=known.sum(axis=1), minlength=keep.size)[keep]
    for number, model in enumerate(asked.names):
        mine = known if len(asked.names) == 1 else np.where((asked.codes == number)[:, None], known, 0.0)
        for kind, part in zip(KINDS, mine.T, strict=True):
            if part.any():
                spent = np.bincount(run, weights=part, minlength=keep.size)[keep]
                one = ratio(spent, whole, confidence=confidence, clusters=labels)
                rows.append({"model": model, "kind": kind, "share": one.value, "low": one.low, "high": one.high})
    return pd.DataFrame(rows, columns=["model", "kind", "share", "low", "high"])
