"""Searching the numbers of a policy: optuna proposes, the simulator answers on common draws, poor ones stop early."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.figures import METRICS, metric_values
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.wide import LARGER, measured
from harness_lab.errors import InputError
from harness_lab.stats.means import mean
from harness_lab.stats.paired import paired_difference
from harness_lab.stats.shares import share
from harness_lab.tune.confirm import Tuned, confirm
from harness_lab.tune.knobs import Bound, Knob, bounds, check_metrics, optuna, variant
from harness_lab.tune.parameters import parameters
from harness_lab.tune.study import SearchStopped, ended, open_study, quiet, run_trials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from harness_lab.analyze.frames import Floats
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment

BLOCKS: Final = 4
MIN_KNOWN: Final = 10
INDIFFERENCE: Final = 0.05
"""Completion that a search for something else may cost where nothing is said of completion."""
PRUNE_AT: Final = 0.01
"""A trial ends early once a test at this level says that it is worse than the best, or breaks a constraint."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """What a trial needs to know."""

    experiment: Experiment
    base: PolicySpec
    knobs: tuple[Knob, ...]
    objectives: tuple[str, ...]
    bounds: tuple[Bound, ...]
    prune: bool
    best: dict[str, Any] = field(default_factory=dict)

    def __call__(self, trial: Any) -> tuple[float, ...]:
        """Simulate one proposal, block by block."""
        policy = variant(self.base, {knob.name: knob.suggest(trial) for knob in self.knobs}, f"trial {trial.number}")
        seen: dict[str, Floats] = {name: np.zeros(0) for name in METRICS}
        edges = np.linspace(0, self.experiment.runs, BLOCKS + 1).astype(int)
        for start, end in pairwise(edges):
            block = simulate(self.experiment, policy, range(start, end))
            seen = {name: np.concatenate([seen[name], block[name]]) for name in METRICS}
            why = self._hopeless(seen) if self.prune and end < self.experiment.runs else ""
            if why:
                trial.set_user_attr("stopped", f"after {end} runs: {why}")
                raise optuna().TrialPruned
        return self._done(trial, seen)

    def _done(self, trial: Any, seen: dict[str, Floats]) -> tuple[float, ...]:
        known = {name: values[~np.isnan(values)] for name, values in seen.items()}
        figures = {name: float(values.mean()) for name, values in known.items() if values.size >= MIN_KNOWN}
        trial.set_user_attr("unknown", max(self.experiment.runs - values.size for values in known.values()))
        missing = [name for name in (*self.objectives, *(one.metric for one in self.bounds)) if name not in figures]
        if missing:
            raise InputError("metrics", expected=f"known in at least {MIN_KNOWN} runs", got=missing)
        trial.set_user_attr("figures", figures)
        feasible = True
        for one in self.bounds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna().exceptions.ExperimentalWarning)
                trial.set_constraint(str(one), one.excess(figures[one.metric]))
            feasible &= one.excess(figures[one.metric]) <= 0
        first = self.objectives[0]
        if feasible and len(self.objectives) == 1 and _better(figures[first], self.best.get("value"), first):
            self.best.update(value=figures[first], runs=seen[first])
        return tuple(figures[name] for name in self.objectives)

    def _hopeless(self, seen: dict[str, Floats]) -> str:
        """Say why a trial need not go on; empty if it may still win."""
        for one in self.bounds:
            values = seen[one.metric][~np.isnan(seen[one.metric])]
            sure = 1 - 2 * PRUNE_AT
            found = share(values == 1, confidence=sure) if one.metric == "completed" else mean(values, confidence=sure)
            end = found.high if one.least else found.low
            if end is not None and one.excess(end) > 0:
                return f"{one} is out of reach"
        if "runs" not in self.best:
            return ""
        first = self.objectives[0]
        mine = seen[first]
        theirs = self.best["runs"][: mine.size]
        both = ~np.isnan(mine + theirs)
        pair = paired_difference(theirs[both], mine[both])
        gap = (pair.difference.value or 0.0) * (-1 if first in LARGER else 1)
        worse = pair.p_value is not None and gap > 0 and pair.p_value / 2 < PRUNE_AT
        return f"worse than the best so far in {METRICS[first][0]}" if worse else ""


def tune(
    experiment: Experiment, knobs: Sequence[Knob], *, objectives: Sequence[str] = ("cost_nusd",),
    at_least: Mapping[str, float] | None = None, at_most: Mapping[str, float] | None = None, policy: str | None = None,
    trials: int = 40, confirm_runs: int | None = None, finalists: int = 4, worth: Mapping[str, float] | None = None,
    confidence: float = 0.95, prune: bool = True, storage: str | Path | None = None, name: str = "tune", seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:  # fmt: skip
    """Search the numbers of a policy and confirm the winners on fresh draws.

    Parameters
    ----------
    experiment : Experiment
        The workload, the provider, and the runs and seed of a trial: all trials meet the same luck.
    knobs : sequence of Knob
        What may be turned.
    objectives : sequence of str, default ("cost_nusd",)
        One metric or several (``completed, cost_nusd, wasted_nusd, duration_ns``); more completion, less of the others.
    at_least, at_most : mapping of str to float, optional
        Constraints, in the display unit: ``at_least={"completed": 0.9}``. Where completion is neither an objective nor
        constrained, it has to stay within 0.05 of the policy's as it stands; ``{"completed": 0}`` asks for nothing.
    policy : str, optional
        Which policy is turned; the experiment's last if not given.
    trials : int, default 40
        Trials in all, those of a resumed study included.
    confirm_runs : int, optional
        Fresh runs of each finalist; four times a trial's if not given.
    finalists : int, default 4
        How many go on to fresh draws (of several objectives: from the front).
    worth : mapping of str to float, optional
        What a unit of each metric is worth, to pick one finalist by the weighted sum. Default: of those that cannot be
        told from the best in the first objective, the one that spends least.
    confidence : float, default 0.95
        Of each interval, and of the constraints on fresh draws.
    prune : bool, default True
        Whether hopeless trials stop early, by paired tests on the common draws (one objective) and by the constraints.
    storage : str or path, optional
        A journal file (or a database address): the study is kept there and resumed from there.
    name : str
        Name of the study in the storage.
    seed : int
        Of the proposals.
    progress : callable, optional
        Told (trials done, trials in all).

    Returns
    -------
    Tuned

    Raises
    ------
    InputError
        If optuna is not installed (``pip install 'harness-lab[tune]'``), a knob or metric does not exist, or the
        storage keeps another search.
    NoTrialFits
        If no trial meets the constraints.
    SearchStopped
        If it is interrupted (Ctrl-C); the trials that had ended are in it, and in the storage.
    """
    wanted, limits = tuple(dict.fromkeys(objectives)), bounds(at_least, at_most)
    check_metrics(wanted, what="objectives")
    base = _base(experiment, policy, knobs)
    if experiment.runs < MIN_KNOWN:
        raise InputError("runs", expected=f"at least {MIN_KNOWN} in a trial", got=experiment.runs)
    if not wanted or trials < 1 or finalists < 1:
        raise InputError(
            "objectives, trials, finalists", expected="at least one of each", got=(wanted, trials, finalists)
        )
    search = _Search(
        experiment=replace(experiment, policies=(base,)), base=base, knobs=tuple(knobs), objectives=wanted,
        bounds=limits, prune=prune,
    )  # fmt: skip
    search = replace(search, bounds=(*limits, *_as_it_stands(search)))
    asked = {
        "experiment": search.experiment.digest(), "knobs": sorted(knob.name for knob in knobs),
        "objectives": list(wanted), "constraints": [str(one) for one in search.bounds],
    }  # fmt: skip
    with quiet():
        study = open_study(wanted, storage=storage, name=name, seed=seed, asked=asked)
        try:
            _resume(search, study)
            run_trials(study, search, trials, progress)
            return confirm(
                experiment, base, trials_frame(study, search), objectives=wanted, limits=search.bounds,
                implied=len(search.bounds) > len(limits), runs=confirm_runs or 4 * experiment.runs, finalists=finalists,
                worth=dict(worth or {}), confidence=confidence,
            )  # fmt: skip
        except KeyboardInterrupt:
            place = None if storage is None else str(storage)
            raise SearchStopped(trials_frame(study, search), trials, place, _best(search, study)) from None


def simulate(experiment: Experiment, policy: PolicySpec, runs: range) -> dict[str, Floats]:
    """Return each metric of some runs under one policy, in the display unit."""
    result = experiment.with_policies(policy).run(only=runs)
    table = measured(run_table(result.settlements))
    return {name: metric_values(table, name) for name in METRICS}


def trials_frame(study: Any, search: _Search) -> pd.DataFrame:
    """Return one row per trial: ``trial, state, stopped``, knobs, figures, ``unknown`` runs, ``feasible``."""
    rows = []
    for trial in ended(study):
        figures = trial.user_attrs.get("figures", {})
        row = {"trial": trial.number, "state": trial.state.name.lower(), "stopped": trial.user_attrs.get("stopped", "")}
        row |= {knob.name: trial.params.get(knob.name) for knob in search.knobs}
        row |= {name: figures.get(name, np.nan) for name in METRICS}
        row["unknown"] = trial.user_attrs.get("unknown")
        rows.append(
            row | {"feasible": bool(figures) and all(one.excess(figures[one.metric]) <= 0 for one in search.bounds)}
        )
    return pd.DataFrame(rows, columns=None if rows else ["trial", "state", "stopped", "feasible"])


def _as_it_stands(search: _Search) -> tuple[Bound, ...]:
    """Ask for the completion of the policy as it stands, less an indifference, where nothing is said of completion."""
    if "completed" in (*search.objectives, *(one.metric for one in search.bounds)):
        return ()
    done = simulate(search.experiment, search.base, range(search.experiment.runs))["completed"]
    known = done[~np.isnan(done)]
    least = max(0.0, round(float(known.mean()) - INDIFFERENCE, 4)) if known.size else 0.0
    return (Bound(metric="completed", value=least, least=True),)


def _base(experiment: Experiment, policy: str | None, knobs: Sequence[Knob]) -> PolicySpec:
    names = [one.name for one in experiment.policies]
    if policy is not None and policy not in names:
        raise InputError("policy", expected=f"one of {', '.join(names)}", got=policy)
    base = experiment.policies[-1 if policy is None else names.index(policy)]
    known = {one.name: one.value for one in parameters(base)}
    if not known:
        raise InputError("knobs", expected=f"numbers that the policy {base.name} sets", got="none is set")
    names = [knob.name for knob in knobs]
    wrong = [name for name in names if name not in known or names.count(name) > 1]
    if wrong or not knobs:
        raise InputError("knobs", expected=f"some of {', '.join(known)} (set it first), each once", got=wrong)
    for knob in knobs:
        if isinstance(known[knob.name], int) and not (isinstance(knob.low, int) and isinstance(knob.high, int)):
            raise InputError(f"range of {knob.name}", expected="whole numbers", got=(knob.low, knob.high))
        for end in (knob.low, knob.high):
            variant(base, {knob.name: end}, "end of a range")  # a value that the policy refuses is refused here
    return base


def _resume(search: _Search, study: Any) -> None:
    """Enqueue the policy as it is first; of a resumed study, take up its best trial for pruning."""
    if not study.get_trials(deepcopy=False):
        now = {one.name: one.value for one in parameters(search.base)}
        inside = all(knob.low <= now[knob.name] <= knob.high for knob in search.knobs)
        if inside:
            study.enqueue_trial({knob.name: now[knob.name] for knob in search.knobs})
    best = _best_trial(search, study)
    if best is not None:
        first = search.objectives[0]
        runs = simulate(search.experiment, variant(search.base, best.params, "best"), range(search.experiment.runs))
        search.best.update(value=best.user_attrs["figures"][first], runs=runs[first])


def _best_trial(search: _Search, study: Any) -> Any:
    """Return the best trial so far that meets the constraints; None of several objectives, or where there is none."""
    figures = [(one.user_attrs["figures"], one) for one in ended(study) if "figures" in one.user_attrs]
    good = [two for two in figures if all(b.excess(two[0][b.metric]) <= 0 for b in search.bounds)]
    if not good or len(search.objectives) > 1:
        return None
    first = search.objectives[0]
    return min(good, key=lambda two: two[0][first] * (-1 if first in LARGER else 1))[1]


def _best(search: _Search, study: Any) -> dict[str, float]:
    """Return numbers and figures of the best trial so far."""
    best = _best_trial(search, study)
    if best is None:
        return {}
    figures = best.user_attrs["figures"]
    shown = dict.fromkeys(("completed", search.objectives[0]))
    return {**best.params, **{name: figures[name] for name in shown if name in figures}}


def _better(value: float, than: float | None, metric: str) -> bool:
    return than is None or (value > than if metric in LARGER else value < than)
