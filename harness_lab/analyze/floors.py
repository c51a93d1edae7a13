"""Floors from evidence: the smallest eligible settlement of each path, and how little or much that says."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.contexts import described
from harness_lab.analyze.evidence import CONFIDENCE, COVERAGE, EVIDENCE, Evidence, eligible, gather, unit_values
from harness_lab.analyze.frames import Bools, Data, calls_of, column, is_true, nodes_of, numbers, parts_by, text
from harness_lab.analyze.grouping import AUTO, CANDIDATES
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import UNITS, Unit
from harness_lab.stats.estimates import percent
from harness_lab.stats.quantiles import wilks_n
from harness_lab.stats.tolerance import lower_bounds_by_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from matplotlib.axes import Axes

PATH: Final = ("agent", "backend", "model", "context")
_USED: Final = frozenset((*PATH, *EVIDENCE, *CANDIDATES, "served_model", "context_fields"))
"""Columns that floors rest on, beside those that tokens and eligibility are told from."""
_NS_PER_DAY: Final = 86_400_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFloor:
    """The floors of one path: one for each served model; the lowest applies.

    Parameters
    ----------
    key : FloorKey
        The path.
    served : tuple of Evidence
        One for each served model, lowest floor first, those without a floor last.
    context_fields : mapping of str to object
        What its starting context was made of; empty: not recorded.
    """

    key: FloorKey
    served: tuple[Evidence, ...]
    context_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def applies(self) -> Evidence:
        """The evidence of the floor that applies."""
        return self.served[0]

    @property
    def note(self) -> str:
        """What a reader has to know about the floor that applies."""
        others = [f"{e.served_model or 'unknown'} {e.floor:,} (n = {e.n})" for e in self.served if e.floor is not None]
        several = [f"lowest of {len(others)} served models: {', '.join(others)}"] if len(others) > 1 else []
        return "; ".join([*self.applies.notes, *several])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Floors:
    """Floors of all paths in a set of settlements.

    Parameters
    ----------
    paths : tuple of PathFloor
        One for each path, in order of appearance.
    unit : {"input-total", "total", "newly-presented"}
        What is counted.
    now_ns : int or None
        The instant that ages refer to, epoch nanoseconds; None: ages are unknown.
    stale_after_ns : int or None
        Age at which evidence is stale, nanoseconds; None: never.
    points : DataFrame
        One row per node: its path, ``tokens`` (in the unit; NA: unknown) and ``eligible`` (bool); for the picture.
    """

    paths: tuple[PathFloor, ...]
    unit: Unit
    now_ns: int | None = None
    stale_after_ns: int | None = None
    points: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)

    def __iter__(self) -> Iterator[PathFloor]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def records(self) -> list[dict[str, Any]]:
        """Return one row per path.

        Returns
        -------
        list of dict
            Keys ``agent, backend, model, context`` (None: unknown), ``unit``, ``floor``, ``second_lowest`` and
            ``startup_cost`` (tokens; None: unknown), ``n``, ``clusters``, ``coverage_at_95`` (share of future runs at
            or above the floor, at 95 % confidence), ``p_next_below``, ``needs_n`` (settlements that 95 % coverage would
            need; None if there are as many), ``age`` (days), ``stale`` (None: unknown), ``evidence_id``, ``note``.
        """
        return [self._record(path) for path in self.paths]

    def to_frame(self) -> pd.DataFrame:
        """Return :meth:`records` as a frame, unknown as NA."""
        frame = pd.DataFrame(self.records(), columns=list(_RECORD))
        return frame.astype({name: dtype for name, dtype in _RECORD.items() if dtype})

    def to_table(self) -> FloorTable:
        """Return the floor table that enforcement uses: one row per path and served model."""
        return FloorTable(tuple(self._row(path, one) for path in self.paths for one in path.served))

    def by_model(self, *, coverage: float = COVERAGE, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """Return what parametric shortcuts would say instead: how far they lie apart is what they assume.

        Parameters
        ----------
        coverage, confidence : float
            Share of future runs that shall lie above the bound, and the confidence of that.

        Returns
        -------
        DataFrame
            One row per path of at least two different eligible settlements, and model: ``agent, backend, model,
            context``, ``shape`` (what is assumed), ``bound`` (tokens; may be negative), ``floor`` (the smallest seen)
            and ``n``. No row is an answer; see :func:`harness_lab.stats.tolerance.lower_bounds_by_model`.
        """
        rows: list[dict[str, Any]] = []
        keys = [name for name in PATH if name in self.points.columns]
        for key, part in parts_by(self.points, keys):
            seen = part.loc[part["eligible"] & part["tokens"].notna(), "tokens"].to_numpy(dtype=np.float64)
            if seen.size < 2 or seen.min() <= 0 or seen.min() == seen.max():
                continue
            found = lower_bounds_by_model(seen, coverage=coverage, confidence=confidence)
            path = dict.fromkeys(PATH) | dict(zip(keys, key, strict=True))
            rows += [{**path, "shape": shape, "bound": bound, "floor": int(seen.min()), "n": seen.size}
                     for shape, bound in found.items()]  # fmt: skip
        return pd.DataFrame(rows, columns=[*PATH, "shape", "bound", "floor", "n"])

    def plot(self, ax: Axes | None = None, *, asks: Sequence[int] | None = None) -> Axes:
        """Draw every settlement of each path, its floor, and which `asks` (tokens) lie below it; return the axes.

        See :func:`harness_lab.plots.plot_floors`.
        """
        from harness_lab.plots import plot_floors

        value = "input_total" if UNITS[self.unit] == "input" else "tokens"
        points = self.points.rename(columns={"tokens": value})
        return plot_floors(points, self.to_frame(), ax=ax, value=value, asks=asks)

    def summary(self) -> str:
        """Return the floors in a few lines of plain text."""
        if not self.paths:
            return "No settlements, so no floor."
        lines = [f"{len(self.paths)} path(s), {self.unit} tokens:"]
        return "\n".join([*lines, *(f"- {self._line(path)}" for path in self.paths)])

    def explain(self) -> str:
        """Return what a floor means, what it does not, and what to do next."""
        needed = wilks_n(COVERAGE, 0.95)
        return (
            "A floor is the smallest eligible settlement seen on a path: an ask below it is refused before it starts. "
            "It promises no success, and it bounds no other path: backends, models and contexts are not merged.\n"
            f"Coverage says for how many future runs the floor holds, at 95 % confidence; 95 % of them needs {needed} "
            "independent settlements. A settlement that a limit stopped is no evidence, because more was needed.\n"
            "Start-up cost is the smallest first prompt: what is gone before the task is read. A floor far above it "
            "says what the recorded tasks took, and refuses smaller ones wrongly.\n"
            "A formula that goes below the smallest settlement rests on its model: by_model() shows how far apart such "
            "formulas lie, and is no floor.\n"
            "Next: to_table() for preflight(...), and a look at rows that a note names."
        )

    def _record(self, path: PathFloor) -> dict[str, Any]:
        found, key = path.applies, path.key
        return {
            "agent": key.agent, "backend": _known(key.backend), "model": _known(key.model), "context": key.context,
            "unit": self.unit, "floor": found.floor, "second_lowest": found.second_lowest,
            "startup_cost": found.startup_cost, "n": found.n, "clusters": found.clusters,
            "coverage_at_95": found.coverage, "p_next_below": found.p_next_below, "needs_n": found.needs_n,
            "age": self._age(found), "stale": self._stale(found), "evidence_id": found.evidence_id, "note": path.note,
        }  # fmt: skip

    def is_stale(self, path: PathFloor) -> bool | None:
        """Whether the floor of a path rests on evidence past its date; None: its age is unknown, or none is too old."""
        return self._stale(path.applies)

    def _age(self, found: Evidence) -> float | None:
        if self.now_ns is None or found.measured_ns is None:
            return None
        return max(0, self.now_ns - found.measured_ns) / _NS_PER_DAY

    def _stale(self, found: Evidence) -> bool | None:
        age = self._age(found)
        return None if age is None or self.stale_after_ns is None else age * _NS_PER_DAY > self.stale_after_ns

    def _row(self, path: PathFloor, found: Evidence) -> FloorRow:
        limit = None
        if self.stale_after_ns is not None and found.measured_ns is not None:
            limit = found.measured_ns + self.stale_after_ns
        return FloorRow(
            key=path.key, floor=found.floor, n=found.n, second_lowest=found.second_lowest,
            startup_cost=found.startup_cost, served_model=found.served_model, measured_ns=found.measured_ns,
            stale_after_ns=limit, evidence_id=found.evidence_id, sources=found.sources, note="; ".join(found.notes),
            context_fields=path.context_fields,
        )  # fmt: skip

    def _line(self, path: PathFloor) -> str:
        found = path.applies
        if found.floor is None or found.coverage is None or found.p_next_below is None:
            return f"{path.key}: no floor ({path.note})"
        groups = "" if found.clusters is None else f", {found.clusters} clusters"
        counted = "n" if found.clusters is None else "clusters"
        needs = "" if found.needs_n is None else f"; 95 % of runs needs {counted} >= {found.needs_n}"
        startup = "unknown" if found.startup_cost is None else f"{found.startup_cost:,}"
        stale = " STALE." if self._stale(found) else ""
        note = f" Note: {path.note}." if path.note else ""
        return (
            f"{path.key}: floor {found.floor:,} (n = {found.n}{groups}), start-up cost {startup}. At 95 % confidence "
            f"{percent(found.coverage)} of future runs lie above it; chance that the next is below "
            f"{found.p_next_below:.1%}{needs}.{stale}{note}"
        )

    def __repr__(self) -> str:
        return f"Floors({len(self.paths)} path(s), {self.unit})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


_RECORD: Final[dict[str, str]] = {
    "agent": "string", "backend": "string", "model": "string", "context": "string", "unit": "string", "floor": "Int64",
    "second_lowest": "Int64", "startup_cost": "Int64", "n": "Int64", "clusters": "Int64", "coverage_at_95": "Float64",
    "p_next_below": "Float64", "needs_n": "Int64", "age": "Float64", "stale": "boolean", "evidence_id": "string",
    "note": "string",
}  # fmt: skip


def floors(
    settlements: Data,
    *,
    unit: Unit = "input-total",
    by: Sequence[str] = PATH,
    stale_after: timedelta | None = None,
    now_ns: int | None = None,
    delivered_only: bool = False,
    cluster: str | None = AUTO,
) -> Floors:
    """Derive floors from settlements.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes; call rows beside them give start-up costs.
    unit : {"input-total", "total", "newly-presented"}
        What is counted: all prompt tokens; with output; less what a cache gave.
    by : sequence of str, default ("agent", "backend", "model", "context")
        What makes a path. Leaving one out merges over it. An unknown value is a key of its own.
    stale_after : timedelta, optional
        Age of the newest row at which a floor is stale.
    now_ns : int, optional
        The instant that ages refer to, epoch nanoseconds; nothing is read from a clock.
    delivered_only : bool, default False
        Take only settlements that are known to have delivered.
    cluster : str or None, default "auto"
        Column whose rows resemble each other; see :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    Floors

    Raises
    ------
    InputError
        If `unit` or `by` is not one of these.

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": ["a", "b"], "outcome": ["completed", "exhausted"], "input_total": [5000, 3000],
    ...     "backend": "pi", "model": "m"})
    >>> found = floors(nodes).records()[0]
    >>> found["floor"], found["n"], found["needs_n"]
    (5000, 1, 59)
    """
    if unit not in UNITS:
        raise InputError("unit", expected=f"one of {', '.join(UNITS)}", got=unit)
    if not set(by) <= set(PATH):
        raise InputError("by", expected=f"some of {', '.join(PATH)}", got=tuple(by))
    nodes = nodes_of(settlements)
    told: dict[str, Any] = {
        "_startup": first_prompts(nodes, calls_of(settlements)),
        "_tokens": unit_values(nodes, unit),
        "_chosen": _chosen(nodes, delivered_only=delivered_only),
    }
    named = () if cluster in (None, AUTO) else (cluster,)
    used = [name for name in nodes.columns if name in _USED and nodes[name].notna().any()]  # unknown is as good as none
    nodes = nodes[[*used, *(name for name in named if name in nodes.columns and name not in used)]]
    nodes = nodes.assign(**told, **{name: column(nodes, name) for name in (*PATH, "served_model")})
    keys = [name for name in PATH if name in by]
    paths = tuple(
        _path(dict(zip(keys, key, strict=True)), rows, unit=unit, cluster=cluster)
        for key, rows in parts_by(nodes, keys, first=told["_chosen"] & ~np.isnan(told["_tokens"]))
        if len(rows)
    )
    after = None if stale_after is None else round(stale_after.total_seconds()) * 1_000_000_000
    points = nodes[keys].assign(
        tokens=pd.array(nodes["_tokens"].to_numpy(dtype=np.float64), dtype="Float64"), eligible=nodes["_chosen"]
    )
    return Floors(paths=paths, unit=unit, now_ns=now_ns, stale_after_ns=after, points=points)


def _chosen(rows: pd.DataFrame, *, delivered_only: bool) -> Bools:
    chosen = eligible(rows)
    return chosen & is_true(rows, "delivered") if delivered_only else chosen


def _path(names: dict[str, Any], rows: pd.DataFrame, *, unit: Unit, cluster: str | None) -> PathFloor:
    key = FloorKey(
        agent=names.get("agent"), backend=names.get("backend") or UNKNOWN, model=names.get("model") or UNKNOWN,
        context=names.get("context"), unit=unit,
    )  # fmt: skip
    first = numbers(rows, "_startup")
    startup = int(np.nanmin(first)) if (~np.isnan(first)).any() else None
    served = [
        gather(
            part, part["_tokens"].to_numpy(), part["_chosen"].to_numpy(), startup=startup, key=str(key), cluster=cluster
        )
        for _, part in parts_by(rows, ["served_model"])
    ]
    ranked = sorted(served, key=lambda one: (one.floor is None, one.floor or 0, one.served_model or ""))
    measured = [one for one in ranked if one.floor is not None]
    fields = described(rows) if "context_fields" in rows.columns else {}
    return PathFloor(key=key, served=tuple(measured or ranked[:1]), context_fields=fields)


UNKNOWN: Final = "unknown"
"""How a floor key spells a backend or model that the record does not name."""


def _known(name: str) -> str | None:
    return None if name == UNKNOWN else name


def first_prompts(nodes: pd.DataFrame, calls: pd.DataFrame | None) -> pd.Series[Any]:
    """Return each node's first model call's prompt tokens, NA without call rows."""
    nothing = pd.Series(pd.NA, index=nodes.index, dtype="Int64")
    if calls is None or not len(calls) or "node" not in nodes.columns:
        return nothing
    kind = text(calls, "kind")
    models = calls[(kind == "model") | (kind == "")]
    ordered = models.sort_values(["call", "attempt"], kind="stable", na_position="last")
    first = ordered.drop_duplicates(["run", "node"]).set_index(["run", "node"])["input_total"]
    found = first.reindex(pd.MultiIndex.from_frame(nodes[["run", "node"]]))
    return pd.Series(found.array, index=nodes.index).astype("Int64")
