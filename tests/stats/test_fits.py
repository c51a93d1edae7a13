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


def humps(n: int = 600, *, seed: int = 1) -> np.ndarray:
    """Make two kinds of run: three in five around 1,100, the others around 36,000."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.lognormal(7, 0.3, 3 * n // 5), rng.lognormal(10.5, 0.5, 2 * n // 5)])


def test_two_humps_fit_no_family_and_the_mixture_is_named() -> None:
    found = fit(humps())
    assert found.distribution.dist == "empirical"
    assert "is rejected" in found.reason
    assert found.mixture is not None
    low, high = found.mixture.mixture.parts
    assert low.weight == pytest.approx(0.6, abs=0.03)
    assert (low.median, high.median) == (pytest.approx(np.exp(7), rel=0.1), pytest.approx(np.exp(10.5), rel=0.15))
    assert found.mixture.p_value > 0.05
    assert "a mixture of 2 lognormals: 60" in found.summary()
    assert found.mixture.heldout > found.candidates[0].heldout


def test_three_kinds_of_run_are_three_parts_in_whole_numbers_too() -> None:
    more = np.random.default_rng(2).lognormal(13, 0.3, 300)
    found = fit(np.round(np.concatenate([humps(), more])), resamples=39)
    assert found.mixture is not None
    assert [round(part.weight, 1) for part in found.mixture.mixture.parts] == [0.4, 0.3, 0.3]


def test_a_mixture_is_never_named_on_too_few_values_or_where_one_family_will_do() -> None:
    assert fit(humps(60)).mixture is None  # rejected, but 60 values are too few for parts
    assert fit(LOGNORMAL).mixture is None
    assert fit(humps(), censored=np.arange(600) > 590).mixture is None


def test_one_lognormal_is_rarely_taken_for_two() -> None:
    named = sum(
        fit(np.random.default_rng(s).lognormal(7, 0.8, 150), resamples=39).mixture is not None for s in range(10)
    )
    assert named <= 1


def test_a_shape_that_is_no_mixture_is_not_called_one() -> None:
    assert fit(np.random.default_rng(0).uniform(1, 100, 300), resamples=39).mixture is None


def test_the_parts_make_the_distribution_function() -> None:
    found = fit(humps(), resamples=39)
    assert found.mixture is not None
    drawn = found.mixture.mixture.rvs(20_000, np.random.default_rng(0))
    middle = np.quantile(drawn, [0.1, 0.5, 0.9])
    assert found.mixture.mixture.cdf(middle) == pytest.approx([0.1, 0.5, 0.9], abs=0.02)
    assert found.mixture.mixture.mean() == pytest.approx(drawn.mean(), rel=0.05)
    assert len(found.to_frame()) == len(found.candidates) + 1


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
