"""Sensitivity: against closed forms, and on worlds in which it is clear what matters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import shared_ledger
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.tune import sensitivity, sensitivity_of_records
from harness_lab.tune.sensitivity import scaled, times

pytest.importorskip("SALib")


def world(runs: int = 30) -> Experiment:
    agent = AgentProfile(
        model="m", calls=Distribution.of("lognorm", s=0.3, scale=10), startup_tokens=Distribution.constant(2000)
    )
    model = ModelProfile(output_tokens=Distribution.constant(100), latency_s=Distribution.constant(2))
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    return Experiment(
        workload=Workload(agents={"solo": agent}, root="solo"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(shared_ledger(100, name="p"),), runs=runs,
    )  # fmt: skip


def test_a_scaled_distribution_is_that_of_the_scaled_quantity() -> None:
    for one in (
        Distribution.of("lognorm", s=0.5, scale=10, loc=3, low=4, high=50),
        Distribution.constant(7),
        Distribution.empirical([1, 2, 8], low=1.5),
    ):
        q = np.linspace(0.05, 0.95, 9)
        assert times(one, 2.5).ppf(q) == pytest.approx(2.5 * one.ppf(q))


def test_prices_scale_spend_and_nothing_else() -> None:
    before, after = (one.run().settlements.nodes for one in (world(), scaled(world(), {"prices": 2.0})))
    assert after["cost_nusd"].sum() == 2 * before["cost_nusd"].sum()
    assert after["calls"].tolist() == before["calls"].tolist()


@pytest.mark.parametrize("method", ["sobol", "morris"])
def test_what_cannot_matter_is_last_and_what_does_is_first(method: str) -> None:
    ranges = {"latency_s": (0.5, 2.0), "prices": (0.5, 2.0), "output_tokens": (0.9, 1.1)}
    found = sensitivity(world(), ranges, method=method, samples=16)
    assert found.frame["factor"].tolist() == ["prices", "output_tokens", "latency_s"]
    assert found.frame["importance"].iloc[2] == pytest.approx(0, abs=1e-9)


def test_shares_of_a_product_are_those_of_the_closed_form() -> None:
    found = sensitivity(world(), {"prices": (0.9, 1.1), "latency_s": (0.5, 2.0)}, samples=64)
    share = found.frame.set_index("factor")["importance"]
    assert share["prices"] == pytest.approx(1.0, abs=0.1)


def test_the_worst_case_is_where_everything_is_dear() -> None:
    found = sensitivity(world(), {"prices": (0.5, 2.0), "calls": (0.8, 1.2)}, samples=16)
    assert found.worst["prices"] > 1.7
    assert found.worst["value"] > 2 * found.best["value"]
    assert "worst within the ranges" in found.summary()


def test_recorded_inputs_are_ranked_by_what_knowing_them_tells() -> None:
    rng = np.random.default_rng(0)
    calls, output = rng.integers(1, 50, 400), rng.integers(1, 50, 400)
    cost = calls * 10**7 + output * 10**4
    data = pd.DataFrame(
        {"run": range(400), "outcome": "completed", "calls": calls, "output": output, "cost_nusd": cost}
    )
    found = sensitivity_of_records(data, ("calls", "output"))
    assert found.frame["factor"].tolist() == ["calls", "output"]
    assert found.frame["importance"].iloc[0] > 0.5 > found.frame["importance"].iloc[1]
    assert "Next:" in found.explain()
    assert found.plot().get_xlabel().startswith("importance for cost_nusd")


def test_misuse_is_named() -> None:
    with pytest.raises(InputError, match=r"^factors"):
        sensitivity(world(), {"charm": (0.5, 2)})
    with pytest.raises(InputError, match=r"^factors"):
        sensitivity(world(), {"calls": (2.0, 0.5)})
    with pytest.raises(InputError, match=r"^method"):
        sensitivity(world(), {"calls": (0.5, 2.0)}, method="guess")
    with pytest.raises(InputError, match=r"^settlements"):
        sensitivity_of_records(pd.DataFrame({"run": [1], "outcome": ["completed"]}))
