from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, quantile_test

from harness_lab.errors import InputError
from harness_lab.stats import (
    NotEstimable,
    coverage_of_minimum,
    largest_quantile,
    p_next_below,
    quantile,
    quantile_n,
    wilks_n,
)

SIX = [31_211, 32_296, 47_365, 47_965, 48_253, 62_616]


def test_wilks_sizes_are_the_published_ones() -> None:
    assert [wilks_n(0.90), wilks_n(0.95), wilks_n(0.99), wilks_n(0.95, sides=2)] == [29, 59, 299, 93]


def test_the_minimum_of_six_covers_little() -> None:
    assert coverage_of_minimum(6) == pytest.approx(0.607, abs=5e-4)
    assert p_next_below(6) == 1 / 7


def test_the_95_percent_quantile_of_six_needs_59() -> None:
    found = quantile(SIX, 0.95, side="upper")
    assert found.value is None
    assert found.needs_n == 59


def test_the_median_of_six_is_bounded_by_its_extremes() -> None:
    found = quantile(SIX, 0.5)
    assert (found.value, found.low, found.high) == (47_365, 31_211, 62_616)


def test_a_p99_of_fifty_is_declined() -> None:
    assert str(quantile(range(50), 0.99)).startswith("needs n >= 368")


@pytest.mark.parametrize("n", [6, 20, 59, 100, 333])
@pytest.mark.parametrize("q", [0.05, 0.5, 0.8, 0.95])
@pytest.mark.parametrize(("side", "alternative"), [("two", "two-sided"), ("upper", "less"), ("lower", "greater")])
def test_ends_are_those_of_scipy(n: int, q: float, side: str, alternative: str) -> None:
    x = np.random.default_rng(n).permutation(10 * n)[:n].astype(float)
    theirs = quantile_test(x, q=0.0, p=q, alternative=alternative).confidence_interval(0.95)
    ours = quantile(x, q, side=side)  # type: ignore[arg-type]
    if np.isnan([theirs.low, theirs.high]).any():
        assert not ours.estimable
    else:
        assert (ours.low, ours.high) == (theirs.low, theirs.high)


def test_the_size_that_is_asked_for_suffices_and_one_less_does_not() -> None:
    for q, side in ((0.5, "two"), (0.95, "two"), (0.95, "upper"), (0.05, "lower")):
        n = quantile_n(q, side=side)  # type: ignore[arg-type]
        assert quantile(range(n), q, side=side).estimable  # type: ignore[arg-type]
        assert not quantile(range(n - 1), q, side=side).estimable  # type: ignore[arg-type]


def test_values_that_were_never_reached_count_and_bound_nothing() -> None:
    x = [*range(60), *[math.inf] * 40]
    assert quantile(x, 0.4).high == 50
    found = quantile(x, 0.7)
    assert found.value is None
    assert isinstance(found.interval, NotEstimable)
    assert (found.interval.needs_n, found.interval.above) == (None, 59)


def test_the_largest_quantile_that_is_bounded_is_the_binomial_bound() -> None:
    q = largest_quantile(60, 100)
    x = [*range(60), *[math.inf] * 40]
    assert quantile(x, q - 1e-6).estimable
    assert not quantile(x, q + 1e-6).estimable


def test_an_empty_sample_needs_values() -> None:
    assert quantile([], 0.5).needs_n == 6


@pytest.mark.parametrize("bad", [[1.0, math.nan], [[1.0]], ["a"]])
def test_unknown_values_have_to_be_set_apart(bad: list[object]) -> None:
    with pytest.raises(InputError, match=r"^values: expected"):
        quantile(bad, 0.5)


def test_a_wrong_n_is_refused() -> None:
    with pytest.raises(InputError, match=r"^n: expected a whole number of runs >= 1, got 0"):
        coverage_of_minimum(0)


@given(st.lists(st.integers(0, 50), min_size=6, max_size=60), st.sampled_from([0.5, 0.6]))
def test_the_value_lies_within_its_interval(values: list[int], q: float) -> None:
    found = quantile(values, q)
    if found.value is not None:
        assert found.holds(found.value)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 99), min_size=12, max_size=40), st.integers(0, 99))
def test_order_and_names_of_clusters_do_not_matter(values: list[int], seed: int) -> None:
    x, labels = np.array(values), np.arange(len(values)) % 6
    order = np.random.default_rng(seed).permutation(x.size)
    names = np.array(list("zyxwvu"))[labels]
    one, other = quantile(x, 0.5, clusters=labels), quantile(x[order], 0.5, clusters=names[order])
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    assert one.effective_n == pytest.approx(other.effective_n)


def test_too_few_clusters_give_no_interval() -> None:
    found = quantile(range(100), 0.5, clusters=np.arange(100) % 4)
    assert str(found.interval) == "needs clusters >= 5: 4 cluster(s)"
    assert found.value == 49


def test_a_far_quantile_needs_clusters_beyond_it() -> None:
    found = quantile(range(1000), 0.9, clusters=np.arange(1000) % 12)
    assert isinstance(found.interval, NotEstimable)
    assert (found.interval.needs_n, found.interval.of) == (20, "clusters")


def _covers(*, clustered: bool, q: float, repetitions: int, seed: int) -> float:
    """Share of intervals that hold the true quantile, of those that were given."""
    rng, held = np.random.default_rng(seed), []
    label = np.repeat(np.arange(20), 10) if clustered else None
    for _ in range(repetitions):
        x = rng.normal(size=200)
        if clustered:
            x = np.sqrt(0.7) * x + np.sqrt(0.3) * np.repeat(rng.normal(size=20), 10)
        holds = quantile(x, q, clusters=label).holds(norm.ppf(q))
        held += [] if holds is None else [holds]
    return float(np.mean(held))


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_cover_at_their_rate(clustered: bool) -> None:
    assert _covers(clustered=clustered, q=0.5, repetitions=300, seed=1) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
def test_intervals_cover_at_their_rate_in_many_repetitions(clustered: bool, q: float) -> None:
    assert _covers(clustered=clustered, q=q, repetitions=2000, seed=2) >= 0.935


def test_intervals_that_ignore_clusters_cover_too_seldom() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        x = np.sqrt(0.7) * rng.normal(size=200) + np.sqrt(0.3) * np.repeat(rng.normal(size=20), 10)
        held += bool(quantile(x, 0.5).holds(0))
    assert held / 200 < 0.85
