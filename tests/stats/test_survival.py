from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from harness_lab.errors import InputError
from harness_lab.stats import NotEstimable, kaplan_meier
from harness_lab.stats.survival import mean_to_end

FREIREICH = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
"""Weeks in remission under 6-MP (Freireich et al. 1963), the textbook example of the method."""


def test_the_curve_is_the_textbook_one() -> None:
    curve = kaplan_meier(FREIREICH, np.array(RELAPSED, dtype=bool))
    at = dict(zip(curve.time.tolist(), curve.survival.tolist(), strict=True))
    published = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert {t: at[t] for t in published} == pytest.approx(published, abs=5e-4)


def test_the_median_is_published_and_its_upper_end_is_not_reached() -> None:
    curve = kaplan_meier(FREIREICH, np.array(RELAPSED, dtype=bool))
    found = curve.quantile(0.5)
    assert isinstance(found.interval, NotEstimable)  # published: 23 weeks, from 13 to beyond the data
    assert found.interval.supported == pytest.approx(curve.largest_quantile, abs=1e-4)
    assert kaplan_meier(FREIREICH, np.array(RELAPSED, dtype=bool)).time[np.argmax(curve.survival <= 0.5)] == 23


def test_a_small_curve_worked_by_hand() -> None:
    curve = kaplan_meier([1, 2, 2, 3, 4], [True, True, False, True, False])
    assert curve.survival.tolist() == pytest.approx([4 / 5, 4 / 5 * 3 / 4, 4 / 5 * 3 / 4 / 2, 0.3])
    assert curve.at_risk.tolist() == [5, 4, 2, 1]
    assert curve.events.tolist() == [1, 1, 1, 0]
    assert (curve.n, curve.censored) == (5, 2)


def test_the_band_is_the_log_log_one() -> None:
    curve = kaplan_meier(FREIREICH, np.array(RELAPSED, dtype=bool))
    s, z = curve.survival[0], norm.ppf(0.975)
    se = s * np.sqrt(3 / (21 * 18))  # Greenwood
    theta = np.exp(z * se / (s * np.log(s)))
    assert [curve.low[0], curve.high[0]] == pytest.approx([s ** (1 / theta), s**theta])


def test_where_all_have_ended_the_band_is_still_defined() -> None:
    curve = kaplan_meier([1, 2, 3], [True, True, True])
    assert np.isfinite([curve.low, curve.high]).all()
    assert (curve.low <= curve.survival).all()
    assert (curve.survival <= curve.high).all()


def test_the_quantile_of_complete_data_is_the_sample_quantile() -> None:
    found = kaplan_meier(range(1, 101), np.ones(100, dtype=bool)).quantile(0.5)
    assert found.value == 50
    assert (found.low, found.high) == pytest.approx((40, 60), abs=2)


def test_the_mean_is_the_area_under_the_curve() -> None:
    assert mean_to_end([2, 4, 6], [True, False, True]).value == pytest.approx(2 + 4 * 2 / 3)
    declined = mean_to_end([2, 4, 6], [True, True, False])
    assert str(declined.interval).startswith("not estimable: 33.3% of the runs go on")


@pytest.mark.parametrize(("values", "ended"), [([], []), ([1, 2], [True]), ([1, 2], [1, 0])])
def test_what_does_not_fit_is_refused(values: list[int], ended: list[object]) -> None:
    with pytest.raises(InputError):
        kaplan_meier(values, ended)


def _covers(repetitions: int, seed: int) -> float:
    rng, held = np.random.default_rng(seed), []
    for _ in range(repetitions):
        need, stop = rng.exponential(1, 120), rng.exponential(2, 120)
        holds = kaplan_meier(np.minimum(need, stop), need <= stop).quantile(0.5).holds(np.log(2))
        held += [] if holds is None else [holds]
    return float(np.mean(held))


def test_median_intervals_cover_under_random_stops() -> None:
    assert _covers(200, seed=1) >= 0.91


@pytest.mark.slow
def test_median_intervals_cover_under_random_stops_in_many_repetitions() -> None:
    assert _covers(2000, seed=2) >= 0.94
