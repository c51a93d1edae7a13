"""How large a hold should be: overshoot of a shared budget against asks refused that would have fitted."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import Bools, Data, Floats, Ints, amount
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.sample import Level, Sample, table, take
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, check_confidence, percent
from harness_lab.stats.means import AMOUNT, SHARE, mean
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

_CANDIDATES: Final = 40
_FIGURES: Final = ("overshoot_chance", "overshoot", "false_refusals", "idle")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HoldCurve:
    """What each size of hold does to a budget that several share.

    Parameters
    ----------
    column : str
        What is held.
    pool : float
        The shared budget, in the column's unit.
    at_once : int
        How many ask for a hold at the same time.
    frame : DataFrame
        One row per size: ``hold``, and with ``_low`` and ``_high``: ``overshoot_chance`` (chance that those admitted
        use more than the pool), ``overshoot`` (by how much, on average, in the column's unit), ``false_refusals``
        (share of asks refused although they would have fitted), ``idle`` (share of the held amount that was not used);
        ``admitted`` (of those who ask at once); ``n`` (groups of askers), ``clusters``.
    cluster : str or None
        Column within which askers were grouped; None: at random.
    confidence : float
        Of each interval.
    n : int
        Rows.
    parts : Parts or None
        The same for each group of `by`, and which groups cannot be answered.
    """

    column: str
    pool: float
    at_once: int
    frame: pd.DataFrame
    cluster: str | None
    confidence: float
    n: int
    parts: Parts[HoldCurve] | None = None

    def smallest(self, overshoot_chance: float) -> float | None:
        """Return the smallest hold whose chance of overshoot surely lies below a bound; None if there is none."""
        check_confidence(overshoot_chance, what="overshoot_chance")
        fits = (self.frame["overshoot_chance_high"] <= overshoot_chance).to_numpy(dtype=bool)
        good = np.flatnonzero(np.cumprod(fits[::-1])[::-1])
        return float(self.frame["hold"].iloc[good[0]]) if good.size else None

    def to_frame(self) -> pd.DataFrame:
        """Return the curve, or that of each group."""
        return self.frame.copy() if self.parts is None else self.parts.to_frame()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the chance of overshoot and the share of false refusals against the hold; return the axes."""
        from harness_lab.plots.tradeoff import plot_lines

        return plot_lines(
            self.frame,
            "hold",
            ("overshoot_chance", "false_refusals"),
            ax=ax,
            xlabel=f"hold, {self.column}",
            ylabel="share",
        )

    def summary(self) -> str:
        """Return three sizes in plain text: half way, the smallest that is safe, the largest; group by group."""
        if self.parts is not None:
            return self.parts.summary()
        lines = [
            f"{self.at_once} at once on {amount(self.column, self.pool)}, {len(self.frame)} sizes of hold, "
            f"n = {self.n:,} uses{'' if self.cluster is None else f', grouped by {self.cluster}'}:"
        ]
        safe = self.smallest(0.05)
        rows = {0, len(self.frame) // 2, len(self.frame) - 1}
        rows |= set() if safe is None else {int(np.argmax(self.frame["hold"].to_numpy() == safe))}
        for place in sorted(rows):
            row = self.frame.iloc[place]
            mark = " <- smallest with overshoot below 5 %" if row["hold"] == safe else ""
            lines.append(
                f"- hold {amount(self.column, row['hold'])}: overshoot in {_with_ends(row, 'overshoot_chance')}, "
                f"falsely refused {_with_ends(row, 'false_refusals')} of the asks{mark}"
            )
        if self.frame["overshoot_chance_high"].isna().all():
            return "\n".join([*lines, "- no intervals: too few clusters, so no size is shown to be safe"])
        return "\n".join(lines + ([] if safe is not None else ["- no size keeps overshoot below 5 % with confidence"]))

    def explain(self) -> str:
        """Return what the curve means and what to do next."""
        return (
            "A small hold admits many, who may use more together than there is; a large one refuses asks that would "
            "have fitted. Uses of the records are dealt into groups that ask at once (within a cluster where there is "
            "one); nobody is stopped inside, so overshoot is what a pool that only meters would show.\n"
            "Next: a pool that stops inside trades overshoot for stopped children; simulate both with reservation_pool."
        )

    def __repr__(self) -> str:
        return f"HoldCurve({self.column}, {self.at_once} at once, {len(self.frame)} sizes)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def hold_sizes(
    settlements: Data, column: str = "cost_nusd", *, pool: float, at_once: int, holds: npt.ArrayLike | None = None,
    level: Level = "node", confidence: float = 0.95, seed: int = 0, by: str | Sequence[str] | None = None,
    cluster: str | None = AUTO,
) -> HoldCurve:  # fmt: skip
    """Show what each size of hold would do.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    column : str, default "cost_nusd"
        What is held: ``cost_nusd``, ``input_total``, ``tokens``, ``calls`` ...
    pool : float
        The shared budget, in the column's unit.
    at_once : int
        How many ask for a hold at the same time, at least 2.
    holds : array_like of float, optional
        Sizes; quantiles of the uses if not given.
    level : {"node", "run"}
        What asks.
    confidence : float, default 0.95
        Of each interval.
    seed : int
        Of the dealing.
    by : str or sequence of str, optional
        Columns whose groups are answered by themselves, in ``parts``; a run belongs to the group of its root.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    HoldCurve

    Raises
    ------
    InputError
        If there are fewer than ten groups of uses.
    """
    check_confidence(confidence)
    if not pool > 0 or at_once < 2:
        raise InputError("pool, at_once", expected="a budget above 0 and at least 2 at once", got=(pool, at_once))
    sample = take(table(settlements, level), column, cluster=cluster)
    if sample.n and not sample.amounts.any():
        raise InputError(column, expected="uses above 0", got=f"0 in all {sample.n:,} {level}s")
    uses, group = _deal(sample, at_once, np.random.default_rng(seed))
    if len(uses) < 10:
        raise InputError("settlements", expected=f"at least 10 groups of {at_once} uses", got=len(uses))
    rows = [_row(uses, group, float(size), pool, confidence) for size in _sizes(sample.amounts, holds)]
    return HoldCurve(
        column=column, pool=float(pool), at_once=at_once, frame=pd.DataFrame(rows), cluster=sample.cluster,
        confidence=confidence, n=int(uses.size),
        parts=ask_by(settlements, by, lambda rows: hold_sizes(
            rows, column, pool=pool, at_once=at_once, holds=holds, level=level, confidence=confidence, seed=seed,
            cluster=cluster)),
    )  # fmt: skip


def _sizes(x: Floats, holds: npt.ArrayLike | None) -> Floats:
    if holds is None:
        sizes = np.unique(np.quantile(x[x > 0], np.linspace(0.05, 1, _CANDIDATES), method="inverted_cdf"))
        return np.asarray(sizes, dtype=np.float64)
    sizes = np.unique(np.asarray(holds, dtype=np.float64))
    if not sizes.size or not np.isfinite(sizes).all() or sizes[0] <= 0:
        raise InputError("holds", expected="amounts above 0, in the column's unit", got=holds)
    return sizes


def _deal(sample: Sample, size: int, rng: np.random.Generator) -> tuple[Floats, Ints | None]:
    """Deal uses into groups that ask at once; within a cluster where there is one. What is left over is dropped."""
    order = rng.permutation(sample.n)
    if sample.labels is None:
        whole = order[: sample.n // size * size].reshape(-1, size)
        return sample.amounts[whole], None
    order = order[np.argsort(sample.labels[order], kind="stable")]
    label = np.unique(sample.labels[order], return_inverse=True)[1]
    first = np.searchsorted(label, np.arange(label.max(initial=0) + 1))
    count = np.bincount(label)
    place = np.arange(order.size) - first[label]
    keep = place < (count[label] // size) * size
    whole = order[keep].reshape(-1, size)
    if not whole.size:
        return np.zeros((0, size)), None
    return sample.amounts[whole], label[keep].reshape(-1, size)[:, 0]


def _row(uses: Floats, group: Ints | None, hold: float, pool: float, confidence: float) -> dict[str, object]:
    at_once = uses.shape[1]
    admitted = min(int(pool // hold), at_once)
    spent = uses[:, :admitted].sum(axis=1)
    over: Bools = spent > pool
    fitting = (np.cumsum(uses, axis=1) <= pool).sum(axis=1)
    false = np.maximum(fitting - admitted, 0) / at_once
    idle = np.maximum(hold - uses[:, :admitted], 0).sum(axis=1) / max(admitted * hold, 1e-300)
    found: dict[str, Estimate] = {
        "overshoot_chance": share(over, confidence=confidence, clusters=group),
        "overshoot": mean(np.maximum(spent - pool, 0), confidence=confidence, clusters=group, within=AMOUNT),
        "false_refusals": mean(false, confidence=confidence, clusters=group, within=SHARE),
        "idle": mean(idle, confidence=confidence, clusters=group, within=SHARE),
    }
    row: dict[str, object] = {"hold": hold, "admitted": admitted, "n": len(uses)}
    row["clusters"] = found["overshoot"].clusters
    for name in _FIGURES:
        row |= {name: found[name].value, f"{name}_low": _end(found[name].low), f"{name}_high": _end(found[name].high)}
    return row


def _with_ends(row: pd.Series[Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return percent(row[name]) + ("" if np.isnan(low) or np.isnan(high) else f" [{percent(low)}, {percent(high)}]")


def _end(value: float | None) -> float:
    return np.nan if value is None else max(value, 0.0)
