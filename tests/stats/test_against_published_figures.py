"""Figures of second implementations, entered by hand: lifelines (it needs an older pandas), and R's examples."""

from __future__ import annotations

import numpy as np
import pytest

from harness_lab.stats import cumulative_incidence, holm, kaplan_meier, quantile, wilks_n
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
