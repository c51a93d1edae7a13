"""Policies that hold each call's worst case before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.policies.hard_cap import CallHoldsSpec
from harness_lab.policies.spec import PolicySpec

if TYPE_CHECKING:
    from harness_lab.policies.call_costs import CallCostObserver
    from harness_lab.policies.hard_cap import UnknownCharge


def hard_cap(
    max_cost_usd: float | None,
    *,
    unknown_usage: UnknownCharge = "charge-hold",
    observer: CallCostObserver | None = None,
    name: str = "hard cap",
) -> PolicySpec:
    """Return a cap on the tree's cost that no call can cross while its bound holds (:class:`CallHoldsSpec`).

    Parameters
    ----------
    max_cost_usd : float or None
        Dollars of the tree; None: only the costs that children declare are capped.
    unknown_usage : {"charge-hold", "charge-prompt", "release"}
        What a call that ended without usage is charged.
    observer : CallCostObserver or None
        Who is told of every call's cost, and may refuse it.
    name : str
        Of the policy.
    """
    spec = CallHoldsSpec(cost_usd=max_cost_usd, unknown_usage=unknown_usage, observer=observer)
    return PolicySpec(name=name, modules=(spec,))


def call_holds(
    *,
    calls: int | None = None,
    input: int | None = None,
    tokens: int | None = None,
    fresh: int | None = None,
    cost_usd: float | None = None,
    unknown_usage: UnknownCharge = "charge-hold",
    observer: CallCostObserver | None = None,
    name: str = "call holds",
) -> PolicySpec:
    """Return caps in any channels, held by call (:class:`CallHoldsSpec`)."""
    spec = CallHoldsSpec(
        calls=calls,
        input=input,
        tokens=tokens,
        fresh=fresh,
        cost_usd=cost_usd,
        unknown_usage=unknown_usage,
        observer=observer,
    )
    return PolicySpec(name=name, modules=(spec,))
