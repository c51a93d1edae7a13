"""Values that the cases of prism-harness are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.budget import RunBudget, RunLedger
from harness_lab.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Mapping


def budget_of(values: Mapping[str, Any]) -> RunBudget:
    """Return a budget from a case's limits; null is no limit."""
    return RunBudget(values["max_steps"], values["max_cost_usd"], values["max_seconds"])


def ledger_of(state: Mapping[str, Any]) -> RunLedger:
    """Return a ledger that has come to a case's state, on a clock of its own."""
    clock = ManualClock()
    ledger = RunLedger.start("root", clock=clock)
    clock.advance(state["elapsed_seconds"])
    ledger.record_steps(state["steps"])
    ledger.record_cost(state["cost_usd"])
    for _ in range(state["unmetered_runs"]):
        ledger.record_cost(None)
    if state["cancelled"]:
        ledger.cancel(state["cancel_reason"])
    return ledger
