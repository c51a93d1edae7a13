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

from threading import RLock
from typing import TYPE_CHECKING

from harness_lab.budget._alone import alone
from harness_lab.budget._rules import fits
from harness_lab.budget._shortfalls import exhausted, short, unbudgeted
from harness_lab.budget.allocation import Account, Allocation, Overspend
from harness_lab.budget.pool_rules import BudgetFault, pool_rules
from harness_lab.budget.pool_view import PoolView
from harness_lab.budget.spend import Spend, checked_resources
from harness_lab.errors import AlreadySettled, InputError, check_kind
from harness_lab.outcome import CALLS, CHANNELS, COST, Refusal, Shortfall
from harness_lab.usage import checked_amounts, count, optional_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.budget.pool_rules import PoolRules
    from harness_lab.budget.spend import Quantity
    from harness_lab.usage import Amounts

RESOURCE = "resource:"
"""What the name of a channel that is a named resource begins with."""


class ReservationPool(PoolView):
    """A conserved budget shared over a tree.

    Parameters
    ----------
    limits : tuple of int or None
        Totals by channel (:func:`harness_lab.usage.amounts`); None: no limit in that channel.
    resources : mapping of str to Quantity, optional
        Named resources that are limited beside the channels: each is a channel of its own, ``resource:NAME``, behind
        the others in every amounts tuple of this pool.
    rules : PoolRules or str, optional
        Choices, or the name of a preset (:data:`harness_lab.budget.POOL_RULES`); ours if None.

    Attributes
    ----------
    channels : tuple of str
        Names of the channels, resources included.
    split_known : bool
        Whether every spend told how its prompt splits by cache; if not, newly presented tokens are an upper bound.

    Notes
    -----
    Threads may share a pool: what reserves, charges or reconciles does so alone. A policy in which it stands is asked
    by one thread at a time (:func:`harness_lab.policies.locked`).

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

    __slots__ = ("_lock", "rules", "split_known", "units")

    def __init__(
        self,
        limits: Amounts,
        *,
        resources: Mapping[str, Quantity] | None = None,
        rules: PoolRules | str | None = None,
    ) -> None:
        resources = checked_resources("resources", resources)
        self._lock = RLock()
        self.rules = pool_rules(rules)
        self.units = {name: quantity.unit for name, quantity in resources.items()}
        self.channels: tuple[str, ...] = (*CHANNELS, *(RESOURCE + name for name in resources))
        self.split_known = True
        checked = checked_amounts("pool", limits)
        totals = (*checked, *(quantity.amount for quantity in resources.values()))
        accounts = tuple(Account(-1 if value is None else value) for value in totals)
        self.root = Allocation(accounts, tuple(range(len(accounts))), None)

    @classmethod
    def restore(
        cls,
        limits: Amounts,
        *,
        committed: Spend | None = None,
        uncertain: Sequence[Amounts] = (),
        resources: Mapping[str, Quantity] | None = None,
        rules: PoolRules | str | None = None,
    ) -> ReservationPool:
        """Make a pool as it must be after a restart: never with more to give than it had.

        Parameters
        ----------
        limits, resources, rules
            As the pool was made.
        committed : Spend, optional
            What is known to have been spent; debited once. A limited resource that it leaves out is unknown.
        uncertain : sequence of tuple of int or None
            Asks of children of which nobody knows what they used: each is charged in full. Without a ceiling in money
            under a limit on money, all that is left of it is used up.
        """
        pool = cls(limits, resources=resources, rules=rules)
        if committed is not None:
            pool.book(pool.root, committed)
            pool._use_up(pool.root.unknown)
        check_kind("uncertain", uncertain, (list, tuple), expected="a list of asks")
        for ask in uncertain:
            pool._charge_uncertain(pool._checked("uncertain", ask))
        return pool

    def ask(self, budget: Amounts, resources: Mapping[str, Quantity] | None = None) -> Amounts:
        """Return an ask over all of this pool's channels.

        Raises
        ------
        InputError
            If a resource is none of the pool's, one of the pool's is left out, or a unit is another.
        """
        asked = checked_resources("resources", resources)
        for name in asked:
            if name not in self.units:
                raise InputError(f"resource {name}", expected="one that the root declares", got=sorted(self.units))
        for name, unit in self.units.items():
            if name not in asked or asked[name].unit != unit:
                got = asked[name].unit if name in asked else None
                raise InputError(f"resource {name}", expected=f"an amount in {unit}", got=got)
        return (*checked_amounts("ask", budget), *(asked[name].amount for name in self.units))

    def shortfalls(
        self, ask: Amounts, within: Allocation | None = None, *, keep: Amounts | None = None
    ) -> tuple[Shortfall, ...]:
        """Return every channel in which `ask` cannot be held now; empty when it can. Changes nothing.

        `keep` is what the parent keeps for itself, by channel: it must still be free after the ask.

        Raises
        ------
        InputError
            If an amount is negative or not a whole number, or `within` is no allocation.
        """
        keep = None if keep is None else self._checked("keep", keep)
        return self.missing(self._checked("ask", ask), self._above(within), keep)

    def missing(self, ask: Amounts, allocation: Allocation, keep: Amounts | None = None) -> tuple[Shortfall, ...]:
        """Like :meth:`shortfalls`, for amounts that were checked before."""
        names = self.channels
        missing: tuple[Shortfall, ...] = ()
        for i, account in allocation.limited:
            asked = ask[i]
            if (
                keep is None
                and not (account.closed or account.unknown)
                and (asked is None or fits(account.limit, account.spent, account.held, asked))
            ):  # nearly always
                continue
            each = short(names[i], account.open(), asked, 0 if keep is None else keep[i] or 0)
            if each is not None:
                missing += (each,)
        if self.rules.unlimited == "refuse":
            found = [unbudgeted(names[i], ask[i]) for i, a in enumerate(allocation.accounts) if a.limit < 0]
            missing += tuple(each for each in found if each is not None)
        return missing

    @alone
    def reserve(
        self, ask: Amounts, within: Allocation | None = None, *, keep: Amounts | None = None
    ) -> Allocation | Refusal:
        """Set an ask aside in all channels, or in none.

        Parameters
        ----------
        ask : tuple of int or None
            By channel; None: not asked, drawn from the allocation above.
        within : Allocation, optional
            The parent's allocation; the pool's own if None.
        keep : tuple of int or None, optional
            What the parent keeps for itself, by channel.

        Raises
        ------
        InputError
            If an amount is negative or not a whole number, or the allocation above has ended.
        """
        ask = self._checked("ask", ask)
        keep = None if keep is None else self._checked("keep", keep)
        above = self._above(within)
        if above.closed is not None:
            raise InputError("within", expected="an allocation that has not ended", got="one that has")
        missing = self.missing(ask, above, keep)
        return Refusal(missing) if missing else self.hold(ask, above)

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

        Raises
        ------
        InputError
            If an amount or `together` is negative or not a whole number, or `within` is no allocation.
        """
        ask, among = self._checked("ask", ask), max(1, count("together", together))
        share = list(ask)
        for i, account in self._above(within).limited:
            left = max(0, account.open().free or 0) // among
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
            if account.spent + account.held >= account.limit or (i >= COST and account.unknown):
                found = [exhausted(self.channels[j], each.open()) for j, each in allocation.limited]
                return tuple(each for each in found if each is not None)
        return ()

    @alone
    def charge(self, allocation: Allocation, spent: Amounts) -> None:
        """Commit what a call inside an allocation used; None is unknown: counted apart, never taken as zero.

        Raises
        ------
        InputError
            If an amount is negative or not a whole number, or the allocation is none; nothing has changed then.
        """
        self._above(allocation)
        self.commit(allocation, self._checked("spent", spent))

    def commit(self, allocation: Allocation, spent: Amounts) -> None:
        """Like :meth:`charge`, for amounts that were checked before."""
        for account, amount in zip(allocation.accounts, spent, strict=True):
            if account.closed:
                account = account.open()
            if amount is None:
                account.mark_unknown()
            elif amount:
                account.spent += amount

    @alone
    def book(self, allocation: Allocation, spend: Spend, *, partial: bool = False) -> None:
        """Commit a spend: what is known of it is charged, and what is not is marked.

        Parameters
        ----------
        allocation : Allocation
            Whose spend it is.
        spend : Spend
            Counts that are not known are charged as the lower bounds that they are.
        partial : bool
            More of the same work is still to come: a limited resource that is left out is then not yet unknown.

        Raises
        ------
        InputError
            If it is no spend, names a resource that the pool has not, or another unit; nothing has changed then.
        """
        check_kind("spend", spend, Spend, expected="a Spend")
        used, unknown = spend.by_channel(self.units, partial=partial)
        self.commit(allocation, used)
        for i in unknown:
            allocation.accounts[i].open().mark_unknown()
        allocation.unknown |= unknown
        self.split_known = self.split_known and bool(spend.split_known)

    @alone
    def observe(self, spent: Amounts | Spend, *, partial: bool = False) -> None:
        """Commit the driver's own use, outside any reservation; may drive what is free below zero.

        Raises
        ------
        BudgetFault
            Where the rules say so: an unknown cost under a limit before anything is charged, an unknown use of a
            limited resource after.
        InputError
            If it is neither a spend nor amounts by channel; nothing has changed then.
        """
        if not isinstance(spent, Spend):
            self.charge(self.root, spent)
            return
        strict = self.rules.unknown == "raise"
        if strict and not spent.cost_known and self.root.accounts[COST].limit >= 0:
            raise BudgetFault((), (self.channels[COST],))
        _, unknown = spent.by_channel(self.units, partial=partial)
        self.book(self.root, spent, partial=partial)
        faults = self._enforced(unknown) if strict else ()
        if faults:
            self._use_up(unknown)
            raise BudgetFault((), faults)

    @alone
    def reconcile(self, allocation: Allocation, spend: Spend | None = None) -> tuple[Overspend, ...]:
        """End an allocation: commit what it spent, release the rest.

        Parameters
        ----------
        allocation : Allocation
            Whose work has ended.
        spend : Spend, optional
            What it used beside what was charged before; if it cannot be booked the allocation stays open.

        Returns
        -------
        tuple of Overspend
            Channels in which more was spent than held; a recorded fact, the money is charged in full.

        Raises
        ------
        AlreadySettled
            If it has ended before.
        BudgetFault
            Where the rules say so, after the books are done.
        InputError
            If it is no allocation that was reserved, or the spend cannot be booked; it stays open then.
        """
        if self._above(allocation).parent is None:
            raise InputError("allocation", expected="one that was reserved", got="the pool itself")
        if allocation.closed is not None:
            raise AlreadySettled("allocation", allocation.closed)
        if spend is not None:
            self.book(allocation, spend)
        over = []
        for i in allocation.own:
            account = allocation.accounts[i]
            account.closed = True
            above = account.open()
            above.held += account.held - account.limit  # what it set aside for children that go on stays set aside
            above.spent += account.spent
            if account.spent > account.limit:
                over.append(Overspend(self.channels[i], account.limit, account.spent))
        allocation.closed = tuple(over)
        if allocation.unknown or over:
            self._complain(allocation)
        return allocation.closed

    def _complain(self, allocation: Allocation) -> None:
        unknown = self._enforced(allocation.unknown) if self.rules.unknown == "raise" else ()
        if unknown:
            self._use_up(allocation.unknown)
        over = allocation.closed or ()
        if unknown or (over and self.rules.overspend == "raise"):
            raise BudgetFault(over, unknown)

    def _enforced(self, channels: frozenset[int]) -> tuple[str, ...]:
        """Return the names of those channels in which an unknown spend breaks a limit: tokens are never closed."""
        return tuple(self.channels[i] for i in sorted(channels) if i >= COST and self.root.accounts[i].limit >= 0)

    def _use_up(self, channels: frozenset[int]) -> None:
        for i in channels:
            if i >= COST and self.rules.unknown == "raise":
                self.root.accounts[i].use_up()

    def _charge_uncertain(self, ask: Amounts) -> None:
        for i, asked in enumerate(ask):
            account = self.root.accounts[i]
            account.spent += asked or 0
            bounded = asked is not None and (i >= COST and account.limit >= 0)
            if i != CALLS and not bounded:
                account.mark_unknown()
            if i >= COST and asked is None:
                account.use_up()

    def _checked(self, what: str, values: Amounts) -> Amounts:
        check_kind(what, values, (tuple, list), expected="amounts by channel")
        if len(values) == len(CHANNELS):
            return (*checked_amounts(what, values), *[None] * (len(self.channels) - len(CHANNELS)))
        if len(values) != len(self.channels):
            raise InputError(what, expected=f"one amount for each of {', '.join(self.channels)}", got=values)
        extra = values[len(CHANNELS) :]
        names = self.channels[len(CHANNELS) :]
        checked = (optional_count(f"{what} ({name})", v) for name, v in zip(names, extra, strict=True))
        return (*checked_amounts(what, values[: len(CHANNELS)]), *checked)
