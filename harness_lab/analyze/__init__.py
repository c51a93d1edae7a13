"""Reading settlements: what runs use, floors, ceilings, policies compared; every figure with n, method and interval."""

from __future__ import annotations

from harness_lab.analyze.ceilings import CeilingChoice, ceiling, ceiling_curve
from harness_lab.analyze.compare import Comparison, compare
from harness_lab.analyze.distribution import SettlementDistribution, distribution
from harness_lab.analyze.floors import Floors, floors
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.truth import TruthCheck, against_truth

__all__ = [
    "CeilingChoice",
    "Comparison",
    "Floors",
    "SettlementDistribution",
    "TruthCheck",
    "against_truth",
    "ceiling",
    "ceiling_curve",
    "compare",
    "distribution",
    "floors",
    "run_table",
]
