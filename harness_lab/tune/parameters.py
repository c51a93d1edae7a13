"""The numbers of a policy that can be turned: where they are, and what one step of each is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec

SMALL: Final = frozenset(("max_depth", "max_concurrent"))
"""Counts of which one more is a step."""
_SKIPPED: Final = frozenset(("kind", "table"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number of a policy.

    Parameters
    ----------
    name : str
        ``module.parameter``, or ``max_wait_s``.
    value : int or float
        Its present value.
    """

    name: str
    value: int | float

    def stepped(self, step: float, *, up: bool) -> int | float | None:
        """Return the value one step up or down; None where there is none below.

        A step is a share of the value: whole numbers move by at least one; depth and concurrency by one.
        """
        sign = 1 if up else -1
        parameter = self.name.rpartition(".")[2]
        if isinstance(self.value, int):
            size = 1 if parameter in SMALL else max(1, round(self.value * step))
            moved = self.value + sign * size
            return moved if moved >= 0 else None
        moved_to = self.value * (1 + sign * step)
        return round(moved_to, 12) if moved_to > 0 else None


def parameters(policy: PolicySpec) -> tuple[Parameter, ...]:
    """Return every numeric limit of a policy that is set."""
    found = []
    for module in policy.modules:
        for name, value in _values(module).items():
            if name not in _SKIPPED and isinstance(value, (int, float)) and not isinstance(value, bool):
                found.append(Parameter(name=f"{module.kind}.{name}", value=value))
    if policy.max_wait_s is not None:
        found.append(Parameter(name="max_wait_s", value=policy.max_wait_s))
    return tuple(found)


def with_parameter(policy: PolicySpec, name: str, value: float | None, *, rename: str | None = None) -> PolicySpec:
    """Return a copy with one number changed.

    Raises
    ------
    InputError
        If the policy has no such parameter.
    """
    if name == "max_wait_s":
        return replace(policy, max_wait_s=value, name=rename or policy.name)
    kind, _, parameter = name.partition(".")
    module = policy.module(kind)
    if getattr(module, "foreign", False) and module.takes(parameter):
        changed = module.with_limit(parameter, value)
        modules = tuple(changed if one is module else one for one in policy.modules)
        return replace(policy, modules=modules, name=rename or policy.name)
    if module is None or parameter not in {one.name for one in fields(module)} - _SKIPPED:
        known = [one.name for one in parameters(policy)]
        raise InputError("parameter", expected=f"a number of the policy such as {', '.join(known)}", got=name)
    turned = policy.with_module(kind, **{parameter: value})
    return turned if rename is None else replace(turned, name=rename)


def _values(module: Any) -> dict[str, Any]:
    """Return what a module has by name; of somebody else's limiter its limits."""
    if getattr(module, "foreign", False):
        return dict(module.limits)
    return {one.name: getattr(module, one.name) for one in fields(module)}
