"""LiteLLM's budgets of keys, teams and users, as period budgets of a policy, where its windows are a calendar's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.policies import PeriodBudgetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness_lab.budget.windows import Every

EVERY: Final[Mapping[Every, str]] = {"day": "1d", "week": "7d", "month": "1mo"}
"""How a calendar's window is written there."""
_SPANS: Final = {text: every for every, text in EVERY.items()}


def period_budgets(bodies: Iterable[Mapping[str, Any]]) -> tuple[PeriodBudgetSpec, ...]:
    """Return the budgets that a policy can hold: dollars in days, weeks, months, or once and for all."""
    found = []
    for body in bodies:
        span = body.get("budget_duration")
        if body.get("max_budget") is None or (span is not None and span not in _SPANS):
            continue
        every = None if span is None else _SPANS[span]
        found.append(PeriodBudgetSpec(cost_usd=body["max_budget"], by=body["for"], every=every))
    return tuple(found)


def unsimulated(bodies: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what of the budgets no policy holds as the proxy does."""
    return tuple(text for body in bodies for text in _of(body))


def _of(body: Mapping[str, Any]) -> list[str]:
    whose, span = f"of a {body.get('for')}", body.get("budget_duration")
    found = [
        f"{key} = {body[key]} {whose}: the proxy counts by its own clock's minutes"
        for key in ("rpm_limit", "tpm_limit")
        if body.get(key) is not None
    ]
    if body.get("soft_budget") is not None:
        found.append(f"soft_budget = {body['soft_budget']} {whose}: it warns and stops nothing")
    if body.get("max_budget") is not None and span is not None and span not in _SPANS:
        found.append(f"max_budget = {body['max_budget']} {whose}: windows of {span} are no calendar's")
    return found
