"""The workload that a translation is held against."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_lab.errors import InputError
from harness_lab.export.decisions import apart
from harness_lab.policies import unlimited
from harness_lab.simulate import Experiment, Scene, fit_world, from_gallery, gallery, load_experiment

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec

USUAL: Final = "deep-research"
"""A lead that calls models and starts searchers: limits of single agents and of whole trees both bind in it."""

Stated = str | os.PathLike[str] | Scene | Experiment


def world_of(workload: Stated, *, runs: int, seed: int) -> tuple[str, Experiment]:
    """Return a workload's name and an experiment with it, under no policy yet.

    Parameters
    ----------
    workload : str, path, Scene or Experiment
        A name in the gallery; an experiment file (TOML); records, to which a world is fitted; or one that is made.
    runs, seed : int
        Of the experiment.

    Raises
    ------
    InputError
        If there is nothing of that name.
    """
    if isinstance(workload, Experiment):
        chosen = replace(workload, policies=(unlimited(),), runs=runs, seed=seed, scenarios=())
        return workload.name, chosen
    if isinstance(workload, Scene):
        return workload.name, _experiment(workload, runs=runs, seed=seed)
    if isinstance(workload, str) and workload in gallery():
        return workload, _experiment(from_gallery(workload), runs=runs, seed=seed)
    place = Path(workload)
    if not place.exists():
        expected = f"a file, or one of {', '.join(gallery())}"
        raise InputError("workload", expected=expected, got=str(workload))
    if place.suffix == ".toml":
        return place.name, world_of(load_experiment(place), runs=runs, seed=seed)[1]
    from harness_lab.settlements import read

    fitted = fit_world(read(place))
    made = Experiment(workload=fitted.workload, provider=fitted.provider, policies=(unlimited(),), runs=runs, seed=seed)
    return place.name, made


def alone(experiment: Experiment, *policies: PolicySpec) -> Experiment:
    """Return the experiment with its runs one by one, where no policy outlives a run; else with a policy for each."""
    if experiment.workload.arrivals is None or any(policy.scope != "run" for policy in policies):
        return apart(experiment)
    return replace(experiment, workload=replace(experiment.workload, arrivals=None))


def _experiment(scene: Scene, *, runs: int, seed: int) -> Experiment:
    return Experiment(
        workload=scene.workload, provider=scene.provider, policies=(unlimited(),), runs=runs, seed=seed, name=scene.name
    )
