from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.stats import NotEstimable, cumulative_incidence, incidence_quantile, kaplan_meier, quantile
from harness_lab.stats.resampled import MAX_UNITS, resampled_incidence


def test_a_curve_with_failures_and_a_stop_worked_by_hand() -> None:
    """Six runs: completed at 1, failed at 2, stopped at 3, completed at 4, failed at 4, completed at 5."""
    curve = cumulative_incidence([1, 2, 3, 4, 4, 5], [1, 2, 0, 1, 2, 1])
    at_4 = 1 / 6 + (4 / 6) * (1 / 3)
    assert curve.time.tolist() == [1, 2, 4, 5]
    assert curve.at_risk.tolist() == [6, 5, 3, 1]
    assert curve.incidence.tolist() == pytest.approx([1 / 6, 1 / 6, at_4, at_4 + (4 / 6) * (1 / 3)])
    assert (curve.events, curve.competing, curve.censored) == (3, 2, 1)


def test_taking_failures_for_stops_overstates_completion() -> None:
    x, cause = np.arange(1, 11), np.array([2, 1, 2, 2, 1, 2, 2, 1, 2, 2])
    wrong = 1 - kaplan_meier(x, cause == 1).survival[-1]
    right = cumulative_incidence(x, cause).incidence[-1]
    assert right == pytest.approx(0.3)
    assert wrong > 0.5


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=2, max_size=40))
def test_without_competition_it_is_one_minus_kaplan_meier_with_the_same_band(rows: list[tuple[int, bool]]) -> None:
    x, ended = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    curve, other = cumulative_incidence(x, ended.astype(int)), kaplan_meier(x, ended)
    place = np.searchsorted(other.time, curve.time)
    inside = curve.incidence < 1 - 1e-12
    assert curve.incidence == pytest.approx(1 - other.survival[place])
    assert curve.low[inside] == pytest.approx(1 - other.high[place][inside])
    assert curve.high[inside] == pytest.approx(1 - other.low[place][inside])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 2)), min_size=1, max_size=40))
def test_incidences_and_what_goes_on_add_up_to_one(rows: list[tuple[int, int]]) -> None:
    x, cause = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    both = [cumulative_incidence(x, cause, of=of).incidence for of in (1, 2)]
    rest = cumulative_incidence(x, (cause > 0).astype(int)).incidence
    assert both[0] + both[1] == pytest.approx(rest)


def test_without_stops_the_quantile_is_that_of_order_statistics() -> None:
    x, cause = np.arange(1, 101), np.where(np.arange(100) % 5 == 0, 2, 1)
    assert incidence_quantile(x, cause, 0.5) == quantile(np.where(cause == 1, x, np.inf), 0.5)


def test_stops_beyond_the_interval_change_nothing() -> None:
    x = np.arange(1, 101)
    stopped = x > 80
    cut = incidence_quantile(np.minimum(x, 80), (~stopped).astype(int), 0.5)
    assert cut == quantile(x, 0.5)


def test_a_quantile_beyond_the_stops_is_declined_with_the_largest_that_is_supported() -> None:
    x = np.arange(1, 101)
    found = incidence_quantile(np.minimum(x, 30), (x <= 30).astype(int), 0.5)
    assert found.value is None
    assert isinstance(found.interval, NotEstimable)
    assert found.interval.supported == pytest.approx(0.22, abs=0.01)
    assert incidence_quantile(np.minimum(x, 30), (x <= 30).astype(int), found.interval.supported - 0.001).estimable


def test_one_sided_bounds_are_closer_than_two_sided_ones() -> None:
    rng = np.random.default_rng(0)
    need, stop = rng.exponential(1, 200), rng.exponential(2, 200)
    x, cause = np.minimum(need, stop), (need <= stop).astype(int)
    two, upper = (incidence_quantile(x, cause, 0.6, side=side) for side in ("two", "upper"))  # type: ignore[arg-type]
    assert two.high is not None
    assert upper.high is not None
    assert upper.high < two.high
    assert upper.low == -np.inf


def test_the_same_seed_gives_the_same_interval_for_clusters() -> None:
    rng = np.random.default_rng(0)
    x, cause, user = rng.exponential(1, 300), rng.integers(0, 3, 300), rng.integers(0, 20, 300)
    first, again = (incidence_quantile(x, cause, 0.2, clusters=user) for _ in range(2))
    assert first == again
    assert first.clusters == 20


@pytest.mark.parametrize("cause", [[1], [1, -1], [True, False], [0.5, 1.0]])
def test_a_cause_that_is_no_code_is_refused(cause: list[object]) -> None:
    with pytest.raises(InputError, match=r"^cause: expected one whole number >= 0 for each of 2 values"):
        cumulative_incidence([1, 2], cause)


def _covers(*, clustered: bool, repetitions: int, seed: int) -> float:
    """Coverage of the 0.4 quantile of completion under failures and stops; its truth comes from the design."""
    rng, held = np.random.default_rng(seed), []
    label = np.repeat(np.arange(25), 8) if clustered else None
    for _ in range(repetitions):
        z = rng.normal(size=200)
        if clustered:
            z = np.sqrt(0.75) * z + np.sqrt(0.25) * np.repeat(rng.normal(size=25), 8)
        fails, stop = rng.random(200) < 0.2, rng.exponential(4, 200)
        need = np.exp(0.6 * z)
        cause = np.where(need > stop, 0, np.where(fails, 2, 1))
        holds = incidence_quantile(np.minimum(need, stop), cause, 0.4, clusters=label).holds(1.0)  # 0.8 * 0.5
        held += [] if holds is None else [holds]
    return float(np.mean(held))


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_cover_under_failures_and_stops(clustered: bool) -> None:
    assert _covers(clustered=clustered, repetitions=200, seed=1) >= 0.91


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_cover_under_failures_and_stops_in_many_repetitions(clustered: bool) -> None:
    assert _covers(clustered=clustered, repetitions=2000, seed=2) >= 0.935


def test_many_clusters_are_drawn_in_sets_and_their_variance_stays_theirs() -> None:
    """Pairs of equal runs: at the median the incidence varies as that of half as many independent runs."""
    pairs = 4 * MAX_UNITS
    x = np.repeat(np.arange(pairs, dtype=np.float64), 2)
    ended = np.ones(x.size, dtype=np.bool_)
    found = resampled_incidence(x, ended, ended, np.repeat(np.arange(pairs), 2), draws=(400, 0))
    middle = int(np.searchsorted(found.edges, pairs / 2))
    assert found.variance[middle] == pytest.approx(0.25 / pairs, rel=0.3)


@pytest.mark.parametrize("n", [20, 100, 367])
def test_a_tail_that_so_few_values_cannot_bound_is_not_bounded_because_some_were_stopped(n: int) -> None:
    x, cause = np.arange(1.0, n + 1), np.ones(n, dtype=np.int64)
    cause[n // 2 :] = 0
    for found in (incidence_quantile(x, cause, 0.01), quantile(x, 0.01)):
        assert (found.value, found.needs_n) == (None, 368)
