"""Finalists on fresh draws: what was luck, which one to take, and what it will do on draws that did not choose it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness_lab.analyze.figures import METRICS, difference_of
from harness_lab.analyze.pareto import non_dominated
from harness_lab.analyze.wide import LARGER, figures_of, unit_of, wide
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, percent, with_unit
from harness_lab.stats.notes import notes_below
from harness_lab.tune.knobs import Bound, variant
from harness_lab.tune.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from harness_lab.analyze.wide import Wide
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment


class NoTrialFits(InputError):
    """No trial of a search meets the constraints.

    Attributes
    ----------
    trials : DataFrame
        The trials, as in :class:`Tuned`.
    """

    def __init__(self, trials: pd.DataFrame, wanted: str) -> None:
        self.trials, self.wanted = trials, wanted
        done = trials["completed"].max() if "completed" in trials else np.nan
        most = "" if pd.isna(done) else f"; the most that completed is {percent(float(done))}"
        got = f"none of {len(trials)}{most}"
        super().__init__("constraints", expected=f"a trial that meets them ({wanted})", got=got,
                         hint="Widen the ranges, or ask for less")  # fmt: skip

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.trials, self.wanted))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tuned:
    """What a search found.

    Parameters
    ----------
    policy : PolicySpec
        The chosen policy.
    base : PolicySpec
        The policy that was turned.
    values : dict of str to float
        The chosen numbers.
    trials : DataFrame
        One row per trial: ``trial, state, stopped``, the knobs, the figures on the search's draws, ``feasible``.
    finalists : DataFrame
        One row per finalist (and the base): the knobs, and per metric the figure on the search's draws, on fresh draws
        with ``_low`` and ``_high``; ``held`` (whether the constraints hold on fresh draws with confidence), ``chosen``.
    quoted : dict of str to Estimate
        The chosen policy's figures on draws that neither proposed nor chose it.
    curse : dict of str to float
        Per metric, the figure on the search's draws less the quoted one: what was luck.
    rule : str
        How the finalist was picked.
    constraints : tuple of Bound
        What had to hold.
    implied : bool
        Whether the constraint on completion was not given, but stands for the policy as it was less 0.05.
    objectives : tuple of str
        What was searched for.
    seeds : tuple of int
        Seeds of the search, the choice and the quoted figures.
    """

    policy: PolicySpec
    base: PolicySpec
    values: dict[str, float]
    trials: pd.DataFrame
    finalists: pd.DataFrame
    quoted: dict[str, Estimate]
    curse: dict[str, float]
    rule: str
    objectives: tuple[str, ...]
    seeds: tuple[int, int, int]
    constraints: tuple[Bound, ...] = ()
    implied: bool = False

    @property
    def safe(self) -> bool:
        """Whether the chosen policy keeps the constraints on fresh draws, with confidence."""
        return bool(self.finalists.loc[self.finalists["chosen"], "held"].all())

    def to_frame(self) -> pd.DataFrame:
        """Return the trials."""
        return self.trials.copy()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the finalists on fresh draws in the first objective; the chosen one is filled; return the axes."""
        from harness_lab.plots.choice import plot_best

        metric = self.objectives[0]
        frame = self.finalists.assign(
            value=self.finalists[f"{metric}_fresh"], low=self.finalists[f"{metric}_low"],
            high=self.finalists[f"{metric}_high"], unit=unit_of(metric), maybe_best=self.finalists["chosen"],
        )  # fmt: skip
        return plot_best(frame, ax=ax, metric=METRICS[metric][0], filled="chosen")

    def summary(self) -> str:
        """Return what was found, on which draws, and what was luck."""
        stopped = int((self.trials["state"] == "pruned").sum())
        numbers = ", ".join(f"{name} = {value:g}" for name, value in self.values.items())
        lines = [
            f"{len(self.trials)} trials ({stopped} stopped early), {len(self.finalists) - 1} finalist(s) on fresh "
            f"draws. Chosen ({self.rule}): {numbers}.",
            *self._asked(),
            *(f"- {METRICS[name][0]}: {one}, on draws that did not choose it" for name, one in self.quoted.items()),
        ]
        luck = [f"{METRICS[name][0]} {with_unit(gap, unit_of(name))}" for name, gap in self.curse.items()]
        lines.append(f"What the search saw less what holds (the winner's curse, and noise): {', '.join(luck)}.")
        if not self.safe:
            lines.append(
                "On fresh draws the constraints are not shown to hold: no finalist is safe. More runs (--runs) narrow "
                "the intervals; a wider range or a weaker constraint may do."
            )
        return notes_below("\n".join(lines))

    def _asked(self) -> list[str]:
        """Say what had to hold, and where that was not asked for, why it had to."""
        if not self.constraints:
            return []
        why = " (not asked for: 0.05 below the policy as it stands; --at-least completed=0 lifts it)"
        return [f"Had to hold: {', '.join(str(one) for one in self.constraints)}{why if self.implied else ''}."]

    def explain(self) -> str:
        """Return what the figures rest on and what to do next."""
        return (
            f"Trials met the draws of seed {self.seeds[0]}, finalists those of seed {self.seeds[1]}, and the quoted "
            f"figures those of seed {self.seeds[2]}: whoever wins a search looks better there than it is, and the "
            "choice among finalists favours luck once more. Ranges that were not searched, and agents that adapt to "
            "limits, are not in it.\n"
            "Next: one_step_more(...) around the choice, sensitivity(...) for what it hangs on, then export it."
        )

    def __repr__(self) -> str:
        return f"Tuned({', '.join(f'{name}={value:g}' for name, value in self.values.items())})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def confirm(
    experiment: Experiment, base: PolicySpec, trials: pd.DataFrame, *, objectives: tuple[str, ...],
    limits: tuple[Bound, ...], runs: int, finalists: int, worth: Mapping[str, float], confidence: float,
    implied: bool = False,
) -> Tuned:  # fmt: skip
    """Take the best trials to fresh draws, pick one, and quote it from draws that neither proposed nor chose it."""
    knobs = [name for name in trials.columns if "." in name or name == "max_wait_s"]
    chosen = _finalists(trials, objectives, knobs, finalists, limits)
    policies = [variant(base, _values(row, knobs, base), f"trial {row['trial']}") for _, row in chosen.iterrows()]
    fresh, last = (experiment.seed + 1, experiment.seed + 2)
    found = _fresh(experiment, [base, *policies], runs, fresh)
    frame = _frame(chosen, base, found, limits, knobs, confidence)
    place, rule = _pick(frame, found, objectives, worth, confidence)
    quoted = _fresh(experiment, [base, policies[place - 1]], runs, last)
    figures = {name: figures_of(quoted, name, confidence=confidence)[1] for name in METRICS}
    row = chosen.iloc[place - 1]
    return Tuned(
        policy=replace(policies[place - 1], name=f"{base.name}, tuned"), base=base,
        values=_values(row, knobs, base), trials=trials,
        finalists=frame.assign(chosen=np.arange(len(frame)) == place), quoted=figures, rule=rule, objectives=objectives,
        curse={name: float(row[name]) - float(one.value or 0.0) for name, one in figures.items()},
        seeds=(experiment.seed, fresh, last), constraints=limits, implied=implied,
    )  # fmt: skip


def _values(row: pd.Series[Any], knobs: list[str], base: PolicySpec) -> dict[str, float]:
    """Return a trial's numbers; those that are whole in the base stay whole."""
    whole = {one.name for one in parameters(base) if isinstance(one.value, int)}
    return {name: int(row[name]) if name in whole else float(row[name]) for name in knobs}


def _finalists(
    trials: pd.DataFrame, objectives: tuple[str, ...], knobs: list[str], count: int, limits: tuple[Bound, ...]
) -> pd.DataFrame:
    """Return the best trials that meet the constraints, each set of numbers once."""
    good = trials[(trials["state"] == "complete") & trials["feasible"]].drop_duplicates(knobs)
    if good.empty:
        raise NoTrialFits(trials, ", ".join(str(one) for one in limits))
    signs = [1.0 if name in LARGER else -1.0 for name in objectives]
    worth = np.stack([sign * good[name].to_numpy() for sign, name in zip(signs, objectives, strict=True)])
    if len(objectives) > 1:
        front = np.asarray(non_dominated(worth))
        good, worth = good[front], worth[:, front]
    order = np.argsort(-worth[0], kind="stable")
    if len(objectives) > 1 and order.size > count:  # spread over the front
        order = order[np.unique(np.linspace(0, order.size - 1, count).round().astype(int))]
    return good.iloc[order[:count]].reset_index(drop=True)


def _fresh(experiment: Experiment, policies: list[PolicySpec], runs: int, seed: int) -> Wide:
    one = replace(experiment.with_policies(*policies), runs=runs, seed=seed)
    return wide(one.run().settlements, tuple(METRICS))


def _frame(
    chosen: pd.DataFrame, base: PolicySpec, found: Wide, limits: tuple[Bound, ...], knobs: list[str], confidence: float
) -> pd.DataFrame:
    frame = pd.DataFrame({"policy": found.policies, "trial": pd.array([None, *chosen["trial"]], dtype="Int64")})
    for name in knobs:
        frame[name] = [np.nan, *chosen[name]]
    for name in METRICS:
        figures = figures_of(found, name, confidence=confidence)
        frame[f"{name}_search"] = [np.nan, *chosen[name]]
        frame[f"{name}_fresh"] = [one.value for one in figures]
        frame[f"{name}_low"], frame[f"{name}_high"] = [one.low for one in figures], [one.high for one in figures]
    ends = [frame[f"{one.metric}_{'low' if one.least else 'high'}"] for one in limits]
    held = [np.asarray([one.excess(float(end)) <= 0 for end in part]) for one, part in zip(limits, ends, strict=True)]
    return frame.assign(held=np.all(held, axis=0) if held else True)


def _pick(
    frame: pd.DataFrame, found: Wide, objectives: tuple[str, ...], worth: Mapping[str, float], confidence: float
) -> tuple[int, str]:
    """Return the place of the finalist to take (the base is place 0) and the rule."""
    safe = frame["held"].to_numpy(dtype=bool)
    places = [k for k in range(1, len(frame)) if safe[k]] or list(range(1, len(frame)))
    if worth:
        total = np.sum([w * found.better(name).mean(axis=1) for name, w in worth.items()], axis=0)
        words = ", ".join(f"{METRICS[name][0]} {w:g}" for name, w in worth.items())
        return max(places, key=lambda k: float(total[k])), f"largest worth ({words})"
    first = objectives[0]
    order = sorted(places, key=lambda k: -float(found.better(first)[k].mean()))
    alike = [k for k in order if _alike(found, order[0], k, first, confidence)]
    spend = found.table["cost_nusd"].mean(axis=1)
    if first == "cost_nusd":
        return min(alike, key=lambda k: float(spend[k])), "least spend on fresh draws"
    rule = f"least spend among those not to be told from the best in {METRICS[first][0]} at {percent(confidence)}"
    return min(alike, key=lambda k: float(spend[k])), rule


def _alike(found: Wide, best: int, other: int, metric: str, confidence: float) -> bool:
    rows = found.table[metric]
    pair = difference_of(metric, rows[best], rows[other], confidence=confidence, clusters=found.labels)
    return best == other or pair.p_value is None or pair.p_value > 1 - confidence
