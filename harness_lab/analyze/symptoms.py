"""Symptoms in records: patterns that cost money or end runs, counted, with what they spent."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.floors import floors
from harness_lab.analyze.frames import Data, Ints, calls_of, column, label, nodes_of, numbers, parts_by, text
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.runs import _parents, _runs
from harness_lab.stats.estimates import Estimate, check_confidence
from harness_lab.stats.means import ratio
from harness_lab.stats.notes import notes_below
from harness_lab.stats.shares import share
from harness_lab.writing import dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Bools

ONE_CALL_SHARE: Final = 0.5
"""A call eats the budget if it takes more than this share of what its whole run used, in a run of several calls."""
SAME_IN_A_ROW: Final = 3
_COLUMNS: Final = ("what", "where", "count", "spend_usd", "value", "low", "high", "confidence", "n", "clusters",
                   "effective_n", "method", "needs_n", "note")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One pattern in one place.

    Parameters
    ----------
    what : str
        The pattern.
    where : str
        Parent and role, level, or node and model, as the pattern has it.
    count : int
        How often.
    found : Estimate
        Share of the rows in which it could have been.
    spend_usd : float or None
        What the rows concerned spent, dollars; None: unknown (for caching: see reprice with ``cache_hit=0``).
    """

    what: str
    where: str
    count: int
    found: Estimate
    spend_usd: float | None

    def __str__(self) -> str:
        money = "" if self.spend_usd is None else f"; spent {dollars(self.spend_usd)}"
        return f"{self.what} ({self.where}): {self.count:,}, a share of {self.found}{money}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Symptoms:
    """All symptoms that were found, and what could not be looked for.

    Parameters
    ----------
    found : tuple of Symptom
        Dearest first within each pattern.
    not_looked_for : tuple of str
        Patterns that the records cannot show, and why.
    parts : Parts or None
        The same for each group of `by`.
    """

    found: tuple[Symptom, ...]
    not_looked_for: tuple[str, ...]
    parts: Parts[Symptoms] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per symptom: ``what, where, count, spend_usd`` and the share's fields; the group in front."""
        if self.parts is not None:
            return self.parts.to_frame()
        rows = [
            {"what": one.what, "where": one.where, "count": one.count, "spend_usd": one.spend_usd, **one.found.record()}
            for one in self.found
        ]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(_COLUMNS))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how often each symptom was found; return the axes."""
        from harness_lab.plots import plot_symptoms

        return plot_symptoms(self.to_frame(), ax=ax)

    def summary(self) -> str:
        """Return the symptoms in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        lines = [f"- {one}" for one in self.found] or ["No symptom found."]
        return notes_below("\n".join(lines + [f"Not looked for: {why}." for why in self.not_looked_for]))

    def explain(self) -> str:
        """Return what the patterns mean and what to do next."""
        return (
            "An ask below the floor starts a child that cannot finish; a child that dies within one call has paid its "
            "start-up cost for nothing; starts that grow by level are a tree without a bound; calls of the same size "
            f"in a row ({SAME_IN_A_ROW} or more, same fresh prompt and answer) look like a loop, which only the "
            f"texts could prove.\n"
            "Next: preflight with floors(...) for asks; tree_limits for growth; reprice(cache_hit=0) for what "
            "caching saved."
        )

    def __repr__(self) -> str:
        return f"Symptoms({len(self.found)} found)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def symptoms(
    settlements: Data, *, by: str | Sequence[str] | None = None, confidence: float = 0.95
) -> Symptoms:  # fmt: skip
    """Look for symptoms in records.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes; call rows beside them show more.
    by : str or sequence of str, optional
        Columns whose groups of runs are looked at apart, in ``parts``; a run belongs to the group of its root.
    confidence : float, default 0.95
        Of the interval of each share; rows of one run are a cluster.

    Returns
    -------
    Symptoms
    """
    check_confidence(confidence)
    nodes, calls = nodes_of(settlements), calls_of(settlements)
    look = _Look(nodes, calls, confidence)
    found, missing = [], []
    for patterns, why in (
        (look.below_floor(), "asks below the floor (no asks are recorded)"),
        (look.within_one_call(), "children that die within one call (calls are not recorded)"),
        (look.growth(), "starts by level (depth is not recorded)"),
        (look.one_call(), "one call that eats the budget (no call rows)"),
        (look.in_a_row(), "calls of the same size in a row (no call rows)"),
        (look.caching(), "what caching saved (cache reads or prices are not recorded)"),
    ):
        if patterns is None:
            missing.append(why)
        else:
            found += sorted(patterns, key=lambda one: -(one.spend_usd or 0.0))
    parts = ask_by(settlements, by, lambda rows: symptoms(rows, confidence=confidence))
    return Symptoms(found=tuple(found), not_looked_for=tuple(missing), parts=parts)


class _Look:
    """The nodes and calls, with what all patterns need."""

    def __init__(self, nodes: pd.DataFrame, calls: pd.DataFrame | None, confidence: float) -> None:
        self._nodes, self._confidence = nodes, confidence
        self._calls = None if calls is None or not len(calls) else calls.reset_index(drop=True)
        self._run: Ints = _runs(nodes)[0] if len(nodes) else np.zeros(0, dtype=np.int64)
        self._parent = _parents(nodes, self._run) if len(nodes) else np.zeros(0, dtype=np.intp)
        role = text(nodes, "agent")
        self._role = np.where(role == "", "unknown", role)
        above = np.where(self._parent >= 0, self._role[self._parent], "root") if len(nodes) else role
        self._place = np.asarray([f"{a} -> {r}" for a, r in zip(above, self._role, strict=True)], dtype=object)
        self._cost = numbers(nodes, "cost_nusd") * 1e-9

    def below_floor(self) -> list[Symptom] | None:
        """Asks below the floor of their path, by parent and role."""
        ask = (
            numbers(self._nodes, "ask_input")
            if "ask_input" in self._nodes.columns
            else np.full(len(self._nodes), np.nan)
        )
        if np.isnan(ask).all():
            return None
        table = floors(self._nodes).to_frame()
        keys = ["agent", "backend", "model", "context"]
        mine = pd.DataFrame({name: column(self._nodes, name).astype("string").fillna("") for name in keys})
        table[keys] = table[keys].astype("string").fillna("")
        floor = mine.merge(table[[*keys, "floor"]].drop_duplicates(keys), on=keys, how="left")["floor"]
        low = ask < floor.to_numpy(dtype=np.float64, na_value=np.nan)
        return self._by_place("ask below the floor", low, ~np.isnan(ask))

    def within_one_call(self) -> list[Symptom] | None:
        """Children that did not complete and made one call at most."""
        calls = numbers(self._nodes, "calls")
        if np.isnan(calls).all():
            return None
        outcome = text(self._nodes, "outcome")
        dead = ~np.isin(outcome, ("completed", "denied", "unknown", "awaiting_approval")) & (calls <= 1)
        return self._by_place("child that died within one call", dead & (self._parent >= 0), self._parent >= 0)

    def growth(self) -> list[Symptom] | None:
        """Levels on which more nodes were started than on the level above."""
        depth = numbers(self._nodes, "depth")
        if np.isnan(depth).all():
            return None
        runs = int(self._run.max()) + 1
        levels = int(np.nanmax(depth)) + 1
        known = ~np.isnan(depth)
        flat = self._run[known] * levels + depth[known].astype(np.int64)
        count = np.bincount(flat, minlength=runs * levels).reshape(runs, levels)
        found = []
        for level in range(2, levels):
            grown, there = count[:, level] > count[:, level - 1], count[:, level - 1] > 0
            if (grown & there).any():
                rows = known & (depth == level) & grown[self._run]
                share_ = share(grown[there], confidence=self._confidence, method="share of runs")
                found.append(
                    Symptom(
                        what="starts grow by level", where=f"level {level}", count=int((grown & there).sum()),
                        found=share_, spend_usd=self._spend(rows),
                    )
                )  # fmt: skip
        return found

    def one_call(self) -> list[Symptom] | None:
        """Find calls that take more than half of what their run used."""
        if self._calls is None:
            return None
        calls = self._calls
        cost = numbers(calls, "cost_nusd")
        run = np.asarray(pd.factorize(column(calls, "run"))[0], dtype=np.int64)
        whole, several = np.bincount(run, weights=np.nan_to_num(cost)), np.bincount(run)
        known = ~np.isnan(cost) & (whole[run] > 0) & (several[run] >= 3)
        eats = known & (cost > ONE_CALL_SHARE * np.where(whole[run] > 0, whole[run], 1))
        return self._of_calls("one call took over half of its run's spend", eats, known, run, cost * 1e-9)

    def in_a_row(self) -> list[Symptom] | None:
        """Find calls whose fresh prompt and answer have the size of the two before."""
        if self._calls is None:
            return None
        calls = self._calls
        fresh, output = numbers(calls, "input_fresh"), numbers(calls, "output")
        node = np.asarray(calls.groupby(["run", "node"], dropna=False, sort=False).ngroup(), dtype=np.int64)
        place = np.where(np.isnan(numbers(calls, "call")), np.arange(len(calls)), numbers(calls, "call"))
        order = np.lexsort((place, node))
        same = np.zeros(len(calls), dtype=bool)
        same[1:] = (
            (node[order][1:] == node[order][:-1]) & (fresh[order][1:] == fresh[order][:-1])
            & (output[order][1:] == output[order][:-1]) & (fresh[order][1:] > 0)
        )  # fmt: skip
        row = same.copy()
        row[1:] &= same[:-1]
        hit = np.zeros(len(calls), dtype=bool)
        hit[order[row]] = True
        run = np.asarray(pd.factorize(column(calls, "run"))[0], dtype=np.int64)
        known = ~np.isnan(fresh + output)
        what = f"calls of the same size, {SAME_IN_A_ROW} or more in a row"
        return self._of_calls(what, hit & known, known, run, numbers(calls, "cost_nusd") * 1e-9)

    def caching(self) -> list[Symptom] | None:
        """Return the share of prompts that came from the cache; reprice(cache_hit=0) prices what that saved."""
        rows = self._nodes
        if np.isnan(numbers(rows, "cache_read")).all():
            return None
        found = []
        for key, part in parts_by(
            rows.assign(agent=column(rows, "agent"), model=column(rows, "model")), ("agent", "model")
        ):
            got, all_ = numbers(part, "cache_read"), numbers(part, "input_total")
            known = ~np.isnan(got) & ~np.isnan(all_) & (all_ > 0)
            if not known.any():
                continue
            labels = np.asarray(pd.factorize(column(part, "run"))[0])[known]
            one = ratio(
                got[known], all_[known], confidence=self._confidence,
                clusters=labels if np.unique(labels).size < labels.size else None, method="share of prompt tokens",
            )  # fmt: skip
            found.append(
                Symptom(
                    what="prompt tokens read from the cache", where=label(key), count=int(np.nansum(got)), found=one,
                    spend_usd=None,
                )
            )  # fmt: skip
        return found

    def _by_place(self, what: str, hits: Bools, among: Bools) -> list[Symptom]:
        found = []
        for place in np.unique(self._place[hits & among].astype(str)):
            mine = among & (self._place == place)
            rows = mine & hits
            labels = self._run[mine]
            one = share(
                hits[mine], confidence=self._confidence, method="share of nodes",
                clusters=labels if np.unique(labels).size < labels.size else None,
            )  # fmt: skip
            found.append(
                Symptom(what=what, where=str(place), count=int(rows.sum()), found=one, spend_usd=self._spend(rows))
            )
        return found

    def _of_calls(self, what: str, hits: Bools, known: Bools, run: Ints, cost: Any) -> list[Symptom]:
        if not hits.any():
            return []
        labels = run[known]
        one = share(
            hits[known], confidence=self._confidence, method="share of calls",
            clusters=labels if np.unique(labels).size < labels.size else None,
        )  # fmt: skip
        spend = float(np.nansum(cost[hits])) if not np.isnan(cost[hits]).all() else None
        return [Symptom(what=what, where="all calls", count=int(hits.sum()), found=one, spend_usd=spend)]

    def _spend(self, rows: Bools) -> float | None:
        cost = self._cost[rows]
        return None if not cost.size or np.isnan(cost).all() else float(np.nansum(cost))
