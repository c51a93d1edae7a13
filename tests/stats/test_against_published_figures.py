"""Figures of second implementations, entered by hand: lifelines (it needs an older pandas), and R's examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import CensoredData, binomtest, ecdf

from harness_lab.stats import (
    coverage_of_minimum,
    cumulative_incidence,
    holm,
    kaplan_meier,
    quantile,
    shift,
    wilks_n,
)
from harness_lab.stats.shares import wilson

WEEKS = [9, 13, 13, 18, 23, 28, 31, 34, 45, 48, 161]
RELAPSED = np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0], dtype=bool)
"""R's ``survival::aml``, the maintained group."""


def test_kaplan_meier_is_that_of_rs_survfit() -> None:
    curve = kaplan_meier(WEEKS, RELAPSED)
    ended = curve.events > 0
    assert curve.time[ended].tolist() == [9, 13, 18, 23, 31, 34, 48]
    assert curve.survival[ended] == pytest.approx([0.909, 0.818, 0.716, 0.614, 0.491, 0.368, 0.184], abs=5e-4)
    assert curve.time[np.argmax(curve.survival <= 0.5)] == 31


def test_its_band_is_that_of_lifelines() -> None:
    curve = kaplan_meier(WEEKS, RELAPSED)
    ended = curve.events > 0
    low = [0.50808, 0.447429, 0.35019, 0.265752, 0.167331, 0.09283, 0.011738]
    high = [0.986674, 0.951162, 0.899024, 0.835299, 0.7534, 0.657041, 0.525015]
    assert curve.low[ended] == pytest.approx(low, abs=1e-6)
    assert curve.high[ended] == pytest.approx(high, abs=1e-6)


def test_cumulative_incidence_is_that_of_lifelines() -> None:
    """``AalenJohansenFitter().fit(value, cause, event_of_interest=1)`` of lifelines 0.30.3."""
    value, cause = [2, 3, 4, 5, 7, 8, 9, 11, 12, 14, 15, 18], [1, 2, 1, 0, 1, 2, 0, 1, 1, 2, 0, 1]
    curve = cumulative_incidence(value, cause)
    assert curve.time.tolist() == [2, 3, 4, 7, 8, 11, 12, 14, 18]
    theirs = [0.08333333, 0.08333333, 0.16666667, 0.26041667, 0.26041667, 0.37291667, 0.48541667, 0.48541667]
    assert curve.incidence == pytest.approx([*theirs, 0.71041667], abs=1e-8)
    variance = [0.00636574, 0.00636574, 0.01157407, 0.01690448, 0.01690448, 0.0227326, 0.02525604, 0.02525604]
    assert curve.se[:-1] ** 2 == pytest.approx(variance, abs=1e-8)  # theirs ends before the last


def test_wilsons_interval_is_that_of_rs_binom_confint() -> None:
    """``binom.confint(x = c(2, 4), n = 100, methods = "wilson")``."""
    low, high = wilson([2, 4], 100)
    assert low == pytest.approx([0.0055, 0.0157], abs=5e-5)
    assert high == pytest.approx([0.0700, 0.0984], abs=5e-5)


def test_holm_is_rs_p_adjust() -> None:
    """``p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")``."""
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


@pytest.mark.parametrize(("q", "value"), [(0.25, 3), (0.5, 5), (0.75, 8)])
def test_a_quantile_is_rs_type_1(q: float, value: float) -> None:
    """``quantile(1:10, q, type = 1)``: the inverse of the empirical distribution."""
    assert quantile(np.arange(1, 11), q, confidence=0.5).value == value


def test_tolerance_sample_sizes_are_those_of_rs_tolerance() -> None:
    """``tolerance::distfree.est``: 59 one-sided and 93 two-sided for 95 % at 95 %."""
    assert (wilks_n(0.95, 0.95), wilks_n(0.95, 0.95, sides=2)) == (59, 93)


def test_a_band_with_ties_is_scipys_log_log_band() -> None:
    rng = np.random.default_rng(3)
    values, ended = rng.integers(1, 8, 50).astype(float), rng.random(50) < 0.7
    band = ecdf(CensoredData.right_censored(values, ~ended)).sf.confidence_interval(method="log-log")
    curve = kaplan_meier(values, ended)
    assert curve.time.tolist() == band.low.quantiles.tolist()
    assert curve.low == pytest.approx(band.low.probabilities)
    assert curve.high == pytest.approx(band.high.probabilities)


@pytest.mark.parametrize("n", [1, 6, 59, 300])
def test_the_coverage_of_a_minimum_is_clopper_and_pearsons_lower_end(n: int) -> None:
    """Of n runs none lay below: the exact one-sided end for n of n."""
    exact = binomtest(n, n, alternative="greater").proportion_ci(0.95, method="exact")
    assert coverage_of_minimum(n) == pytest.approx(exact.low)


def test_the_two_samples_of_brunner_and_munzel_give_their_figures() -> None:
    """Pain scores after two treatments; R's ``lawstat`` prints p-value 0.005786, chance 0.788961."""
    first = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1]
    found = shift(first, [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4])
    assert found.p_value == pytest.approx(0.005786, abs=5e-7)
    assert found.chance.value == pytest.approx(0.788961, abs=5e-7)
