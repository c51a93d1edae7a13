"""A ceiling's sweep against simulating each value: the same for every run, in everything, in random worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from harness_lab.bench.trees import tree_experiment
from harness_lab.datasets import data_dir
from harness_lab.errors import InputError
from harness_lab.policies import (
    AtLimit,
    PolicySpec,
    compose,
    hard_cap,
    reservation_pool,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.providers.profile import RateLimits
from harness_lab.simulate import AgentProfile, Experiment, Scenario, Workload, load_experiment
from harness_lab.simulate.profile import Reaction, Retry
from harness_lab.simulate.sweep import BLOCK, sweep, with_ceiling
from harness_lab.simulate.sweep_table import run_outcomes
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=4)
CEILINGS = ("calls", "cost", "time", "tokens", "input")


def simulated(one: Experiment, spec: PolicySpec, ceiling: Any, value: int) -> pd.DataFrame:
    """Return every run simulated under a value (whole units), in the columns of a sweep."""
    under = one.with_policies(with_ceiling(spec, ceiling, value))
    return run_outcomes(under.run(backend="serial", engine="kernel").settlements.nodes, ceiling)


def check_values(one: Experiment, ceiling: Any, values: list[int] | None = None, policy: str | None = None) -> Any:
    """Hold a sweep against simulating its values one by one, and the values just beside them."""
    found = sweep(one, ceiling, policy=policy)
    spec = next(spec for spec in one.policies if policy in (None, spec.name))
    unit = 10**9 if ceiling in ("cost", "time") else 1
    whole = np.rint(found.frame["ceiling"].to_numpy() * unit).astype(int)
    near = np.unique(np.concatenate([[0], whole[:: max(1, whole.size // 4)], whole[-1:]]))
    for value in values or np.unique(np.concatenate([near, near - 1])).clip(0).tolist():
        expected = simulated(one, spec, ceiling, value)
        pd.testing.assert_frame_equal(found.at(value / unit if unit > 1 else value), expected, check_dtype=False)
    return found


@pytest.mark.parametrize("ceiling", CEILINGS)
@RELAXED
@given(data=st.data())
def test_a_sweep_equals_simulating_each_value_in_random_worlds(
    data: st.DataObject, ceiling: str, experiments: st.SearchStrategy[Experiment]
) -> None:
    one = data.draw(experiments)
    check_values(one.with_policies(data.draw(st.sampled_from([one.policies[0], unlimited()]))), ceiling)


@pytest.mark.parametrize("ceiling", ["calls", "cost", "time"])
def test_a_sweep_equals_simulating_each_value_in_a_busy_world(busy: Experiment, ceiling: str) -> None:
    one = replace(busy, runs=12).with_policies(shared_ledger(25, 1.0, 150))
    found = check_values(one, ceiling)
    assert not found.reasons


def test_a_ceiling_on_tokens_is_read_off_where_no_child_holds_any(busy: Experiment) -> None:
    root = replace(
        busy.workload.agents["root"], spawns=(replace(busy.workload.agents["root"].spawns[0], budget=(None,) * 5),)
    )
    workload = replace(busy.workload, agents={**busy.workload.agents, "root": root})
    found = check_values(replace(busy, workload=workload, runs=12).with_policies(unlimited()), "tokens")
    assert not found.reasons
    assert found.exact > 6


def test_where_a_ceiling_changes_the_future_it_says_so_and_simulates(busy: Experiment) -> None:
    few = replace(busy, runs=6)
    pool = sweep(few.with_policies(reservation_pool(tokens=400_000)), "tokens", [100_000, 300_000])
    assert "hold what they ask for" in pool.reasons[0]
    assert "every value was simulated" in pool.summary()
    wrap = sweep(few.with_policies(compose(shared_ledger(9), at_limit=AtLimit(then="wrap-up"))), "calls", [3, 9])
    assert "what happens at a limit" in wrap.reasons[0]
    assert wrap.exact == 0
    expected = simulated(few, wrap_spec(), "calls", 3)
    pd.testing.assert_frame_equal(wrap.at(3), expected, check_dtype=False)


def wrap_spec() -> PolicySpec:
    return compose(shared_ledger(9), at_limit=AtLimit(then="wrap-up"))


def test_runs_that_wait_or_meet_a_deadline_are_simulated_and_the_others_are_not(busy: Experiment) -> None:
    queued = replace(busy, runs=12).with_policies(busy.policies[2])
    found = check_values(queued, "calls", values=[0, 3, 8, 20])
    assert found.exact < found.runs


def test_the_curve_counts_what_at_returns(busy: Experiment) -> None:
    found = sweep(busy.with_policies(unlimited()), "calls", [5, 12, 30])
    for i, value in enumerate([5, 12, 30]):
        runs = found.at(value)
        row = found.frame.iloc[i]
        assert row["completed"] == runs["completed"].mean()
        assert row["stopped"] == runs["stopped"].sum()
        assert row["calls"] == pytest.approx(runs["calls"].mean())
        known = runs["cost_nusd"].dropna()
        assert row["unknown_cost"] == len(runs) - len(known)
        assert row["cost_usd"] == pytest.approx(known.mean() / 1e9)
        assert row["time_s_low"] < row["time_s"] < row["time_s_high"]


def test_more_is_never_worse_under_a_ceiling_that_is_read_off(busy: Experiment) -> None:
    frame = sweep(busy.with_policies(unlimited()), "calls").frame
    for column in ("completed", "calls", "time_s"):
        assert frame[column].is_monotonic_increasing
    assert frame["stopped"].is_monotonic_decreasing


def test_every_text_says_that_agents_are_taken_as_oblivious(busy: Experiment) -> None:
    found = sweep(replace(busy, runs=3).with_policies(unlimited()), "calls")
    assert "Assumes oblivious agents" in found.summary()
    assert "Assumes oblivious agents" in found.explain()


def test_the_picture_has_a_step_for_each_value(busy: Experiment) -> None:
    found = sweep(replace(busy, runs=3).with_policies(unlimited()), "calls")
    (line,) = found.plot().get_lines()
    assert line.get_xdata().tolist() == found.frame["ceiling"].tolist()


@pytest.mark.parametrize(
    ("ceiling", "values", "message"),
    [("steps", None, r"^ceiling: expected one of calls"), ("calls", [-1], r"^values: expected"),
     ("calls", [2.5], r"^values: expected"), ("cost", [float("nan")], r"^values: expected"), ("calls", [], r"^values")],
)  # fmt: skip
def test_a_bad_sweep_is_refused(busy: Experiment, ceiling: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sweep(busy.with_policies(unlimited()), ceiling, values)


def test_a_ceiling_keeps_the_other_modules_of_its_policy() -> None:
    spec = compose(hard_cap(1.0), tree_limits(2), shared_ledger(9, 2.0), name="mine")
    changed = with_ceiling(spec, "cost", 5 * 10**8)
    assert (changed.name, changed.module("shared_ledger").max_cost_usd) == ("mine", 0.5)
    assert with_ceiling(unlimited(), "tokens", 7).module("reservation_pool").tokens == 7
    assert with_ceiling(spec, "cost", None).module("shared_ledger").max_cost_usd is None


@pytest.mark.parametrize("ceiling", ["calls", "cost", "time"])
def test_a_sweep_of_a_fitted_world_equals_simulating_each_value(ceiling: str) -> None:
    one = replace(load_experiment(data_dir() / "experiment.toml"), runs=15)
    found = check_values(one, ceiling, policy="shared ledger")
    assert not found.reasons
    assert found.exact == 15


def test_agents_with_habits_of_their_own_are_read_off_and_those_that_react_to_children_simulated(
    busy: Experiment,
) -> None:
    root = busy.workload.agents["root"]
    habits = replace(
        root, retry=Retry(layers=(2, 2), jitter="full"), think_s=Distribution.constant(3), context_limit_tokens=14_000,
        compact_to_tokens=500, reaction=Reaction(kind="wind-down", told=amounts(calls=3)),
        delivery=((0.0, 0.1), (1.0, 0.9)),
    )  # fmt: skip
    workload = replace(busy.workload, agents={**busy.workload.agents, "root": habits})
    one = replace(busy, workload=workload, runs=8).with_policies(unlimited())
    assert not check_values(one, "calls").reasons
    again = replace(root, spawns=(replace(root.spawns[0], max_attempts=2),))
    workload = replace(busy.workload, agents={**busy.workload.agents, "root": again})
    found = sweep(replace(busy, workload=workload, runs=4).with_policies(unlimited()), "calls", [5])
    assert "agents react to children" in found.reasons[0]


def test_a_provider_that_limits_rates_is_simulated(busy: Experiment) -> None:
    model = replace(busy.provider.models["m"], limits=RateLimits(concurrent=1))
    slow = replace(busy, runs=4, provider=replace(busy.provider, models={"m": model})).with_policies(unlimited())
    found = sweep(slow, "calls", [3, 9])
    assert "the provider remembers" in found.reasons[0]
    pd.testing.assert_frame_equal(found.at(9), simulated(slow, unlimited(), "calls", 9), check_dtype=False)


def test_a_sweep_looks_at_one_scenario_and_says_which() -> None:
    one = tree_experiment(12)
    flat = replace(one.workload, root="child")
    several = replace(one, scenarios=(Scenario(name="deep"), Scenario(name="flat", workload=flat)))
    found = sweep(several, "calls", [3, 5], scenario="flat")
    pd.testing.assert_frame_equal(found.frame, sweep(replace(one, workload=flat), "calls", [3, 5]).frame)
    assert "in scenario flat" in found.summary()
    assert sweep(several, "calls", [3]).scenario == "deep"
    with pytest.raises(InputError, match=r"^scenario: expected one of deep, flat, got 'none'"):
        sweep(several, "calls", [3], scenario="none")


def test_an_interrupted_sweep_keeps_the_blocks_that_were_done_and_says_so(busy: Experiment) -> None:
    def interrupt(done: int, _runs: int) -> None:
        if done >= BLOCK:
            raise KeyboardInterrupt

    many = replace(busy, runs=BLOCK + 40, policies=(shared_ledger(40, 1.0),))
    found = sweep(many, "calls", [5, 20], progress=interrupt)
    whole = sweep(replace(many, runs=BLOCK), "calls", [5, 20], progress=False)
    assert found.cancelled
    assert f"Cancelled after {BLOCK:,} of {BLOCK + 40:,} runs" in found.summary()
    assert found.to_frame().equals(whole.to_frame())
    assert not whole.cancelled


def _covers(repetitions: int, *, runs: int = 80) -> dict[str, int]:
    """Return how often a sweep's intervals hold what many runs have: an agent whose calls and prompts vary widely."""
    agent = AgentProfile(
        model="m",
        calls=Distribution.of("lognorm", s=0.8, scale=5),
        startup_tokens=Distribution.of("lognorm", s=1, scale=900),
        growth_tokens=Distribution.constant(200),
    )
    model = ModelProfile(output_tokens=Distribution.of("lognorm", s=0.9, scale=200), latency_s=Distribution.constant(2))
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    world = Experiment(
        workload=Workload(agents={"solo": agent}, root="solo"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(shared_ledger(60, 0.10),),
        runs=8_000,
        seed=10**6,
    )
    names = ("completed", "calls", "tokens", "cost_usd", "time_s")
    truth = sweep(world, "cost", [0.06], progress=False).to_frame().iloc[0]
    held = dict.fromkeys(names, 0)
    for seed in range(repetitions):
        row = sweep(replace(world, runs=runs, seed=seed), "cost", [0.06], progress=False).to_frame().iloc[0]
        for name in names:
            held[name] += bool(row[f"{name}_low"] <= truth[name] <= row[f"{name}_high"])
    return held


@pytest.mark.parametrize("repetitions", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_intervals_of_a_sweep_cover(repetitions: int) -> None:
    held = _covers(repetitions)
    tests = {name: binomtest(n, repetitions, 0.95, alternative="less") for name, n in held.items()}
    assert not {name: held[name] for name, test in tests.items() if test.pvalue <= 0.01 / len(held)}
