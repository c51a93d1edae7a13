"""Whatever is asked of a durable account, in whatever order: its books are those of a list of calls added up afresh."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.period import PeriodLimits
from harness_lab.budget.windows import Calendar, Rolling
from harness_lab.clock import NS_PER_S
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import Code, Refusal

if TYPE_CHECKING:
    from harness_lab.budget._pots import UnknownCharge
    from harness_lab.budget.durable_books import Balance
    from harness_lab.usage import Amounts

HOUR = 3600 * NS_PER_S
START = 1_774_700_000 * NS_PER_S  # the day before clocks change in Amsterdam
DAY = Calendar("day", "Europe/Amsterdam")
HOLD_S = 5 * 3600
SMALL = st.integers(0, 12)
GROUP = st.sampled_from(["ann", "bob"])
CARRY = st.sampled_from(["none", "capped", "full"])


@dataclass
class Call:
    at: int
    bound: int
    group: str
    charged: int | None = None
    unknown: bool = False
    settled: bool = False
    over: bool = False

    @property
    def used(self) -> int:
        return self.bound if self.charged is None else self.charged


def money(amount: int | None) -> Amounts:
    return (None, None, None, None, amount)


class AccountMachine(RuleBasedStateMachine):
    """Keeps beside the account a list of calls, and derives every balance from it."""

    @initialize(
        cap=st.integers(0, 60),
        daily=st.integers(0, 25),
        rolling=st.integers(0, 25),
        carry=CARRY,
        unknown=st.sampled_from(["charge-hold", "release"]),
    )
    def start(self, cap: int, daily: int, rolling: int, carry: str, unknown: UnknownCharge) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "account.db"
        self.account = DurableAccount.create(
            path, money(cap), now_ns=0, hold_seconds=HOLD_S, unknown_usage=unknown, synchronous="normal"
        )
        self.day = PeriodLimits(name="day", limits=money(daily), window=DAY, carry=carry, cap="hard")  # type: ignore[arg-type]
        self.rolling = PeriodLimits(name="rolling", limits=money(rolling), window=Rolling(7200), cap="hard")
        self.cap, self.rule = cap, unknown
        self.calls: dict[str, Call] = {}
        self.now = START
        self.number = 0

    @rule(hours=st.sampled_from([0, 1, 2, 6, 24, 50]))
    def wait(self, hours: int) -> None:
        self.now += hours * HOUR

    @rule(bound=SMALL, group=GROUP)
    def hold(self, bound: int, group: str) -> None:
        self.expire()
        self.number += 1
        name, periods = f"call {self.number}", [(self.day, group), (self.rolling, group)]
        fits = bound == 0 or all(used + bound <= limit for used, limit in self.sums(group))
        admits = not self.any_over(group) and (bound == 0 or not self.any_unknown(group)) and fits
        assert (self.account.would(money(bound), self.now, periods=periods) == ()) == admits
        answer = self.account.hold(name, money(bound), self.now, periods=periods)
        assert isinstance(answer, Refusal) == (not admits)
        if admits:
            assert self.account.hold(name, money(bound), self.now, periods=periods) == answer
            self.calls[name] = Call(self.now, bound, group)
        else:
            assert isinstance(answer, Refusal)
            assert answer.code in {Code.BUDGET_EXHAUSTED, Code.SPEND_UNKNOWN, Code.BOUND_VIOLATED}

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), bill=st.none() | SMALL, back_in_time=st.booleans())
    def settle(self, data: st.DataObject, bill: int | None, *, back_in_time: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.calls)))
        call = self.calls[name]
        self.expire()
        when = START if back_in_time else self.now
        if call.settled:
            with pytest.raises(AlreadySettled):
                self.account.settle(name, money(bill), when)
            return
        late = call.charged is not None
        call.settled, call.over = True, bill is not None and bill > call.bound
        self.book(call, bill)
        record = self.account.settle(name, money(bill), when)
        assert (record.late, bool(record.violated)) == (late, call.over)
        assert record.charged is not None
        assert record.charged[4] == call.charged

    @precondition(lambda self: self.any_over() or self.any_unknown())
    @rule()
    def reopen(self) -> None:
        self.expire()
        self.account.reopen("looked at", now_ns=self.now)
        for call in self.calls.values():
            call.over = call.unknown = False

    @rule()
    def open_again(self) -> None:
        self.account.close()
        self.account = DurableAccount(self.account.path, synchronous="normal")

    @invariant()
    def the_books_are_right(self) -> None:
        self.expire()
        self.account.expire(self.now)
        own = self.account.balance()
        assert own.spent[4] == sum(c.charged or 0 for c in self.calls.values())
        assert own.held[4] == sum(c.bound for c in self.calls.values() if c.charged is None)
        assert own.unknown[4] == sum(c.unknown for c in self.calls.values())
        assert own.ended == self.any_over()
        bills_kept_to_their_bounds = all(c.used <= c.bound for c in self.calls.values())
        if bills_kept_to_their_bounds and self.rule == "charge-hold":
            assert all(self.fits_in(balance) for balance in self.account.balances())

    def teardown(self) -> None:
        if hasattr(self, "account"):
            self.account.expire(self.now + 10 * HOLD_S * NS_PER_S)
            assert self.account.open_holds() == ()
            assert self.account.balance().held == (0,) * 5
            self.account.close()
            self.folder.cleanup()

    def fits_in(self, balance: Balance) -> bool:
        limit = balance.limits[4]
        return limit is None or balance.spent[4] + balance.held[4] <= limit

    def book(self, call: Call, bill: int | None) -> None:
        call.unknown = bill is None and self.rule == "release"
        call.charged = bill if bill is not None else call.bound if self.rule == "charge-hold" else 0

    def expire(self) -> None:
        for call in self.calls.values():
            if call.charged is None and call.at + HOLD_S * NS_PER_S <= self.now:
                self.book(call, None)

    def sums(self, group: str) -> list[tuple[int, int]]:
        """Return what is used and what may be used, in the account, the day and the rolling window."""
        mine = [c for c in self.calls.values() if c.group == group]
        today = DAY.window(self.now).index
        by_day: dict[int, int] = {}
        for call in mine:
            index = DAY.window(call.at).index
            by_day[index] = by_day.get(index, 0) + call.used
        lately = sum(c.used for c in mine if c.at > self.now - 2 * HOUR)
        daily, rolling = self.day.by_channel[4], self.rolling.by_channel[4]
        return [
            (sum(c.used for c in self.calls.values()), self.cap),
            (by_day.get(today, 0), daily + self.carried(mine, by_day, daily, today)),
            (lately, rolling),
        ]

    def carried(self, mine: list[Call], by_day: dict[int, int], daily: int, today: int) -> int:
        if self.day.carry == "none" or not by_day:
            return 0
        carry = 0
        for index in range(min(by_day), today):
            unknown = any(c.unknown for c in mine if DAY.window(c.at).index == index)
            left = 0 if unknown else max(0, daily + carry - by_day.get(index, 0))
            carry = left if self.day.carry == "full" else min(left, daily)
        return carry

    def any_over(self, group: str | None = None) -> bool:
        return any(c.over for c in self.calls.values())

    def any_unknown(self, group: str | None = None) -> bool:
        return any(c.unknown for c in self.calls.values())


TestAccount = AccountMachine.TestCase
TestAccount.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@pytest.mark.slow
def test_many_more_orders() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        AccountMachine, settings=settings(max_examples=1500, stateful_step_count=40, deadline=None)
    )
