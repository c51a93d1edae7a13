"""Whatever is done to a pool, in whatever order: nothing is minted and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness_lab.budget import Account, Allocation, ReservationPool
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import CHANNELS, COST, Code, Refusal

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

SMALL = st.integers(0, 60)
AMOUNTS = st.tuples(*[st.none() | SMALL] * len(CHANNELS))
LIMITS = st.tuples(*[st.none() | st.integers(0, 300)] * len(CHANNELS))


class PoolMachine(RuleBasedStateMachine):
    """Keeps beside the pool what was charged and who is open, and nothing else."""

    @initialize(limits=LIMITS)
    def start(self, limits: Amounts) -> None:
        self.pool = ReservationPool(limits)
        self.charged = [0] * len(CHANNELS)
        self.unknown = [0] * len(CHANNELS)
        self.open: list[Allocation] = []
        self.ended: list[Allocation] = []

    @rule(ask=AMOUNTS, data=st.data())
    def reserve(self, ask: Amounts, data: st.DataObject) -> None:
        within = data.draw(st.sampled_from([None, *self.open]), label="within")
        before = self._state()
        short = self.pool.shortfalls(ask, within)
        assert self._state() == before
        answer = self.pool.reserve(ask, within)
        if isinstance(answer, Refusal):
            assert answer.shortfalls == short
            assert self._state() == before
        else:
            assert not short
            self.open.append(answer)

    @rule(spent=AMOUNTS, data=st.data())
    def charge(self, spent: Amounts, data: st.DataObject) -> None:
        allocation = data.draw(st.sampled_from([self.pool.root, *self.open, *self.ended]), label="of")
        self.pool.charge(allocation, spent)
        for i, amount in enumerate(spent):
            self.charged[i] += amount or 0
            self.unknown[i] += amount is None

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if not self.open:
            return
        allocation = data.draw(st.sampled_from(self.open), label="which")  # parents before children too
        over = {o.channel: o.spent - o.held for o in self.pool.reconcile(allocation)}
        used = {CHANNELS[i]: allocation.accounts[i].spent - (allocation.accounts[i].limit) for i in allocation.own}
        assert over == {channel: excess for channel, excess in used.items() if excess > 0}
        self.open.remove(allocation)
        self.ended.append(allocation)

    @rule(data=st.data())
    def end_again(self, data: st.DataObject) -> None:
        if not self.ended:
            return
        allocation = data.draw(st.sampled_from(self.ended), label="again")
        before = self._state()
        with pytest.raises(AlreadySettled):
            self.pool.reconcile(allocation)
        assert self._state() == before

    @invariant()
    def every_account_adds_up(self) -> None:
        for account in self._accounts():
            assert account.free is None or account.limit == account.free + account.held + account.spent
            set_aside = [a.limit for a in self._accounts() if a.above is not None and a.above.open() is account]
            assert account.held == sum(set_aside)

    @invariant()
    def all_that_was_charged_is_in_the_pool_once(self) -> None:
        for i in range(len(CHANNELS)):
            in_channel = {id(a.accounts[i].open()): a.accounts[i].open() for a in (self.pool.root, *self.open)}
            assert sum(account.spent for account in in_channel.values()) == self.charged[i]
            assert self.pool.root.accounts[i].unknown == self.unknown[i]

    @invariant()
    def money_of_unknown_size_closes_money_under_a_cap(self) -> None:
        for allocation in (self.pool.root, *self.open):
            closed = Code.SPEND_UNKNOWN in {short.code for short in self.pool.used_up(allocation)}
            account = allocation.accounts[COST].open()
            spent_up = account.spent + account.held >= account.limit
            assert closed == (account.limit >= 0 and account.unknown > 0 and not spent_up)

    def teardown(self) -> None:
        for allocation in list(getattr(self, "open", ())):
            self.pool.reconcile(allocation)
        if hasattr(self, "pool"):
            assert self.pool.held() == (0,) * len(CHANNELS)
            assert self.pool.spent() == tuple(self.charged)

    def _accounts(self) -> list[Account]:
        found = {id(a.open()): a.open() for node in (self.pool.root, *self.open) for a in node.accounts}
        return list(found.values())

    def _state(self) -> list[tuple[int, ...]]:
        return [(a.limit, a.held, a.spent, a.unknown) for a in self._accounts()]


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
