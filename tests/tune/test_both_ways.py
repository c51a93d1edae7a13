"""A ceiling by replay and by simulation: what differs, and because of what."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from matplotlib.figure import Figure

from harness_lab import datasets
from harness_lab.errors import InputError
from harness_lab.policies import unlimited
from harness_lab.settlements import Settlements
from harness_lab.simulate import Experiment, fit_world
from harness_lab.tune import CeilingBothWays, ceiling_both_ways


def records(n: int = 120, *, calls: int = 4, stopped: float = 1.0) -> Settlements:
    """Make runs of equal calls; the dearest share is stopped by a limit."""
    rng = np.random.default_rng(0)
    each = np.sort(rng.lognormal(17, 0.6, n)).astype(np.int64)
    one = {"input_total": 1000, "input_fresh": 1000, "cache_read": 0, "cache_write": 0, "output": 10}
    same = {"node": "0", "model": "m", "cost_source": "recorded"}
    call = pd.DataFrame({
        "run": np.repeat([f"r{k}" for k in range(n)], calls), "call": np.tile(np.arange(calls), n), "attempt": 0,
        "status": "completed", "cost_nusd": np.repeat(each, calls), **same, **one,
    })  # fmt: skip
    nodes = pd.DataFrame({
        "run": [f"r{k}" for k in range(n)], "agent": "solo", "calls": calls, "cost_nusd": each * calls,
        "outcome": np.where(np.arange(n) < stopped * n, "completed", "exhausted"), "duration_ns": 10**9,
        **same, **{name: value * calls for name, value in one.items()},
    })  # fmt: skip
    return Settlements.from_columns(nodes, call)


@pytest.fixture(scope="module")
def found() -> CeilingBothWays:
    return ceiling_both_ways(records(), target=0.8, runs=600)


def test_a_limit_on_money_lets_the_call_that_breaks_it_end(found: CeilingBothWays) -> None:
    frame = found.to_frame()
    assert found.differs("enforcement").any()
    assert (frame["enforcement"] >= 0).all()  # a last call over the ceiling still completes
    assert 0 < frame["overshoot"].mean() < frame["ceiling"].max() / 4  # at most the call that breaks it
    assert any(line.startswith("Trust the simulation") for line in found.trust())


def test_a_world_that_draws_the_records_again_gives_them_back(found: CeilingBothWays) -> None:
    assert not found.differs("world").any()
    parts = found.frame["enforcement"] + found.frame["world"]
    assert np.allclose(found.frame["simulated"] - found.frame["replayed"], parts)


def test_a_limit_on_calls_does_the_same_both_ways() -> None:
    runs = datasets.load_synthetic_runs()
    runs = runs.where(run=runs.nodes["run"].unique()[:80].tolist())
    same = ceiling_both_ways(runs, "calls", target=0.7, runs=60, values=[2, 10, 40])
    assert (same.frame["enforcement"] == 0).all()
    assert not same.differs("enforcement").any()


def test_another_world_is_told_and_the_replay_is_trusted() -> None:
    dear = fit_world(records().where(run=[f"r{k}" for k in range(80, 120)]))
    other = Experiment(workload=dear.workload, provider=dear.provider, policies=(unlimited(),), runs=300)
    found = ceiling_both_ways(records(), experiment=other, target=0.8)
    assert found.differs("world").any()
    assert any(line.startswith("Trust the replay") and "another world" in line for line in found.trust())


def test_beyond_recorded_stops_only_the_simulation_speaks() -> None:
    runs = records(stopped=0.9)
    top = int(runs.nodes["cost_nusd"].max())
    world = fit_world(runs, method="empirical")
    same = Experiment(workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=100)
    found = ceiling_both_ways(runs, experiment=same, target=0.8, values=[top // 2, 2 * top])
    assert found.silent.tolist() == [False, True]
    assert "only the simulation speaks" in found.trust()[0]
    assert np.isnan(found.frame["world"].iloc[1])


def test_too_few_clusters_are_no_agreement() -> None:
    few = records()
    nodes = few.nodes.assign(repo=np.where(np.arange(120) < 60, "a", "b"))
    world = fit_world(few)
    same = Experiment(workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=100)
    found = ceiling_both_ways(Settlements.from_columns(nodes, few.calls), experiment=same, cluster="repo")
    assert any("cannot be told: too few clusters" in line for line in found.trust())


def test_the_choices_stand_beside_each_other(found: CeilingBothWays) -> None:
    assert found.simulated_ceiling is not None
    assert found.replayed.ceiling is not None
    assert found.summary().startswith("By replay of 120 recorded runs")
    assert found.plot(Figure().subplots()).get_xlabel().startswith("ceiling on spend")
    assert "Next:" in found.explain()


def test_values_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"^values: expected finite amounts >= 0"):
        ceiling_both_ways(records(), values=[-1.0])


def test_money_that_the_fitted_world_cannot_tell_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"give prices=, or an experiment whose provider has them$"):
        ceiling_both_ways(records(stopped=0.9), target=0.8, runs=20)


def test_records_that_do_not_say_what_came_from_a_cache_are_simulated_all_the_same() -> None:
    known = records(60)
    drop = ["cache_read", "cache_write"]
    bare = Settlements.from_columns(known.nodes.drop(columns=drop), known.calls.drop(columns=drop))
    found = ceiling_both_ways(bare, "tokens", target=0.5, runs=20, values=[3000, 5000])
    assert found.frame["simulated"].tolist() == [0.0, 1.0]


def test_one_command_asks_both_ways(tmp_path, capsys) -> None:
    path = tmp_path / "runs.parquet"
    records().to_parquet(path)
    assert run("ceiling", path, "--target", "0.8", "--simulate", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["simulated_ceiling"] > 0
    assert {"replayed", "simulated", "enforcement", "world"} <= set(answer["ceilings"][0])
    assert run("ceiling", path, "--simulate", "--failure-usd", "1") == 2
    assert "a target alone" in capsys.readouterr().err


def false_alarms(repeats: int) -> int:
    """Count how often a world that draws the records again is said not to give them back."""
    runs = records(60)
    at = np.quantile(runs.nodes["cost_nusd"], [0.2, 0.4, 0.6, 0.8])
    asked = {"values": at, "runs": 150, "target": 0.5}
    return sum(bool(ceiling_both_ways(runs, seed=seed, **asked).differs("world").any()) for seed in range(repeats))


def test_a_faithful_world_is_seldom_called_another() -> None:
    assert false_alarms(12) <= 3  # 5 % of 12 is 0.6; 99 % of binomial draws lie at or below 3


@pytest.mark.slow
def test_a_faithful_world_is_seldom_called_another_over_many_repetitions() -> None:
    assert false_alarms(200) <= 18  # 5 % of 200 is 10; 99 % of binomial draws lie at or below 18
