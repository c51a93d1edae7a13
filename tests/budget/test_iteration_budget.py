"""Iteration budgets: what is counted, what is given back, and that giving back has an end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.budget.iteration import IterationBudget
from harness_lab.errors import BudgetExhausted, InputError


def test_a_budget_of_n_allows_n_calls_and_then_says_no_without_counting() -> None:
    budget = IterationBudget(3)
    assert [budget.consume() for _ in range(5)] == [True, True, True, False, False]
    assert (budget.used, budget.remaining) == (3, 0)


def test_a_refund_reopens_the_budget_but_banks_nothing() -> None:
    budget = IterationBudget(2)
    budget.refund()
    assert [budget.consume() for _ in range(3)] == [True, True, False]
    budget.refund()
    assert budget.consume()


def test_a_budget_of_n_takes_n_interactive_charges() -> None:
    budget = IterationBudget(2)
    budget.charge()
    budget.charge()
    with pytest.raises(BudgetExhausted, match=r"2 of 2 used"):
        budget.charge()


def test_programmatic_charges_are_free_until_the_refunds_are_used_up() -> None:
    budget = IterationBudget(3)
    for _ in range(3):
        budget.charge("programmatic")
    assert budget.remaining == 3
    for _ in range(3):
        budget.charge("programmatic")
    with pytest.raises(BudgetExhausted):
        budget.charge("programmatic")


def test_unbounded_refunds_are_a_choice_that_has_to_be_made() -> None:
    budget = IterationBudget(2, max_refunds="unbounded")
    for _ in range(1000):
        budget.charge("programmatic")
    assert budget.remaining == 2


def test_lowering_the_cap_below_what_is_used_leaves_nothing() -> None:
    budget = IterationBudget(3)
    budget.consume()
    budget.consume()
    budget.max_total = 1
    assert (budget.consume(), budget.used, budget.remaining) == (False, 2, 0)


def test_threads_never_take_more_than_there_is() -> None:
    budget = IterationBudget(1000)

    def drain() -> int:
        taken = 0
        while budget.consume():
            taken += 1
        return taken

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: drain(), range(8))) == 1000
    assert budget.used == 1000


@given(st.integers(0, 20), st.lists(st.sampled_from(["consume", "refund", "programmatic"])))
def test_a_run_always_ends(cap: int, moves: list[str]) -> None:
    budget = IterationBudget(cap)
    calls = 0
    for move in moves:
        if move == "refund":
            budget.refund()
        elif budget.consume():
            calls += 1
            if move == "programmatic":
                budget.refund()
    assert calls <= 2 * cap
    assert 0 <= budget.used <= cap


@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", float("nan")])
def test_bad_numbers_are_refused(bad: object) -> None:
    with pytest.raises(InputError):
        IterationBudget(bad)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        IterationBudget(3, max_refunds=bad)  # type: ignore[arg-type]
