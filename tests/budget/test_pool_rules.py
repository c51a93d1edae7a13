"""What a pool does where users want different things, its named resources, and what a restart leaves of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.budget import Allocation, BudgetFault, PoolRules, Quantity, ReservationPool, Spend
from harness_lab.errors import InputError
from harness_lab.outcome import COST, FRESH, Code, Refusal
from harness_lab.usage import amounts

GPU = {"gpu": Quantity(unit="seconds", amount=10)}


def _held(pool: ReservationPool, ask: Any) -> Allocation:
    allocation = pool.reserve(ask)
    assert isinstance(allocation, Allocation)
    return allocation


def _gpu(seconds: int, *, known: bool = True) -> dict[str, Quantity]:
    return {"gpu": Quantity(unit="seconds", amount=seconds, known=known)}


def test_an_overspend_is_a_fact_or_an_error_after_the_books_are_done() -> None:
    for rules in ("ours", "tangle-e1"):
        pool = ReservationPool(amounts(fresh=100), rules=rules)
        child = _held(pool, amounts(fresh=10))
        if rules == "ours":
            assert pool.reconcile(child, Spend(input=20))[0].spent == 20
        else:
            with pytest.raises(BudgetFault, match=r"^fresh: spent 20 of 10 held$"):
                pool.reconcile(child, Spend(input=20))
        assert (pool.free()[FRESH], pool.held()[FRESH]) == (80, 0)


def test_an_unknown_cost_under_a_cap_closes_money_or_uses_it_up_and_says_so() -> None:
    ours, theirs = (ReservationPool(amounts(fresh=100, cost_usd=1), rules=rules) for rules in (None, "tangle-e3"))
    unknown = Spend.reported(input=5, cost_usd=None)
    ours.reconcile(_held(ours, amounts(fresh=10)), unknown)
    child = _held(theirs, amounts(fresh=10))
    with pytest.raises(BudgetFault, match="cost: unknown spend under a limit"):
        theirs.reconcile(child, unknown)
    assert (ours.spent()[COST], theirs.spent()[COST]) == (0, 10**9)
    assert ours.available()[COST] == theirs.available()[COST] == 0
    for pool in (ours, theirs):
        refused = pool.reserve(amounts(fresh=1))
        assert isinstance(refused, Refusal)
        assert refused.code is Code.SPEND_UNKNOWN


def test_a_drivers_turn_of_unknown_cost_raises_before_anything_is_charged() -> None:
    pool = ReservationPool(amounts(fresh=100, cost_usd=1), rules="tangle-e1")
    with pytest.raises(BudgetFault):
        pool.observe(Spend.reported(input=40, cost_usd=None))
    assert pool.free() == amounts(fresh=100, cost_usd=1)


def test_an_ask_where_there_is_no_limit_is_a_ceiling_or_refused() -> None:
    assert isinstance(ReservationPool(amounts(fresh=10)).reserve(amounts(fresh=1, cost_usd=5)), Allocation)
    refused = ReservationPool(amounts(fresh=10), rules="tangle-e3").reserve(amounts(fresh=1, cost_usd=5))
    assert isinstance(refused, Refusal)
    assert [short.code for short in refused.shortfalls] == [Code.UNBUDGETED]


@pytest.mark.parametrize("rules", ["tangle-e9", 5])
def test_rules_that_are_none_are_one_line(rules: Any) -> None:
    with pytest.raises(InputError, match=r"^rules: expected one of ours, tangle-e1"):
        ReservationPool(amounts(), rules=rules)
    with pytest.raises(InputError, match=r"^overspend: expected record or raise, got 'ignore'$"):
        PoolRules(overspend="ignore")  # type: ignore[arg-type]


def test_a_named_resource_is_held_and_given_back_like_any_channel() -> None:
    pool = ReservationPool(amounts(fresh=100), resources=GPU)
    child = _held(pool, pool.ask(amounts(fresh=60), _gpu(6)))
    refused = pool.reserve(pool.ask(amounts(fresh=50), _gpu(5)))
    assert isinstance(refused, Refusal)
    assert [short.channel for short in refused.shortfalls] == ["fresh", "resource:gpu"]
    pool.reconcile(child, Spend(input=1, resources=_gpu(2)))
    assert pool.free()[-1] == 8


def test_a_resource_has_to_be_the_roots_and_in_its_unit() -> None:
    with pytest.raises(InputError, match=r"^resource gpu: expected one that the root declares"):
        ReservationPool(amounts(fresh=1)).ask(amounts(), _gpu(1))
    pool = ReservationPool(amounts(fresh=1), resources=GPU)
    with pytest.raises(InputError, match=r"^resource gpu: expected an amount in seconds, got None$"):
        pool.ask(amounts())
    with pytest.raises(InputError, match=r"got 'hours'$"):
        pool.ask(amounts(), {"gpu": Quantity(unit="hours", amount=1)})


def test_an_unknown_use_closes_its_resource_and_no_other_channel() -> None:
    pool = ReservationPool(amounts(fresh=100), resources=GPU)
    pool.reconcile(_held(pool, pool.ask(amounts(fresh=10), _gpu(2))), Spend(resources=_gpu(1, known=False)))
    refused = pool.reserve(pool.ask(amounts(fresh=10), _gpu(0)))
    assert isinstance(refused, Refusal)
    assert [short.channel for short in refused.shortfalls] == ["resource:gpu"]


def test_what_a_parent_keeps_is_free_after_every_ask() -> None:
    pool = ReservationPool(amounts(fresh=100))
    keep = amounts(fresh=20)
    assert isinstance(pool.reserve(amounts(fresh=80), keep=keep), Allocation)
    refused = pool.reserve(amounts(fresh=1), keep=keep)
    assert isinstance(refused, Refusal)
    assert refused.shortfalls[0].helps == "wait"


ASKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 90), st.none() | st.integers(0, 90)), max_size=5)


@given(ASKS, st.integers(0, 200), st.sampled_from(["ours", "tangle-e1", "tangle-e3"]))
def test_a_restart_gives_no_more_than_there_was(asks: list[Any], used: int, rules: str) -> None:
    pool = ReservationPool(amounts(calls=20, fresh=200, cost_usd=200e-9), rules=rules)
    pool.observe(Spend(input=used))
    held = [(calls, None, None, fresh, cost) for calls, fresh, cost in asks]
    open_asks = [ask for ask in held if isinstance(pool.reserve(ask), Allocation)]
    again = ReservationPool.restore(
        amounts(calls=20, fresh=200, cost_usd=200e-9), committed=Spend(input=used), uncertain=open_asks, rules=rules
    )
    for before, after in zip(pool.available(), again.available(), strict=True):
        assert before is None or (after is not None and after <= before)
    assert again.held() == amounts(calls=0, input=0, tokens=0, fresh=0, cost_usd=0)


def test_a_restart_leaves_unknown_what_it_leaves_out() -> None:
    pool = ReservationPool.restore(amounts(fresh=100), committed=Spend(input=5), resources=GPU)
    assert (pool.free()[FRESH], pool.available()[-1]) == (95, 0)
    pool = ReservationPool.restore(amounts(fresh=100, cost_usd=1), uncertain=[amounts(fresh=50)])
    assert (pool.free()[FRESH], pool.available()[COST], pool.root.accounts[FRESH].unknown) == (50, 0, 1)
