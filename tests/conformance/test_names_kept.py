"""Names and orders that the systems' users know, and that no behaviour case asks for."""

from __future__ import annotations

from harness_lab.agents.delegating import DELEGATION_TOOLS
from harness_lab.budget import RunBudget


def test_the_names_of_delegation_tools_are_kept() -> None:
    assert DELEGATION_TOOLS == ("delegate_task", "spawn_agent", "create_subagent")


def test_budgets_are_positional_in_the_order_of_prism_harness() -> None:
    assert RunBudget(20, 1.0, 300) == RunBudget(max_steps=20, max_cost_usd=1.0, max_seconds=300)
