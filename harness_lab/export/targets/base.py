"""What the targets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness_lab.policies import PolicySpec


@dataclass(frozen=True, slots=True)
class Loss:
    """A value that a target cannot express.

    Parameters
    ----------
    value : str
        Which, as ``module.parameter = value``.
    means : str
        What is lost.
    """

    value: str
    means: str

    def __str__(self) -> str:
        return f"{self.value}: {self.means}"


def losses_of(policy: PolicySpec, *, kept: Collection[str], means: str) -> tuple[Loss, ...]:
    """Return a loss for every value of a policy that is not in `kept` (``module.parameter``) and says something."""
    found = []
    for module in policy.modules:
        for name, value in module.to_dict().items():
            label = f"{module.kind}.{name}"
            if name != "kind" and value is not None and label not in kept:
                shown = f"{len(value)} rows" if isinstance(value, list) else value
                found.append(Loss(f"{label} = {shown}", means))
    if policy.max_wait_s is not None and "max_wait_s" not in kept:
        found.append(Loss(f"max_wait_s = {policy.max_wait_s}", means))
    return tuple(found)
