"""The shared ledger: ceilings on the tree's totals, one order of checks, and unknown spend is not zero."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.budget import RunBudget, RunContext, RunLedger
from harness_lab.clock import ManualClock
from harness_lab.errors import InputError

TABLE = [  # parent, ledger (steps, dollars, seconds), declared, ceiling (steps, dollars, seconds)
    ((8, None, None), (0, 0, 0), (2, None, None), (2, None, None)),
    ((8, None, None), (3, 0, 0), (2, None, None), (5, None, None)),
    ((8, None, None), (7, 0, 0), (2, None, None), (8, None, None)),
    ((8, None, None), (8, 0, 0), (99, None, None), (8, None, None)),
    ((4, None, None), (1, 0, 0), (100, None, None), (4, None, None)),
    ((10, None, None), (8, 0, 0), (5, None, None), (10, None, None)),
    ((8, 1.0, None), (6, 0.75, 0), (8, 1.0, None), (8, 1.0, None)),
    ((100, 1.0, None), (0, 0.9, 0), (10, 0.05, None), (10, 0.95, None)),
    ((100, None, None), (0, 0.1, 0), (10, 0.25, None), (10, 0.35, None)),
    ((8, None, 100), (0, 0, 10.7), (4, None, 60), (4, None, 70.7)),  # a fraction of a second is not lost
    ((8, None, 100), (0, 0, 95.2), (4, None, 60), (4, None, 100.0)),
    ((8, None, None), (0, 0, 10.7), (4, None, 60), (4, None, 70.7)),
]
BAD_STEPS = [-1, 1.5, float("nan"), float("inf"), True, "8", None, 2**70]
BAD_COST = [-0.01, float("nan"), float("inf"), True, "dear", 1e11]
BAD_SECONDS = [-1, float("nan"), float("inf"), True, "60", 1e12]


def a_ledger(steps: int = 0, cost_usd: float = 0.0, elapsed_s: float = 0.0) -> RunLedger:
    clock = ManualClock()
    ledger = RunLedger.start("run-1", clock=clock)
    clock.advance(elapsed_s)
    ledger.record_steps(steps)
    ledger.record_cost(cost_usd)
    return ledger


def test_ten_charges_of_a_dime_exhaust_a_dollar_exactly() -> None:
    ledger, budget = a_ledger(), RunBudget(100, 1.0)
    for _ in range(10):
        assert ledger.exhaustion(budget) is None
        ledger.record_cost(0.1)
    assert ledger.cost_usd == 1.0
    assert ledger.exhaustion(budget) == "cost budget exhausted (1.0000 of 1.0000 USD used)"


@pytest.mark.parametrize(("parent", "ledger", "declared", "ceiling"), TABLE)
def test_a_declaration_becomes_a_ceiling_on_the_totals_of_the_tree(
    parent: Any, ledger: Any, declared: Any, ceiling: Any
) -> None:
    assert RunBudget(*declared).nested_within(RunBudget(*parent), a_ledger(*ledger)) == RunBudget(*ceiling)


def test_siblings_that_start_together_share_one_ceiling() -> None:
    ledger, parent = a_ledger(3), RunBudget(10)
    first, second = (RunBudget(2).nested_within(parent, ledger) for _ in range(2))
    ledger.record_steps(2)
    assert first == second == RunBudget(5)
    assert ledger.exhaustion(first) == "step budget exhausted (5 of 5 used)"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=100, deadline=None)
def test_a_child_never_may_more_than_its_parent_nor_than_it_declared(parent: int, used: int, declared: int) -> None:
    ceiling = RunBudget(declared).nested_within(RunBudget(parent), a_ledger(used)).max_steps
    assert ceiling <= parent
    assert ceiling - used <= declared


def test_the_checks_come_in_a_fixed_order_and_each_has_its_text() -> None:
    ledger, budget = a_ledger(2, 9.0, 999.4), RunBudget(2, 1.0, 60)
    ledger.record_cost(None)
    ledger.cancel("the user closed the tab")
    assert ledger.exhaustion(budget) == "the user closed the tab"
    ledger.cancelled = False
    assert ledger.exhaustion(budget) == "step budget exhausted (2 of 2 used)"
    unknown = "1 run(s) reported no cost, so spend against the 1.0000 USD cap is unknown"
    assert ledger.exhaustion(RunBudget(3, 1.0, 60)) == f"cost budget cannot be enforced: {unknown}"
    ledger.unmetered_runs = 0
    assert ledger.exhaustion(RunBudget(3, 1.0, 60)) == "cost budget exhausted (9.0000 of 1.0000 USD used)"
    assert ledger.exhaustion(RunBudget(3, None, 60)) == "time budget exhausted (999s of 60s used)"
    assert ledger.exhaustion(RunBudget(3)) is None


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (RunBudget(0), "step budget exhausted (0 of 0 used)"),
        (RunBudget(8, 0.0), "cost budget exhausted (0.0000 of 0.0000 USD used)"),
        (RunBudget(8, None, 0), "time budget exhausted (0s of 0s used)"),
    ],
)
def test_a_limit_of_zero_allows_nothing(budget: RunBudget, text: str) -> None:
    assert a_ledger().exhaustion(budget) == text


def test_an_unknown_cost_closes_every_cost_cap_and_no_other() -> None:
    ledger = a_ledger(1, 0.5)
    ledger.record_cost(None)
    assert "1 run(s) reported no cost" in str(ledger.exhaustion(RunBudget(8, 1_000.0)))
    assert ledger.exhaustion(RunBudget(8)) is None
    assert ledger.cost_usd == 0.5


def test_a_cancel_wins_over_every_limit_and_the_last_reason_stands() -> None:
    ledger = a_ledger(99)
    ledger.cancel("first")
    ledger.cancel("second")
    assert ledger.exhaustion(RunBudget(1)) == "second"
    ledger.cancel("")
    assert ledger.exhaustion(RunBudget(1)) == "cancelled"


def test_what_remains_is_never_negative_and_none_without_a_limit() -> None:
    ledger = a_ledger(0, 1.4, 59.5)
    assert ledger.remaining_cost(RunBudget(5, 1.0)) == 0.0
    assert ledger.remaining_cost(RunBudget(5, 2.0)) == pytest.approx(0.6)
    assert ledger.remaining_cost(RunBudget(5)) is None
    assert ledger.remaining_seconds(RunBudget(5, None, 60)) == 0.5
    assert ledger.remaining_seconds(RunBudget(5, None, 59)) == 0.0
    assert ledger.remaining_seconds(RunBudget(5)) is None


def test_a_context_hands_its_ledger_down_and_counts_levels() -> None:
    root = RunContext.root("run-1", RunBudget(8), clock=ManualClock())
    child = root.for_child(RunBudget(4), "run-1")
    child.ledger.record_steps(3)
    grandchild = child.for_child(RunBudget(4), "run-2")
    assert root.ledger.steps == 3
    assert (root.is_child(), child.is_child(), child.root_run_id) == (False, True, "run-1")
    assert [root.depth, child.depth, grandchild.depth] == [0, 1, 2]
    assert grandchild.budget == RunBudget(4)  # bounded by its parent: 3 + 4 is more than 4


def test_the_fourth_level_may_run_and_the_fifth_may_not() -> None:
    context = RunContext.root("run", RunBudget(99))
    deep = [context.too_deep()]
    for _ in range(4):
        context = context.for_child(RunBudget(99), "run")
        deep.append(context.too_deep())
    assert deep == [False, False, False, False, True]


def test_a_budget_is_read_from_a_mapping_with_its_defaults() -> None:
    assert RunBudget.from_config({}) == RunBudget(8)
    assert RunBudget.from_config({}, default_steps=3) == RunBudget(3)
    assert RunBudget.from_config({"max_steps": None, "max_seconds": 2.9}) == RunBudget(8, None, 2.9)
    assert RunBudget.from_config({"max_steps": 0, "max_cost_usd": 0.25, "other": 1}) == RunBudget(0, 0.25)


@pytest.mark.parametrize(
    ("values", "name"),
    [((bad,), "max_steps") for bad in BAD_STEPS]
    + [((8, bad), "max_cost_usd") for bad in BAD_COST]
    + [((8, None, bad), "seconds") for bad in BAD_SECONDS],
    ids=repr,
)
def test_a_bad_budget_is_refused_by_name(values: Any, name: str) -> None:
    with pytest.raises(InputError, match=rf"^(max_)?{name}: expected "):
        RunBudget(*values)


def test_whole_floats_become_steps_so_that_texts_and_files_stay_whole() -> None:
    assert repr(RunBudget(2.0)) == "RunBudget(max_steps=2, max_cost_usd=None, max_seconds=None)"  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-2.0, float("nan"), float("inf"), True])
def test_a_bad_charge_is_refused_and_charges_nothing(bad: Any) -> None:
    ledger = a_ledger(1, 0.5)
    with pytest.raises(InputError):
        ledger.record_cost(bad)
    with pytest.raises(InputError):
        ledger.record_steps(bad)
    assert (ledger.steps, ledger.cost_usd, ledger.unmetered_runs) == (1, 0.5, 0)
