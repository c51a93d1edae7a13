"""Period budgets in memory: what a group may use in a window, and that memory and disk agree."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.budget import Calendar, PeriodBudget, PeriodLimits, Rolling
from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.period import PeriodHold
from harness_lab.clock import NS_PER_S
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import COST, Code, Refusal
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

HOUR = 3600 * NS_PER_S
DAY = 24 * HOUR
START = 1_774_700_000 * NS_PER_S


def daily(usd: float, carry: str = "none", windows: int = 1, cap: str = "soft") -> PeriodBudget:
    limits = PeriodLimits(
        name="day",
        limits=amounts(cost_usd=usd),
        window=Calendar("day"),
        carry=carry,  # type: ignore[arg-type]
        carry_windows=windows,
        cap=cap,  # type: ignore[arg-type]
    )
    return PeriodBudget(limits)


def spend(budget: PeriodBudget, usd: float, now: int, group: str = "") -> PeriodHold | Refusal:
    hold = budget.reserve(group, amounts(cost_usd=usd), now)
    if isinstance(hold, PeriodHold):
        budget.settle(hold, amounts(cost_usd=usd), now)
    return hold


def left_usd(budget: PeriodBudget, now: int, group: str = "") -> float:
    pot = budget.pot(group, now)
    return (pot.limits[COST] - pot.spent[COST] - pot.held[COST]) / 1e9


def test_a_window_starts_anew_at_its_turn_and_not_a_nanosecond_before() -> None:
    budget = daily(1)
    assert isinstance(spend(budget, 1, 0), PeriodHold)
    refusal = spend(budget, 0.01, DAY - 1)
    assert isinstance(refusal, Refusal)
    assert refusal.shortfalls[0].helps == "wait"
    assert "reset at 1970-01-02T00:00:00+00:00" in refusal.shortfalls[0].detail
    assert isinstance(spend(budget, 1, DAY), PeriodHold)


def test_groups_do_not_share() -> None:
    budget = daily(1)
    spend(budget, 1, 0, "ann")
    assert isinstance(spend(budget, 0.5, 0, "ann"), Refusal)
    assert isinstance(spend(budget, 1, 0, "bob"), PeriodHold)


@pytest.mark.parametrize(("carry", "windows", "expected"), [("none", 1, 1.0), ("capped", 1, 2.0), ("full", 1, 3.75)])
def test_what_is_unused_is_carried_as_the_rule_says(carry: str, windows: int, expected: float) -> None:
    budget = daily(1, carry, windows)
    spend(budget, 0.25, 0)  # day 0 leaves 0.75; days 1 and 2 are not used at all
    assert left_usd(budget, 3 * DAY) == expected
    assert left_usd(budget, DAY) == (1.75 if carry != "none" else 1.0)


def test_carry_over_capped_at_two_windows_never_grows_beyond_them() -> None:
    budget = daily(1, "capped", 2)
    spend(budget, 0.5, 0)
    assert [left_usd(budget, day * DAY) for day in (0, 1, 2, 3, 30)] == [0.5, 1.5, 2.5, 3.0, 3.0]


def test_what_comes_back_after_the_turn_is_carried_to_the_window_after_it() -> None:
    budget = daily(1, "full")
    hold = budget.reserve("", amounts(cost_usd=1), DAY - 1)
    assert isinstance(hold, PeriodHold)
    assert isinstance(spend(budget, 1.0, DAY), PeriodHold)  # the second day's own dollar; nothing was carried yet
    assert left_usd(budget, DAY) == 0.0
    budget.settle(hold, amounts(cost_usd=0.25), DAY + 1)
    assert left_usd(budget, DAY + 1) == 0.75


def test_a_debt_is_not_carried() -> None:
    budget = daily(1, "full")
    hold = budget.reserve("", amounts(), 0)  # no bound: charged afterwards
    assert isinstance(hold, PeriodHold)
    budget.settle(hold, amounts(cost_usd=3), 1)
    assert left_usd(budget, 1) == -2.0
    assert left_usd(budget, DAY) == 1.0


def test_a_call_belongs_to_the_window_in_which_it_was_admitted() -> None:
    budget = daily(1)
    hold = budget.reserve("", amounts(cost_usd=1), DAY - 1)
    assert isinstance(hold, PeriodHold)
    assert left_usd(budget, DAY) == 1.0
    budget.settle(hold, amounts(cost_usd=1), DAY + 5)
    assert left_usd(budget, DAY + 5) == 1.0


def test_a_zero_cap_admits_nothing_but_what_is_free_for_sure() -> None:
    budget = daily(0)
    assert isinstance(spend(budget, 0.01, 0), Refusal)
    assert isinstance(budget.reserve("", amounts(), 0), Refusal)
    assert isinstance(spend(budget, 0, 0), PeriodHold)


def test_unknown_spend_closes_the_window_and_not_the_next_one() -> None:
    budget = daily(1)
    hold = budget.reserve("", amounts(cost_usd=0.1), 0)
    assert isinstance(hold, PeriodHold)
    budget.settle(hold, amounts(), 1)
    refusal = budget.reserve("", amounts(cost_usd=0.1), 2)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.SPEND_UNKNOWN
    assert isinstance(spend(budget, 1, DAY), PeriodHold)


def test_a_hard_cap_refuses_what_has_no_bound_and_ends_after_a_bill_above_it() -> None:
    budget = daily(1, cap="hard")
    unbounded = budget.reserve("", amounts(), 0)
    assert isinstance(unbounded, Refusal)
    assert unbounded.code is Code.UNBOUNDED
    hold = budget.reserve("", amounts(cost_usd=0.1), 0)
    assert isinstance(hold, PeriodHold)
    budget.settle(hold, amounts(cost_usd=0.2), 1)
    ended = spend(budget, 0.1, 3 * DAY)
    assert isinstance(ended, Refusal)
    assert ended.code is Code.BOUND_VIOLATED
    budget.reopen("")
    assert isinstance(spend(budget, 0.1, 3 * DAY), PeriodHold)


def test_a_second_settlement_moves_nothing_and_an_unsent_call_costs_nothing() -> None:
    budget = daily(1)
    hold = budget.reserve("", amounts(cost_usd=0.5), 0)
    assert isinstance(hold, PeriodHold)
    budget.settle(hold, None, 1)
    with pytest.raises(AlreadySettled):
        budget.settle(hold, amounts(cost_usd=0.5), 2)
    assert left_usd(budget, 2) == 1.0


def test_time_does_not_go_back() -> None:
    budget = daily(1)
    spend(budget, 1, DAY)
    assert isinstance(spend(budget, 1, 0), Refusal)


def test_asking_about_later_changes_nothing_now() -> None:
    budget = PeriodBudget(PeriodLimits(name="r", limits=amounts(calls=1), window=Rolling(60)))
    assert isinstance(budget.reserve("", amounts(calls=1), 0), PeriodHold)
    assert budget.shortfalls("", amounts(calls=1), 60 * NS_PER_S) == ()
    assert budget.shortfalls("", amounts(calls=1), 60 * NS_PER_S - 1) != ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"carry": "full", "window": Rolling(60)}, r"^carry: expected none, unless"),
        ({"carry": "some"}, r"^carry: expected one of"),
        ({"carry": "capped", "carry_windows": 0}, r"^carry_windows: expected a whole number"),
        ({"limits": amounts()[:3]}, r"^limits: expected one amount for each"),
        ({"name": ""}, r"^name of the period budget"),
        ({"cap": "maybe"}, r"^cap: expected one of soft, hard"),
    ],
)
def test_what_makes_no_budget_is_said_in_one_line(wrong: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"name": "day", "limits": amounts(calls=1), "window": Calendar("day")}
    with pytest.raises(InputError, match=message):
        PeriodLimits(**(good | wrong))  # type: ignore[arg-type]


WINDOWS = [Calendar("day", "Europe/Amsterdam"), Calendar("month", "UTC", 31), Rolling(5400), None]
STEP = st.tuples(
    st.sampled_from([0, 1, 7, 23, 24, 100]), st.sampled_from(["a", "b"]), st.none() | st.integers(0, 9), st.booleans()
)


@given(st.sampled_from(WINDOWS), st.sampled_from(["none", "capped", "full"]), st.integers(0, 20), st.data())
@settings(max_examples=60, deadline=None)
def test_memory_and_disk_answer_the_same(
    window: Calendar | Rolling | None, carry: str, limit: int, data: st.DataObject
) -> None:
    limits = PeriodLimits(
        name="w",
        limits=money(limit),
        window=window,
        carry=carry if isinstance(window, Calendar) else "none",  # type: ignore[arg-type]
        carry_windows=2,
        cap=data.draw(st.sampled_from(["soft", "hard"])),
    )
    memory = PeriodBudget(limits, unknown_usage="release")
    with tempfile.TemporaryDirectory() as folder:
        disk = DurableAccount.create(
            Path(folder) / "a.db",
            money(None),
            now_ns=0,
            hold_seconds=9e8,
            unknown_usage="release",
            synchronous="normal",
        )
        now, held = START, []
        for number, (hours, group, amount, settles) in enumerate(data.draw(st.lists(STEP, max_size=25))):
            now += hours * HOUR
            if settles and held:
                name, hold = held.pop(number % len(held))
                memory.settle(hold, (1, None, None, None, amount), now)
                disk.settle(name, money(amount), now)
                continue
            bound = (1, None, None, None, amount)
            ours, theirs = (
                memory.reserve(group, bound, now),
                disk.hold(str(number), bound, now, periods=[(limits, group)]),
            )
            assert isinstance(ours, Refusal) == isinstance(theirs, Refusal)
            if isinstance(ours, Refusal):
                assert isinstance(theirs, Refusal)
                assert ours.shortfalls == theirs.shortfalls
            else:
                held.append((str(number), ours))
        disk.close()


def money(amount: int | None) -> Amounts:
    return (None, None, None, None, amount)
