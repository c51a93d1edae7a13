"""Public cases that the durable account and period budgets answer; each test names its case.

Not offered, on purpose: failing open (A-14's second half) and admitting calls outside a cap (A-03's lenient half). An
account that cannot be read admits nothing.
"""

from __future__ import annotations

import random
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness_lab.budget import Calendar, PeriodBudget, PeriodLimits, Rolling
from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.durable_books import HoldRecord
from harness_lab.budget.durable_store import Store
from harness_lab.budget.period import PeriodHold
from harness_lab.budget.windows import epoch_ns
from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AccountUnavailable, AlreadySettled, InputError
from harness_lab.outcome import CALLS, CHANNELS, COST, Code, Refusal
from harness_lab.policies import Grant, SpawnAsk, StepAsk, Use, compose, period_budget, shared_ledger
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.usage import Amounts

S = NS_PER_S


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., DurableAccount]:
    def build(limits: Amounts, **options: object) -> DurableAccount:
        path = tmp_path / "account.db"
        return DurableAccount.create(path, limits, now_ns=0, synchronous="normal", **options)  # type: ignore[arg-type]

    return build


def usd(amount: float | None) -> Amounts:
    return amounts(cost_usd=amount)


def money(account: DurableAccount) -> tuple[float, float]:
    balance = account.balance()
    return balance.spent[COST] / 1e9, balance.held[COST] / 1e9


def spend(account: DurableAccount, name: str, amount: float, now: int = 1) -> HoldRecord | Refusal:
    held = account.hold(name, usd(amount), now)
    return account.settle(name, usd(amount), now) if isinstance(held, HoldRecord) else held


def test_a01_of_five_calls_that_ask_at_once_one_fits(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(1.00))
    spend(account, "before", 0.90)
    answers = [account.hold(f"{n}", usd(0.08), 1) for n in range(5)]
    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(refused) == 4
    assert [(r.shortfalls[0].limit, r.shortfalls[0].free) for r in refused] == [(nusd(1), nusd(0.02))] * 4
    assert money(account) == (0.90, 0.08)
    account.settle("0", usd(0.08), 2)
    assert money(account) == (0.98, 0.0)


def test_a02_a_hold_is_the_calls_own_worst_case(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(5.00))
    answers = [account.hold(f"{n}", usd(10_000 * 25 / 1e6), 0) for n in range(100)]
    assert sum(isinstance(answer, HoldRecord) for answer in answers) == 20
    assert money(account) == (0.0, 5.0)
    for n in range(20):
        account.settle(f"{n}", usd(4_000 * 25 / 1e6), 1)
    assert money(account) == (2.0, 0.0)
    assert account.balance().free[COST] == nusd(3)


def test_a03_without_a_price_there_is_no_bound_and_nothing_is_admitted(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(1.00))
    answers = [account.hold(f"{n}", usd(None), 0) for n in range(3)]
    assert [answer.code for answer in answers if isinstance(answer, Refusal)] == [Code.UNBOUNDED] * 3


def test_a05_counts_are_exact_with_threads(make: Callable[..., DurableAccount]) -> None:
    account = make(amounts(calls=62), busy_seconds=60)
    taken: list[bool] = []

    def take(worker: int) -> None:
        names = [f"{worker}.{number}" for number in range(25)]
        taken.extend(isinstance(account.hold(name, amounts(), 0), HoldRecord) for name in names)

    threads = [threading.Thread(target=take, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == account.balance().held[CALLS] == 62


def test_a09_every_way_out_closes_the_hold(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(800))
    spend(account, "before", 280)
    for n in range(20):
        account.hold(f"{n}", usd(26), 0)
    for n in range(20):
        account.settle(f"{n}", usd(2) if n == 0 else amounts(), 3 * S, status="abandoned" if n == 0 else "unsent")
    assert money(account) == (282.0, 0.0)
    assert isinstance(account.hold("next", usd(1), 4 * S), HoldRecord)


def test_a10_a_call_that_failed_before_any_output_keeps_no_hold(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(1.00))
    for n in range(4):
        assert isinstance(account.hold(f"{n}", usd(0.30), n), HoldRecord)
        account.settle(f"{n}", usd(0), n, status="failed")
        assert money(account) == (0.0, 0.0)
    assert isinstance(spend(account, "good", 0.30), HoldRecord)
    assert money(account) == (0.30, 0.0)


def test_a11_a_hold_has_an_identity(make: Callable[..., DurableAccount]) -> None:
    account = make(amounts())
    window = PeriodLimits(name="60 s", limits=amounts(calls=2), window=Rolling(60), cap="hard")

    def ask(name: str, at: int) -> bool:
        return isinstance(account.hold(name, amounts(), at * S, periods=[(window, "")]), HoldRecord)

    assert ask("A", 0)
    assert ask("B", 50)
    account.settle("A", amounts(), 55 * S, status="unsent")
    assert [hold.id for hold in account.open_holds()] == ["B"]
    assert [ask("C", 65), ask("E", 66), ask("E", 109), ask("E", 110)] == [True, False, False, True]


def test_a12_the_first_settlement_stands(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(10))
    account.hold("a", usd(2.20), 0)
    account.settle("a", usd(1.65), 1)
    with pytest.raises(AlreadySettled) as caught:
        account.settle("a", usd(0), 2)
    assert isinstance(caught.value.first, HoldRecord)
    assert caught.value.first.charged is not None
    assert caught.value.first.charged[COST] == nusd(1.65)
    assert account.balance().free[COST] == nusd(8.35)


def test_a13_a_restart_forgets_nothing_and_a_lost_file_is_not_a_fresh_account(
    make: Callable[..., DurableAccount],
) -> None:
    account = make(usd(10), hold_seconds=60)
    spend(account, "before", 9)
    account.hold("in flight", usd(0.5), 1)
    account.close()
    again = DurableAccount(account.path)
    assert isinstance(again.hold("a", usd(2), 2), Refusal)
    assert money(again) == (9.0, 0.5)
    again.expire(61 * S)
    assert money(again) == (9.5, 0.0)
    again.close()
    for file in Path(account.path).parent.iterdir():
        file.unlink()
    with pytest.raises(AccountUnavailable):
        DurableAccount(account.path)


def test_a14_what_could_not_be_checked_is_refused_and_counted_apart(
    make: Callable[..., DurableAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = make(usd(1e6))
    rng, opened, failures = random.Random(7), Store._open, 0  # noqa: S311 - a test

    def flaky(store: Store) -> sqlite3.Connection:
        nonlocal failures
        if rng.random() < 0.1:
            failures += 1
            raise sqlite3.OperationalError("disk I/O error")
        return opened(store)

    monkeypatch.setattr(Store, "_open", flaky)
    unchecked = 0
    for n in range(1000):
        try:
            assert isinstance(account.hold(f"{n}", usd(0.01), n), HoldRecord)
        except AccountUnavailable:
            unchecked += 1
    monkeypatch.undo()
    assert 60 < unchecked == failures < 140
    assert account.balance().held[CALLS] == 1000 - unchecked


def test_a15_a_missing_cost_makes_spend_unknown_and_is_never_zero(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(1.60), unknown_usage="release")
    spend(account, "1", 0.40)
    account.hold("2", usd(0.40), 1)
    account.settle("2", amounts(tokens=120_000), 2)
    refusal = account.hold("3", usd(0.40), 3)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.SPEND_UNKNOWN
    balance = account.balance()
    assert (balance.spent[COST], balance.unknown[COST], balance.free[COST]) == (nusd(0.40), 1, None)
    assert balance.spent[CHANNELS.index("tokens")] == 120_000
    assert "spent at least (1 of unknown size) $0.40" in balance.summary()


def test_a16_a_partly_unknown_total_is_a_lower_bound_with_its_coverage(make: Callable[..., DurableAccount]) -> None:
    account = make(amounts(), unknown_usage="release")
    window = PeriodLimits(name="window", limits=usd(2), window=Calendar("day"))
    for n in range(10):
        account.hold(f"{n}", usd(0.1), 0, periods=[(window, "")])
    for n in range(10):
        account.settle(f"{n}", usd(0.5 if n < 2 else None), 1)
    (total,) = (balance for balance in account.balances() if balance.budget == "window")
    assert (total.spent[COST], total.unknown[COST], total.spent[CALLS]) == (nusd(1.0), 8, 10)
    assert total.free[COST] is None


def test_a18_what_is_free_for_sure_fits_a_cap_that_is_used_up(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(10))
    spend(account, "before", 10)
    assert isinstance(spend(account, "free", 0), HoldRecord)
    unpriced, priced = account.hold("u", usd(None), 2), account.hold("p", usd(0.01), 2)
    assert isinstance(unpriced, Refusal)
    assert isinstance(priced, Refusal)
    assert (unpriced.code, priced.code) == (Code.UNBOUNDED, Code.BUDGET_EXHAUSTED)
    assert money(account) == (10.0, 0.0)


@pytest.mark.parametrize("channel", range(5))
def test_a19_a_cap_of_zero_admits_nothing_and_none_is_no_cap(make: Callable[..., DurableAccount], channel: int) -> None:
    caps = tuple(0 if i == channel else None for i in range(5))
    account = make(caps)
    refusal = account.hold("a", (1, 1, 1, 1, 1), 0)
    assert isinstance(refusal, Refusal)
    assert [short.channel for short in refusal.shortfalls] == [CHANNELS[channel]]
    budget = PeriodBudget(PeriodLimits(name="day", limits=caps, window=Calendar("day")))
    assert isinstance(budget.reserve("", (1, 1, 1, 1, 1), 0), Refusal)
    account.set_limits(amounts(), now_ns=1)
    assert isinstance(account.hold("a", (1, 1, 1, 1, 1), 2), HoldRecord)


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), float("-inf"), -1, True, "5"])
def test_a21_odd_limits_are_refused_by_name(make: Callable[..., DurableAccount], limit: object) -> None:
    with pytest.raises(InputError, match=r"^limits \(cost\): expected a whole number"):
        make((None, None, None, None, limit))
    with pytest.raises(InputError, match=r"^limits \(cost\): expected a whole number"):
        PeriodLimits(name="day", limits=(None, None, None, None, limit), window=None)  # type: ignore[arg-type]


def test_a22_negative_usage_is_refused_and_the_hold_is_charged_when_it_expires(
    make: Callable[..., DurableAccount],
) -> None:
    account = make(usd(1), hold_seconds=60)
    spend(account, "before", 0.50)
    account.hold("a", usd(0.10), 1)
    with pytest.raises(InputError, match=r"^spent \(input\): expected a whole number"):
        account.settle("a", (None, -5000, None, None, 0), 2)
    assert money(account) == (0.50, 0.10)
    account.expire(61 * S)
    assert money(account) == (0.60, 0.0)


def test_a34_one_boundary_rule_for_account_and_window(make: Callable[..., DurableAccount]) -> None:
    account = make(usd(10))
    window = PeriodBudget(PeriodLimits(name="day", limits=usd(10), window=Calendar("day")))
    spend(account, "before", 9.99)
    first = window.reserve("", usd(9.99), 0)
    assert isinstance(first, PeriodHold)
    assert isinstance(spend(account, "last", 0.01), HoldRecord)
    assert isinstance(window.reserve("", usd(0.01), 0), PeriodHold)
    assert account.balance().free[COST] == 0
    assert isinstance(account.hold("more", usd(1e-9), 1), Refusal)
    assert isinstance(window.reserve("", usd(1e-9), 0), Refusal)


@pytest.mark.parametrize(("session_limit", "steps"), [(None, [4, 4, 4]), (10, [4, 4, 2])])
def test_a35_a_runs_counter_and_a_sessions_are_two(session_limit: int | None, steps: list[int]) -> None:
    policy = compose(shared_ledger(5), period_budget(calls=session_limit, by="session")).open()
    made = []
    for number in range(3):
        run = policy.start(f"run {number}", {"session": "s"}, Time(0), wall_ns=10**18)
        root = run.spawn(SpawnAsk(None, (), amounts()), Time(0))
        assert isinstance(root, Grant)
        answers = [run.admit(StepAsk(root.ticket, n, 0, amounts()), Time(n)) for n in range(4)]
        granted = [answer for answer in answers if isinstance(answer, Grant)]
        for grant in granted:
            run.settle(grant.ticket, Use(amounts(calls=1)), Time(9))
        made.append(len(granted))
    assert made == steps


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a54_money_adds_exactly_in_any_order(make: Callable[..., DurableAccount], seed: int) -> None:
    account = make(usd(1.00))
    names = [f"{n}" for n in range(10)]
    random.Random(seed).shuffle(names)  # noqa: S311 - a test
    assert all(isinstance(spend(account, name, 0.10), HoldRecord) for name in names)
    assert isinstance(account.hold("eleventh", usd(0.10), 1), Refusal)
    assert account.balance().spent[COST] == nusd(1)
    assert "spent $1.00" in account.balance().summary()


def test_a54_small_amounts_add_exactly() -> None:
    small = PeriodBudget(PeriodLimits(name="ever", limits=usd(1), window=None))
    for _ in range(50_000):
        small.settle(small.hold("", usd(0.000001), 0), usd(0.000001), 0)
    assert small.pot("", 0).spent[COST] == nusd(0.05)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a55_a_day_ends_at_midnight_in_its_zone(make: Callable[..., DurableAccount], *, on_disk: bool) -> None:
    from datetime import UTC, datetime

    daily = PeriodLimits(name="day", limits=usd(100), window=Calendar("day", "Asia/Shanghai"), cap="hard")
    account, memory = make(amounts()), PeriodBudget(daily)

    def admitted(name: str, hour: int, minute: int, second: int, amount: float) -> bool:
        now = epoch_ns(datetime(2026, 5, 1, hour, minute, second, tzinfo=UTC))
        if on_disk:
            return isinstance(account.hold(name, usd(amount), now, periods=[(daily, "ann")]), HoldRecord)
        return isinstance(memory.reserve("ann", usd(amount), now), PeriodHold)

    assert admitted("all", 13, 30, 0, 100)  # 21:30 in Shanghai
    assert not admitted("more", 15, 59, 59, 0.01)
    assert admitted("more", 16, 0, 0, 0.01)


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a55_days_on_which_clocks_change_and_no_spend_is_in_two_windows_or_in_none(day: str, hours: int) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    calendar = Calendar("day", "Europe/Amsterdam")
    noon = epoch_ns(datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo("Europe/Amsterdam")))
    window = calendar.window(noon)
    assert window.hours == hours
    budget = PeriodBudget(PeriodLimits(name="day", limits=amounts(), window=calendar))
    for hour in range(-24, 60):
        now = window.start_ns + hour * 3600 * S
        budget.settle(budget.hold("", usd(1), now), usd(1), now)
        spent = budget.pot("", now).spent[COST] // nusd(1)
        assert spent == (hour + 25 if hour < 0 else hour + 1 if hour < hours else (hour - hours) % 24 + 1)
