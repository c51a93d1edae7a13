"""Turning the limits of a policy: one step of each, the best of several, a search, and how much to trust the winner."""

from __future__ import annotations

from harness_lab.tune.both_ways import ceiling_both_ways
from harness_lab.tune.both_ways_result import CeilingBothWays
from harness_lab.tune.confirm import NoTrialFits, Tuned
from harness_lab.tune.knobs import Bound, Knob
from harness_lab.tune.parameters import Parameter, parameters, with_parameter
from harness_lab.tune.race import RaceResult, race
from harness_lab.tune.recorded_inputs import sensitivity_of_records
from harness_lab.tune.search import tune
from harness_lab.tune.sensitivity import Sensitivity, sensitivity
from harness_lab.tune.steps import StepEffects, one_step_more
from harness_lab.tune.study import SearchStopped

__all__ = [
    "Bound",
    "CeilingBothWays",
    "Knob",
    "NoTrialFits",
    "Parameter",
    "RaceResult",
    "SearchStopped",
    "Sensitivity",
    "StepEffects",
    "Tuned",
    "ceiling_both_ways",
    "one_step_more",
    "parameters",
    "race",
    "sensitivity",
    "sensitivity_of_records",
    "tune",
    "with_parameter",
]
