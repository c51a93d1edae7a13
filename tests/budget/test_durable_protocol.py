"""The durable account, question by question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness_lab.budget import Calendar, PeriodLimits
from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.durable_books import HoldRecord
from harness_lab.clock import NS_PER_S
from harness_lab.errors import AlreadySettled, InputError, UnknownTicket
from harness_lab.outcome import COST, TOKENS, Code, Refusal
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.budget._pots import UnknownCharge

S = NS_PER_S
CENT = nusd(0.01)


def make(folder: Path, rule: UnknownCharge = "charge-hold", **limits: float | None) -> DurableAccount:
    caps = amounts(**(limits or {"cost_usd": 1.00}))  # type: ignore[arg-type]
    return DurableAccount.create(
        folder / "account.db", caps, now_ns=0, hold_seconds=60, unknown_usage=rule, synchronous="normal"
    )


def spent(account: DurableAccount) -> int:
    return account.balance().spent[COST]


def test_a_settled_call_costs_what_it_used_and_gives_the_rest_back(tmp_path: Path) -> None:
    account = make(tmp_path)
    assert isinstance(account.hold("a", amounts(cost_usd=0.30), 1), HoldRecord)
    assert account.balance().free[COST] == 70 * CENT
    record = account.settle("a", amounts(cost_usd=0.12), 2)
    assert (record.state, record.status, record.late, record.usage_known) == ("settled", "completed", False, False)
    assert account.balance().free[COST] == 88 * CENT
    assert account.open_holds() == ()


def test_a_refusal_names_every_channel_and_consumes_nothing(tmp_path: Path) -> None:
    account = make(tmp_path, tokens=100, cost_usd=1.00)
    refusal = account.hold("a", amounts(tokens=101, cost_usd=1.01), 1)
    assert isinstance(refusal, Refusal)
    assert [(s.channel, s.asked, s.free) for s in refusal.shortfalls] == [
        ("tokens", 101, 100),
        ("cost", 101 * CENT, 100 * CENT),
    ]
    assert account.balance().held == (0,) * 5
    assert account.history() == ()


def test_the_same_name_with_the_same_bound_is_the_same_hold(tmp_path: Path) -> None:
    account = make(tmp_path)
    first = account.hold("a", amounts(cost_usd=0.30), 1)
    assert account.hold("a", amounts(cost_usd=0.30), 2) == first
    assert account.balance().held[COST] == 30 * CENT
    with pytest.raises(InputError, match=r"^bound of hold a: expected the one it was given"):
        account.hold("a", amounts(cost_usd=0.40), 3)
    account.settle("a", amounts(cost_usd=0.30), 4)
    with pytest.raises(AlreadySettled):
        account.hold("a", amounts(cost_usd=0.30), 5)


def test_a_second_settlement_raises_with_the_first_and_moves_nothing(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30), 1)
    first = account.settle("a", amounts(cost_usd=0.12), 2)
    with pytest.raises(AlreadySettled) as caught:
        account.settle("a", amounts(cost_usd=0), 3)
    assert caught.value.first == first
    assert spent(account) == 12 * CENT


@pytest.mark.parametrize(("rule", "charged", "closed"), [("charge-hold", 30, False), ("release", 0, True)])
def test_a_hold_that_nobody_settles_expires_and_is_charged_by_the_rule(
    tmp_path: Path, rule: UnknownCharge, charged: int, *, closed: bool
) -> None:
    account = make(tmp_path, rule)
    account.hold("a", amounts(cost_usd=0.30), 1 * S)
    assert account.expire(61 * S - 1) == ()
    (record,) = account.expire(61 * S)
    assert (record.state, record.closed_ns, record.charged and record.charged[COST]) == (
        "expired",
        61 * S,
        charged * CENT,
    )
    assert spent(account) == charged * CENT
    answer = account.hold("b", amounts(cost_usd=0.01), 62 * S)
    assert isinstance(answer, Refusal) == closed
    if isinstance(answer, Refusal):
        assert answer.code is Code.SPEND_UNKNOWN


def test_what_was_sent_in_any_case_may_be_charged_instead(tmp_path: Path) -> None:
    account = make(tmp_path, "charge-prompt")
    account.hold("a", amounts(cost_usd=0.30), 1, prompt=amounts(cost_usd=0.05))
    record = account.settle("a", amounts(), 2, status="abandoned")
    assert record.charged == (1, 0, 0, 0, 5 * CENT)
    assert "cost" in record.unknown
    assert isinstance(account.hold("b", amounts(cost_usd=0.01), 3), Refusal)


@pytest.mark.parametrize("rule", ["charge-hold", "release"])
def test_a_late_settlement_replaces_the_charge_of_the_expiry_once(tmp_path: Path, rule: UnknownCharge) -> None:
    account = make(tmp_path, rule)
    account.hold("a", amounts(cost_usd=0.30), 0)
    account.expire(60 * S)
    record = account.settle("a", amounts(cost_usd=0.12), 61 * S)
    assert (record.late, record.state) == (True, "settled")
    assert (spent(account), account.balance().unknown[COST]) == (12 * CENT, 0)
    with pytest.raises(AlreadySettled):
        account.settle("a", amounts(cost_usd=0.12), 62 * S)
    assert isinstance(account.hold("b", amounts(cost_usd=0.88), 63 * S), HoldRecord)


def test_late_is_late_whether_or_not_anybody_looked_in_between(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30), 0)
    assert account.settle("a", amounts(cost_usd=0.12), 60 * S).late
    account.hold("b", amounts(cost_usd=0.30), 60 * S)
    assert not account.settle("b", amounts(cost_usd=0.12), 120 * S - 1).late


def test_a_bill_above_its_bound_is_charged_in_full_recorded_and_ends_admission(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30), 1)
    record = account.settle("a", amounts(cost_usd=1.50), 2)
    assert record.violated == ("cost",)
    assert (spent(account), account.balance().overshoot[COST]) == (150 * CENT, 50 * CENT)
    refusal = account.hold("b", amounts(cost_usd=0), 3)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BOUND_VIOLATED
    account.set_limits(amounts(cost_usd=2.00), now_ns=4)
    account.reopen("the price was wrong", now_ns=5)
    assert isinstance(account.hold("b", amounts(cost_usd=0.50), 6), HoldRecord)
    assert [event.what for event in account.events()] == ["set-limits", "reopen"]


def test_a_call_without_a_bound_is_refused_where_there_is_a_cap(tmp_path: Path) -> None:
    refusal = make(tmp_path).hold("a", amounts(tokens=5), 1)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.shortfalls[0].channel) == (Code.UNBOUNDED, "cost")


def test_an_unsent_call_costs_nothing_and_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30), 1)
    assert account.settle("a", amounts(cost_usd=0.30), 2, status="unsent").charged == (0,) * 5
    with pytest.raises(UnknownTicket, match="no hold is named b"):
        account.settle("b", amounts(), 3)


def test_tokens_and_calls_are_channels_like_money(tmp_path: Path) -> None:
    account = make(tmp_path, calls=2, tokens=100)
    account.hold("a", amounts(tokens=60), 1)
    account.settle("a", amounts(tokens=40), 2)
    account.hold("b", amounts(tokens=60), 3)
    refusal = account.hold("c", amounts(tokens=1), 4)
    assert isinstance(refusal, Refusal)
    assert [(s.channel, s.helps) for s in refusal.shortfalls] == [("calls", "wait"), ("tokens", "wait")]
    assert account.balance().spent[TOKENS] == 40


def test_the_clock_never_goes_back(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.1), 100 * S)
    record = account.hold("b", amounts(cost_usd=0.1), 5 * S)
    assert isinstance(record, HoldRecord)
    assert record.at_ns == 100 * S
    account.close()
    assert [each.id for each in DurableAccount(account.path).expire(0)] == []
    assert len(account.expire(160 * S)) == 2


def test_period_budgets_are_decided_in_the_same_commit(tmp_path: Path) -> None:
    account = make(tmp_path)
    day = PeriodLimits(name="day", limits=amounts(cost_usd=0.20), window=Calendar("day"), cap="hard")
    assert isinstance(account.hold("a", amounts(cost_usd=0.20), 1, periods=[(day, "ann")]), HoldRecord)
    refusal = account.hold("b", amounts(cost_usd=0.20), 2, periods=[(day, "ann")])
    assert isinstance(refusal, Refusal)
    assert account.balance().held[COST] == 20 * CENT
    assert isinstance(account.hold("c", amounts(cost_usd=0.20), 3, periods=[(day, "bob")]), HoldRecord)
    account.hold("d", amounts(cost_usd=0.20), 86_400 * S, periods=[(day, "ann")])
    windows = [(b.group, b.window, b.held[COST]) for b in account.balances() if b.budget == "day"]
    assert [(group, held) for group, _, held in windows] == [("bob", 0), ("ann", 20 * CENT)]


def test_a_period_budget_of_the_same_name_must_say_the_same(tmp_path: Path) -> None:
    account = make(tmp_path)
    day = PeriodLimits(name="day", limits=amounts(cost_usd=0.20), window=Calendar("day"))
    more = PeriodLimits(name="day", limits=amounts(cost_usd=0.40), window=Calendar("day"))
    account.ensure(day, now_ns=1)
    account.ensure(day, now_ns=2)
    with pytest.raises(InputError, match=r"^period budget day: expected"):
        account.ensure(more, now_ns=3)
    account.define(more, now_ns=4)
    account.ensure(more, now_ns=5)
    with pytest.raises(InputError, match=r"^window of day: expected"):
        account.define(PeriodLimits(name="day", limits=amounts(), window=None), now_ns=6)


def test_two_budgets_of_one_name_in_one_question_are_refused(tmp_path: Path) -> None:
    account = make(tmp_path)
    day = PeriodLimits(name="day", limits=amounts(cost_usd=0.20), window=Calendar("day"))
    with pytest.raises(InputError, match=r"^periods: expected each budget and group once"):
        account.hold("a", amounts(cost_usd=0.1), 1, periods=[(day, "ann"), (day, "ann")])


def test_the_balance_is_a_line_a_channel(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30, tokens=10), 1)
    assert str(account.balance()).splitlines()[-1] == ("  cost: limit $1.00, spent $0.00, held $0.30, left $0.70")


@pytest.mark.parametrize("bad", [float("nan"), -1, True, "5", 1.5])
def test_an_amount_that_is_none_is_refused_and_nothing_moves(tmp_path: Path, bad: object) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.30), 1)
    with pytest.raises(InputError):
        account.hold("b", (None, None, None, None, bad), 2)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        account.settle("a", (None, None, None, None, bad), 3)  # type: ignore[arg-type]
    assert (spent(account), account.balance().held[COST]) == (0, 30 * CENT)
