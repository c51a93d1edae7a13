"""Which paths lack a floor that can be trusted, how many cheap runs each needs, and what those would cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.floors import PATH, UNKNOWN, Floors, floors
from harness_lab.analyze.frames import Data, Floats, column, nodes_of, numbers
from harness_lab.errors import InputError
from harness_lab.stats.estimates import percent
from harness_lab.stats.quantiles import wilks_n

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.floors import PathFloor
    from harness_lab.floors import FloorKey
    from harness_lab.settlements import Settlements

Why = Literal["unmeasured", "stale", "thin"]
CONFIDENCE: Final = 0.95
_USD: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Runs that one path needs.

    Parameters
    ----------
    key : FloorKey
        The path.
    why : {"unmeasured", "stale", "thin"}
        No eligible settlement; none that is young enough, and what is stale counts for nothing; or too few for the
        coverage that is wanted.
    runs : int
        Cheap runs that are needed, in clusters of their own (users, repositories) where the path's are known.
    low_usd, usual_usd : float or None
        What one would cost, dollars: the cheapest recorded run, and the median. None: nothing is recorded to go by.
    priced_by : str
        Which recorded runs that rests on, with their number; or what is missing.
    """

    key: FloorKey
    why: Why
    runs: int
    low_usd: float | None
    usual_usd: float | None
    priced_by: str

    def __str__(self) -> str:
        if self.low_usd is None or self.usual_usd is None:
            cost = f"cost unknown ({self.priced_by})"
        else:
            low, usual = self.low_usd * self.runs, self.usual_usd * self.runs
            cost = f"about ${low:,.2f} to ${usual:,.2f} ({self.priced_by})"
        return f"{self.key}: {self.why}; {self.runs} run(s), {cost}"


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
    unnamed : int
        Recorded paths without a backend or a model: nobody can say how to run them, so none is planned.
    """

    probes: tuple[Probe, ...]
    coverage: float
    measured: int
    unnamed: int = 0

    @property
    def total_usd(self) -> tuple[float, float]:
        """What all of it would cost, dollars, at the cheapest and at the median; paths of unknown cost are left out."""
        known = [(p.low_usd * p.runs, p.usual_usd * p.runs) for p in self.probes if p.low_usd and p.usual_usd]
        return sum(low for low, _ in known), sum(usual for _, usual in known)

    def records(self) -> list[dict[str, Any]]:
        """Return one row per path: its key, and the fields of :class:`Probe`."""
        return [
            {
                "agent": probe.key.agent, "backend": probe.key.backend, "model": probe.key.model,
                "context": probe.key.context, "unit": probe.key.unit, "why": probe.why, "runs": probe.runs,
                "low_usd": probe.low_usd, "usual_usd": probe.usual_usd, "priced_by": probe.priced_by,
            }
            for probe in self.probes
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
        left = (
            f"{self.unnamed} path(s) are recorded without a backend or a model: not planned, name them in the records."
        )
        if not self.probes:
            fine = f"All {self.measured} path(s) have a floor that is neither stale nor thin: nothing to probe."
            return "\n".join([fine] * (self.measured > 0 or not self.unnamed) + [left] * (self.unnamed > 0))
        head = f"{len(self.probes)} path(s) to probe, {self.measured} need none:"
        total = f"In all {sum(probe.runs for probe in self.probes)} run(s), {self._total()}."
        return "\n".join([head, *(f"- {probe}" for probe in self.probes), total] + [left] * (self.unnamed > 0))

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
    "runs": "Int64", "low_usd": "Float64", "usual_usd": "Float64", "priced_by": "string",
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
    unnamed = sum(1 for _ in derived) - len(needs)
    for key in wanted:
        if not any(_same(key, known) for known in needs):
            needs[key] = ("unmeasured", goal)
    probes = []
    for key, (why, runs) in needs.items():
        if why is not None:
            low, usual, priced_by = _cost(nodes, key)
            probes.append(Probe(key=key, why=why, runs=runs, low_usd=low, usual_usd=usual, priced_by=priced_by))
    return ProbePlan(probes=tuple(probes), coverage=coverage, measured=len(needs) - len(probes), unnamed=unnamed)


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
    for rows, words in nearest:
        known: Floats = cost[rows.fillna(value=False).to_numpy(dtype=bool) & ~np.isnan(cost) & (cost > 0)]
        if known.size:
            return float(known.min()) / _USD, float(np.median(known)) / _USD, f"n = {known.size} run(s) {words}"
    return None, None, f"no run of {key.model} has a recorded cost"
