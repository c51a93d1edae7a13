"""Selection keeps its promise: best chosen at least as often as stated, on common draws and with unequal variances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from harness_lab.errors import InputError
from harness_lab.stats import Race, maybe_best, select_best

K = 4


def common(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 2, n) + rng.normal(0, 1, (K, n)) + np.array([[0.3], [0], [0], [0]])


def unequal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1, (K, n)) * np.array([[0.5], [1], [3], [2]]) + np.array([[0.3], [0], [0], [0]])


def noisy_best(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1, (K, n)) * np.array([[3], [1], [0.5], [0.5]]) + np.array([[0.3], [0], [0], [0]])


def completion(rng: np.random.Generator, n: int) -> np.ndarray:
    return (rng.random(n) < np.array([[0.95], [0.65], [0.65], [0.65]])).astype(float)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return -rng.lognormal(0, 1, n) * rng.lognormal(0, 0.3, (K, n)) * np.array([[0.8], [1], [1], [1]])


WORLDS = [(common, 0.3), (unequal, 0.3), (noisy_best, 0.3), (completion, 0.3), (skewed, 0.2 * float(np.exp(0.545)))]


def chosen_first(world, indifference: float, repeats: int) -> int:
    found = [select_best(world(np.random.default_rng(s), 6000), indifference=indifference) for s in range(repeats)]
    return sum(one.chosen == 0 for one in found)


@pytest.mark.parametrize(("world", "indifference"), WORLDS)
def test_the_best_is_chosen_at_least_as_often_as_promised(world, indifference: float) -> None:
    assert binomtest(chosen_first(world, indifference, 120), 120, 0.95, alternative="less").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("world", "indifference"), WORLDS)
def test_the_best_is_chosen_as_promised_over_2000_repetitions(world, indifference: float) -> None:
    assert binomtest(chosen_first(world, indifference, 2000), 2000, 0.95, alternative="less").pvalue > 0.01


def test_common_draws_need_fewer_runs_than_independent_ones() -> None:
    rng = np.random.default_rng(1)
    luck = rng.normal(0, 3, 8000)
    gap = np.array([[0.2], [0.0]])
    paired = select_best(luck + rng.normal(0, 0.5, (2, 8000)) + gap, indifference=0.2)
    apart = select_best(rng.normal(0, 3, (2, 8000)) + gap, indifference=0.2)
    assert 4 * paired.used < apart.used


def test_too_few_runs_choose_nobody_and_say_how_many_are_needed() -> None:
    found = select_best(np.random.default_rng(0).normal(0, 1, (3, 150)), indifference=0.05)
    assert found.chosen is None
    assert found.needs > 1000


def test_fed_in_blocks_or_at_once_is_the_same() -> None:
    values = common(np.random.default_rng(5), 4000)
    race, found = Race(K, indifference=0.3), None
    for start in range(0, 4000, 37):
        found = race.feed(values[:, start : start + 37])
        if found.chosen is not None:
            break
    whole = select_best(values, indifference=0.3)
    assert (found.chosen, found.out_at, found.used) == (whole.chosen, whole.out_at, whole.used)


def test_identical_alternatives_end_without_a_wrong_claim() -> None:
    found = select_best(np.ones((2, 3000)), indifference=0.1)
    assert found.chosen in (0, 1)
    assert found.used == 1000  # the first stage is extended where nothing differs


@pytest.mark.parametrize("clustered", [False, True])
def test_the_set_of_the_best_holds_the_best(clustered: bool) -> None:
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(20), 5) if clustered else None
        values = rng.normal(0, 1, (3, 100)) + np.array([[0.1], [0.0], [-0.5]])
        if group is not None:
            values = values + rng.normal(0, 1, (3, 20))[:, group]
        held += 0 in maybe_best(values, clusters=group)
    assert held >= 181  # 1 % of binomial draws at 0.95 lie below


def test_a_race_refuses_what_it_cannot_use() -> None:
    with pytest.raises(InputError, match=r"^indifference"):
        Race(2, indifference=0)
    with pytest.raises(InputError, match=r"^alternatives"):
        Race(1, indifference=1)
    with pytest.raises(InputError, match=r"^block"):
        Race(2, indifference=1).feed([[1.0, np.nan], [1.0, 2.0]])
