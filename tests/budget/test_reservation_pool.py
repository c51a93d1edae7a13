"""The reservation pool: held before a child starts, refunded when it ends, and never lost or minted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.budget import Allocation, Overspend, ReservationPool
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import COST, TOKENS, Code, Refusal
from harness_lab.usage import Amounts, amounts


def a_child(pool: ReservationPool, within: Allocation | None = None, **ask: Any) -> Allocation:
    answer = pool.reserve(amounts(**ask), within)
    assert isinstance(answer, Allocation), answer
    return answer


def a_refusal(pool: ReservationPool, within: Allocation | None = None, **ask: Any) -> Refusal:
    answer = pool.reserve(amounts(**ask), within)
    assert isinstance(answer, Refusal)
    return answer


def tokens(spent: int) -> Amounts:
    return (1, spent, spent, spent, 0)


def test_what_a_child_did_not_use_comes_back_when_it_ends() -> None:
    pool = ReservationPool(amounts(tokens=10_000))
    child = a_child(pool, tokens=8_000)
    pool.charge(child, tokens(2_500))
    assert (pool.free()[TOKENS], pool.held()[TOKENS], pool.spent()[TOKENS]) == (2_000, 8_000, 0)
    assert pool.reconcile(child) == ()
    assert (pool.free()[TOKENS], pool.held()[TOKENS], pool.spent()[TOKENS]) == (7_500, 0, 2_500)


def test_an_overspend_is_a_recorded_fact_and_charged_in_full() -> None:
    pool = ReservationPool(amounts(calls=100, tokens=2_500_000))
    child = a_child(pool, calls=16, tokens=800_000)
    pool.charge(child, tokens(1_918_127))
    assert pool.reconcile(child) == (Overspend("tokens", 800_000, 1_918_127),)
    assert pool.free()[TOKENS] == 581_873


def test_an_overspend_of_the_whole_pool_leaves_a_negative_balance_and_a_shortfall_of_nothing_free() -> None:
    pool = ReservationPool(amounts(tokens=100))
    pool.observe(tokens(150))
    assert pool.free()[TOKENS] == -50
    assert a_refusal(pool, tokens=1).shortfalls[0].free == 0


def test_a_refusal_names_every_channel_and_changes_nothing() -> None:
    pool = ReservationPool(amounts(calls=60, tokens=3_000_000, cost_usd=2))
    before = (pool.free(), pool.held(), pool.spent())
    refusal = a_refusal(pool, calls=100, tokens=4_000_000, cost_usd=5)
    figures = [(short.channel, short.asked, short.free) for short in refusal.shortfalls]
    assert figures == [("calls", 100, 60), ("tokens", 4_000_000, 3_000_000), ("cost", 5 * 10**9, 2 * 10**9)]
    assert (pool.free(), pool.held(), pool.spent()) == before


@pytest.mark.parametrize(("ask", "helps"), [(90, "smaller"), (70, "wait"), (101, "smaller")])
def test_a_refusal_says_whether_waiting_or_a_smaller_ask_helps(ask: int, helps: str) -> None:
    pool = ReservationPool(amounts(tokens=100))
    pool.observe(tokens(20))
    a_child(pool, tokens=60)
    assert a_refusal(pool, tokens=ask).shortfalls[0].helps == helps


def test_nothing_helps_once_everything_is_spent() -> None:
    pool = ReservationPool(amounts(tokens=100))
    pool.observe(tokens(100))
    assert a_refusal(pool, tokens=1).shortfalls[0].helps == "nothing"
    assert pool.used_up(pool.root)[0].helps == "nothing"


def test_waiting_does_not_help_where_what_is_held_would_not_bring_enough_back() -> None:
    pool = ReservationPool(amounts(tokens=100))
    child = a_child(pool, tokens=10)
    pool.observe(tokens(100))
    assert pool.used_up(pool.root)[0].helps == "nothing"
    assert not pool.used_up(child)


def test_a_grandchild_is_held_from_its_parents_share_and_not_from_the_pool() -> None:
    pool = ReservationPool(amounts(tokens=1_000))
    child = a_child(pool, tokens=500)
    grandchild = a_child(pool, child, tokens=400)
    assert pool.held()[TOKENS] == 500
    assert a_refusal(pool, child, tokens=101).shortfalls[0].free == 100
    pool.charge(grandchild, tokens(300))
    pool.reconcile(grandchild)
    pool.reconcile(child)
    assert (pool.free()[TOKENS], pool.spent()[TOKENS]) == (700, 300)


def test_a_channel_that_a_child_does_not_declare_is_drawn_from_above() -> None:
    pool = ReservationPool(amounts(calls=4, tokens=1_000, cost_usd=10))
    child = a_child(pool, calls=2, tokens=500)
    pool.charge(child, (1, 100, 150, 150, 250_000_000))
    assert pool.spent()[COST] == 250_000_000
    pool.reconcile(child)
    assert (pool.free()[TOKENS], pool.free()[COST]) == (850, 9_750_000_000)


def test_a_share_of_nothing_is_a_limit_and_no_share_is_none() -> None:
    pool = ReservationPool(amounts(tokens=100))
    assert pool.used_up(a_child(pool, tokens=0))[0].code is Code.BUDGET_EXHAUSTED
    assert not pool.used_up(a_child(pool))


def test_a_spend_of_unknown_size_closes_money_for_the_whole_tree() -> None:
    pool = ReservationPool(amounts(tokens=1_000, cost_usd=1))
    child = a_child(pool, tokens=500, cost_usd=0.5)
    pool.charge(child, (1, 40, 100, 100, None))
    codes = {short.code for short in (*pool.used_up(child), *pool.used_up(pool.root))}
    assert codes == {Code.SPEND_UNKNOWN}
    pool.reconcile(child)
    assert a_refusal(pool, tokens=10).code is Code.SPEND_UNKNOWN
    assert pool.free()[TOKENS] == 900


def test_unknown_tokens_are_flagged_and_close_nothing() -> None:
    pool = ReservationPool(amounts(tokens=1_000))
    pool.observe((1, None, None, None, None))
    assert pool.root.accounts[TOKENS].unknown == 1
    assert a_child(pool, tokens=1_000)


def test_a_share_ends_once_and_the_second_time_moves_nothing() -> None:
    pool = ReservationPool(amounts(tokens=100))
    child = a_child(pool, tokens=60)
    pool.reconcile(child)
    with pytest.raises(AlreadySettled):
        pool.reconcile(child)
    assert (pool.free()[TOKENS], pool.held()[TOKENS]) == (100, 0)


def test_a_settlement_that_comes_late_is_charged_to_what_is_still_open() -> None:
    pool = ReservationPool(amounts(tokens=1_000))
    child = a_child(pool, tokens=500)
    pool.reconcile(child)
    pool.charge(child, tokens(30))
    assert (pool.spent()[TOKENS], pool.free()[TOKENS]) == (30, 970)


def test_a_child_that_outlives_its_parent_keeps_its_share_and_loses_nothing() -> None:
    pool = ReservationPool(amounts(tokens=1_000))
    child = a_child(pool, tokens=500)
    grandchild = a_child(pool, child, tokens=200)
    pool.reconcile(child)
    assert (pool.held()[TOKENS], pool.free()[TOKENS]) == (200, 800)
    pool.charge(grandchild, tokens(150))
    pool.reconcile(grandchild)
    assert (pool.held()[TOKENS], pool.spent()[TOKENS], pool.free()[TOKENS]) == (0, 150, 850)


@pytest.mark.parametrize("bad", [-100, float("nan"), float("inf"), 1.5, True, "8", 10**20], ids=repr)
def test_a_bad_amount_is_refused_everywhere_and_changes_nothing(bad: Any) -> None:
    pool = ReservationPool(amounts(tokens=100))
    child = a_child(pool, tokens=10)
    amount = (None, None, bad, None, None)
    for question in (ReservationPool, pool.reserve, pool.observe, lambda spent: pool.charge(child, spent)):
        with pytest.raises(InputError, match=r"\(tokens\): expected a whole number"):
            question(amount)
    assert (pool.free()[TOKENS], pool.held()[TOKENS], child.accounts[TOKENS].spent) == (90, 10, 0)


def test_amounts_name_every_channel() -> None:
    pool = ReservationPool(amounts())
    with pytest.raises(InputError, match=r"^ask: expected one amount for each of calls, input, tokens, fresh, cost"):
        pool.reserve((1, 2))


def test_the_pool_itself_does_not_end_and_nothing_is_reserved_from_a_share_that_has() -> None:
    pool = ReservationPool(amounts(tokens=100))
    with pytest.raises(InputError, match="the pool itself"):
        pool.reconcile(pool.root)
    child = a_child(pool, tokens=10)
    pool.reconcile(child)
    with pytest.raises(InputError, match=r"^within: expected an allocation that has not ended"):
        pool.reserve(amounts(tokens=1), child)


@given(
    limit=st.integers(0, 50),
    held=st.integers(0, 50),
    spent=st.integers(0, 50),
    asked=st.integers(0, 60),
    keep=st.integers(0, 30),
)
def test_the_figures_of_a_refusal_say_that_it_had_to_be_one(
    limit: int, held: int, spent: int, asked: int, keep: int
) -> None:
    pool = ReservationPool(amounts(tokens=limit))
    pool.reserve(amounts(tokens=min(held, limit)))
    pool.charge(pool.root, (0, 0, spent, 0, 0))
    answer = pool.reserve(amounts(tokens=asked), keep=amounts(tokens=keep))
    if isinstance(answer, Refusal):
        (short,) = answer.shortfalls
        assert short.free is not None
        assert asked > short.free or asked == 0  # nothing does not fit either where more was spent than there was
        if short.helps == "smaller":
            assert not isinstance(pool.reserve(amounts(tokens=short.free), keep=amounts(tokens=keep)), Refusal)
