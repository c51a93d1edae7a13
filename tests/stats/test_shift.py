"""Shifts and change points: against scipy, and against a truth that is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, brunnermunzel, kstest, wasserstein_distance

from harness_lab.errors import InputError
from harness_lab.stats import change_point, shift
from harness_lab.stats.shift import difference_of_shares, placements


def test_without_clusters_the_p_value_is_scipys() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 40), np.round(rng.normal(0.3, 2, 30), 1)
    found = shift(a, b)
    assert found.p_value == pytest.approx(brunnermunzel(a, b).pvalue)
    assert found.distance == pytest.approx(wasserstein_distance(a, b))


def test_placements_count_ties_half() -> None:
    above, below = placements(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    assert above.tolist() == [1.0, 0.75]
    assert below.tolist() == [0.75, 1.0]


def test_samples_that_do_not_overlap_are_bounded_not_certain() -> None:
    found = shift(range(10), range(100, 120))
    assert found.chance.value == 1
    assert found.chance.low == pytest.approx(0.05 ** (1 / 10))
    assert found.p_value == pytest.approx(2 * 0.5**10)


def test_equal_constant_samples_have_not_moved() -> None:
    found = shift([3.0] * 9, [3.0] * 9)
    assert (found.chance.value, found.p_value) == (0.5, 1.0)


def test_too_few_values_or_clusters_are_declined() -> None:
    assert shift([1, 2, 3], range(50)).chance.needs_n == 5
    few = shift(range(40), range(40), clusters_old=[0] * 40, clusters_new=[1] * 40)
    assert few.p_value is None
    assert few.difference.interval.of == "clusters"


def test_labels_for_one_sample_alone_are_refused() -> None:
    with pytest.raises(InputError, match=r"^clusters"):
        shift([1, 2], [1, 2], clusters_old=[0, 1])


def test_a_difference_of_shares_has_agresti_and_caffos_interval() -> None:
    found = difference_of_shares([False] * 20, [True] * 5 + [False] * 15)
    p, q, n = 1 / 22, 6 / 22, 22
    assert found.low == pytest.approx(q - p - 1.959964 * np.sqrt(p * (1 - p) / n + q * (1 - q) / n), abs=1e-6)


def clustered(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray]:
    group = np.repeat(np.arange(k), 8)
    return rng.normal(0, 1, k)[group] + rng.normal(0, 1, group.size), group


def independent(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    found = shift(rng.lognormal(0, 1, 60), rng.lognormal(0, 1, 80))
    return found.difference, found.chance


def apart(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    (a, ca), (b, cb) = clustered(rng, 15), clustered(rng, 12)
    found = shift(a, b, clusters_old=ca, clusters_new=cb + 100)
    return found.difference, found.chance


def straddling(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    base, group = clustered(rng, 15)
    found = shift(base, base + rng.normal(0, 0.5, group.size), clusters_old=group, clusters_new=group)
    return found.difference, found.chance


def held(world, truths: tuple[float, ...], repeats: int) -> list[float]:
    hits = np.array([[e.holds(t) for e, t in zip(world(seed), truths, strict=True)] for seed in range(repeats)])
    return hits.mean(axis=0).tolist()


@pytest.mark.parametrize("world", [independent, apart, straddling])
def test_intervals_of_a_shift_cover(world) -> None:
    for share in held(world, (0.0, 0.5), 300):
        assert binomtest(round(300 * share), 300, 0.95, alternative="less").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("world", [independent, apart, straddling])
def test_intervals_of_a_shift_cover_over_2000_repetitions(world) -> None:
    for share in held(world, (0.0, 0.5), 2000):
        assert binomtest(round(2000 * share), 2000, 0.95, alternative="less").pvalue > 0.01


def series(seed: int, size: float) -> tuple:
    x = np.random.default_rng(seed).normal(0, 1, 200)
    x[80:] += size
    return (change_point(x).place,)


def by_session(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 1, 60) + np.where(np.arange(60) < 24, 0, 1.5)
    group = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    found = change_point(level[group] + rng.normal(0, 1, group.size), clusters=group)
    return found.place, int((group < 24).sum())


@pytest.mark.parametrize(("repeats"), [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_place_of_a_change_is_covered(repeats: int) -> None:
    for size in (0.7, 1.5):
        share = held(lambda seed, size=size: series(seed, size), (80.0,), repeats)[0]
        assert binomtest(round(repeats * share), repeats, 0.95, alternative="less").pvalue > 0.01
    clustered_hits = sum(place.holds(truth) for place, truth in map(by_session, range(repeats)))
    assert binomtest(clustered_hits, repeats, 0.95, alternative="less").pvalue > 0.01


def test_without_a_change_alarms_are_no_more_frequent_than_stated() -> None:
    alarms = sum((change_point(np.random.default_rng(s).exponential(size=80)).p_value or 1) < 0.05 for s in range(400))
    assert binomtest(alarms, 400, 0.05, alternative="greater").pvalue > 0.01


def test_p_values_without_a_shift_are_uniform() -> None:
    rng = np.random.default_rng(3)
    p = [shift(rng.exponential(size=40), rng.exponential(size=40)).p_value for _ in range(300)]
    assert kstest(p, "uniform").pvalue > 0.01


def test_a_short_series_is_declined() -> None:
    assert change_point(range(10)).place.needs_n == 20


@pytest.mark.parametrize("seed", range(20))
def test_a_set_against_itself_has_not_moved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, groups = rng.lognormal(0, 1, 700), rng.integers(0, 24, 700)
    found = shift(values, values, clusters_old=groups, clusters_new=groups)
    assert found.p_value in (None, 1.0)
    assert found.p_tail in (None, 1.0)
    assert found.chance.value == pytest.approx(0.5)
