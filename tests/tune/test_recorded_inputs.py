"""What knowing a recorded input tells: the same answer every time, quiet, and intervals that keep their promise."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.tune import sensitivity_of_records
from harness_lab.tune.given_data import CLASSES, delta


def draw(n: int, rho: float, rng: np.random.Generator, *, clusters: bool) -> tuple:
    """Pairs of correlated normals, alone or ten to a cluster, and their clusters."""
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    unit = np.arange(n) // 10 if clusters else None
    if unit is not None:
        a, b = rng.standard_normal((2, n // 10))[:, unit]
        x, y = (x + a) / 2**0.5, (y + b) / 2**0.5
    return x, rho * x + (1 - rho**2) ** 0.5 * y, unit


def truth(rho: float) -> float:
    """The distance between the cells' chances and those of independence, from two million pairs."""
    x, y, _ = draw(2_000_000, rho, np.random.default_rng(9), clusters=False)
    cells = [np.searchsorted(np.quantile(one, np.linspace(0, 1, CLASSES + 1)[1:-1]), one) for one in (x, y)]
    share = np.bincount(cells[0] * CLASSES + cells[1], minlength=CLASSES**2) / x.size
    return float(np.abs(share - 1 / CLASSES**2).sum() / 2)


def covered(rho: float, *, repetitions: int, clusters: bool) -> float:
    rng, right = np.random.default_rng(1), truth(rho)
    hits = 0
    for _ in range(repetitions):
        x, y, unit = draw(300, rho, rng, clusters=clusters)
        hits += bool(delta(x, y, clusters=unit, confidence=0.95, seed=0).holds(right))
    return hits / repetitions


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_the_interval_holds_the_truth_as_often_as_it_says(rho: float, clusters: bool) -> None:
    assert covered(rho, repetitions=100, clusters=clusters) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.3, 0.6, 0.9])
def test_the_interval_holds_the_truth_as_often_as_it_says_in_many_samples(rho: float, clusters: bool) -> None:
    assert covered(rho, repetitions=2000, clusters=clusters) >= 0.94


def runs(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    calls = rng.integers(1, 50, n)
    cost = (calls * 1e7 * rng.lognormal(0, 0.5, n)).astype(np.int64)
    return pd.DataFrame({"run": range(n), "outcome": "completed", "calls": calls, "output": rng.integers(1, 50, n),
                         "input_total": 7, "cost_nusd": cost})  # fmt: skip


def test_the_same_records_give_the_same_answer_and_another_seed_one_within_the_interval() -> None:
    first, again, other = (sensitivity_of_records(runs(), ("calls", "output"), seed=k).frame for k in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert (other["importance"] >= first["low"]).all()
    assert (other["importance"] <= first["high"]).all()


def test_it_warns_of_nothing_and_leaves_warnings_and_random_numbers_of_the_process_alone() -> None:
    before = warnings.formatwarning, np.random.get_state()[1].copy()  # noqa: NPY002 - what must not move
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sensitivity_of_records(runs(), ("calls", "output"), seed=7)
    assert warnings.formatwarning is before[0]
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def test_order_of_rows_and_a_scale_of_the_metric_do_not_matter_beyond_the_dealing() -> None:
    x = runs()["calls"].to_numpy(dtype=np.float64)
    y = runs()["cost_nusd"].to_numpy(dtype=np.float64)
    one, two = (delta(x, z, clusters=None, confidence=0.95, seed=0) for z in (y, np.log(y)))
    assert one == two


def test_inputs_that_cannot_be_ranked_are_named_with_the_reason() -> None:
    found = sensitivity_of_records(runs().assign(starts=pd.NA), ("calls", "input_total", "starts"))
    assert found.frame["factor"].tolist() == ["calls"]
    assert found.left_out["input_total"] == "the same in every run"
    assert "known beside the metric in 0 run(s) only" in found.summary()


@pytest.mark.parametrize(
    ("data", "inputs", "says"),
    [
        (runs(), ("input_total",), "the same in every run"),
        (runs().assign(cost_nusd=5), ("calls",), "a metric that varies"),
        (runs(20), ("calls",), "at least 50 runs"),
    ],
)
def test_what_cannot_be_answered_is_one_error_that_says_why(data: pd.DataFrame, inputs: tuple, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sensitivity_of_records(data, inputs)
