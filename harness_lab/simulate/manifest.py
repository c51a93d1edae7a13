"""What is needed to get a result again: the configuration's digest, the seed, the engine and the versions."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from harness_lab import draws
from harness_lab.simulate.plain import plain

if TYPE_CHECKING:
    from harness_lab.simulate.execute import Ended
    from harness_lab.simulate.experiment import Experiment


def config_digest(experiment: Experiment) -> str:
    """Return a SHA-256 of the whole configuration."""
    text = json.dumps(plain(experiment), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def manifest_of(experiment: Experiment, *, engine: str, ended: Ended | None = None) -> dict[str, Any]:
    """Return the manifest of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Which.
    engine : str
        The engine that simulated it.
    ended : Ended, optional
        How it went.

    Returns
    -------
    dict
        ``experiment``, ``config_sha256``, ``seed``, ``runs``, ``policies`` (names), ``specs`` (the policies themselves,
        by name), ``scenarios``, ``draws``, ``engine``, ``python`` and the versions of the libraries that numbers
        depend on; with `ended`, ``runs_done`` (under every policy), ``ended`` and ``precision``. Workers, backend and
        size of a block are not in it: they change nothing.
    """
    how = {} if ended is None else {"runs_done": ended.runs, "ended": ended.how, "precision": ended.precision}
    return {
        "experiment": experiment.name,
        "config_sha256": config_digest(experiment),
        "seed": experiment.seed,
        "runs": experiment.runs,
        "policies": [policy.name for policy in experiment.policies],
        "specs": {policy.name: plain(policy) for policy in experiment.policies},
        "scenarios": [scenario.name for scenario in experiment.scene()],
        "draws": draws.VERSION,
        "engine": engine,
        "python": platform.python_version(),
        "harness_lab": version("harness-lab"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        **how,
    }
