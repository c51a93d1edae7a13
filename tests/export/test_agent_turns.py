"""What single agents are held to is simulated where a file is read back, and so are budgets of a period."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness_lab.errors import InputError
from harness_lab.export import AgentLimits, Provenance, TunedConfig, export, read_back
from harness_lab.export.check import check_export, without_periods
from harness_lab.export.turns import AgentTurnsSpec, with_names, with_turns
from harness_lab.export.writers import read_told
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    PolicySpec,
    compose,
    iteration_budget,
    period_budget,
    runtime_floors,
    tree_limits,
    unlimited,
)
from harness_lab.simulate import Arrivals, Experiment, from_gallery
from harness_lab.usage import amounts

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")


def world(*policies: PolicySpec, runs: int = 30) -> Experiment:
    scene = from_gallery("deep-research")
    chosen = policies or (unlimited(),)
    return Experiment(workload=scene.workload, provider=scene.provider, policies=chosen, runs=runs)


def test_a_named_agent_makes_no_more_calls_than_its_own_limit_and_others_as_many_as_they_like() -> None:
    policy = with_turns(unlimited(), [AgentLimits(name="searcher", max_calls=3), AgentLimits(name="lead", max_calls=1)])
    nodes = with_names(world(policy)).run().settlements.nodes
    most = nodes.groupby("agent")["calls"].max()
    assert most["searcher"] == 3
    assert most["lead"] > 1  # nobody's child


def test_names_change_no_run() -> None:
    plain = world(tree_limits(1, 2))
    assert with_names(plain).run().digest() == plain.run().digest()


def test_names_leave_paths_alone_where_floors_are_held_against_them() -> None:
    key = FloorKey(backend="pi", model="small")
    experiment = world(runtime_floors(FloorTable((FloorRow(key=key, floor=5),))))
    agents = {name: replace(one, floor_key=key) for name, one in experiment.workload.agents.items()}
    held = replace(experiment, workload=replace(experiment.workload, agents=agents))
    assert with_names(held).workload.agents["searcher"].floor_key == key
    free = held.with_policies(unlimited())
    assert with_names(free).workload.agents["searcher"].floor_key == replace(key, agent="searcher")


def test_an_agent_has_one_limit() -> None:
    with pytest.raises(InputError, match="different agents"):
        AgentTurnsSpec(limits=(("a", 1), ("a", 2)))


@pytest.mark.parametrize("target", ["claude-code", "claude-agent-sdk", "openai-agents", "crewai", "env", "toml"])
def test_turns_of_single_agents_are_simulated_on_read_back(target: str) -> None:
    agents = [AgentLimits(name="searcher", max_calls=4)]
    config = TunedConfig(iteration_budget(50, max_refunds=0), provenance=PROVENANCE, agents=agents)
    written = export(config, target)
    assert {one.name: one.max_calls for one in written.agents_back()} == {"searcher": 4}
    found = check_export(written, config, world())
    assert found.decisions.same == (target != "crewai")  # which makes one more call at a limit
    free = check_export(export(config.policy, target), config, world())
    assert free.decisions.differing > found.decisions.differing


def test_an_agent_of_its_own_is_never_told_more_than_every_agent_may() -> None:
    config = TunedConfig(iteration_budget(9), provenance=PROVENANCE, agents=[AgentLimits(name="a", max_calls=20)])
    assert export(config, "openai-agents").settings["as_tool"] == {"a": 9}


def test_budgets_of_a_calendar_are_simulated_where_runs_arrive_together() -> None:
    policy = period_budget(cost_usd=20.0, by="user", every="day")
    arrivals = Arrivals(period_s=86_400, per_day=20, users=1)
    alone = world()
    experiment = replace(alone, workload=replace(alone.workload, arrivals=arrivals), runs=2)
    written = export(policy, "litellm")
    assert check_export(written, policy, experiment).same
    assert check_export(
        export(period_budget(cost_usd=2.0, by="user", every="day"), "litellm"), policy, experiment
    ).differing_runs
    found = check_export(written, compose(policy, tree_limits(1)), alone)
    assert any("give it arrivals" in text for text in found.unsimulated)


def test_what_outlives_a_run_stays_where_runs_meet() -> None:
    policy = compose(period_budget(cost_usd=1.0, every="day"), tree_limits(1))
    kept, said = without_periods(policy, world())
    assert [module.kind for module in kept.modules] == ["tree_limits"]
    assert len(said) == 1


def test_what_is_not_simulated_is_said_value_by_value() -> None:
    policy = compose(period_budget(cost_usd=9, calls=5, tokens=100, by="team", rolling_s=60), tree_limits(timeout_s=60))
    assert [line.partition(" =")[0] for line in export(policy, "litellm").unsimulated()] == [
        "rpm_limit", "tpm_limit", "max_budget",
    ]  # fmt: skip
    assert export(policy, "codex").unsimulated()[0].startswith("agents.job_max_runtime_seconds = 60: ")
    assert export(policy, "toml").unsimulated() == ()


def test_tangles_floors_and_deadline_are_read_back_into_a_policy() -> None:
    budget = {"maxIterations": 99, "maxTokens": 9e15, "deadlineMs": 60_000}
    text = json.dumps({"budget": budget, "runtimeFloors": {"pi": 7, "x": None}})
    told = read_told("tangle", text, form="json")
    assert [module.kind for module in told.policy.modules] == ["backend_floors", "reservation_pool", "shared_ledger"]
    assert told.unsimulated == (
        "budget.deadlineMs = 60000: simulated as checked before each call; there work under way is stopped too",
    )


def test_a_floor_of_a_backend_refuses_smaller_asks_of_any_model_there() -> None:
    policy = read_back(
        "tangle", '{"budget": {"maxIterations": 999, "maxTokens": 9000000000}, "runtimeFloors": {"b": 50}}', form="json"
    )
    lead = world().workload.agents["lead"]
    small, large = (replace(lead.spawns[0], budget=amounts(input=n), count=1) for n in (49, 50))
    agents = world().workload.agents | {"lead": replace(lead, spawns=(small, large))}
    agents["searcher"] = replace(agents["searcher"], floor_key=FloorKey(backend="b", model="any"))
    workload = replace(world().workload, agents=agents)
    nodes = replace(world(policy), workload=workload).run().settlements.nodes
    children = nodes[nodes["parent"].notna()]
    assert set(children["outcome"]) >= {"denied"}
    assert (children["outcome"] == "denied").sum() == 30
