from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.stats import Distribution

FAMILIES = [
    {"dist": "lognorm", "s": 0.8, "loc": 0.0, "scale": 1500.0},
    {"dist": "gamma", "a": 2.0, "loc": 5.0, "scale": 3.0, "low": 6.0, "high": 20.0},
    {"dist": "uniform", "loc": 0.0, "scale": 1.0},
    {"dist": "constant", "value": 5.0},
    {"dist": "empirical", "values": [1.0, 2.0, 2.0, 9.0], "high": 4.0},
]


@pytest.mark.parametrize("form", FAMILIES)
def test_the_form_in_a_file_comes_back_unchanged(form: dict[str, object]) -> None:
    assert Distribution.from_dict(form).to_dict() == form


def test_a_plain_number_is_a_constant() -> None:
    assert Distribution.from_dict(5).ppf([0.0, 0.5, 1.0]).tolist() == [5.0, 5.0, 5.0]


def test_a_distribution_can_be_a_key() -> None:
    assert len({Distribution.of("norm"), Distribution.of("norm", loc=0, scale=1)}) == 1


def test_quantiles_are_those_of_scipy() -> None:
    found = Distribution.of("lognorm", s=0.8, scale=1500).ppf([0.5, 0.9])
    assert found.dtype == np.float64
    assert found == pytest.approx([1500, 1500 * math.exp(0.8 * 1.2815515655)])


def test_an_empirical_quantile_is_a_recorded_value() -> None:
    three = Distribution.empirical([3, 1, 2])
    assert three.ppf([0, 1 / 3, 0.34, 2 / 3, 0.67, 1]).tolist() == [1, 1, 2, 2, 3, 3]


def test_a_clip_moves_what_lies_outside_to_the_end() -> None:
    found = Distribution.of("norm", low=-1, high=1).ppf([0.001, 0.5, 0.999])
    assert found.tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("form", FAMILIES)
def test_the_mean_is_that_of_its_quantiles(form: dict[str, object]) -> None:
    it = Distribution.from_dict(form)
    grid = (np.arange(200_000) + 0.5) / 200_000
    assert it.mean() == pytest.approx(float(it.ppf(grid).mean()), rel=2e-3)


def test_a_mean_that_is_infinite_says_so_and_one_that_does_not_exist_is_refused() -> None:
    assert Distribution.of("pareto", b=0.5).mean() == math.inf
    with pytest.raises(InputError, match=r"^dist: expected a distribution that has a mean"):
        Distribution.of("cauchy").mean()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"dist": "nope"}, "dist: expected the name of a distribution, got 'nope'"),
        ({"dist": "lognorm"}, "dist=lognorm: expected the parameters s, loc, scale"),
        ({"dist": "lognorm", "s": 1, "sigma": 2}, "dist=lognorm: expected the parameters"),
        ({"dist": "lognorm", "s": -1}, "dist=lognorm: expected valid values"),
        ({"dist": "norm", "scale": 0}, "dist=norm: expected valid values"),
        ({"dist": "norm", "loc": math.nan}, "loc: expected a finite number"),
        ({"dist": "norm", "low": 2, "high": 1}, "low: expected at most high = 1"),
        ({"dist": "constant"}, "dist=constant: expected the keys value"),
        ({"dist": "empirical", "values": []}, "dist=empirical: expected at least one value"),
        ({"dist": "poisson", "mu": 3, "scale": 2}, "dist=poisson: expected the parameters mu, loc"),
        ({"dist": "rv_histogram"}, "dist: expected the name of a distribution"),
        ({"s": 1}, "dist: expected the name of a distribution, got None"),
        ("five", "value: expected a finite number, got 'five'"),
        (True, "value: expected a finite number, got True"),
    ],
)
def test_a_wrong_form_is_refused_in_one_line(form: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Distribution.from_dict(form)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_probabilities_outside_zero_to_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"^q: expected probabilities"):
        Distribution.constant(1).ppf([0.5, 1.5])


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=2, max_size=10),
)
def test_quantiles_never_fall(values: list[float], q: list[float]) -> None:
    assert (np.diff(Distribution.empirical(values).ppf(sorted(q))) >= 0).all()


def test_a_distribution_can_be_read_by_a_person() -> None:
    shown = [str(Distribution.from_dict(form)) for form in FAMILIES]
    assert shown[1] == "gamma(a=2, loc=5, scale=3) clipped >= 6 <= 20"
    assert shown[3:] == ["constant 5", "empirical (n = 4)"]
