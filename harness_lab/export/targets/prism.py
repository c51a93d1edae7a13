"""prism-harness: the run budget of a context, as JSON, Python, TypeScript or PHP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Json, Php, TypeScript
from harness_lab.export.forms.python import Python
from harness_lab.export.targets.amounts import SAFE_INTEGER, Count, Dollars, Seconds
from harness_lab.export.targets.base import Draft, Knob, Loss, Target, Values, agents_lost
from harness_lab.policies import SharedLedgerSpec

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEYS = ("max_steps", "max_cost_usd", "max_seconds")
NONE = SAFE_INTEGER
"""prism's `max_steps` is required and missing means 8, so that no limit is written as a number that no run reaches."""
_RUN = "one run: the context's ledger, shared by every subagent"
_NOTE = "checked before each step, so the step that crosses it is paid in full"

KNOBS = (
    Knob(
        key="max_steps", quantity="calls", bounds=("tree",), unit="model calls", scope=_RUN,
        amount=Count(most=NONE), missing="8",
    ),
    Knob(key="max_cost_usd", quantity="cost", bounds=("tree",), unit="USD", scope=_RUN, amount=Dollars(), note=_NOTE),
    Knob(
        key="max_seconds", quantity="time", bounds=("tree",), unit="seconds", scope=_RUN, amount=Seconds(),
        note="counted from the start of the ledger, between steps; whole seconds in Python and PHP",
    ),
)  # fmt: skip


def _always_steps(draft: Draft) -> None:
    draft.values = {key: draft.values[key] for key in KEYS if key in draft.values}
    if "max_steps" not in draft.values:
        draft.values = {"max_steps": NONE} | draft.values
    agents_lost(draft, "a prism mode declares its own limits; set them in the mode")
    ledger = draft.config.policy.module("shared_ledger")
    if ledger is not None and ledger.unknown_usage == "charge-hold" and ledger.max_cost_usd is not None:
        draft.done.add("shared_ledger.unknown_usage")
        means = (
            "a step without reported cost charges nothing there, and every capped budget of the run is refused after"
        )
        draft.losses.append(Loss("shared_ledger.unknown_usage = charge-hold", means))


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    steps, cost, seconds = (values.get(key) for key in KEYS)
    return (SharedLedgerSpec(max_steps=NONE if steps is None else steps, max_cost_usd=cost, max_seconds=seconds),)


_CAMEL = (("max_steps", "maxSteps"), ("max_cost_usd", "maxCostUsd"), ("max_seconds", "maxSeconds"))

TARGET = Target(
    name="prism",
    title="prism-harness",
    version="0.2.1",
    knobs=KNOBS,
    forms={
        "json": Json(file="prism-run-budget.json", keys=KEYS),
        "python": Python(file="prism_run_budget.py", keys=KEYS, constant="RUN_BUDGET"),
        "typescript": TypeScript(
            file="prism-run-budget.ts",
            keys=KEYS,
            constant="RUN_BUDGET",
            type="{ maxSteps: number; maxCostUsd?: number; maxSeconds?: number }",
            renamed=_CAMEL,
        ),
        "php": Php(file="prism-run-budget.php", keys=KEYS),
    },
    model=_model,
    rest=_always_steps,
)
__all__ = ["TARGET"]
