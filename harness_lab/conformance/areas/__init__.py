"""One module an area: how its cases are carried out on our public API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.conformance.areas import (
    delegation,
    iteration_budget,
    prism_budgets,
    public_cases,
    ruler,
    tangle,
    tree_limits,
)

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Area

AREAS: Final[dict[str, Area]] = {
    area.name: area
    for area in (
        prism_budgets.AREA,
        tangle.AREA,
        tree_limits.AREA,
        iteration_budget.AREA,
        delegation.AREA,
        public_cases.AREA,
        ruler.AREA,
    )
}
"""Every area by its name, which is the name of its file of cases."""
