from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial, norm, ttest_rel
from statsmodels.stats.contingency_tables import mcnemar

from harness_lab.errors import InputError
from harness_lab.stats import holm, paired_difference, paired_shares


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


SHARES = [
    (0, 0),
    (0.02, 0),
    (0.02, 0.02),
    (0.1, 0.05),
    (0.3, 0.1),
    (0.5, 0),
    (0.5, 0.4),
    (0.98, 0),
    (0.95, 0.03),
    (1, 0),
]
"""Chances that a pair differs the one way and the other."""


@pytest.mark.parametrize(("n", "least"), [(10, 0.939), (20, 0.935), (50, 0.945)])
def test_intervals_of_paired_shares_cover_whatever_is_true(n: int, least: float) -> None:
    """Not by drawing: the chance of every table of pairs, added up where its interval holds."""
    tables = [(more, less) for more in range(n + 1) for less in range(n + 1 - more)]
    ends = np.array([_ends_of(n, more, less) for more, less in tables])
    counts = np.array([(more, less, n - more - less) for more, less in tables])
    for up, down in SHARES:
        chance = multinomial.pmf(counts, n, [up, down, 1 - up - down])
        truth = up - down
        covered = chance[(ends[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1])].sum()
        assert covered >= least, (up, down)


def _ends_of(n: int, more: int, less: int) -> tuple[float, float]:
    first, second = np.zeros(n), np.zeros(n)
    second[:more] = 1
    first[more : more + less] = 1
    found = paired_shares(first, second).difference
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= (more - less) / n <= found.high <= 1
    return found.low, found.high


def test_the_p_value_of_paired_shares_is_mcnemars() -> None:
    first, second = np.repeat([0, 1, 1], [30, 12, 158]), np.repeat([1, 0, 1], [30, 12, 158])
    theirs = mcnemar([[158, 12], [30, 0]], exact=True)
    assert paired_shares(first, second).p_value == pytest.approx(theirs.pvalue)


def _covers_clustered(*, repetitions: int, seed: int) -> float:
    """Coverage where whole clusters share their luck: 40 clusters of 3 to 9 runs, a tenth of which differ."""
    rng, held = np.random.default_rng(seed), []
    for _ in range(repetitions):
        group = np.repeat(np.arange(40), rng.integers(3, 10, 40))
        gain = np.where(rng.random(40) < 0.5, 0.2, 0.0)[group]  # half of the clusters gain, by a fifth
        first = rng.random(group.size) < 0.6
        second = first | (rng.random(group.size) < gain)
        held.append(paired_shares(first, second, clusters=group).difference.holds(0.4 * 0.1))
    return float(np.mean(held))


def test_intervals_of_clustered_paired_shares_cover() -> None:
    assert _covers_clustered(repetitions=300, seed=3) >= 0.91


@pytest.mark.slow
def test_intervals_of_clustered_paired_shares_cover_in_many_repetitions() -> None:
    assert _covers_clustered(repetitions=2000, seed=4) >= 0.94


def test_pairs_that_all_differ_alike_say_nothing_of_runs_that_might_not() -> None:
    a = np.arange(50.0)
    alike = paired_difference(a, a + 1)
    assert not alike.difference.estimable
    assert alike.p_value == pytest.approx(
        2 * 0.5**50
    )  # that they differ one way is sure; by how much on average is not
    assert str(alike.difference.interval) == "not estimable: all 50 pairs differ by the same"
    nearly = paired_difference(a, np.where(a < 2, a, a + 1))
    assert str(nearly.difference.interval) == "needs n >= 250: only 2 of 50 pairs differ otherwise than the rest"
    assert paired_shares(np.zeros(50), np.ones(50)).difference.holds(0.98)
