from __future__ import annotations

import numpy as np
import pytest

from harness_lab.errors import InputError
from harness_lab.stats import fit

RNG = np.random.default_rng(0)
LOGNORMAL = RNG.lognormal(7, 0.8, 400)


def test_the_family_that_made_the_sample_is_found() -> None:
    found = fit(LOGNORMAL)
    assert found.distribution.dist == "lognorm"
    assert dict(found.distribution.params)["s"] == pytest.approx(0.8, abs=0.06)
    assert found.candidates[0].p_value is not None
    assert found.candidates[0].p_value > 0.05


def test_a_fit_is_reproducible() -> None:
    assert fit(LOGNORMAL, seed=3) == fit(LOGNORMAL, seed=3)


def test_few_values_stay_what_they_are_and_the_reason_is_visible() -> None:
    found = fit(LOGNORMAL[:12])
    assert found.distribution.dist == "empirical"
    assert found.reason == "n = 12 is too few to choose a family (30 needed)"
    assert "n = 12 is too few" in found.summary()


def test_two_humps_fit_no_family() -> None:
    humps = np.concatenate([RNG.normal(100, 3, 200), RNG.normal(200, 3, 200)])
    found = fit(humps)
    assert found.distribution.dist == "empirical"
    assert "is rejected" in found.reason


def test_whole_numbers_with_zeros_can_be_fitted() -> None:
    found = fit(RNG.poisson(3, 300))
    assert found.distribution.dist != "empirical"
    assert dict(found.distribution.params)["loc"] == -0.5


def test_ties_of_few_values_stay_empirical() -> None:
    found = fit([1.0, 2.0, 4.0] * 20)
    assert found.reason == "fewer than five distinct values"


def test_values_below_the_floor_are_no_sample_of_a_family_that_begins_there() -> None:
    assert fit(LOGNORMAL, floor=1e4).reason == "values lie at or below the floor 10,000"
    shifted = fit(LOGNORMAL + 1e4, floor=1e4, resamples=0)
    assert dict(shifted.distribution.params)["loc"] == 1e4


def test_stopped_runs_are_allowed_for() -> None:
    cap = 1500.0
    cut = fit(np.minimum(LOGNORMAL, cap), censored=cap < LOGNORMAL, families=("lognorm",))
    assert dict(cut.distribution.params)["scale"] == pytest.approx(np.exp(7), rel=0.1)
    assert cut.censored == int((cap < LOGNORMAL).sum())
    naive = fit(np.minimum(LOGNORMAL, cap), families=("lognorm",), resamples=0)
    assert dict(naive.distribution.params)["scale"] < dict(cut.distribution.params)["scale"]


def test_an_empirical_fallback_with_stopped_runs_says_that_its_tail_is_understated() -> None:
    found = fit([1.0, 2.0, 3.0], censored=np.array([False, False, True]))
    assert "the tail is understated" in found.reason


def test_no_values_are_refused() -> None:
    with pytest.raises(InputError, match=r"^values: expected at least one value"):
        fit([])


def test_a_page_shows_the_fit_with_its_names_escaped() -> None:
    assert fit(LOGNORMAL[:12])._repr_html_().startswith("<pre>empirical (n = 12)")
    assert "parametric bootstrap" in fit(LOGNORMAL[:12]).explain()
