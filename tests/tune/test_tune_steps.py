"""One step of each limit, and races of policies, on worlds whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness_lab.errors import InputError
from harness_lab.policies import compose, shared_ledger, tree_limits, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.tune import one_step_more, parameters, race, with_parameter


def world(*policies, runs: int = 200, seed: int = 0) -> Experiment:
    agent = AgentProfile(
        model="m", calls=Distribution.of("lognorm", s=0.5, scale=10), startup_tokens=Distribution.constant(2000)
    )
    model = ModelProfile(output_tokens=Distribution.of("lognorm", s=0.5, scale=300), latency_s=Distribution.constant(1))
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    return Experiment(
        workload=Workload(agents={"solo": agent}, root="solo"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=policies, runs=runs, seed=seed,
    )  # fmt: skip


def test_every_limit_that_is_set_is_found_and_can_be_changed() -> None:
    policy = compose(shared_ledger(12, 1.0), tree_limits(max_depth=1), name="p")
    assert {one.name: one.value for one in parameters(policy)} == {
        "shared_ledger.max_steps": 12, "shared_ledger.max_cost_usd": 1.0, "tree_limits.max_depth": 1,
    }  # fmt: skip
    changed = with_parameter(policy, "tree_limits.max_depth", 3, rename="q")
    assert (changed.name, changed.module("tree_limits").max_depth) == ("q", 3)
    with pytest.raises(InputError, match=r"^parameter"):
        with_parameter(policy, "tree_limits.charm", 1)


def test_steps_move_whole_numbers_by_at_least_one() -> None:
    steps = parameters(compose(shared_ledger(12, 1.0), tree_limits(max_depth=1)))
    assert [one.stepped(0.1, up=True) for one in steps] == [13, 1.1, 2]
    assert [one.stepped(0.1, up=False) for one in steps] == [11, 0.9, 0]


def test_the_limit_that_binds_has_an_effect_and_the_slack_one_has_none() -> None:
    policy = shared_ledger(12, 100.0, name="p")
    table = one_step_more(world(policy)).to_frame()
    done = table[table["metric"] == "completed"].set_index(["limit", "direction"])
    assert done.loc[("shared_ledger.max_steps", "up"), "value"] > 0
    assert done.loc[("shared_ledger.max_steps", "down"), "high"] < 0
    assert done.loc[("shared_ledger.max_cost_usd", "up"), "identical"] == 200
    assert not done.loc[("shared_ledger.max_cost_usd", "up"), "shown"]


def test_the_effect_of_a_step_is_that_of_simulating_both_by_hand() -> None:
    policy = shared_ledger(12, name="p")
    table = (
        one_step_more(world(policy), limits=["shared_ledger.max_steps"]).to_frame().set_index(["direction", "metric"])
    )
    nodes = world(policy, shared_ledger(13, name="q")).run().settlements.nodes
    done = (nodes["outcome"] == "completed").groupby(nodes["policy"]).mean()
    assert table.loc[("up", "completed"), "value"] == pytest.approx(done["q"] - done["p"])


def test_the_summary_names_slack_limits_together_and_what_bound() -> None:
    text = one_step_more(world(shared_ledger(12, 100.0, name="p"))).summary()
    assert "- no effect shown: shared_ledger.max_cost_usd 100 -> 110" in text
    assert "Limits that stopped runs of p: steps-exhausted" in text


def test_a_policy_without_limits_has_no_step() -> None:
    with pytest.raises(InputError, match=r"^limits"):
        one_step_more(world(unlimited()))
    with pytest.raises(InputError, match=r"^policy"):
        one_step_more(world(unlimited()), policy="none")


def test_a_race_selects_the_policy_that_completes_more_and_stops_early() -> None:
    found = race(world(shared_ledger(8, name="tight"), shared_ledger(40, name="wide")), "completed", indifference=0.1)
    assert found.chosen == "wide"
    assert found.simulated <= 2 * 400
    assert "wide is selected in completion" in found.summary()


def test_a_race_keeps_its_promise_over_seeds() -> None:
    base = world(shared_ledger(12, name="a"), shared_ledger(14, name="b"))
    won = [race(replace(base, seed=s), "completed", indifference=0.08, max_runs=600).chosen for s in range(20)]
    assert won.count("a") <= 3  # 5 % of 20 is 1; 99 % of binomial draws lie at or below 3


def test_a_race_that_runs_out_says_what_it_needs() -> None:
    twins = world(shared_ledger(12, name="a"), shared_ledger(12, 50.0, name="b"), shared_ledger(13, name="c"))
    found = race(twins, "cost_nusd", indifference=1e-6, max_runs=150)
    assert found.chosen is None
    assert "no selection within 150 runs" in found.summary()
