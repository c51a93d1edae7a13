"""Accounts and allocations: what one channel of a budget holds, and one node's share of a pool."""

from __future__ import annotations

from dataclasses import dataclass


class Account:
    """One channel of one allocation: ``limit == free + held + spent``, at every moment.

    Attributes
    ----------
    limit : int
        What was set aside; ``-1``: no limit.
    held : int
        Set aside for children that have not ended.
    spent : int
        Committed.
    unknown : int
        Charges of unknown size; `spent` is then a lower bound.
    above : Account or None
        What this one was set aside from; None for the pool's own.
    closed : bool
        Its allocation has ended: what still comes in goes to the account above.
    """

    __slots__ = ("above", "closed", "held", "limit", "spent", "unknown")

    def __init__(self, limit: int, above: Account | None = None) -> None:
        self.limit = limit
        self.above = above
        self.closed = False
        self.held = 0
        self.spent = 0
        self.unknown = 0

    @property
    def free(self) -> int | None:
        """What is neither held nor spent, negative after an overspend; None without a limit."""
        return None if self.limit < 0 else self.limit - self.spent - self.held

    def open(self) -> Account:
        """Return the nearest account that is still open: this one, or one above it."""
        account = self
        while account.closed and account.above is not None:
            account = account.above
        return account

    def mark_unknown(self) -> None:
        """Count a charge of unknown size here and in every account that it counts against, up to the pool's own."""
        account: Account | None = self
        while account is not None:
            account.unknown += 1
            account = account.above

    def use_up(self) -> None:
        """Spend whatever is free: after a charge of unknown size nobody can say that any of it is left."""
        if self.limit >= 0:
            self.spent = max(self.spent, self.limit - self.held)


class Allocation:
    """A node's share of the pool, and the single-use handle to it.

    Attributes
    ----------
    accounts : tuple of Account
        By channel. An account that the node did not ask for is its parent's.
    limited : tuple of (int, Account)
        Those that have a limit, with their channel.
    own : tuple of int
        Channels that the node asked for itself.
    parent : Allocation or None
        None for the pool's own.
    closed : tuple of Overspend or None
        Set once the allocation has ended.
    unknown : set of int
        Channels in which a :class:`~harness_lab.budget.Spend` of this node was of unknown size.
    """

    __slots__ = ("accounts", "closed", "limited", "own", "parent", "unknown")

    def __init__(self, accounts: tuple[Account, ...], own: tuple[int, ...], parent: Allocation | None) -> None:
        self.accounts = accounts
        self.own = own
        self.parent = parent
        self.limited = tuple((i, account) for i, account in enumerate(accounts) if account.limit >= 0)
        self.closed: tuple[Overspend, ...] | None = None
        self.unknown: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Overspend:
    """A channel in which a child used more than was held for it.

    Parameters
    ----------
    channel : str
        Its name.
    held, spent : int
        What was set aside for the child, and what it used, in the channel's unit (nano-dollars for ``cost``).
    """

    channel: str
    held: int
    spent: int
