"""Two-sample tests of draws against unseen records: they hold their level, see what differs, and respect clusters."""

from __future__ import annotations

import numpy as np
import pytest

from harness_lab.errors import InputError
from harness_lab.stats.two_sample import energy_distance, ks_distance, new_records_p

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _same_luck() -> None:
    """Begin each test with the same luck, whichever others ran before it."""
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state


def a_sample(n: int, mean: float = 0.0, d: int = 1) -> np.ndarray:
    return RNG.normal(mean, 1, (n, d))


def p_value(train: np.ndarray, held: np.ndarray, drawn: np.ndarray, clusters: np.ndarray | None = None) -> float:
    distance = ks_distance if train.shape[1] == 1 else energy_distance
    labels = np.arange(len(train) + len(held)) if clusters is None else clusters
    return new_records_p(train, held, drawn, clusters=labels, distance=distance, resamples=79, seed=1)[1]


def test_draws_of_the_same_kind_are_rejected_about_as_often_as_the_level_says() -> None:
    ps = [p_value(a_sample(60), a_sample(60), a_sample(150)) for _ in range(60)]
    assert np.mean(np.array(ps) < 0.1) == pytest.approx(0.1, abs=0.12)


def test_draws_that_lie_elsewhere_are_seen() -> None:
    assert p_value(a_sample(80), a_sample(80), a_sample(200, mean=1)) == pytest.approx(1 / 80)


def test_a_lost_correlation_is_seen_jointly_where_each_quantity_alone_is_right() -> None:
    records = a_sample(800, d=1) @ np.ones((1, 2)) + 0.2 * a_sample(800, d=2)
    drawn = np.column_stack([RNG.permutation(column) for column in records[:400].T])
    assert p_value(records[:400], records[400:], drawn) == pytest.approx(1 / 80)
    assert p_value(records[:400, :1], records[400:, :1], drawn[:, :1]) > 0.05


def test_a_clustered_sample_is_not_taken_for_an_independent_one() -> None:
    labels = np.repeat(np.arange(12), 30)
    rejected = np.zeros(2)
    for _ in range(25):
        records = RNG.normal(0, 2, 12)[labels][:, None] + a_sample(360)
        train, held = records[:180], records[180:]
        drawn = train[RNG.integers(0, 180, 300)]
        rejected += [p_value(train, held, drawn, labels) < 0.05, p_value(train, held, drawn) < 0.05]
    assert rejected[0] <= 4
    assert rejected[1] >= 15


def test_distances_are_nothing_between_a_sample_and_itself() -> None:
    both = a_sample(50, d=3)
    assert energy_distance(both, both) == pytest.approx(0, abs=1e-12)
    assert ks_distance(both[:, :1], both[:, :1]) == 0
    assert ks_distance(np.array([[0.0]]), np.array([[1.0]])) == 1


def test_empty_samples_and_a_single_cluster_are_refused() -> None:
    one = a_sample(5)
    with pytest.raises(InputError, match=r"^samples: expected"):
        new_records_p(one, one[:0], one, clusters=np.arange(5), distance=ks_distance)
    with pytest.raises(InputError, match=r"^clusters: expected at least two"):
        new_records_p(one, one, one, clusters=np.zeros(10, dtype=np.int64), distance=ks_distance)
