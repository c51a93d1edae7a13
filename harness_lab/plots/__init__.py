"""Pictures: one family a file, data apart from drawing; every function takes ``ax=None`` and returns the axes.

They take plain frames, arrays and numbers, so that the same picture serves records, simulations and the tables of other
programs.
"""

from __future__ import annotations

from harness_lab.plots.binding import plot_binding
from harness_lab.plots.board import plot_board, plot_spread
from harness_lab.plots.both_ways import plot_both_ways
from harness_lab.plots.ceilings import plot_ceiling_curve, plot_ceiling_tradeoff
from harness_lab.plots.compare import plot_differences, plot_metric, plot_policies
from harness_lab.plots.distribution import plot_incidence
from harness_lab.plots.estimates import plot_chances, plot_estimates, plot_split, plot_symptoms
from harness_lab.plots.floors import plot_floors
from harness_lab.plots.price_changes import plot_price_changes
from harness_lab.plots.quality import plot_quality
from harness_lab.plots.run import plot_run
from harness_lab.plots.style import colour_of, draw_empty
from harness_lab.plots.svg import to_svg
from harness_lab.plots.timeline import plot_timeline

__all__ = [
    "colour_of",
    "draw_empty",
    "plot_binding",
    "plot_board",
    "plot_both_ways",
    "plot_ceiling_curve",
    "plot_ceiling_tradeoff",
    "plot_chances",
    "plot_differences",
    "plot_estimates",
    "plot_floors",
    "plot_incidence",
    "plot_metric",
    "plot_policies",
    "plot_price_changes",
    "plot_quality",
    "plot_run",
    "plot_split",
    "plot_spread",
    "plot_symptoms",
    "plot_timeline",
    "to_svg",
]
