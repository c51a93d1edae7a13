"""Draw tables: whole units, in order, within the support, and with the quantiles of what they were made from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab import draws
from harness_lab.errors import InputError
from harness_lab.providers import Table
from harness_lab.stats.distributions import Distribution

LOGNORM = Table(Distribution.of("lognorm", s=0.8, scale=1_500, low=100, high=40_000))
WORDS = st.integers(0, draws.MASK)


@given(WORDS, WORDS)
@settings(max_examples=300, deadline=None)
def test_a_larger_word_never_draws_a_smaller_value(one: int, two: int) -> None:
    low, high = sorted((one, two))
    assert 100 <= LOGNORM.draw(low) <= LOGNORM.draw(high) <= 40_000


@pytest.mark.parametrize("q", [1e-6, 1e-4, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-4, 1 - 1e-6])
def test_a_table_has_the_quantiles_of_its_distribution_far_into_the_tails(q: float) -> None:
    distribution = Distribution.of("gamma", a=2, scale=1_000)
    drawn = Table(distribution).draw(int(q * 2**64))
    assert drawn == pytest.approx(float(distribution.ppf(q)), rel=0.01, abs=1)


def test_the_mean_of_many_draws_is_the_mean_of_the_distribution() -> None:
    distribution = Distribution.of("lognorm", s=0.8, scale=1_500, high=40_000)
    table = Table(distribution)
    sample = [table.draw(draws.word(draws.run_key(1, run), 0, 0, 3)) for run in range(20_000)]
    error = np.std(sample) / len(sample) ** 0.5
    assert np.mean(sample) == pytest.approx(distribution.mean(), abs=4 * error)


def test_a_constant_is_drawn_always_and_a_scale_changes_its_unit() -> None:
    table = Table(Distribution.constant(1.5), 1e9)
    assert {table.draw(word) for word in (0, 1, 2**63, draws.MASK)} == {1_500_000_000}


def test_recorded_values_are_drawn_as_often_as_they_were_recorded() -> None:
    table = Table(Distribution.empirical([10, 10, 10, 50]))
    drawn = [table.draw(i << 52) for i in range(4096)]
    assert drawn.count(10) == pytest.approx(3072, abs=1)  # the cell with the step joins both
    assert drawn.count(50) == pytest.approx(1024, abs=1)


@pytest.mark.parametrize(
    "distribution",
    [
        Distribution.of("norm", loc=0, scale=1),
        Distribution.of("pareto", b=0.5),
        Distribution.constant(-1),
        Distribution.constant(1e16),
    ],
    ids=str,
)
def test_what_has_no_whole_number_of_units_is_refused_and_told_to_be_clipped(distribution: Distribution) -> None:
    with pytest.raises(InputError, match=r"expected values from 0 to .*Clip it with low= and high="):
        Table(distribution)


def test_a_limit_in_seconds_is_told_in_seconds() -> None:
    with pytest.raises(InputError, match=r"^lognorm\(s=2, .*: expected neighbouring quantiles less than 8,796 apart"):
        Table(Distribution.of("lognorm", s=2, scale=5), 1e9)


def test_an_ordinary_tail_of_latencies_and_a_tool_that_takes_a_day_need_no_clipping() -> None:
    table = Table(Distribution.of("lognorm", s=1, scale=5), 1e9)
    assert table.draw(1 << 63) == pytest.approx(5e9, rel=1e-3)
    assert Table(Distribution.of("uniform", loc=0, scale=86_400), 1e9).draw(draws.MASK) > 86_300e9


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Distribution.of("poisson", mu=3), 3.0),
        (Distribution.of("geom", p=0.2), 5.0),
        (Distribution.of("nbinom", n=2, p=0.1), 18.0),
    ],
)
def test_discrete_distributions_are_drawn_too(distribution: Distribution, mean: float) -> None:
    table = Table(distribution)
    values = [table.draw(draws.word(draws.run_key(1, run), 0, 0, 0)) for run in range(8_000)]
    assert sum(values) / len(values) == pytest.approx(mean, rel=0.04)
    shares = [values.count(value) / len(values) for value in (3, 4)]
    assert shares == pytest.approx([float(distribution.frozen().pmf(value)) for value in (3, 4)], abs=0.015)
