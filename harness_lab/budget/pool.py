"""The reservation pool: what a child may use is set aside before it starts, and what it did not use comes back.

A pool is a tree of allocations. A child's ask is held from its parent's allocation; its work is metered against the
child's own; when it ends the hold is released and what was *really* spent is committed, never clamped to the hold. A
channel in which the child declares nothing is drawn from the nearest allocation above that declares one. What comes in
after an allocation has ended (a late settlement, a child that outlives its parent) goes to the nearest one above that
is open: nothing that was spent is ever lost.

The rules are those of the conserved pool of tangle-network/agent-runtime, in the form in which an overspend is a
recorded fact and not an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.budget import _rules
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CHANNELS, COST, Code, Helps, Refusal, Shortfall
from harness_lab.usage import MAX_NUSD, optional_count

if TYPE_CHECKING:
    from harness_lab.usage import Amounts


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
    """

    __slots__ = ("accounts", "closed", "limited", "own", "parent")

    def __init__(self, accounts: tuple[Account, ...], own: tuple[int, ...], parent: Allocation | None) -> None:
        self.accounts = accounts
        self.own = own
        self.parent = parent
        self.limited = tuple((i, account) for i, account in enumerate(accounts) if account.limit >= 0)
        self.closed: tuple[Overspend, ...] | None = None


@dataclass(frozen=True, slots=True)
class Overspend:
    """A channel in which a child used more than was held for it."""

    channel: str
    held: int
    spent: int


class ReservationPool:
    """A conserved budget shared over a tree.

    Parameters
    ----------
    limits : tuple of int or None
        Totals by channel (:func:`harness_lab.usage.amounts`); None: no limit in that channel.

    Examples
    --------
    >>> from harness_lab.usage import amounts
    >>> pool = ReservationPool(amounts(tokens=10_000))
    >>> child = pool.reserve(amounts(tokens=8_000))
    >>> pool.charge(child, amounts(tokens=2_500))
    >>> pool.reconcile(child)
    ()
    >>> pool.free()[2]
    7500
    """

    __slots__ = ("root",)

    def __init__(self, limits: Amounts) -> None:
        checked = checked_amounts("pool", limits)
        accounts = tuple(Account(-1 if value is None else value) for value in checked)
        self.root = Allocation(accounts, tuple(range(len(CHANNELS))), None)

    def shortfalls(self, ask: Amounts, within: Allocation | None = None) -> tuple[Shortfall, ...]:
        """Return every channel in which `ask` cannot be held now; empty when it can. Changes nothing."""
        allocation = within if within is not None else self.root
        found = [_short(i, account.open(), ask[i]) for i, account in allocation.limited]
        return tuple(short for short in found if short is not None)

    def reserve(self, ask: Amounts, within: Allocation | None = None) -> Allocation | Refusal:
        """Set an ask aside in all channels, or in none.

        Parameters
        ----------
        ask : tuple of int or None
            By channel; None: not asked, drawn from the allocation above.
        within : Allocation, optional
            The parent's allocation; the pool's own if None.

        Raises
        ------
        InputError
            If an amount is negative or not a whole number, or the allocation above has ended.
        """
        ask = checked_amounts("ask", ask)
        if within is not None and within.closed is not None:
            raise InputError("within", expected="an allocation that has not ended", got="one that has")
        short = self.shortfalls(ask, within)
        return Refusal(short) if short else self.hold(ask, within)

    def even_share(self, ask: Amounts, within: Allocation | None = None, *, together: int = 1) -> Amounts:
        """Return an ask bounded by an even share of what is left, by channel.

        Parameters
        ----------
        ask : tuple of int or None
            By channel; None: as much as the share is.
        within : Allocation, optional
            The parent's allocation; the pool's own if None.
        together : int
            Children among whom what is left is split, this one counted.
        """
        allocation = within if within is not None else self.root
        share = list(ask)
        for i, account in allocation.limited:
            left = max(0, account.open().free or 0) // max(1, together)
            asked = ask[i]
            share[i] = left if asked is None else min(asked, left)
        return tuple(share)

    def hold(self, ask: Amounts, within: Allocation | None = None) -> Allocation:
        """Set an ask aside; the caller has seen that it is sound and that :meth:`shortfalls` is empty."""
        parent = within if within is not None else self.root
        own = tuple(i for i, asked in enumerate(ask) if asked is not None)
        accounts = list(parent.accounts)
        for i in own:
            asked = ask[i] or 0
            above = parent.accounts[i].open()
            above.held += asked
            accounts[i] = Account(asked, above)
        return Allocation(tuple(accounts), own, parent)

    def used_up(self, allocation: Allocation) -> tuple[Shortfall, ...]:
        """Return every channel in which nothing is left for one more call inside an allocation."""
        for i, account in allocation.limited:
            if account.closed:
                account = account.open()
            if account.spent + account.held >= account.limit or (i == COST and account.unknown):
                found = [_exhausted(j, each.open()) for j, each in allocation.limited]
                return tuple(short for short in found if short is not None)
        return ()

    def charge(self, allocation: Allocation, spent: Amounts) -> None:
        """Commit what a call inside an allocation used; None is unknown: counted apart, never taken as zero.

        Raises
        ------
        InputError
            If an amount is negative or not a whole number; nothing has changed then.
        """
        self.commit(allocation, checked_amounts("spent", spent))

    def commit(self, allocation: Allocation, spent: Amounts) -> None:
        """Like :meth:`charge`, for amounts that were checked before."""
        for account, amount in zip(allocation.accounts, spent, strict=True):
            if account.closed:
                account = account.open()
            if amount is not None:
                account.spent += amount
            else:
                _mark_unknown(account)

    def observe(self, spent: Amounts) -> None:
        """Commit the driver's own use, outside any reservation; may drive what is free below zero."""
        self.charge(self.root, spent)

    def reconcile(self, allocation: Allocation) -> tuple[Overspend, ...]:
        """End an allocation: commit what it spent, release the rest.

        Returns
        -------
        tuple of Overspend
            Channels in which more was spent than held; a recorded fact, the money is charged in full.

        Raises
        ------
        AlreadySettled
            If it has ended before.
        """
        parent = allocation.parent
        if parent is None:
            raise InputError("allocation", expected="one that was reserved", got="the pool itself")
        if allocation.closed is not None:
            raise AlreadySettled("allocation", allocation.closed)
        over = []
        for i in allocation.own:
            account = allocation.accounts[i]
            account.closed = True
            above = account.open()
            above.held += account.held - account.limit  # what it set aside for children that go on stays set aside
            above.spent += account.spent
            if account.spent > account.limit:
                over.append(Overspend(CHANNELS[i], account.limit, account.spent))
        allocation.closed = tuple(over)
        return allocation.closed

    def free(self) -> Amounts:
        """Return what is left by channel, negative after an overspend; None without a limit."""
        return tuple(account.free for account in self.root.accounts)

    def held(self) -> Amounts:
        """Return what is set aside by channel."""
        return tuple(account.held for account in self.root.accounts)

    def spent(self) -> Amounts:
        """Return what is committed by channel; children that have not ended are not in it."""
        return tuple(account.spent for account in self.root.accounts)


def checked_amounts(what: str, values: Amounts) -> Amounts:
    """Return amounts by channel as ints; None stays None.

    Raises
    ------
    InputError
        If there is not one for each channel, or one is negative, not finite or not a whole number: it would give money
        back, or poison the sum.
    """
    if len(values) != len(CHANNELS):
        raise InputError(what, expected=f"one amount for each of {', '.join(CHANNELS)}", got=values)
    for value in values:
        if value is not None and (type(value) is not int or not 0 <= value <= MAX_NUSD):
            named = zip(CHANNELS, values, strict=True)
            return tuple(optional_count(f"{what} ({name})", v, maximum=MAX_NUSD) for name, v in named)
    return values


def _short(channel: int, account: Account, asked: int | None) -> Shortfall | None:
    if asked is None:
        return _closed(channel, account)
    if channel == COST and account.limit >= 0 and account.unknown:
        return _closed(channel, account)
    if _rules.fits(account.limit, account.spent, account.held, asked):
        return None
    helps: Helps = "wait" if _rules.could_fit(account.limit, account.spent, asked) else _smaller(account)
    return Shortfall(Code.BUDGET_EXHAUSTED, account.limit, asked, _left(account), helps, CHANNELS[channel])


def _exhausted(channel: int, account: Account) -> Shortfall | None:
    if account.limit >= 0 and account.spent + account.held >= account.limit:
        helps: Helps = "wait" if account.spent < account.limit else "nothing"
        return Shortfall(Code.BUDGET_EXHAUSTED, account.limit, None, _left(account), helps, CHANNELS[channel])
    return _closed(channel, account)


def _closed(channel: int, account: Account) -> Shortfall | None:
    """Money under a ceiling is closed by a charge of unknown size: the ceiling is no bound any more."""
    if channel != COST or account.limit < 0 or not account.unknown:
        return None
    return Shortfall(Code.SPEND_UNKNOWN, account.limit, None, None, "nothing", CHANNELS[channel])


def _mark_unknown(account: Account | None) -> None:
    """Count a charge of unknown size in every account that it counts against, up to the pool's own, at once."""
    while account is not None:
        account.unknown += 1
        account = account.above


def _left(account: Account) -> int:
    return _rules.free(account.limit, account.spent, account.held)


def _smaller(account: Account) -> Helps:
    return "smaller" if _left(account) > 0 else "nothing"
