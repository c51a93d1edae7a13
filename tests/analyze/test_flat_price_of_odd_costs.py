"""A flat price of costs that hardly vary, are nothing or unknown: an answer or a reason, never a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze import ceiling, cheapest_ceiling, distribution, drift, flat_price, hold_sizes, period_budget
from harness_lab.analyze.chances import LEAST_CHANCE
from harness_lab.analyze.flat_price import _moments, _powers, _reflected
from harness_lab.errors import InputError


def runs(costs: object, n: int = 100) -> pd.DataFrame:
    return pd.DataFrame({"run": range(n), "outcome": "completed", "cost_nusd": pd.array(costs, dtype="Int64")})


def test_constant_costs_have_a_price_and_a_month_without_surprise() -> None:
    found = flat_price(runs([10**9] * 100), margin=0.2)
    assert found.price_usd == pytest.approx(1.25)
    assert (found.loss_month.value, found.loss_month.low, found.loss_month.high) == (0, 0, LEAST_CHANCE)
    dear = flat_price(runs([10**9] * 100), price_usd=0.5, month_runs=1000)
    assert dear.loss_month.value == 1
    assert dear.month_loss.value == pytest.approx(500)


def test_costs_of_nothing_set_no_price_but_a_given_one_is_judged() -> None:
    assert "every run of known cost cost $0" in flat_price(runs([0] * 100)).summary()
    judged = flat_price(runs([0] * 100), price_usd=2.0)
    assert judged.expected_margin.value == 1
    assert "none of these did" in judged.summary()


def test_a_few_dear_runs_among_free_ones_leave_a_month_open() -> None:
    found = flat_price(runs([10**9] * 3 + [0] * 97))
    assert not found.loss_month.estimable
    assert "the spread of a month cannot be told" in found.summary()


def test_runs_of_unknown_cost_are_counted_in_the_text() -> None:
    half = runs([None, 10**9] * 50)
    assert "Left out: 50 run(s) of unknown cost." in flat_price(half).summary()
    assert "Left out: 50 run(s) of unknown cost." in period_budget(half, budget_usd=5, period_runs=9).summary()


def test_no_chance_is_told_beyond_what_was_seen() -> None:
    usd = np.random.default_rng(0).lognormal(0, 0.5, 100)
    data = runs((usd * 1e9).astype(np.int64))
    cheap, dear = flat_price(data, price_usd=2.0), flat_price(data, price_usd=0.9)
    assert "loses with chance below 0.001 [0, 0.001]" in cheap.summary()
    assert "loses with chance above 0.999 [0.999, 1]" in dear.summary()
    assert period_budget(data, budget_usd=1e6, period_runs=50).exceeded.high == LEAST_CHANCE


@settings(max_examples=60, deadline=None)
@given(costs=st.lists(st.sampled_from([0, 1, 10**9, 2 * 10**9, 10**15, None]), min_size=1, max_size=60))
def test_any_costs_give_an_answer_or_a_reason_and_no_warning(costs: list) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = flat_price(runs(costs, len(costs)))
    if found.price_usd is not None:
        assert 0 <= found.loss_month.value <= 1
    assert found.summary()


@pytest.mark.parametrize("nusd", [300_000_000, 30, 100_000_000, 123_456_789])
def test_a_run_that_costs_just_its_price_and_runs_that_cost_just_the_budget_lose_nothing(nusd: int) -> None:
    """In doubles 3e8 * 1e-9 is above 0.3, and three times 0.1 is too."""
    data = runs([nusd] * 100)
    assert flat_price(data, price_usd=nusd / 1e9).loss_run.value == 0
    for size in (1, 3, 10):
        found = period_budget(data, budget_usd=nusd * size / 1e9, period_runs=size, periods=20, samples=10)
        assert (found.exceeded.value, found.blocked.value) == (0, 0)


def test_a_cost_below_nothing_is_refused_at_every_door() -> None:
    below = runs([-(10**9)] * 50 + [10**9] * 50)
    for ask in (
        lambda: flat_price(below),
        lambda: period_budget(below, budget_usd=5, period_runs=9),
        lambda: ceiling(below, target=0.5),
        lambda: cheapest_ceiling(below, failure_usd=3),
        lambda: distribution(below),
        lambda: hold_sizes(below, pool=5e9, at_once=2),
        lambda: drift(below, below),
    ):
        with pytest.raises(InputError, match=r"^cost_nusd: expected amounts of at least 0, got -1000000000"):
            ask()


def test_the_mean_of_a_months_law_varies_as_a_textbook_bootstrap_t() -> None:
    """Efron and Tibshirani, equation 12.22, drawn one resample at a time: mean - t* se, at its 5 % and 95 % points."""
    rng = np.random.default_rng(2)
    profit = -np.exp(rng.normal(size=80))
    se = profit.std() / np.sqrt(80)
    pivots = []
    for _ in range(4000):
        drawn = profit[rng.integers(0, 80, 80)]
        pivots.append((drawn.mean() - profit.mean()) / (drawn.std() / np.sqrt(80)))
    theirs = profit.mean() - np.quantile(pivots, [0.95, 0.05]) * se
    own = _moments(*(part.sum(keepdims=True) for part in _powers(profit, np.ones(80))))
    ours = _reflected(profit, np.ones(80), own, np.random.default_rng(0))[0]
    assert np.quantile(ours, [0.05, 0.95]) == pytest.approx(theirs, abs=0.15 * se)
