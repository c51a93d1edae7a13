"""Figures of the truth check in words, shared by the tour's terminal and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.analyze.truth import Checked
    from harness_lab.stats.estimates import Estimate


def share_of(estimate: Estimate) -> Estimate:
    """Return a share as a percentage."""
    return estimate.scaled(100, unit="%")


def truth_of(truth: Mapping[str, Any]) -> str:
    """Return a true value with its unit."""
    value = float(truth["value"])
    return f"${value / 1e9:,.4f}" if truth.get("column") == "cost_nusd" else f"{value:,.6g}"


def estimate_of(one: Checked) -> Estimate:
    """Return an estimate in the unit it is read in."""
    return one.estimate.scaled(1e-9, unit="$") if one.truth.get("column") == "cost_nusd" else one.estimate
