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
    from collections.abc import Mapping

    from harness_lab.simulate.engines import Choice
    from harness_lab.simulate.execute import Ended
    from harness_lab.simulate.experiment import Experiment


def config_digest(experiment: Experiment) -> str:
    """Return a SHA-256 of the whole configuration."""
    text = json.dumps(plain(experiment), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def manifest_of(
    experiment: Experiment, *, engines: Mapping[tuple[int, int], Choice], ended: Ended | None = None
) -> dict[str, Any]:
    """Return the manifest of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Which.
    engines : mapping of (scenario, policy) to Choice
        The engine that simulated each policy in each scenario, and why; both by their place.
    ended : Ended, optional
        How it went.

    Returns
    -------
    dict
        ``experiment``, ``config_sha256``, ``seed``, ``runs``, ``policies`` (names), ``specs`` (the policies themselves,
        by name), ``scenarios``, ``cluster`` (the column whose values are independent of one another where runs are not;
        None: runs are), ``draws``, ``engine``, ``engine_why`` (by policy), ``python`` and the versions of the libraries
        that numbers depend on; with `ended`, ``runs_done`` (under every policy), ``ended`` and
        ``precision``. Workers, backend and size of a block are not in it: they change nothing.
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
        "cluster": "session" if experiment.meets() else None,
        "draws": draws.VERSION,
        "engine": " and ".join(sorted({choice.engine for choice in engines.values()})),
        "engine_why": {
            experiment.policies[policy].name: f"{choice.engine}: {choice.why}"
            for (_, policy), choice in sorted(engines.items(), reverse=True)
        },
        "python": platform.python_version(),
        "harness_lab": version("harness-lab"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        **how,
    }
