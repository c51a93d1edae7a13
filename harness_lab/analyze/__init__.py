"""Reading settlements: what runs use, floors, ceilings, policies compared; every figure with n, method and interval."""

from __future__ import annotations

from harness_lab.analyze.ceilings import CeilingChoice, ceiling, ceiling_curve
from harness_lab.analyze.compare import Comparison, compare
from harness_lab.analyze.contexts import ContextChange
from harness_lab.analyze.distribution import SettlementDistribution, distribution
from harness_lab.analyze.drift import Drift, drift
from harness_lab.analyze.floors import Floors, floors
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.spend import SpendSplit, spend_split
from harness_lab.analyze.truth import TruthCheck, against_truth
from harness_lab.analyze.watch import ConfigCheck, check_config

__all__ = [
    "CeilingChoice",
    "Comparison",
    "ConfigCheck",
    "ContextChange",
    "Drift",
    "Floors",
    "SettlementDistribution",
    "SpendSplit",
    "TruthCheck",
    "against_truth",
    "ceiling",
    "ceiling_curve",
    "check_config",
    "compare",
    "distribution",
    "drift",
    "floors",
    "run_table",
    "spend_split",
]
