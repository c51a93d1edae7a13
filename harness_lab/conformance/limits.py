"""The limits of a case by name, for limiters that know nothing of our modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.adapters import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Case

_NAMES: Final[dict[str, dict[str, str]]] = {
    "call_holds": {name: name for name in ("calls", "input", "tokens", "fresh", "cost_usd")},
    "reservation_pool": {name: name for name in ("calls", "input", "tokens", "fresh", "cost_usd")},
    "shared_ledger": {"max_steps": "calls", "max_cost_usd": "cost_usd", "max_seconds": "seconds"},
    "tree_limits": {"max_depth": "max_depth", "max_concurrent": "max_concurrent", "max_calls": "max_children"},
    "iteration_budget": {"max_iterations": "calls"},
}
"""What each of our limits is called in :data:`harness_lab.adapters.LIMITS`, by module."""
_OURS: Final = {"unknown_usage", "whose"}
"""Switches of ours that say how a limit is kept, not which it is."""


def limits_by_name(case: Case) -> dict[str, Any]:
    """Return the limits of a case by name.

    Raises
    ------
    NotApplicable
        If it is about a mechanism that no name stands for.
    """
    given: Mapping[str, Any] = case["given"]
    if isinstance(given.get("limits"), dict):
        return dict(given["limits"])
    limits: dict[str, Any] = {}
    for module in given.get("modules", ()):
        names = _names(module)
        for field, value in module.items():
            if field in _OURS or field in ("kind", "counts"):
                continue
            if field not in names:
                raise NotApplicable(f"the case is about {field} of {module['kind']}, which has no name of its own")
            limits[names[field]] = value
    if not limits:
        raise NotApplicable("the case is about no limit")
    return limits


def _names(module: Mapping[str, Any]) -> Mapping[str, str]:
    if module["kind"] not in _NAMES:
        raise NotApplicable(f"the case is about {module['kind']}, a mechanism of ours")
    if module.get("counts") == "tool-calls":
        return {"max_iterations": "tool_calls"}
    return _NAMES[module["kind"]]
