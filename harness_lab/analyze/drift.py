"""Earlier records against later ones: what moved, by how much, since when, and which contexts changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.contexts import ContextChange, context_changes
from harness_lab.analyze.endings import APART, COMPLETED, endings
from harness_lab.analyze.frames import (
    Bools,
    Data,
    Floats,
    amount,
    as_names,
    column,
    display,
    group_codes,
    label,
    nodes_of,
    numbers,
)  # fmt: skip
from harness_lab.analyze.grouping import AUTO, Labels, choose_cluster
from harness_lab.analyze.overlap import overlap_text, shared_rows
from harness_lab.analyze.sample import Level, table, take
from harness_lab.errors import InputError
from harness_lab.stats.changes import ChangePoint, change_point
from harness_lab.stats.estimates import Estimate, Interval, check_confidence, p_value, percent, with_unit
from harness_lab.stats.notes import notes_below
from harness_lab.stats.paired import holm
from harness_lab.stats.shift import Shift, difference_of_shares, shift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

COLUMNS: Final = ("cost_nusd", "tokens", "calls", "duration_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One quantity (of one group), earlier against later.

    Parameters
    ----------
    group : tuple
        The group; empty for all rows.
    column : str
        The quantity; ``completed`` for the share of runs that completed.
    found : Shift
        The shift, in the display unit.
    p_adjusted : float or None
        Holm-adjusted over all quantities and groups; None where nothing can be said.
    """

    group: tuple[Any, ...]
    column: str
    found: Shift
    p_adjusted: float | None = None

    @property
    def difference(self) -> Estimate:
        """Later mean (or share) less the earlier one."""
        return self.found.difference

    def moved(self, confidence: float) -> bool | None:
        """Whether it moved, at an error rate of 1 - `confidence` over all comparisons; None: cannot be said."""
        return None if self.p_adjusted is None else self.p_adjusted <= 1 - confidence

    def __str__(self) -> str:
        word = "share" if self.column == "completed" else "mean"
        head = f"{self.column}{f' of {label(self.group)}' if self.group else ''}: {word} moved by {self.difference}"
        far = ""
        if self.column != "completed" and self.found.distance is not None:
            far = f"; values moved by {with_unit(self.found.distance, self.difference.unit)} on average"
        if self.found.p_tail is not None and self.found.tail_from is not None and self.column != "completed":
            start = with_unit(self.found.tail_from, self.difference.unit)
            far += f"; share above {start}: {self.found.tail.value:+.3f} ({p_value(self.found.p_tail)})"
        return head + far + ("" if self.p_adjusted is None else f", Holm {p_value(self.p_adjusted)}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Drift:
    """What moved between two sets of records.

    Parameters
    ----------
    moves : tuple of Moved
        Each quantity of each group that both sets have.
    contexts : tuple of ContextChange
        Paths that start from another context now.
    change : ChangePoint or None
        Since when the first quantity moved, over both sets in order of time; None where times are not recorded.
    changed_ns : int or None
        Start of the first row after the change, epoch nanoseconds.
    appeared, vanished : tuple of tuple
        Groups that only the later or only the earlier set has.
    rows : tuple of int
        Rows of the earlier and of the later set.
    confidence : float
        Confidence of each interval; 1 less it is the error rate of the verdict.
    cluster : str or None
        Column whose rows were taken as alike.
    shared, later_nodes : int
        Nodes of the later set that the earlier one has as well; nodes of the later set.
    """

    moves: tuple[Moved, ...]
    contexts: tuple[ContextChange, ...]
    change: ChangePoint | None
    changed_ns: int | None
    appeared: tuple[tuple[Any, ...], ...]
    vanished: tuple[tuple[Any, ...], ...]
    rows: tuple[int, int]
    confidence: float
    cluster: str | None
    shared: int = 0
    later_nodes: int = 0

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The quantities that moved, by the corrected tests."""
        return tuple(one for one in self.moves if one.moved(self.confidence))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per group and quantity: ``group, column, unit, moved``, the shift's fields, ``p_adjusted``."""
        rows = []
        for one in self.moves:
            place = {"group": label(one.group), "column": one.column, "unit": one.difference.unit}
            rows.append(
                {**place, "moved": one.moved(self.confidence), **one.found.record(), "p_adjusted": one.p_adjusted}
            )
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how likely a later run uses more, quantity by quantity; return the axes."""
        from harness_lab.plots import plot_chances

        return plot_chances(self.to_frame(), ax=ax)

    def summary(self) -> str:
        """Return what moved, in plain text."""
        return notes_below(self.text())

    def text(self) -> str:
        """Return the summary with the basis of each figure behind it, for a longer text."""
        by = "" if self.cluster is None else f", clustered by {self.cluster}"
        lines = [f"{self.rows[0]:,} earlier rows against {self.rows[1]:,} later ones{by}."]
        lines += filter(None, [overlap_text(self.shared, self.later_nodes)])
        open_ = [one for one in self.moves if one.moved(self.confidence) is None]
        whole = len(open_) < len(self.moves)
        none = "- nothing is seen to have moved." if whole else "- whether anything moved cannot be said."
        lines += [f"- moved: {one}" for one in self.moved] or [none]
        for one in open_:
            group = f" of {label(one.group)}" if one.group else ""
            lines.append(f"- cannot be said: {one.column}{group} ({one.difference.interval})")
        lines += [f"- context: {one}" for one in self.contexts]
        lines += [f"- only in the later set: {label(key)}" for key in self.appeared]
        lines += [f"- only in the earlier set: {label(key)}" for key in self.vanished]
        return "\n".join([*lines, *self._since()])

    def explain(self) -> str:
        """Return what the tests mean, what they do not, and what to do next."""
        return (
            "Each quantity is held against its earlier values by rank (the middle) and by the share beyond the 0.95 "
            "quantile (the tail, on which ceilings rest), over whole clusters; 'moved' allows for the "
            f"{len(self.moves)} comparisons (Holm's correction of p), so that the chance of any false alarm stays "
            f"below {percent(1 - self.confidence)}. What is not seen to have moved may still have moved within its "
            "interval. Runs that a limit stopped enter at what they had used: other limits look like a drift too.\n"
            "Next: spend_split(old, new) says how much of a change of spend is mix, tokens or price; check_config(...) "
            "says which tuned value it makes stale."
        )

    def _since(self) -> list[str]:
        if self.change is None or self.change.p_value is None or self.change.p_value > 1 - self.confidence:
            return []
        when = "" if self.changed_ns is None else f", from {np.datetime64(self.changed_ns, 'ns').astype('M8[s]')} on"
        before, after = self.change.median_before, self.change.median_after
        name = self.moves[0].column if self.moves else ""
        medians = "" if before is None or after is None else f"; median {amount(name, before)} -> {amount(name, after)}"
        place = self.change.place
        return [
            f"- {name} changed level after row {place} in order of time{when}{medians}, {p_value(self.change.p_value)}."
        ]

    def __repr__(self) -> str:
        return f"Drift({len(self.moved)} of {len(self.moves)} quantities moved, {len(self.contexts)} context change(s))"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def drift(
    old: Data, new: Data, *, columns: Sequence[str] = COLUMNS, by: str | Sequence[str] | None = None,
    level: Level = "run", confidence: float = 0.95, cluster: str | None = AUTO,
) -> Drift:  # fmt: skip
    """Hold later records against earlier ones.

    Parameters
    ----------
    old, new : Settlements or DataFrame
        Nodes, earlier and later.
    columns : sequence of str
        Quantities; those that neither set knows are left out.
    by : str or sequence of str, optional
        Columns whose groups are compared apart.
    level : {"run", "node"}
        What a row is.
    confidence : float, default 0.95
        Confidence of each interval; 1 less it is the error rate of the verdict over all comparisons.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    Drift

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(60), "outcome": "completed", "calls": range(60)})
    >>> drift(runs, runs.assign(calls=runs["calls"] + 40)).moved[0].column
    'calls'
    """
    check_confidence(confidence)
    names = as_names(by)
    sides = [table(data, level) for data in (old, new)]
    both = pd.concat([side.assign(_later=later) for later, side in enumerate(sides)], ignore_index=True)
    codes, keys = group_codes(both, names)
    later = both["_later"].to_numpy(dtype=bool)
    counts = np.stack([np.bincount(codes[later == side], minlength=len(keys)) for side in (False, True)])
    moves: list[Moved] = []
    for number, key in enumerate(keys):
        if counts[:, number].all():
            moves += _moves(both[codes == number].reset_index(drop=True), key, columns, confidence, cluster)
    if not moves and not keys:
        raise InputError("records", expected="rows on both sides", got="none")
    change, start, name = _change(both, columns, confidence, cluster)
    return Drift(
        moves=_corrected(moves), contexts=context_changes(nodes_of(old), nodes_of(new)),
        change=change, changed_ns=start,
        appeared=tuple(k for n, k in enumerate(keys) if not counts[0, n]),
        vanished=tuple(k for n, k in enumerate(keys) if not counts[1, n]),
        rows=(len(sides[0]), len(sides[1])), confidence=confidence, cluster=name, shared=shared_rows(old, new),
        later_nodes=len(nodes_of(new)),
    )  # fmt: skip


def _moves(
    rows: pd.DataFrame, key: tuple[Any, ...], columns: Sequence[str], confidence: float, cluster: str | None
) -> list[Moved]:
    later = rows["_later"].to_numpy(dtype=bool)
    moves = []
    for name in columns:
        if name not in rows.columns and name != "tokens":
            continue
        sample = take(rows, name, cluster=cluster)
        found = _shifted(sample.amounts * display(name)[1], later[sample.kept], sample.labels, name, confidence)
        moves += [Moved(group=key, column=name, found=found)] if found.n_old and found.n_new else []
    judged = endings(rows) != APART
    done = (endings(rows)[judged] == COMPLETED).astype(np.float64)
    labels = choose_cluster(rows[judged], done, cluster)[1]
    found = _shifted(done, later[judged], labels, "completed", confidence)
    return [*moves, *([Moved(group=key, column="completed", found=found)] if found.n_old and found.n_new else [])]


def _shifted(values: Floats, later: Bools, labels: Labels | None, name: str, confidence: float) -> Shift:
    old, new = (None, None) if labels is None else (labels[~later], labels[later])
    before, after = values[~later], values[later]
    found = shift(before, after, confidence=confidence, clusters_old=old, clusters_new=new, unit=display(name)[0])
    found = replace(found, difference=_without_rounding(found.difference, values))
    if name != "completed" or labels is not None or not before.size or not after.size:
        return found
    return replace(found, difference=difference_of_shares(before > 0, after > 0, confidence=confidence))


def _without_rounding(difference: Estimate, values: Floats) -> Estimate:
    """Return the difference with 0 for what rounding alone made of equal means."""
    least = 1e-12 * float(np.abs(values).max(initial=0.0))

    def clean(value: float) -> float:
        return 0.0 if abs(value) <= least else value

    interval = difference.interval
    if isinstance(interval, Interval):
        interval = replace(interval, low=clean(interval.low), high=clean(interval.high))
    value = None if difference.value is None else clean(difference.value)
    return replace(difference, value=value, interval=interval)


def _corrected(moves: Sequence[Moved]) -> tuple[Moved, ...]:
    adjusted = iter(holm([one.found.p_either for one in moves if one.found.p_either is not None]).tolist())
    return tuple(one if one.found.p_either is None else replace(one, p_adjusted=next(adjusted)) for one in moves)


def _change(
    both: pd.DataFrame, columns: Sequence[str], confidence: float, cluster: str | None
) -> tuple[ChangePoint | None, int | None, str | None]:
    """Look for a change point of the first quantity over all rows in order of time."""
    name = next((c for c in columns if c in both.columns), None)
    if name is None:
        return None, None, None
    values = numbers(both, name)
    ordered = both.assign(_value=values, _start=column(both, "start_ns"))
    ordered = ordered[~np.isnan(values)]
    chosen, labels = choose_cluster(ordered, values[~np.isnan(values)], cluster)
    if ordered["_start"].isna().any() or ordered.empty:
        return None, None, chosen
    order = np.argsort(ordered["_start"].to_numpy(dtype=np.int64), kind="stable")
    found = change_point(
        ordered["_value"].to_numpy()[order], clusters=None if labels is None else labels[order], confidence=confidence
    )
    if found.place.value is None:
        return found, None, chosen
    start = ordered["_start"].to_numpy(dtype=np.int64)[order]
    return found, int(start[min(int(found.place.value), start.size - 1)]), chosen
