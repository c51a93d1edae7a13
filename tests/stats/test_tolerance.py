"""Lower bounds that rest on a model: published factors, and how often they hold where their model does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.stats.tolerance import hanson_koopmans_factor, lower_bounds_by_model


@pytest.mark.parametrize(("n", "factor"), [(2, 35.177), (3, 7.859), (4, 4.505)])
def test_factors_of_90_percent_are_those_of_the_composite_materials_handbook(n: int, factor: float) -> None:
    """MIL-HDBK-17-1F, table 8.5.14: k of the Hanson-Koopmans method where r is n."""
    assert hanson_koopmans_factor(n, coverage=0.9) == pytest.approx(factor, abs=6e-4)


def test_of_59_values_the_smallest_is_bound_enough() -> None:
    assert hanson_koopmans_factor(58) > 1
    assert hanson_koopmans_factor(59) == 1


def test_bounds_hold_as_often_as_they_say_where_their_model_does() -> None:
    """2,000 samples of eight: of a lognormal, and of the distribution whose logarithm is a line."""
    rng = np.random.default_rng(5)
    normal = np.exp(rng.normal(size=(2000, 8)))
    line = 30 + np.log(rng.random((2000, 8)))  # F(x) = exp(x - 30)
    lognormal = [lower_bounds_by_model(x)["lognormal"] <= math.exp(-1.6448536) for x in normal]
    worst = [lower_bounds_by_model(x)["log-concave (Hanson-Koopmans)"] <= 30 + math.log(0.05) for x in line]
    for held in (lognormal, worst):
        assert np.mean(held) == pytest.approx(0.95, abs=0.02)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=12, unique=True), st.floats(0.1, 10))
def test_in_another_unit_the_bounds_are_the_same(values: list[int], factor: float) -> None:
    one, other = (lower_bounds_by_model(np.array(values) * scale) for scale in (1.0, factor))
    assert [other[name] for name in one] == pytest.approx([bound * factor for bound in one.values()], rel=1e-6)


def test_values_without_spread_are_their_own_bound_and_values_without_sense_have_none() -> None:
    assert list(lower_bounds_by_model([5, 5, 5]).values()) == pytest.approx([5, 5, 5])
    for odd in ([5], [0, 5], []):
        with pytest.raises(InputError, match=r"^values: expected at least two, all above 0"):
            lower_bounds_by_model(odd)
