"""What a scope is given: totals, what one child gets, how long it all may last. Frozen; `start` makes the books."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    resources: Mapping[str, Quantity] = field(default_factory=dict)
    lasts_s: float | None = None
    rules: PoolRules | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", checked_amounts("limits", self.limits))
        share = self.share
        if share is None:
            share = tuple(None if total is None else total // DEFAULT_PARTS for total in self.limits)
        object.__setattr__(self, "share", checked_amounts("share", share))
        for channel, part, total in zip(CHANNELS, share, self.limits, strict=True):
            if part is not None and total is not None and part > total:
                raise InputError(f"share ({channel})", expected=f"at most the total of {total:,}", got=part)
        if self.lasts_s is not None and ns(self.lasts_s, what="lasts_s") < 0:
            raise InputError("lasts_s", expected="seconds >= 0 or None", got=self.lasts_s)
        pool_rules(self.rules)

    def start(self, now: Time = BEGINNING, *, name: str = "root") -> Scope:
        """Open the books at a moment."""
        pool = ReservationPool(self.limits, resources=self.resources, rules=self.rules)
        until = None if self.lasts_s is None else Time(now + ns(self.lasts_s))
        return Scope(pool, name=name, deadline=until, share=self.share)
