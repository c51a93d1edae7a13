"""Reading settlements: what runs use, floors, ceilings, policies compared; every figure with n, method and interval."""

from __future__ import annotations

from harness_lab.analyze.best import BestPolicy, best_policy
from harness_lab.analyze.caps import CapCheck, cap_check
from harness_lab.analyze.ceilings import CeilingChoice, ceiling, ceiling_curve
from harness_lab.analyze.cheapest import CheapestCeiling, cheapest_ceiling
from harness_lab.analyze.compare import Comparison, compare
from harness_lab.analyze.contexts import ContextChange
from harness_lab.analyze.distribution import SettlementDistribution, distribution
from harness_lab.analyze.drift import Drift, drift
from harness_lab.analyze.flat_price import FlatPrice, break_even_runs, flat_price
from harness_lab.analyze.floor_costs import FloorCosts, first_call_floors, floor_costs
from harness_lab.analyze.floors import Floors, floors
from harness_lab.analyze.holds import HoldCurve, hold_sizes
from harness_lab.analyze.limits import LimitReport, limit_report
from harness_lab.analyze.pareto import Front, pareto
from harness_lab.analyze.parts import Parts
from harness_lab.analyze.period_budget import PeriodBudget, period_budget
from harness_lab.analyze.price_changes import price_changes
from harness_lab.analyze.price_changes_result import PriceChanges, PricedDate
from harness_lab.analyze.prices import Repriced, reprice
from harness_lab.analyze.probes import Probe, ProbePlan, plan_probes
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.shadow import ShadowReport, shadow_report
from harness_lab.analyze.spend import SpendSplit, spend_split
from harness_lab.analyze.symptoms import Symptoms, symptoms
from harness_lab.analyze.truth import TruthCheck, against_truth
from harness_lab.analyze.watch import ConfigCheck, check_config

__all__ = [
    "BestPolicy",
    "CapCheck",
    "CeilingChoice",
    "CheapestCeiling",
    "Comparison",
    "ConfigCheck",
    "ContextChange",
    "Drift",
    "FlatPrice",
    "FloorCosts",
    "Floors",
    "Front",
    "HoldCurve",
    "LimitReport",
    "Parts",
    "PeriodBudget",
    "PriceChanges",
    "PricedDate",
    "Probe",
    "ProbePlan",
    "Repriced",
    "SettlementDistribution",
    "ShadowReport",
    "SpendSplit",
    "Symptoms",
    "TruthCheck",
    "against_truth",
    "best_policy",
    "break_even_runs",
    "cap_check",
    "ceiling",
    "ceiling_curve",
    "cheapest_ceiling",
    "check_config",
    "compare",
    "distribution",
    "drift",
    "first_call_floors",
    "flat_price",
    "floor_costs",
    "floors",
    "hold_sizes",
    "limit_report",
    "pareto",
    "period_budget",
    "plan_probes",
    "price_changes",
    "reprice",
    "run_table",
    "shadow_report",
    "spend_split",
    "symptoms",
]
