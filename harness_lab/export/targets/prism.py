"""prism-harness: the run budget of a context, as JSON or as Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness_lab.budget import RunBudget
from harness_lab.errors import InputError
from harness_lab.export.targets.base import Loss, losses_of
from harness_lab.policies import PolicySpec, shared_ledger

if TYPE_CHECKING:
    from harness_lab.policies import SharedLedgerSpec

FORMS: tuple[str, ...] = ("json", "python")
FILE: dict[str, str] = {"json": "prism-run-budget.json", "python": "prism_run_budget.py"}
_KEPT = ("shared_ledger.max_steps", "shared_ledger.max_cost_usd", "shared_ledger.max_seconds")
_PREFIX = "RUN_BUDGET = "


def write(policy: PolicySpec, form: str) -> tuple[str, tuple[Loss, ...]]:
    """Write the shared ledger's three limits; everything else has no counterpart there.

    Raises
    ------
    InputError
        If the policy has no shared ledger.
    """
    ledger: SharedLedgerSpec | None = policy.module("shared_ledger")
    if ledger is None:
        kinds = [module.kind for module in policy.modules]
        raise InputError("policy for prism", expected="a shared_ledger module (its RunBudget)", got=kinds)
    values = {"max_steps": ledger.max_steps, "max_cost_usd": ledger.max_cost_usd, "max_seconds": ledger.max_seconds}
    losses = losses_of(policy, kept=_KEPT, means="a prism run budget has no such limit")
    losses = tuple(loss for loss in losses if loss.value != "shared_ledger.unknown_usage = release")
    if form == "json":
        return json.dumps(values, indent=2) + "\n", losses
    note = "# Pass it on as: RunContext.root(run_id, RunBudget(**RUN_BUDGET))\n"
    return f"{note}{_PREFIX}{values!r}\n", losses


def read(text: str, form: str) -> PolicySpec:
    """Read a run budget back."""
    if form == "python":
        line = next((line for line in text.splitlines() if line.startswith(_PREFIX)), "")
        text = line.removeprefix(_PREFIX).replace("None", "null").replace("'", '"')
    try:
        values: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError("prism run budget", expected="a mapping of its three limits", got=str(error)) from None
    budget = RunBudget.from_config(values)
    return shared_ledger(budget.max_steps, budget.max_cost_usd, budget.max_seconds)
