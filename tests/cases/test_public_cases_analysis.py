"""Public cases of statistics: a limit from data (A-60) and percentiles of small samples (A-63)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import ceiling, distribution
from harness_lab.stats import coverage_of_minimum, quantile


def history(n: int, seed: int = 0) -> pd.DataFrame:
    usd = np.sort(np.random.default_rng(seed).lognormal(20, 0.8, n)).astype(np.int64)
    return pd.DataFrame({"run": range(n), "outcome": "completed", "cost_nusd": usd})


@pytest.mark.parametrize(("n", "confidence_of_the_maximum"), [(5, 0.23), (20, 0.64)])
def test_a60_too_few_totals_are_declined_with_what_they_do_give(n: int, confidence_of_the_maximum: float) -> None:
    found = ceiling(history(n), target=0.95, confidence=0.95)
    assert found.ceiling is None
    assert found.bound.needs_n == 59
    assert "needs n >= 59" in found.summary()
    assert found.confidence_of_maximum == pytest.approx(confidence_of_the_maximum, abs=0.005)
    assert f"keeps the target with {100 * found.confidence_of_maximum:.3g} % confidence only" in found.summary()
    assert coverage_of_minimum(n, 1 - 0.95**n) == pytest.approx(0.95)


def test_a60_fifty_nine_give_the_maximum_and_three_hundred_less() -> None:
    assert ceiling(history(59)).ceiling == history(59)["cost_nusd"].max()
    found = ceiling(history(300))
    assert found.ceiling < history(300)["cost_nusd"].max()
    assert found.ceiling in set(history(300)["cost_nusd"])
    assert "n = 300" in found.summary()


def test_a60_a_ceiling_below_an_observed_completed_run_is_flagged() -> None:
    found = ceiling(history(300))
    cut = int((history(300)["cost_nusd"] > found.ceiling).sum())
    assert cut > 0
    assert f"of these runs would be cut ({cut};" in found.summary()


def test_a63_seventy_one_samples_have_no_p99_and_four_hundred_do() -> None:
    few, many = (distribution(history(n)) for n in (71, 400))
    assert few.quantile(0.5).estimable
    assert few.quantile(0.9).estimable
    p99 = few.quantile(0.99)
    assert (p99.value, p99.needs_n) == (None, 368)
    assert pytest.approx(0.49, abs=0.01) == 0.99**71
    assert many.quantile(0.99).estimable
    assert pytest.approx(0.018, abs=0.001) == 0.99**400


@pytest.mark.parametrize(("n", "q"), [(71, 0.5), (71, 0.9), (400, 0.99)])
def test_a63_the_intervals_cover_over_2000_samples(n: int, q: float) -> None:
    rng, truth = np.random.default_rng(7), -np.log(1 - q)
    held = sum(bool(quantile(rng.exponential(size=n), q).holds(truth)) for _ in range(2000))
    assert held / 2000 >= 0.95 - 0.02
    assert binomtest(held, 2000, 0.95, alternative="less").pvalue > 0.01


def test_percentiles_of_totals_come_from_totals() -> None:
    rng = np.random.default_rng(1)
    tasks = rng.lognormal(0, 0.8, (20_000, 10))
    sums = {q: float(np.quantile(tasks, q, axis=0).sum()) for q in (0.5, 0.9)}
    nodes = pd.DataFrame({
        "run": np.repeat(range(len(tasks)), 10), "node": np.tile([str(k) for k in range(10)], len(tasks)),
        "parent": np.tile([None, *["0"] * 9], len(tasks)), "depth": np.tile([0, *[1] * 9], len(tasks)),
        "outcome": "completed", "cost_nusd": (tasks * 1e9).astype(np.int64).ravel(),
    })  # fmt: skip
    totals = distribution(nodes)
    assert totals.quantile(0.9).value / 1e9 == pytest.approx(19.1, abs=0.2)
    assert sums[0.9] == pytest.approx(27.9, abs=0.2)  # 46 % too high
    assert totals.quantile(0.5).value / 1e9 == pytest.approx(13.1, abs=0.2)
    assert sums[0.5] == pytest.approx(10.0, abs=0.2)  # 24 % too low
