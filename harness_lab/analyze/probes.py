"""Which paths lack a floor that can be trusted, how many cheap runs each needs, and what those would cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.floors import PATH, UNKNOWN, Floors, floors
from harness_lab.analyze.frames import Bools, Data, Floats, column, nodes_of, numbers
from harness_lab.errors import InputError
from harness_lab.stats.estimates import percent
from harness_lab.stats.quantiles import wilks_n

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.floors import PathFloor
    from harness_lab.floors import FloorKey
    from harness_lab.settlements import Settlements

Why = Literal["unmeasured", "stale", "thin", "unnamed"]
CONFIDENCE: Final = 0.95
_USD: Final = 1e9
_UNPRICED: Final = "no run of this path has a recorded cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Runs that one path needs.

    Parameters
    ----------
    key : FloorKey
        The path.
    why : {"unmeasured", "stale", "thin", "unnamed"}
        No eligible settlement; none that is young enough, and what is stale counts for nothing; too few for the
        coverage that is wanted; or the records do not name what would run it.
    runs : int
        Cheap runs that are needed, in clusters of their own (users, repositories) where the path's are known.
    low_usd, usual_usd : float or None
        What one would cost, dollars: the cheapest recorded run, and the median. None: nothing is recorded to go by.
    priced_by : str
        Which recorded runs that rests on, with their number; or what is missing.
    missing : tuple of str
        What the records do not name, ``backend`` or ``model``: nobody can run the path before they do. Its `runs` are
        those that it needs then, beside what is recorded. Empty: it is named.
    """

    key: FloorKey
    why: Why
    runs: int
    low_usd: float | None
    usual_usd: float | None
    priced_by: str
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.low_usd is None or self.usual_usd is None:
            cost = f"cost unknown ({self.priced_by})"
        else:
            low, usual = self.low_usd * self.runs, self.usual_usd * self.runs
            cost = f"about ${low:,.2f} to ${usual:,.2f} ({self.priced_by})"
        if not self.missing:
            return f"{self.key}: {self.why}; {self.runs} run(s), {cost}"
        then = f"then {self.runs} run(s), {cost}" if self.runs else "then none is needed"
        return f"{self.key}: its records name no {' and no '.join(self.missing)}; {then}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbePlan:
    """What to run so that every path has a floor.

    Parameters
    ----------
    probes : tuple of Probe
        Paths that need runs; empty: none does.
    coverage : float
        Share of future runs that each floor is then to hold for, with 95 % confidence.
    measured : int
        Paths that need none.
    to_name : tuple of Probe
        Recorded paths without a backend or a model: nobody can say how to run them, so they are not among `probes`,
        and no cost of theirs is in the total.
    """

    probes: tuple[Probe, ...]
    coverage: float
    measured: int
    to_name: tuple[Probe, ...] = ()

    @property
    def unnamed(self) -> int:
        """How many paths have to be named first."""
        return len(self.to_name)

    @property
    def total_usd(self) -> tuple[float, float]:
        """What all of it would cost, dollars, at the cheapest and at the median; paths of unknown cost are left out."""
        known = [(p.low_usd * p.runs, p.usual_usd * p.runs) for p in self.probes if p.low_usd and p.usual_usd]
        return sum(low for low, _ in known), sum(usual for _, usual in known)

    def records(self) -> list[dict[str, Any]]:
        """Return one row per path: its key, and the fields of :class:`Probe`; those that have to be named come last."""
        return [
            {
                "agent": probe.key.agent, "backend": _named(probe, "backend"), "model": _named(probe, "model"),
                "context": probe.key.context, "unit": probe.key.unit, "why": probe.why, "runs": probe.runs,
                "low_usd": probe.low_usd, "usual_usd": probe.usual_usd, "priced_by": probe.priced_by,
                "missing": ", ".join(probe.missing) or None,
            }
            for probe in (*self.probes, *self.to_name)
        ]  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return :meth:`records` as a frame, unknown as NA."""
        return pd.DataFrame(self.records(), columns=list(_DTYPES)).astype(_DTYPES)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how many cheap runs each path needs; those of unknown cost are hatched; return the axes."""
        from harness_lab.plots.bars import plot_bars
        from harness_lab.plots.quantities import Quantity

        names = [f"{one.key}" for one in self.probes]
        frame = pd.DataFrame({
            "name": names, "value": [one.runs for one in self.probes],
            "marked": [one.low_usd is None for one in self.probes],
        })  # fmt: skip
        empty = "no path needs a probe: every floor is fresh and rests on enough runs"
        return plot_bars(
            frame, ax=ax, shown=Quantity(name="cheap runs needed"), marked="of unknown cost", empty=empty,
            title="Which paths need runs before they have a floor?",
        )  # fmt: skip

    def summary(self) -> str:
        """Return the plan in a few lines of plain text."""
        left = self._to_name() if self.to_name else []
        if not self.probes:
            fine = f"All {self.measured} path(s) have a floor that is neither stale nor thin: nothing to probe."
            return "\n".join([fine] * (self.measured > 0 or not left) + left)
        head = f"{len(self.probes)} path(s) to probe, {self.measured} need none:"
        total = f"In all {sum(probe.runs for probe in self.probes)} run(s), {self._total()}."
        return "\n".join([head, *(f"- {probe}" for probe in self.probes), total, *left])

    def _to_name(self) -> list[str]:
        head = f"{self.unnamed} path(s) have to be named before they can be run, and are not in the plan:"
        how = (
            "Name them where the records are read (--map backend=COLUMN --map model=COLUMN), or say what shall run "
            "them (--want backend=B,model=M)."
        )
        return [head, *(f"- {probe}" for probe in self.to_name), how]

    def _total(self) -> str:
        unknown = sum(probe.low_usd is None for probe in self.probes)
        if unknown == len(self.probes):
            return "of unknown cost"
        low, usual = self.total_usd
        return f"about ${low:,.2f} to ${usual:,.2f}{f' and {unknown} path(s) of unknown cost' if unknown else ''}"

    def explain(self) -> str:
        """Return what the plan means, what it does not, and what to do next."""
        return (
            f"A floor from {wilks_n(self.coverage, CONFIDENCE)} independent runs holds for {percent(self.coverage)} of "
            "future runs with 95 % confidence (Wilks). A probe is the smallest real task of the path, run to its end: "
            "one that is cut off is no evidence, and a large one measures the task and not the path.\n"
            "Costs are those of recorded runs; a small task costs less than the median.\n"
            "Next: run them with a recorder, and give its file to --results: the floors and what is left to probe are "
            "then made of both."
        )

    def __repr__(self) -> str:
        return f"ProbePlan({len(self.probes)} path(s) to probe, {self.measured} need none)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


_DTYPES: Final = {
    "agent": "string", "backend": "string", "model": "string", "context": "string", "unit": "string", "why": "string",
    "runs": "Int64", "low_usd": "Float64", "usual_usd": "Float64", "priced_by": "string", "missing": "string",
}  # fmt: skip


def plan_probes(
    settlements: Data, found: Floors | None = None, *, wanted: Sequence[FloorKey] = (), coverage: float = 0.8
) -> ProbePlan:
    """Say which paths are unmeasured or stale, how many cheap runs each needs, and what they would cost.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    found : Floors or None
        Floors of these settlements, with their rule of what is stale; derived without one if None.
    wanted : sequence of FloorKey
        Paths that shall have a floor, recorded or not.
    coverage : float
        Share of future runs that each floor is to hold for, with 95 % confidence, inside (0, 1).

    Raises
    ------
    InputError
        If `coverage` is not a share.

    Notes
    -----
    The number of runs is Wilks' for a one-sided tolerance bound by the minimum: ``log(0.05) / log(coverage)``, rounded
    up. Where the runs of a path come in clusters, it takes that many clusters.

    Examples
    --------
    >>> nodes = pd.DataFrame({"run": ["a"], "outcome": ["failed"], "input_total": [5000], "backend": "pi", "model": "m",
    ...     "cost_nusd": [20_000_000]})
    >>> print(plan_probes(nodes).probes[0])
    pi / m (context unknown, input-total): unmeasured; 14 run(s), about $0.28 to $0.28 (n = 1 run(s) of this path)
    """
    if not isinstance(coverage, float) or not 0 < coverage < 1:
        raise InputError("coverage", expected="a share above 0 and below 1", got=coverage)
    derived = floors(settlements) if found is None else found
    nodes, goal = nodes_of(settlements), wilks_n(coverage, CONFIDENCE)
    needs = {
        path.key: _need(derived, path, goal) for path in derived if UNKNOWN not in (path.key.backend, path.key.model)
    }
    unnamed = [_unnamed(nodes, path, _need(derived, path, goal)[1]) for path in derived if path.key not in needs]
    for key in wanted:
        if not any(_same(key, known) for known in needs):
            needs[key] = ("unmeasured", goal)
    probes = []
    for key, (why, runs) in needs.items():
        if why is not None:
            low, usual, priced_by = _cost(nodes, key)
            probes.append(Probe(key=key, why=why, runs=runs, low_usd=low, usual_usd=usual, priced_by=priced_by))
    measured = len(needs) - len(probes)
    return ProbePlan(probes=tuple(probes), coverage=coverage, measured=measured, to_name=tuple(unnamed))


def with_results(settlements: Settlements, results: Settlements, found: Floors) -> Settlements:
    """Take the results of probes in: rows of a path that was stale are retired, all others are kept.

    Parameters
    ----------
    settlements : Settlements
        The rows before.
    results : Settlements
        What the probes left.
    found : Floors
        Floors of the rows before, with their rule of what is stale.
    """
    retired = {(k.agent, k.backend, k.model, k.context) for k in (p.key for p in found if found.is_stale(p))}
    nodes = settlements.nodes
    paths = zip(*(column(nodes, name).astype("string").fillna("").tolist() for name in PATH), strict=True)
    keep = [tuple(value or None for value in path) not in retired for path in paths]
    return type(settlements).concat([replace(settlements, nodes=nodes[keep]), results])


def _need(found: Floors, path: PathFloor, goal: int) -> tuple[Why | None, int]:
    """Return why a path needs runs, and how many."""
    evidence = path.applies
    if evidence.floor is None:
        return "unmeasured", goal
    if found.is_stale(path):
        return "stale", goal
    missing = goal - (evidence.clusters or evidence.n)
    return ("thin", missing) if missing > 0 else (None, 0)


def _unnamed(nodes: pd.DataFrame, path: PathFloor, runs: int) -> Probe:
    """Return what a path needs whose records do not say what ran it; its own runs are all that tell its cost."""
    key = path.key
    missing = tuple(name for name in ("backend", "model") if getattr(key, name) == UNKNOWN)
    own = np.ones(len(nodes), dtype=bool)
    for name in PATH:
        value = None if name in missing else getattr(key, name)
        found = column(nodes, name).astype("string")
        own &= (found.isna() if value is None else found == value).fillna(value=False).to_numpy(dtype=bool)
    low, usual, priced_by = _costs([(own, "of this path")], numbers(nodes, "cost_nusd")) or (None, None, _UNPRICED)
    return Probe(
        key=key, why="unnamed", runs=runs, low_usd=low, usual_usd=usual, priced_by=priced_by, missing=missing
    )  # fmt: skip


def _named(probe: Probe, name: str) -> str | None:
    """Return a part of a path's key, None where its records do not name it."""
    found: str = getattr(probe.key, name)
    return None if name in probe.missing else found


def _same(asked: FloorKey, known: FloorKey) -> bool:
    if (asked.backend, asked.model, asked.context) != (known.backend, known.model, known.context):
        return False
    return asked.agent is None or asked.agent == known.agent


def _cost(nodes: pd.DataFrame, key: FloorKey) -> tuple[float | None, float | None, str]:
    """Return what a run of a path cost at least and usually, by the nearest runs whose cost is recorded."""
    cost, model = numbers(nodes, "cost_nusd"), column(nodes, "model").astype("string") == key.model
    on_path = model & (column(nodes, "backend").astype("string") == key.backend)
    nearest = [(on_path, "of this path"), (model, "of its model on other paths")]
    if key.agent is not None:
        own = on_path & (column(nodes, "agent").astype("string") == key.agent)
        nearest[:1] = [(own, "of this path"), (on_path, "of other agents on its backend and model")]
    masks = [(rows.fillna(value=False).to_numpy(dtype=bool), words) for rows, words in nearest]
    return _costs(masks, cost) or (None, None, f"no run of {key.model} has a recorded cost")


def _costs(nearest: Sequence[tuple[Bools, str]], cost: Floats) -> tuple[float, float, str] | None:
    """Return the least and the usual cost of the first rows of which any has one, and which they are."""
    for rows, words in nearest:
        known: Floats = cost[rows & ~np.isnan(cost) & (cost > 0)]
        if known.size:
            return float(known.min()) / _USD, float(np.median(known)) / _USD, f"n = {known.size} run(s) {words}"
    return None
