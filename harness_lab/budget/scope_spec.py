"""What a scope is given: totals, what one child gets, how long it all may last. Frozen; `start` makes the books."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Final

from harness_lab.budget.pool import ReservationPool
from harness_lab.budget.pool_rules import PoolRules, pool_rules
from harness_lab.budget.scope import BEGINNING, Scope
from harness_lab.clock import Time, ns
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS
from harness_lab.usage import Amounts, checked_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget.spend import Quantity

DEFAULT_PARTS: Final = 4
"""Children among whom a scope's totals are split where no share is named (agent-runtime's default)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSpec:
    """Parameters of a :class:`~harness_lab.budget.Scope`.

    Parameters
    ----------
    limits : tuple of int or None
        Totals by channel; None: no limit there.
    share : tuple of int or None, optional
        What one child gets: a slice of the totals, not a pool beside them. A quarter of each total if left out.
    owner_share : float
        Part of each total that the driver keeps for its own turns, from 0 to below 1: children share the rest.
    resources : mapping of str to Quantity
        Named resources and their limits.
    lasts_s : float or None
        How long everything may take, seconds from :meth:`start`.
    rules : PoolRules or str or None
        Choices, or the name of a preset; ours if None.

    Raises
    ------
    InputError
        At once, if a share is larger than what it is a share of: no child could ever start.

    Examples
    --------
    >>> from harness_lab.usage import amounts
    >>> ScopeSpec(limits=amounts(calls=8, fresh=1_000)).share
    (2, None, None, 250, None)
    """

    limits: Amounts
    share: Amounts | None = None
    owner_share: float = 0.0
    resources: Mapping[str, Quantity] = field(default_factory=dict)
    lasts_s: float | None = None
    rules: PoolRules | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", checked_amounts("limits", self.limits))
        share = self.share
        if share is None:
            share = tuple(None if t is None else max(min(t, 1), t // DEFAULT_PARTS) for t in self.limits)
        object.__setattr__(self, "share", checked_amounts("share", share))
        for channel, part, total in zip(CHANNELS, share, self.limits, strict=True):
            if part is not None and total is not None and part > total:
                raise InputError(f"share ({channel})", expected=f"at most the total of {total:,}", got=part)
        owner = self.owner_share
        if isinstance(owner, bool) or not isinstance(owner, (int, float)) or not 0 <= owner < 1:
            raise InputError("owner_share", expected="a part from 0 to below 1", got=owner)
        if self.lasts_s is not None and ns(self.lasts_s, what="lasts_s") < 0:
            raise InputError("lasts_s", expected="seconds >= 0 or None", got=self.lasts_s)
        pool_rules(self.rules)

    def start(self, now: Time = BEGINNING, *, name: str = "root") -> Scope:
        """Open the books at a moment."""
        pool = ReservationPool(self.limits, resources=self.resources, rules=self.rules)
        until = None if self.lasts_s is None else Time(now + ns(self.lasts_s))
        return Scope(pool, name=name, deadline=until, share=self.share, keep=self.kept())

    def kept(self) -> Amounts | None:
        """Return what the driver keeps, by channel, rounded up; None if nothing."""
        if not self.owner_share:
            return None
        part = Fraction(str(self.owner_share))
        return tuple(None if total is None else ceil(total * part) for total in self.limits)
