"""Statistics on plain arrays: intervals, quantiles, survival, fits, paired differences. numpy and scipy only."""

from __future__ import annotations

from harness_lab.stats.changes import ChangePoint, change_point
from harness_lab.stats.clusters import ClusterEffect, cluster_effect
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable
from harness_lab.stats.fits import Fit, fit
from harness_lab.stats.incidence import IncidenceCurve, cumulative_incidence, incidence_quantile
from harness_lab.stats.means import mean, ratio
from harness_lab.stats.paired import PairedDifference, holm, paired_difference, paired_shares
from harness_lab.stats.quantiles import (
    coverage_of_minimum,
    largest_quantile,
    p_next_below,
    quantile,
    quantile_n,
    wilks_n,
)
from harness_lab.stats.selection import Race, Selection, maybe_best, select_best
from harness_lab.stats.shares import share
from harness_lab.stats.shift import Shift, shift
from harness_lab.stats.survival import SurvivalCurve, kaplan_meier

__all__ = [
    "ChangePoint",
    "ClusterEffect",
    "Distribution",
    "Estimate",
    "Fit",
    "IncidenceCurve",
    "Interval",
    "NotEstimable",
    "PairedDifference",
    "Race",
    "Selection",
    "Shift",
    "SurvivalCurve",
    "change_point",
    "cluster_effect",
    "coverage_of_minimum",
    "cumulative_incidence",
    "fit",
    "holm",
    "incidence_quantile",
    "kaplan_meier",
    "largest_quantile",
    "maybe_best",
    "mean",
    "p_next_below",
    "paired_difference",
    "paired_shares",
    "quantile",
    "quantile_n",
    "ratio",
    "select_best",
    "share",
    "shift",
    "wilks_n",
]
