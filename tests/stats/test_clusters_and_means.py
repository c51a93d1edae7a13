from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, ttest_1samp

from harness_lab.errors import InputError
from harness_lab.stats import NotEstimable, cluster_effect, mean, ratio, share
from harness_lab.stats.extremes import lower_end
from harness_lab.stats.means import AMOUNT, SHARE
from harness_lab.stats.shares import wilson


def test_values_alike_within_clusters_are_worth_one_each() -> None:
    found = cluster_effect([1, 1, 5, 5, 9, 9], list("aabbcc"))
    assert (found.icc, found.design_effect, found.effective_n) == (1.0, 2.0, 3.0)


def test_clusters_of_one_are_no_clusters() -> None:
    assert cluster_effect([1.0, 2.0, 3.0], ["a", "b", "c"]).effective_n == 3


def test_uneven_clusters_count_as_fewer() -> None:
    found = cluster_effect(np.arange(12), ["a"] * 10 + ["b", "c"])
    assert found.clusters == 3
    assert found.effective_clusters == pytest.approx(144 / 102)
    assert "which count as 1.4 equal ones" in str(found.too_few())


def test_one_label_is_needed_for_each_value() -> None:
    with pytest.raises(InputError, match=r"^clusters: expected one label for each of 2 values"):
        cluster_effect([1, 2], ["a"])


def test_a_mean_without_skewness_has_the_interval_of_students_t() -> None:
    half = np.random.default_rng(0).normal(size=15)
    x = np.concatenate([half, -half]) + 2
    theirs = ttest_1samp(x, 0).confidence_interval(0.95)
    found = mean(x)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_the_interval_of_a_skewed_mean_reaches_further_up_than_down() -> None:
    found = mean(np.random.default_rng(0).lognormal(0, 1, 100))
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.value > 1.1 * (found.value - found.low)


def test_equal_values_have_an_interval_of_width_zero_and_say_so() -> None:
    found = mean([2.0] * 5)
    assert (found.value, found.low, found.high, found.note) == (2, 2, 2, "identical in all 5 values")


def test_one_value_has_no_interval_and_none_has_no_value() -> None:
    assert mean([2.0]).needs_n == 2
    assert mean([]).value is None


def test_a_ratio_is_that_of_the_sums() -> None:
    found = ratio([1.0, 0.0, 3.0], [2.0, 2.0, 4.0])
    assert found.value == 0.5
    assert ratio([0.0], [0.0]).value is None


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_share_has_wilsons_interval(hits: list[bool]) -> None:
    theirs = binomtest(sum(hits), len(hits)).proportion_ci(0.95, method="wilson")
    found = share(hits)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_many_shares_at_once_are_the_same() -> None:
    low, high = wilson([0, 3, 10], 10)
    one = share([True] * 3 + [False] * 7)
    assert (low[1], high[1]) == pytest.approx((one.low, one.high))
    assert (low[0], high[2]) == (0, 1)


def test_a_share_where_all_clusters_agree_rests_on_the_clusters() -> None:
    found = share(np.ones(100, dtype=bool), clusters=np.arange(100) % 10)
    assert found.high == 1
    assert found.low is not None
    assert 0.5 < found.low < 0.75  # as good as ten runs at most, not as a hundred


def test_shares_without_runs_or_with_few_clusters_have_no_interval() -> None:
    assert share(np.array([], dtype=bool)).value is None
    assert isinstance(share([True, False] * 4, clusters=[1, 2] * 4).interval, NotEstimable)


def test_the_lower_end_lies_below_the_minimum_by_the_gap() -> None:
    found = lower_end([130.0, 100.0, 110.0], confidence=0.5)
    assert (found.low, found.high) == (90, 100)
    assert lower_end([5]).needs_n == 2


def _covers(kind: str, *, repetitions: int, seed: int) -> float:
    """Coverage with 15 clusters of uneven size and a correlation of 0.3."""
    rng, held = np.random.default_rng(seed), []
    for _ in range(repetitions):
        label = np.repeat(np.arange(15), rng.integers(5, 16, 15))
        z = np.sqrt(0.7) * rng.normal(size=label.size) + np.sqrt(0.3) * rng.normal(size=15)[label]
        found = mean(z, clusters=label) if kind == "mean" else share(z > 0.5, clusters=label)
        held.append(found.holds(0.0 if kind == "mean" else float(norm.sf(0.5))))
    return float(np.mean(held))


@pytest.mark.parametrize("kind", ["mean", "share"])
def test_intervals_over_clusters_cover_at_their_rate(kind: str) -> None:
    assert _covers(kind, repetitions=300, seed=1) >= 0.91


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mean", "share"])
def test_intervals_over_clusters_cover_at_their_rate_in_many_repetitions(kind: str) -> None:
    assert _covers(kind, repetitions=2000, seed=2) >= 0.935


@pytest.mark.parametrize("clusters", [12, 20])
def test_the_interval_of_a_lower_end_covers(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    held = [lower_end(100 + rng.exponential(1000, 200)).holds(100) for _ in range(300)]
    assert np.mean(held) >= 0.91


def test_the_mean_of_an_amount_is_never_below_nothing_and_a_share_never_above_one() -> None:
    rare = np.r_[np.zeros(60), 50.0]
    assert mean(rare).low < 0  # type: ignore[operator]
    assert mean(rare, within=AMOUNT).low == 0
    assert mean(rare, within=AMOUNT).high == mean(rare).high
    most = ratio(np.r_[np.ones(40), 0.2], np.ones(41), within=SHARE)
    assert most.high == 1
    refunds = mean(-rare, within=AMOUNT)  # what is not an amount is not made one
    assert refunds.value is not None
    assert refunds.low is not None
    assert refunds.low < refunds.value < 0
