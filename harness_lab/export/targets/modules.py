"""Modules that answer as a target does; only those that limit something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.export.meter import MeterSpec
from harness_lab.policies import TreeLimitsSpec

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec


def meter(**limits: Any) -> tuple[ModuleSpec, ...]:
    """Return a counter that is checked before a call and added to after it, if it limits anything."""
    spec = MeterSpec(**limits)
    return (spec,) if any(limit is not None for limit in spec.limits()) else ()


def tree(**limits: Any) -> tuple[ModuleSpec, ...]:
    """Return limits on children, if there are any."""
    spec = TreeLimitsSpec(**limits)
    limited = (spec.max_depth, spec.max_concurrent, spec.max_calls, spec.timeout_s)
    return (spec,) if any(limit is not None for limit in limited) else ()
