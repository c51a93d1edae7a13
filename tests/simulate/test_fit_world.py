"""A fitted world gives back what it was fitted on, and says what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import shared_ledger, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.settlements import Settlements
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, fit_world
from harness_lab.stats import Distribution

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.simulate import FittedWorld

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


def _simulated(world: FittedWorld, runs: int = 5) -> pd.DataFrame:
    experiment = Experiment(workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=runs)
    return experiment.run(backend="serial").settlements.nodes


@pytest.mark.parametrize("method", ["family", "empirical"])
def test_without_prices_or_recorded_costs_the_cost_is_unknown_not_zero(recorded: Settlements, method: Any) -> None:
    assert recorded.calls is not None
    unpriced = Settlements.from_columns(
        recorded.nodes.assign(cost_nusd=None, cost_source=None), recorded.calls.assign(cost_nusd=None, cost_source=None)
    )
    assert _simulated(fit_world(unpriced, method=method))["cost_nusd"].isna().all()


def test_recorded_costs_stand_where_no_prices_are_given(recorded: Settlements) -> None:
    mean = _simulated(fit_world(recorded), runs=600).groupby("run")["cost_nusd"].sum().mean()
    assert mean == pytest.approx(float(recorded.nodes.groupby("run")["cost_nusd"].sum().mean()), rel=0.1)


def test_every_fit_says_its_n_and_its_reason(recorded: Settlements) -> None:
    fits = fit_world(recorded).fits
    assert (fits["n"] > 0).all()
    assert fits["reason"].str.len().gt(0).all()
    assert np.isfinite(fits["mean"].to_numpy(dtype=float)).all()


@pytest.mark.parametrize("method", ["family", "empirical"])
def test_records_without_calls_are_fitted_coarsely_and_say_so(recorded: Settlements, method: Any) -> None:
    world = fit_world(Settlements.from_columns(recorded.nodes), method=method, prices=PRICES)
    assert world.coarse
    assert "spread over its calls" in world.explain()
    mine = _simulated(world, runs=400)
    for column in ("calls", "input_total", "output"):
        ratio = float(mine[column].sum() / 400) / float(recorded.nodes[column].sum() / 600)
        assert ratio == pytest.approx(1, abs=0.12), column


def test_long_runs_are_long_in_everything_where_whole_runs_are_drawn(recorded: Settlements) -> None:
    kept, lost = (
        _simulated(fit_world(recorded, method=method), runs=500)[["calls", "output", "duration_ns"]].corr("spearman")
        for method in ("empirical", "family")
    )
    wanted = recorded.nodes[["calls", "output", "duration_ns"]].corr("spearman")
    assert np.allclose(kept, wanted, atol=0.05)
    assert lost.shape == kept.shape


def test_runs_that_a_limit_stopped_are_drawn_on_as_longer_ones(truth: Experiment, recorded: Settlements) -> None:
    cut = truth.with_policies(shared_ledger(6)).run(calls=True, backend="serial").settlements
    first, rest = [str(run) for run in range(300)], [str(run) for run in range(300, 600)]
    mixed = Settlements.concat([recorded.where(run=first), cut.where(run=rest)])
    nodes, calls = mixed.nodes.assign(policy=None), mixed.calls
    assert calls is not None
    mine = _simulated(
        fit_world(Settlements.from_columns(nodes, calls.assign(policy=None)), method="empirical"), runs=800
    )
    assert not (mine["outcome"] == "exhausted").any()
    wanted = recorded.nodes.loc[recorded.nodes["parent"].isna(), "calls"].mean()
    assert mine.loc[mine["parent"].isna(), "calls"].mean() == pytest.approx(wanted, rel=0.07)


def test_where_no_run_went_on_longer_quantities_are_fitted_in_place_of_runs(truth: Experiment) -> None:
    cut = truth.with_policies(shared_ledger(6)).run(calls=True, backend="serial").settlements
    assert fit_world(cut).method == "family"
    whole = fit_world(cut, method="empirical")
    assert "no recorded one went on longer" in whole.summary()
    assert (_simulated(whole, runs=200)["outcome"] == "unknown").any()


def test_too_few_runs_fall_back_to_quantities_and_say_so(recorded: Settlements) -> None:
    few = recorded.where(run=[str(run) for run in range(12)])
    world = fit_world(few)
    assert world.method == "family"
    assert world.fits["fell_back"].any()
    assert "fell back: n = " in world.summary()


def test_an_ask_for_an_agent_that_is_no_child_is_refused_with_the_nearest(recorded: Settlements) -> None:
    with pytest.raises(InputError, match=r"^asks: expected agents that are children .*\['child'\], got \['chidl'\]"):
        fit_world(recorded, asks={"chidl": (None,) * 5})


@pytest.mark.parametrize(
    ("change", "what"),
    [({"method": "best"}, "method"), ({"root": "child"}, "root"), ({"asks": {"lead": (None,) * 5}}, "asks")],
)
def test_what_cannot_be_fitted_is_refused_by_name(recorded: Settlements, change: Any, what: str) -> None:
    with pytest.raises(InputError, match=rf"^{what}: expected"):
        fit_world(recorded, **change)
