"""From the limits of one system to the closest settings of another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab import draws
from harness_lab.analyze.compare import compare
from harness_lab.export.carry import AGAIN
from harness_lab.export.check import without_periods
from harness_lab.export.config import TunedConfig
from harness_lab.export.decisions import KINDS, kind_of, runs_of
from harness_lab.export.document import AgentLimits
from harness_lab.export.translation.native import limits_of
from harness_lab.export.translation.result import Searched, Translation
from harness_lab.export.translation.search import Search
from harness_lab.export.translation.worlds import USUAL, Stated, alone, world_of
from harness_lab.export.turns import with_names, with_turns
from harness_lab.export.values import values_of
from harness_lab.export.writers import UNKNOWN, Told, export, target_of, told
from harness_lab.stats.estimates import check_confidence
from harness_lab.stats.shares import share
from harness_lab.usage import count

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from harness_lab.export.targets.base import Target, Values
    from harness_lab.export.writers import Export
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment

RUNS, SEARCH_RUNS = 300, 60


def translate(
    limits: str | os.PathLike[str] | Mapping[str, Any],
    *,
    source: str | Target,
    target: str | Target,
    workload: Stated = USUAL,
    runs: int = RUNS,
    seed: int = 0,
    form: str | None = None,
    agents: Sequence[str] = (),
    search_runs: int = SEARCH_RUNS,
    confidence: float = 0.95,
) -> Translation:
    """Say the limits of one system in the settings of another, and how many runs would be treated differently there.

    What the target counts alike is carried as it is. For what it does not, the closest of its settings is searched, on
    draws of the search's own: of the same quantity over another scope; where it has none, of another quantity that runs
    use up. Then both systems meet the same runs.

    Parameters
    ----------
    limits : path or mapping
        What the source is told: its own file or folder, a TOML or JSON file of its settings by name, or a mapping.
    source, target : str or Target
        Two of :data:`harness_lab.export.TARGETS`. For a graph that takes other super-steps than one for its model and
        one for its tools, give :func:`harness_lab.export.targets.langgraph.langgraph` of its own steps.
    workload : str, path, Scene or Experiment
        What runs: a name in the gallery, an experiment file, records to fit a world to, or one that is made.
    runs, seed : int
        Runs that both systems meet, and their luck.
    form : str, optional
        Language of the target's file.
    agents : sequence of str
        Names of child agents that the target shall be told limits for, where it can only name them.
    search_runs : int
        Runs of the search, if there is one; its seed is another.
    confidence : float, default 0.95
        Of each interval.

    Raises
    ------
    ReadError, InputError
        If the limits cannot be read, a system or workload does not exist, or the target refuses the mode.
    """
    check_confidence(confidence)
    count("search_runs", search_runs)
    origin, place = target_of(source, what="source"), target_of(target)
    values = limits_of(origin, limits)
    said = told(origin, lambda: values)
    named = (*said.agents, *(AgentLimits(name=name) for name in agents if name not in {a.name for a in said.agents}))
    name, experiment = world_of(workload, runs=runs, seed=seed)
    config = TunedConfig(said.policy, provenance=UNKNOWN, agents=named)
    export(config, place, form=form)  # what cannot be written at all is refused before anything is simulated
    before, left_out = without_periods(
        replace(with_turns(said.policy, said.agents), name=f"{origin.name} (source)"), experiment
    )
    searched, in_vain = _search(config, place, before, experiment, search_runs)
    stand_ins = {one.key: one.stand_in() for one in searched}
    labels = _labels(origin, values, said)
    written = _relabelled(export(config, place, form=form, stand_ins=stand_ins), labels, values)
    after, also = without_periods(
        replace(with_turns(written.read_back(), written.agents_back()), name=f"{place.name} (target)"), experiment
    )
    notes = tuple(dict.fromkeys((*said.unsimulated, *left_out, *written.unsimulated(), *also)))
    return _measured(
        experiment, before, after, confidence=confidence, source=origin, target=place, said=values, written=written,
        workload=name, searched=tuple(replace(one, value=labels.get(one.value, one.value)) for one in searched),
        in_vain=tuple(_said(text, labels) for text in in_vain), unsimulated=notes, defaults=_defaults(origin, values),
    )  # fmt: skip


def _search(
    config: TunedConfig, place: Target, before: PolicySpec, experiment: Experiment, runs: int
) -> tuple[tuple[Searched, ...], tuple[str, ...]]:
    if runs == 0 or before.scope != "run":
        return (), ()
    other = replace(experiment, runs=runs, seed=(experiment.seed ^ 0x5EED) & draws.MASK)
    return Search(config=config, place=place, origin=before, experiment=other).run()


def _measured(
    experiment: Experiment, before: PolicySpec, after: PolicySpec, *, confidence: float, **known: Any
) -> Translation:
    """Let both systems meet the same runs, and count those that they treat differently, by kind."""
    world = with_names(alone(experiment, before, after).with_policies(before, after))
    result = world.run(decisions=True, progress=False)
    mine, theirs = (runs_of(result, one.name) for one in (before, after))
    kinds = np.asarray([kind_of(one, theirs[run]) or "" for run, one in mine.items()])
    ends = np.asarray([one.completed != theirs[run].completed for run, one in mine.items()])
    bound = (sum(one.bound for one in mine.values()), sum(one.bound for one in theirs.values()))
    periods = [run.partition(".")[0] for run in mine] if world.workload.arrivals is not None else None
    return Translation(
        runs=experiment.runs, seed=experiment.seed, bound=bound, met=len(mine), policy=before, read_back=after,
        differing=share(kinds != "", confidence=confidence, clusters=periods, method="runs treated differently"),
        kinds={kind: share(kinds == kind, confidence=confidence, clusters=periods, method=kind) for kind in KINDS},
        ends=share(ends, confidence=confidence, clusters=periods, method="runs that complete under one only"),
        comparison=compare(result, baseline=before.name, confidence=confidence), **known,
    )  # fmt: skip


def _labels(source: Target, values: Values, said: Told) -> dict[str, str]:
    """Return what the source calls each value of the policy that stands for it."""
    found = {}
    for value in values_of(said.policy):
        fitting = [knob for knob in source.knobs if knob.quantity == value.quantity and knob.key in _flat(values)]
        exact = [knob for knob in fitting if value.scope in knob.bounds]
        if chosen := (exact or fitting):
            found[value.name] = chosen[0].key
    return found


def _flat(values: Values) -> set[str]:
    """Return the settings that are said, no limit among them, and those inside an agent's own table."""
    inner = [
        own for told in values.values() if isinstance(told, dict) for own in told.values() if isinstance(own, dict)
    ]
    return set(values) | {key for own in inner for key in own}


def _relabelled(written: Export, labels: Mapping[str, str], values: Values) -> Export:
    """Name what was carried and lost as the source does."""
    carried = tuple(replace(one, value=_named(one.value, labels, values)) for one in written.carried)
    losses = tuple(
        replace(loss, value=_named(loss.value, labels, values), means=loss.means.removesuffix(AGAIN))
        for loss in written.losses
    )
    return replace(written, carried=carried, losses=losses)


def _said(text: str, labels: Mapping[str, str]) -> str:
    name, colon, rest = text.partition(": ")
    return f"{labels.get(name, name)}{colon}{rest}"


_AXES = {
    "at_limit.then = wrap-up": "a last call at the limit",
    "meter.trips = passed": "a limit that refuses once it is passed, not once it is reached",
}


def _named(text: str, labels: Mapping[str, str], values: Values) -> str:
    """Return a value as the source says it: its setting and what it was told, where that is one."""
    if text in _AXES:
        return _AXES[text]
    name, _, amount = text.partition(" = ")
    if name not in labels:
        return text
    key = labels[name]
    return f"{key} = {values.get(key, amount)}" if amount or key in values else key


def _defaults(source: Target, values: Values) -> tuple[str, ...]:
    """Return what the source does of its own where nothing was said; that is not simulated."""
    said = _flat(values)
    usual = {knob.key: knob.default or knob.missing for knob in source.knobs}
    return tuple(f"{key}: {does}" for key, does in usual.items() if does and key not in said)
