"""What a result hangs on: which assumptions of the world move it, and how bad it can get.

References
----------
.. [1] Saltelli, A. et al. (2010). Variance based sensitivity analysis of model output. Computer Physics Communications
   181(2), 259-270. https://doi.org/10.1016/j.cpc.2009.09.018
.. [2] Morris, M. D. (1991). Factorial sampling plans for preliminary computational experiments. Technometrics 33(2),
   161-174. https://doi.org/10.2307/1269043
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from harness_lab.analyze.wide import unit_of
from harness_lab.errors import InputError
from harness_lab.pricing import PriceTable
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.estimates import check_confidence, percent, with_unit
from harness_lab.tune.knobs import check_metrics
from harness_lab.tune.search import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Floats
    from harness_lab.analyze.parts import Parts
    from harness_lab.simulate import Experiment

Method = Literal["sobol", "morris"]
FACTORS: Final = ("calls", "startup_tokens", "growth_tokens", "output_tokens", "latency_s", "prices")
"""Assumptions that can be scaled: of the workload, of the provider, and its prices."""
_WORDS: Final = {
    "sobol": "Sobol: share of its variance", "morris": "Morris: mean effect over the range",
    "delta": "delta: 0 nothing, 0.8 all",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sensitivity:
    """What moves a metric.

    Parameters
    ----------
    metric : str
        The metric.
    method : str
        ``sobol`` (shares of the variance), ``morris`` (mean absolute effect over the range), or ``delta`` (how far
        knowing an input shifts the distribution, 0 to 1).
    frame : DataFrame
        One row per factor, most important first: ``factor, importance, low, high`` (Sobol, Morris: interval of SALib's
        resampling; delta: of :mod:`harness_lab.tune.given_data`), and ``first`` (Sobol: effect alone), ``spread``
        (Morris: interactions or curvature).
    worst : dict of str to float
        Factors of the worst evaluation, and ``value``: the worst mean within the ranges; empty for recorded runs.
    best : dict of str to float
        The same of the best evaluation.
    n : int
        Evaluations, or recorded runs.
    confidence : float
        Of each interval.
    clusters : int or None
        Clusters that the intervals allow for; None: runs are independent.
    note : str
        Why there is no interval.
    left_out : mapping of str to str
        Recorded inputs that could not be ranked, and why.
    parts : Parts or None
        The same for each group of `by`.
    """

    metric: str
    method: str
    frame: pd.DataFrame
    worst: dict[str, float]
    best: dict[str, float]
    n: int
    confidence: float
    clusters: int | None = None
    note: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    parts: Parts[Sensitivity] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return the importances; the group in front."""
        if self.parts is not None:
            return self.parts.to_frame()
        return self.frame.copy()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the importances; factors whose interval does not reach 0 are filled; return the axes."""
        from harness_lab.plots.choice import plot_best

        frame = self.frame.assign(policy=self.frame["factor"], value=self.frame["importance"], unit="")
        frame = frame.assign(maybe_best=frame["low"] > 0)
        return plot_best(frame, ax=ax, metric=f"importance for {self.metric} ({self.method})", filled="above 0")

    def summary(self) -> str:
        """Return the importances and the worst case in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        within = "" if self.clusters is None else f", {self.clusters:,} clusters"
        lines = [f"What moves {self.metric} ({_WORDS[self.method]}; n = {self.n:,}{within}):"]
        lines += [f"No interval: {self.note}."] if self.note else []
        for factor, *figures in self.frame[["factor", "importance", "low", "high"]].itertuples(index=False):
            value, low, high = (float(one) for one in figures)
            lines.append(f"- {factor}: {value:.3g}{'' if np.isnan(low) else f' [{low:.3g}, {high:.3g}]'}")
        lines += [f"- {name}: left out, {why}" for name, why in self.left_out.items()]
        for word, found in (("worst", self.worst), ("best", self.best)):
            if found:
                at = ", ".join(f"{name} x {value:.3g}" for name, value in found.items() if name != "value")
                lines.append(f"- {word} within the ranges: {with_unit(found['value'], unit_of(self.metric))} at {at}")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the importances mean and what to do next."""
        if self.method == "delta":
            return (
                "Delta: by how much of its probability the distribution of the metric moves, on average, once an input "
                "is known: 0 if it tells nothing, 0.8 if it tells in which fifth of the runs the metric lies (less "
                "where many runs have the same value). Intervals are at "
                f"{percent(self.confidence)} and lean to the safe side. Inputs that go together (calls and tokens) "
                "share their importance, and it is no proof of cause.\n"
                f"Next: distribution(settlements, {str(self.frame['factor'].iloc[0])!r}) for how the first input is "
                "spread, and ceiling(...) for a limit on it."
            )
        return (
            "Sobol: share of the variance of the metric, over the ranges given, that a factor is involved in. "
            "Morris: how much the metric moves, on average, while a factor goes through its range. "
            "Intervals are SALib's own resampling; "
            "their coverage was not checked here. A factor without importance need not be known better.\n"
            "The worst case is the worst that was evaluated: give as ranges what the fit leaves open.\n"
            "Next: measure the first factor better, or choose a policy whose worst case is bearable."
        )

    def __repr__(self) -> str:
        first = self.frame["factor"].iloc[0] if len(self.frame) else "nothing"
        return f"Sensitivity({self.metric}: first {first}, {self.method})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def sensitivity(
    experiment: Experiment, factors: Mapping[str, tuple[float, float]], *, metric: str = "cost_nusd",
    policy: str | None = None, method: Method = "sobol", samples: int = 16, runs: int | None = None,
    confidence: float = 0.95, seed: int = 0,
) -> Sensitivity:  # fmt: skip
    """Scale assumptions of the world within ranges and see what a policy's mean metric does.

    Parameters
    ----------
    experiment : Experiment
        The world; all evaluations meet the same luck.
    factors : mapping of str to (float, float)
        Ranges of the multipliers of ``calls, startup_tokens, growth_tokens, output_tokens, latency_s, prices``: what
        the fit leaves open.
    metric : {"completed", "cost_nusd", "wasted_nusd", "duration_ns"}
        The metric.
    policy : str, optional
        Which policy; the experiment's last if not given.
    method : {"sobol", "morris"}
        Variance shares [1]_ or elementary effects [2]_.
    samples : int, default 16
        Base samples (Sobol, a power of two) or trajectories (Morris); each costs (factors + 2) or (factors + 1)
        evaluations.
    runs : int, optional
        Runs of an evaluation; the experiment's if not given.
    confidence, seed
        Of the intervals; of the sampling.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InputError
        If SALib is not installed (``pip install 'harness-lab[tune]'``), or a factor does not exist.
    """
    check_confidence(confidence)
    check_metrics([metric], what="metric")
    _check_factors(factors, method)
    _check_samples(samples, method)
    names = [one.name for one in experiment.policies]
    if policy is not None and policy not in names:
        raise InputError("policy", expected=f"one of {', '.join(names)}", got=policy)
    chosen = experiment.policies[-1 if policy is None else names.index(policy)]
    world = experiment if runs is None else replace(experiment, runs=runs)
    problem = {"num_vars": len(factors), "names": list(factors), "bounds": [list(ends) for ends in factors.values()]}
    points = _sample(problem, method, samples, seed)
    values = np.empty(len(points))
    for place, point in enumerate(points):
        scaled_world = scaled(world, dict(zip(factors, point.tolist(), strict=True)))
        values[place] = float(np.nanmean(simulate(scaled_world, chosen, range(world.runs))[metric]))
    frame = _analysed(problem, points, values, method, confidence, seed)
    order = np.argsort(values if metric == "completed" else -values)
    ends = [
        {**dict(zip(factors, points[k].tolist(), strict=True)), "value": float(values[k])}
        for k in (order[0], order[-1])
    ]
    return Sensitivity(
        metric=metric, method=method, frame=frame, worst=ends[0], best=ends[1], n=len(points), confidence=confidence
    )


def scaled(experiment: Experiment, factors: Mapping[str, float]) -> Experiment:
    """Return the experiment with assumptions multiplied: see `FACTORS`."""
    workload, provider = experiment.workload, experiment.provider
    for name, factor in factors.items():
        if name in ("calls", "startup_tokens", "growth_tokens"):
            workload = replace(workload, agents={k: _changed(a, name, factor) for k, a in workload.agents.items()})
        elif name in ("output_tokens", "latency_s"):
            provider = replace(provider, models={k: _changed(m, name, factor) for k, m in provider.models.items()})
        elif name == "prices":
            provider = replace(provider, prices=_dearer(provider.prices, factor))
    return replace(experiment, workload=workload, provider=provider)


def _changed(profile: Any, name: str, factor: float) -> Any:
    """Return a profile with one of its distributions multiplied."""
    return replace(profile, **{name: times(getattr(profile, name), factor)})


def times(distribution: Distribution, factor: float) -> Distribution:
    """Return the distribution of `factor` times the quantity.

    Examples
    --------
    >>> float(times(Distribution.of("lognorm", s=0.5, scale=10), 2).ppf(0.5))
    20.0
    """
    form = distribution.to_dict()
    if distribution.dist == "constant":
        form["value"] *= factor
    elif distribution.dist == "empirical":
        form["values"] = [one * factor for one in form["values"]]
    else:
        form |= {"scale": form.get("scale", 1.0) * factor, "loc": form.get("loc", 0.0) * factor}
    form |= {name: form[name] * factor for name in ("low", "high") if name in form}
    return Distribution.from_dict(form)


def _dearer(prices: PriceTable, factor: float) -> PriceTable:
    kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")

    def tier(one: Any) -> Any:
        changed = {kind: round(value * factor) for kind in kinds if (value := getattr(one, kind)) is not None}
        return replace(one, **changed)

    return PriceTable(
        {m: tuple(tier(one) for one in tiers) for m, tiers in prices.models.items()}, source=prices.source
    )


def _check_factors(factors: Mapping[str, tuple[float, float]], method: str) -> None:
    wrong = [name for name in factors if name not in FACTORS]
    if wrong or not factors:
        raise InputError("factors", expected=f"some of {', '.join(FACTORS)}", got=wrong)
    bad = {name: ends for name, ends in factors.items() if not 0 < ends[0] < ends[1]}
    if bad:
        raise InputError("factors", expected="ranges of multipliers, 0 < low < high", got=bad)
    if method not in ("sobol", "morris"):
        raise InputError("method", expected='"sobol" or "morris"', got=method)


def _check_samples(samples: int, method: str) -> None:
    """Raise for numbers of samples from which nothing, or no spread, can be told."""
    if method == "sobol" and (samples < 2 or samples & (samples - 1)):
        raise InputError("samples", expected="a power of two, at least 2, for Sobol", got=samples)
    if samples < 2:
        raise InputError("samples", expected="at least 2 trajectories for Morris", got=samples)


def _salib(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"SALib.{module}")
    except ImportError:
        hint = "pip install 'harness-lab[tune]'"
        raise InputError("sensitivity", expected="SALib", got="SALib is not installed", hint=hint) from None


def _sample(problem: dict[str, Any], method: str, samples: int, seed: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "morris":
            return np.asarray(_salib("sample.morris").sample(problem, samples, seed=seed), dtype=np.float64)
        found = _salib("sample.sobol").sample(problem, samples, calc_second_order=False, seed=seed)
        return np.asarray(found, dtype=np.float64)


def _analysed(
    problem: dict[str, Any], points: Floats, values: Floats, method: str, confidence: float, seed: int
) -> pd.DataFrame:
    names = problem["names"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "morris":
            found = _salib("analyze.morris").analyze(problem, points, values, conf_level=confidence, seed=seed)
            return _ranked(
                names, np.asarray(found["mu_star"], dtype=np.float64), np.asarray(found["mu_star_conf"]),
                spread=np.asarray(found["sigma"]),
            )  # fmt: skip
        found = _salib("analyze.sobol").analyze(
            problem,
            values,
            calc_second_order=False,
            conf_level=confidence,
            seed=seed + 1,  # it takes 0 for no seed
        )
    return _ranked(names, np.asarray(found["ST"]), np.asarray(found["ST_conf"]), first=np.asarray(found["S1"]))


def _ranked(names: list[str], value: Floats, reach: Floats, **more: Floats) -> pd.DataFrame:
    frame = pd.DataFrame({"factor": names, "importance": value, "low": value - reach, "high": value + reach, **more})
    return frame.sort_values("importance", ascending=False, ignore_index=True)
