"""What a plan costs and takes: the distribution of its total, and how far adding percentiles would have misled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.policies import unlimited
from harness_lab.simulate.plan import PlanExperiment, plan_provider, plan_workload
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, percent, with_unit
from harness_lab.stats.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.delegation import OuterPlan
    from harness_lab.policies import PolicySpec
    from harness_lab.providers import MockProvider
    from harness_lab.simulate.result import Result
    from harness_lab.simulate.workload import AgentProfile

Of = Literal["cost", "tokens", "time"]
Floats = npt.NDArray[np.float64]
UNITS: dict[Of, str] = {"cost": "$", "tokens": "tokens", "time": "s"}
RESAMPLES = 500
_QUANTILES = (0.5, 0.9, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileSumError:
    """How far the sum of the parts' percentiles lies from the percentile of their sum.

    Parameters
    ----------
    q : float
        The quantile.
    parts : int
        Parts that were added.
    sum_of_percentiles : float
        What adding the parts' quantiles gives.
    total : Estimate
        The quantile of the totals, with its interval.
    error : Estimate
        ``sum_of_percentiles / total - 1``, with its interval; positive: the sum over-states. None where it cannot be
        estimated.
    """

    q: float
    parts: int
    sum_of_percentiles: float
    total: Estimate
    error: Estimate

    def summary(self) -> str:
        """Return the comparison in a sentence."""
        if self.error.value is None:
            return f"{percent(self.q)} quantile of the total: {self.total}"
        side = "over-states" if self.error.value >= 0 else "under-states"
        low, high = self.error.low, self.error.high
        added = with_unit(self.sum_of_percentiles, self.total.unit)
        ends = "" if low is None or high is None else f" [{low:+.1%}, {high:+.1%}]"
        return (
            f"adding the {percent(self.q)} quantiles of {self.parts} parts gives {added}, "
            f"the total's is {self.total}: the sum {side} it by {abs(self.error.value):.1%}{ends}"
        )

    def explain(self) -> str:
        """Return why the two differ."""
        return (
            "Percentiles do not add: that every part has its bad day in the same run is rarer than that one has. High "
            "ones add up to too much unless all parts move together, and medians of skewed parts to too little."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row: q, parts, sum_of_percentiles, total and error with their intervals."""
        total = {f"total_{name}": value for name, value in self.total.record().items()}
        error = {f"error_{name}": value for name, value in self.error.record().items()}
        row = {"q": self.q, "parts": self.parts, "sum_of_percentiles": self.sum_of_percentiles, **total, **error}
        return pd.DataFrame([row])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def sum_of_percentiles_error(
    parts: npt.ArrayLike, q: float = 0.9, *, confidence: float = 0.95, seed: int = 0, unit: str = ""
) -> PercentileSumError:
    """Compare the sum of the parts' percentiles with the percentile of their sum.

    Parameters
    ----------
    parts : array_like of float, shape (runs, parts)
        What each part took in each run; a run is a row, so that what moves together stays together.
    q : float, default 0.9
        The quantile, in (0, 1).
    confidence : float, default 0.95
        Of the intervals.
    seed : int
        Names the resampling.
    unit : str
        Unit of the values, for display.

    Returns
    -------
    PercentileSumError
        The total's quantile has the distribution-free interval of order statistics, the error that of a percentile
        bootstrap of whole runs [1]_; too few runs give "needs n >= ...".

    Raises
    ------
    InputError
        If the array has not two axes, or holds what is not finite.

    References
    ----------
    .. [1] B. Efron, "Bootstrap methods", Annals of Statistics 7 (1979) 1-26, https://doi.org/10.1214/aos/1176344552

    Examples
    --------
    >>> together = np.repeat(np.arange(100.0)[:, None], 3, axis=1)
    >>> sum_of_percentiles_error(together).error.value
    0.0
    """
    values = np.asarray(parts, dtype=np.float64)
    if values.ndim != 2 or not values.shape[1] or not np.isfinite(values).all():
        raise InputError("parts", expected="finite numbers, one row a run, one column a part", got=values.shape)
    total = quantile(values.sum(axis=1), q, confidence=confidence)
    n, k = values.shape
    summed = float(_upper(values, q).sum()) if n else 0.0
    if total.value is None or not total.value:
        reason = total.interval if isinstance(total.interval, NotEstimable) else NotEstimable(reason="the total is 0")
        error = Estimate(value=None, interval=reason, n=n, method="bootstrap of runs")
        return PercentileSumError(q=q, parts=k, sum_of_percentiles=summed, total=total, error=error)
    ends = np.quantile(_resampled(values, q, seed), [(1 - confidence) / 2, (1 + confidence) / 2])
    point = summed / total.value - 1
    interval = Interval(
        low=min(float(ends[0]), point),
        high=max(float(ends[1]), point),
        confidence=confidence,
        method="bootstrap of runs",
    )
    error = Estimate(value=point, interval=interval, n=n, method="ratio of quantiles")
    return PercentileSumError(q=q, parts=k, sum_of_percentiles=summed, total=replace(total, unit=unit), error=error)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanResult:
    """What the simulation of a plan gives.

    Parameters
    ----------
    plan : OuterPlan
        The plan.
    result : Result
        The settlement table of all runs.
    policy : str
        The policy they ran under.
    """

    plan: OuterPlan
    result: Result
    policy: str

    def parts(self, of: Of = "cost") -> pd.DataFrame:
        """Return what each node took in each run, what is below it included: a row a run, a column a node.

        Parameters
        ----------
        of : {"cost", "tokens", "time"}
            Dollars; prompt and completion tokens; seconds of the nodes that are awaited. A node that never started
            took nothing. NaN: not known.
        """
        if of not in UNITS:
            raise InputError("of", expected=f"one of {', '.join(UNITS)}", got=of)
        nodes = self.result.settlements.nodes
        below = nodes[nodes["parent"].notna()]
        place = below["path"].str.split("[./]", n=1, regex=True).str[0].astype("int64")
        values = _values(below, of)
        if of == "time":
            awaited = [i for i, node in enumerate(self.plan.nodes) if not node.background]
            keep = ((below["depth"] == 1) & place.isin(awaited)).to_numpy()
            below, place, values = below[keep], place[keep], values[keep]
        else:
            awaited = list(range(len(self.plan.nodes)))
        runs = pd.Index(nodes["run"].unique(), name="run")
        table = np.zeros((len(runs), len(self.plan.nodes)))
        np.add.at(table, (runs.get_indexer(below["run"]), place.to_numpy()), values)  # what is not known stays so
        names = [self.plan.nodes[i].name for i in awaited]
        return pd.DataFrame(table[:, awaited], index=runs, columns=names)

    def total(self, q: float = 0.9, *, of: Of = "cost", confidence: float = 0.95) -> Estimate:
        """Return a quantile of the plan's total, with its interval.

        Raises
        ------
        InputError
            If a part is not known in some run: a model without a price has no cost.
        """
        totals = _known(self.parts(of), of).sum(axis=1)
        return replace(quantile(totals, q, confidence=confidence), unit=UNITS[of])

    def sum_of_percentiles_error(
        self, q: float = 0.9, *, of: Of = "cost", confidence: float = 0.95
    ) -> PercentileSumError:
        """Return by how much adding the nodes' percentiles would have misled; see :func:`sum_of_percentiles_error`."""
        parts = _known(self.parts(of), of)
        return sum_of_percentiles_error(parts, q, confidence=confidence, unit=UNITS[of])

    @property
    def completed(self) -> int:
        """Runs in which every node completed as far as it was awaited."""
        nodes = self.result.settlements.nodes
        return int((nodes.loc[nodes["parent"].isna(), "outcome"] == "completed").sum())

    def summary(self) -> str:
        """Return the totals, and what adding percentiles would have said."""
        runs = self.result.manifest["runs"]
        lines = [f"{len(self.plan.nodes)} nodes, {runs:,} runs, {self.completed:,} completed, policy {self.policy}"]
        for of in UNITS:
            try:
                lines += [f"  {of}: {self.total(0.5, of=of)} at the median"]
                lines += [f"    {self.sum_of_percentiles_error(0.9, of=of).summary()}"]
            except InputError:
                lines.append(f"  {of}: not known")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each quantity and quantile."""
        rows = []
        for of in UNITS:
            if np.isfinite(self.parts(of).to_numpy()).all():
                rows += [self.sum_of_percentiles_error(q, of=of).to_frame().assign(of=of) for q in _QUANTILES]
        return pd.concat(rows, ignore_index=True)

    def explain(self) -> str:
        """Return what the figures rest on, and a next step."""
        return (
            "Each node was simulated as an agent of its own, in the plan's order. Runs that were stopped count with "
            "what they had used. Time is that of the awaited nodes, which follow one another. Variants that the "
            "provider does not have differ from their model by an assumed factor on output tokens, and the batch tier "
            "by its price alone, not by its latency. Next: give measured variants (model@effort), or put the plan "
            "under a policy."
        )

    def __repr__(self) -> str:
        return f"PlanResult({len(self.plan.nodes)} nodes, {self.result.manifest['runs']:,} runs)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def simulate_plan(
    plan: OuterPlan,
    *,
    agents: Mapping[str, AgentProfile],
    provider: MockProvider,
    policy: PolicySpec | None = None,
    runs: int = 2000,
    seed: int = 0,
    workers: int | None = None,
) -> PlanResult:
    """Simulate a plan.

    Parameters
    ----------
    plan : OuterPlan
        The plan.
    agents : mapping of str to AgentProfile
        What a native subagent does, by node name or else by target.
    provider : MockProvider
        What answers; see :func:`plan_provider`.
    policy : PolicySpec, optional
        What limits the run; nothing if None.
    runs : int, default 2000
        How often.
    seed : int, default 0
        Names the luck.
    workers : int, optional
        Worker processes, from 3,000 runs on.

    Raises
    ------
    InputError
        If a node lacks a profile, a model or an effort that is known.
    """
    spec = policy if policy is not None else unlimited()
    experiment = PlanExperiment(
        workload=plan_workload(plan, agents), provider=plan_provider(plan, provider), policies=(spec,), runs=runs,
        seed=seed, name="plan",
    )  # fmt: skip
    return PlanResult(plan=plan, result=experiment.run(workers=workers), policy=spec.name)


def _values(nodes: pd.DataFrame, of: Of) -> Floats:
    """Return what each node took of its own; NaN where it is not known."""
    columns: dict[Of, tuple[tuple[str, ...], float]] = {
        "cost": (("cost_nusd",), 1e9), "tokens": (("input_total", "output"), 1.0), "time": (("duration_ns",), 1e9),
    }  # fmt: skip
    names, unit = columns[of]
    return sum(nodes[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names) / unit  # type: ignore[return-value]


def _known(parts: pd.DataFrame, of: Of) -> Floats:
    values = parts.to_numpy()
    if np.isnan(values).any():
        unknown = [str(name) for name in parts.columns[np.isnan(values).any(axis=0)]]
        raise InputError(f"{of} of the plan", expected="known for every node", got=f"unknown for {unknown}")
    return values


def _upper(values: Floats, q: float) -> Floats:
    """Return the quantile of each column: the smallest value that a share `q` does not exceed."""
    return np.quantile(values, q, axis=0, method="inverted_cdf")


def _resampled(values: Floats, q: float, seed: int) -> Floats:
    """Return the error in resampled runs; whole runs are drawn, so that parts stay together."""
    rng = np.random.default_rng(seed)
    n = len(values)
    errors = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        drawn = values[rng.integers(0, n, n)]
        total = float(_upper(drawn.sum(axis=1), q))
        errors[i] = float(_upper(drawn, q).sum()) / total - 1 if total else 0.0
    return errors
