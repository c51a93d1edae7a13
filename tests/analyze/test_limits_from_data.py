"""What a limit from few runs may say: published mistakes of other tools, done right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import ceiling
from harness_lab.stats import NotEstimable, quantile


def history(n: int, seed: int = 0) -> pd.DataFrame:
    cost = np.random.default_rng(seed).lognormal(20, 0.7, n).astype(np.int64)
    return pd.DataFrame({"run": range(n), "outcome": "completed", "cost_nusd": cost})


@pytest.mark.parametrize(("n", "held"), [(5, "22.6 %"), (20, "64.2 %")])
def test_a_short_history_gives_no_limit_and_says_what_its_maximum_is_worth(n: int, held: str) -> None:
    found = ceiling(history(n))
    assert found.ceiling is None
    assert found.declined is not None
    assert found.declined.needs_n == 59
    assert f"keeps the target with {held} confidence only" in found.summary()
    assert f"n = {n}" in found.summary()


def test_59_runs_give_their_maximum_and_300_an_order_statistic_below_it() -> None:
    short, long = history(59), history(300)
    assert ceiling(short).ceiling == short["cost_nusd"].max()
    above = int((long["cost_nusd"] > (ceiling(long).ceiling or 0)).sum())
    assert 0 < above < 15
    assert f"would be cut ({above}; delivered: 0" in ceiling(long).summary()  # a completed run above it is told


def test_a_p99_of_71_is_none_and_of_400_is_a_value() -> None:
    few, many = (history(n)["cost_nusd"] for n in (71, 400))
    assert all(quantile(few, q).estimable for q in (0.5, 0.9))
    top = quantile(few, 0.99)
    assert isinstance(top.interval, NotEstimable)
    assert top.value is None
    assert top.interval.needs_n == 368
    assert quantile(many, 0.99).estimable


@pytest.mark.parametrize(("n", "q"), [(71, 0.5), (71, 0.9), (400, 0.99)])
def test_order_statistics_cover_at_their_rate_over_2000_samples(n: int, q: float) -> None:
    draws = np.random.default_rng(1).random((2000, n))
    held = sum(quantile(row, q).holds(q) for row in draws)
    assert binomtest(held, 2000, 0.95, alternative="less").pvalue > 0.01
