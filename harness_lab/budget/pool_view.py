"""What is left, held and spent of a pool, by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.budget._shortfalls import closed
from harness_lab.budget.allocation import Allocation
from harness_lab.errors import check_kind

if TYPE_CHECKING:
    from harness_lab.usage import Amounts


class PoolView:
    """The part of :class:`~harness_lab.budget.ReservationPool` that only looks.

    Attributes
    ----------
    channels : tuple of str
        Names of the channels, resources included.
    root : Allocation
        The pool's own allocation.
    """

    __slots__ = ("channels", "root")
    channels: tuple[str, ...]
    root: Allocation

    def _above(self, allocation: Allocation | None) -> Allocation:
        """Return an allocation, the pool's own if None; a refusal is easily taken for one."""
        if allocation is None:
            return self.root
        check_kind("allocation", allocation, Allocation, expected="an allocation, as reserve returned it")
        return allocation

    def free(self) -> Amounts:
        """Return what is left by channel, negative after an overspend; None without a limit."""
        return tuple(account.free for account in self.root.accounts)

    def available(self, within: Allocation | None = None) -> Amounts:
        """Return the most that an ask could get, by channel: never negative, 0 where closed, None without a limit."""
        allocation = within if within is not None else self.root
        return tuple(
            None if a.limit < 0 else 0 if closed(self.channels[i], a) else max(0, a.free or 0)
            for i, a in enumerate(account.open() for account in allocation.accounts)
        )

    def held(self) -> Amounts:
        """Return what is set aside by channel."""
        return tuple(account.held for account in self.root.accounts)

    def spent(self) -> Amounts:
        """Return what is committed by channel; children that have not ended are not in it."""
        return tuple(account.spent for account in self.root.accounts)
