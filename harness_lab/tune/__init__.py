"""Turning the limits of a policy: one step of each, the best of several, a search, and how much to trust the winner."""

from __future__ import annotations

from harness_lab.tune.parameters import Parameter, parameters, with_parameter
from harness_lab.tune.race import RaceResult, race
from harness_lab.tune.steps import StepEffects, one_step_more

__all__ = [
    "Parameter",
    "RaceResult",
    "StepEffects",
    "one_step_more",
    "parameters",
    "race",
    "with_parameter",
]
