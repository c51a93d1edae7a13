from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, ttest_rel

from harness_lab.errors import InputError
from harness_lab.stats import holm, paired_difference


def test_without_skewness_the_interval_and_p_value_are_those_of_the_paired_t_test() -> None:
    half = np.random.default_rng(0).normal(size=20)
    a, b = np.zeros(40), 0.3 + np.concatenate([half, -half])
    theirs = ttest_rel(b, a)
    ci = theirs.confidence_interval(0.95)
    found = paired_difference(a, b)
    assert (found.difference.low, found.difference.high) == pytest.approx((ci.low, ci.high))
    assert found.p_value == pytest.approx(theirs.pvalue)


def test_identical_runs_have_no_difference_and_say_so() -> None:
    found = paired_difference(np.arange(20), np.arange(20))
    assert (found.difference.low, found.difference.high, found.p_value, found.identical) == (0, 0, 1, 20)
    assert found.difference.note.startswith("identical in all 20 runs")


def test_a_handful_of_runs_that_differ_supports_no_interval() -> None:
    a = np.arange(240.0)
    found = paired_difference(a, np.where(a < 3, a + 1, a))
    assert str(found.difference.interval) == "needs n >= 800: only 3 of 240 pairs differ"
    assert found.p_value is None


def test_nine_pairs_have_no_interval() -> None:
    found = paired_difference(np.arange(9), np.arange(9) * 1.1)
    assert found.difference.needs_n == 10
    assert found.p_value is None


def test_pairing_on_the_same_luck_shrinks_the_variance() -> None:
    luck = np.random.default_rng(0).normal(size=200)
    noise = np.random.default_rng(1).normal(size=200)
    found = paired_difference(luck, luck + 0.1 * noise)
    assert found.variance_ratio is not None
    assert found.variance_ratio < 0.01
    assert found.correlation == pytest.approx(1, abs=0.01)


def test_policies_that_never_vary_have_no_ratio_and_no_correlation() -> None:
    found = paired_difference(np.ones(12), np.ones(12))
    assert (found.variance_ratio, found.correlation) == (None, None)


def test_too_few_clusters_give_no_interval_and_no_p_value() -> None:
    found = paired_difference(np.arange(20), np.arange(20) * 1.1, clusters=np.arange(20) % 3)
    assert found.difference.needs_n == 5
    assert found.p_value is None


def test_unpaired_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"^second: expected 3 values, one for each of `first`, got '2'"):
        paired_difference([1, 2, 3], [1, 2])


def test_holm_worked_by_hand() -> None:
    """Holm's steps: 4 x 0.005, 3 x 0.01, 2 x 0.03 and 0.04 raised to it."""
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_only_raises_and_keeps_the_order(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_equal_policies_are_told_apart_no_more_often_than_stated() -> None:
    rng, false = np.random.default_rng(0), 0
    for _ in range(300):
        base, *others = rng.lognormal(0, 0.5, size=(4, 60))
        p = [paired_difference(base, other).p_value for other in others]
        false += bool((holm([x for x in p if x is not None]) <= 0.05).any())
    assert false / 300 <= 0.08


def _covers_skewed(*, repetitions: int, seed: int) -> float:
    """Coverage for log-normal spend capped at 2: the mean of what is cut off has a closed form."""
    rng, sd = np.random.default_rng(seed), 0.6
    beyond = np.exp(sd**2 / 2) * norm.cdf((sd**2 - np.log(2)) / sd) - 2 * norm.sf(np.log(2) / sd)
    held = []
    for _ in range(repetitions):
        need = rng.lognormal(0, sd, 200)
        held.append(paired_difference(need, np.minimum(need, 2.0)).difference.holds(-beyond))
    return float(np.mean(held))


def test_intervals_of_skewed_differences_cover() -> None:
    assert _covers_skewed(repetitions=300, seed=1) >= 0.91


@pytest.mark.slow
def test_intervals_of_skewed_differences_cover_in_many_repetitions() -> None:
    assert _covers_skewed(repetitions=2000, seed=2) >= 0.935
