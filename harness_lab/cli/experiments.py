"""Experiment files as commands read them: their policies may be other people's limiters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.simulate import Experiment


def load_experiment(file: Path) -> Experiment:
    """Read an experiment file, ``[policies.adapter]`` included; raises what :func:`simulate.load_experiment` raises."""
    import harness_lab.adapters  # noqa: F401 - makes that table known
    from harness_lab.simulate import load_experiment as load

    return load(file)
