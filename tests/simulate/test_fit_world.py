"""A fitted world gives back what it was fitted on, and says what it does not know."""

from __future__ import annotations

import numpy as np
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import shared_ledger, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.settlements import Settlements
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, fit_world
from harness_lab.stats import Distribution

PRICES = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})


@pytest.fixture(scope="module")
def truth() -> Experiment:
    lead = AgentProfile(
        model="m",
        calls=Distribution.of("lognorm", s=0.4, scale=6),
        startup_tokens=Distribution.of("lognorm", s=0.1, scale=4000),
        growth_tokens=Distribution.of("lognorm", s=0.6, scale=700),
        failure_rate=0.1,
        spawns=(Spawn(agent="child", count=2, after=(1,), chance=0.5),),
    )
    child = AgentProfile(model="m", calls=Distribution.constant(2), startup_tokens=Distribution.constant(900))
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.7, scale=300),
        latency_s=Distribution.of("gamma", a=4, scale=1),
        cache_share=0.8,
    )
    workload = Workload(agents={"lead": lead, "child": child}, root="lead")
    provider = MockProvider(models={"m": model}, prices=PRICES)
    return Experiment(workload=workload, provider=provider, policies=(unlimited(),), runs=600, seed=5)


@pytest.fixture(scope="module")
def recorded(truth: Experiment) -> Settlements:
    return truth.run(calls=True, backend="serial").settlements


def test_a_fitted_world_gives_back_medians_and_rates(truth: Experiment, recorded: Settlements) -> None:
    world = fit_world(recorded, prices=PRICES)
    again = Experiment(workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=600, seed=9)
    mine, theirs = (x.nodes[x.nodes["agent"] == "lead"] for x in (again.run().settlements, recorded))
    for column in ("calls", "input_total", "output", "cost_nusd", "duration_ns"):
        ratio = float(mine[column].median()) / float(theirs[column].median())
        assert ratio == pytest.approx(1, abs=0.12), column
    assert (mine["outcome"] == "failed").mean() == pytest.approx(0.1, abs=0.04)
    assert float(mine["starts"].mean()) == pytest.approx(float(theirs["starts"].mean()), abs=0.15)


def test_runs_that_a_limit_stopped_do_not_shorten_the_fit(truth: Experiment) -> None:
    cut = truth.with_policies(shared_ledger(6)).run(calls=True, backend="serial").settlements
    assert (cut.nodes["outcome"] == "exhausted").mean() > 0.2
    median = fit_world(cut).workload.agents["lead"].calls.ppf(0.5)
    assert float(median) == pytest.approx(6.0, abs=0.9)


def test_without_prices_the_cost_is_unknown_not_zero(recorded: Settlements) -> None:
    world = fit_world(recorded)
    result = Experiment(workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=5).run()
    assert result.settlements.nodes["cost_nusd"].isna().all()


def test_every_fit_says_its_n_and_its_reason(recorded: Settlements) -> None:
    fits = fit_world(recorded).fits
    assert (fits["n"] > 0).all()
    assert fits["reason"].str.len().gt(0).all()
    assert np.isfinite(fits["mean"].to_numpy(dtype=float)).all()


def test_records_without_calls_cannot_be_fitted(recorded: Settlements) -> None:
    with pytest.raises(InputError, match="call rows"):
        fit_world(Settlements.from_columns(recorded.nodes))
