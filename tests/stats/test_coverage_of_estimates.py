"""Every kind of interval against its truth, clusters included: a small version, and 2,000 repetitions.

What results print rests on these; `test_coverage_of_results` holds the results themselves. Quantiles, incidences,
shifts, skewed differences and the race are held in the files named after them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from harness_lab.stats import holm, maybe_best, mean, paired_difference, quantile, share
from harness_lab.stats.extremes import lower_end
from harness_lab.stats.incidence import clustered_band, cumulative_incidence
from harness_lab.stats.means import ratio
from harness_lab.stats.survival import mean_to_end

Asked = Callable[[np.random.Generator], bool | None]


def alike(rng: np.random.Generator, clusters: int = 25, each: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal values of which those of a cluster correlate at 0.3, and the clusters."""
    group = np.repeat(np.arange(clusters), each)
    return np.sqrt(0.7) * rng.normal(size=group.size) + np.sqrt(0.3) * rng.normal(size=clusters)[group], group


def a_mean(rng: np.random.Generator) -> bool | None:
    return mean(rng.lognormal(0, 0.8, 150)).holds(np.exp(0.32))


def a_share(rng: np.random.Generator) -> bool | None:
    return share(rng.random(150) < 0.3).holds(0.3)


def a_clustered_ratio(rng: np.random.Generator) -> bool | None:
    z, group = alike(rng)
    whole = np.exp(0.5 * z)
    part = whole * rng.random(z.size)
    return ratio(part, whole, clusters=group).holds(0.5)


def a_clustered_difference(rng: np.random.Generator) -> bool | None:
    z, group = alike(rng)
    first = rng.lognormal(0, 0.5, z.size)
    return paired_difference(first, first + np.exp(0.5 * z), clusters=group).difference.holds(np.exp(0.125))


def a_bound_of_a_clustered_quantile(rng: np.random.Generator) -> bool | None:
    z, group = alike(rng, 40)
    return quantile(z, 0.8, side="upper", clusters=group).holds(float(norm.ppf(0.8)))


def a_lower_end(rng: np.random.Generator) -> bool | None:
    return lower_end(100 + rng.exponential(1000, 200)).holds(100)


def a_mean_to_the_end(rng: np.random.Generator) -> bool | None:
    need = rng.uniform(0, 2, 150)
    stop = np.where(rng.random(150) < 0.3, rng.uniform(0, 1, 150), 3.0)
    return mean_to_end(np.minimum(need, stop), need <= stop).holds(1.0)


def an_incidence(rng: np.random.Generator, *, clustered: bool = False) -> bool | None:
    """The share that has completed by 1: a fifth fail, and stops come at random."""
    z, group = alike(rng) if clustered else (rng.normal(size=200), np.zeros(200))
    need, fails, stop = np.exp(0.6 * z), rng.random(200) < 0.2, rng.exponential(4, 200)
    x, cause = np.minimum(need, stop), np.where(need > stop, 0, np.where(fails, 2, 1))
    line = cumulative_incidence(x, cause)
    if clustered:
        line = clustered_band(line, x, cause, group)[0]
    place = int(np.searchsorted(line.time, 1.0, side="right")) - 1
    return bool(line.low[place] <= 0.4 <= line.high[place])


def a_clustered_incidence(rng: np.random.Generator) -> bool | None:
    return an_incidence(rng, clustered=True)


def the_set_of_the_best(rng: np.random.Generator) -> bool | None:
    z = np.stack([alike(rng)[0] for _ in range(3)]) + np.array([[0.1], [0.0], [-0.5]])
    return 0 in maybe_best(z, clusters=np.repeat(np.arange(25), 8))


def no_claim_where_all_are_equal(rng: np.random.Generator) -> bool | None:
    base, *others = (rng.lognormal(0, 0.5, 60) for _ in range(4))
    p = [paired_difference(base, other).p_value for other in others]
    return not (holm([x for x in p if x is not None]) <= 0.05).any()


ASKED: list[Asked] = [
    a_mean, a_share, a_clustered_ratio, a_clustered_difference, a_bound_of_a_clustered_quantile,
    a_lower_end, a_mean_to_the_end, an_incidence, a_clustered_incidence, the_set_of_the_best,
    no_claim_where_all_are_equal,
]  # fmt: skip


@pytest.mark.parametrize("repeats", [200, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", ASKED, ids=lambda one: one.__name__)
def test_intervals_keep_their_rate(asked: Asked, repeats: int) -> None:
    found = [asked(np.random.default_rng(seed)) for seed in range(repeats)]
    told = [one for one in found if one is not None]
    assert len(told) >= 0.5 * repeats
    assert binomtest(sum(told), len(told), 0.95, alternative="less").pvalue > 0.01, sum(told) / len(told)
