"""A tuned config from the shipped data goes to every target; what that would decide otherwise is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from harness_lab import datasets
from harness_lab.analyze import ceiling
from harness_lab.cli import main
from harness_lab.export import TARGETS, AgentLimits, TunedConfig, export
from harness_lab.export.check import check_export
from harness_lab.export.meter import MeterSpec
from harness_lab.export.scopes import from_records
from harness_lab.export.tuned import config_of
from harness_lab.policies import PolicySpec, compose, iteration_budget, preset, shared_ledger, tree_limits
from harness_lab.simulate import load_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.simulate import Experiment


@cache
def shipped() -> tuple[TunedConfig, Experiment]:
    """What the tour makes: a ceiling of the shipped records in the last policy of the shipped experiment."""
    records = datasets.load_synthetic_runs()
    experiment = replace(load_experiment(datasets.data_dir() / "experiment.toml"), runs=60)
    choice = ceiling(records, "cost", target=0.85)
    config = config_of(choice, records, policy=experiment.policies[-1], experiment=experiment)
    agents = [AgentLimits(name=name, max_calls=22) for name in experiment.workload.agents]
    whole = TunedConfig(config.policy, provenance=config.provenance, evidence=config.evidence, agents=agents)
    return whole, experiment


@pytest.mark.parametrize("target", TARGETS)
def test_the_shipped_config_goes_to_every_target_and_is_simulated_as_it_enforces_it(target: str) -> None:
    config, experiment = shipped()
    for form in TARGETS[target].forms:
        written = export(config, target, form=form)
        assert written.files
        found = check_export(written, config, experiment)
        assert found.decisions.compared > 500
        assert found.same == (target in ("env", "toml"))
        assert ("treated differently" in found.summary()) != found.same


@pytest.mark.parametrize("target", ["openai-agents", "langgraph", "claude-code", "hermes", "crewai"])
def test_a_ceiling_of_calls_is_derived_again_for_targets_that_count_single_agents(target: str) -> None:
    records = datasets.load_synthetic_runs()
    config = config_of(ceiling(records, "calls", target=0.85), records, policy=shared_ledger(1))
    written = export(config, target, derive=from_records(records, config))
    assert written.carried
    assert all(one.n > 2000 for one in written.evidence)


@pytest.mark.parametrize(
    ("channel", "there"),
    [
        ("starts", {"tanstack"}),
        ("concurrency", {"claude-code", "codex", "claude-agent-sdk", "bernstein"}),
        ("time", {"prism", "tangle"}),
    ],
)
def test_a_tuned_limit_of_a_tree_goes_where_there_is_such_a_setting_and_decides_alike(
    channel: str, there: set[str]
) -> None:
    records, (_, experiment) = datasets.load_synthetic_runs(), shipped()
    config = config_of(ceiling(records, channel, target=0.85), records)  # type: ignore[arg-type]
    found = {target: export(config, target) for target in TARGETS if target not in ("env", "toml")}
    assert {target for target, written in found.items() if written.carried} == there
    assert all(check_export(found[target], config, experiment).same for target in there)


def test_a_ledger_that_a_target_counts_alike_decides_alike() -> None:
    _, experiment = shipped()
    ledger = shared_ledger(10**6, 0.4)
    found = check_export(export(ledger, "prism"), ledger, experiment)
    assert found.same
    assert found.differing_runs == 0


@pytest.mark.parametrize("target", ["openai-agents", "langgraph", "crewai"])
def test_a_count_for_each_agent_decides_alike_where_each_agent_is_counted(target: str) -> None:
    _, experiment = shipped()
    policy = replace(iteration_budget(9, max_refunds=0), at_limit=TARGETS[target].at_limit)
    assert check_export(export(policy, target), policy, experiment).same


@pytest.mark.parametrize(("name", "target"), [("tanstack-1520", "tanstack"), ("hermes-0.19", "hermes")])
def test_a_preset_goes_to_its_own_system_without_loss_and_decides_alike(name: str, target: str) -> None:
    _, experiment = shipped()
    written = export(preset(name), target)
    assert written.losses == ()
    assert check_export(written, preset(name), experiment).same


def test_what_a_lost_limit_costs_is_said() -> None:
    _, experiment = shipped()
    policy = compose(shared_ledger(10**6, 0.2), tree_limits(1, 2))
    found = check_export(export(policy, "codex"), policy, experiment)
    assert found.differing_runs > 10
    assert "spends more" in found.summary()
    assert any("shared_ledger.max_cost_usd = 0.2" in loss for loss in found.losses)


def test_a_meter_that_trips_when_passed_lets_one_more_call_through() -> None:
    _, experiment = shipped()
    reached, passed = (
        PolicySpec(name=trips, modules=(MeterSpec(input=0, trips=trips),))  # type: ignore[arg-type]
        for trips in ("reached", "passed")
    )
    nodes = experiment.with_policies(reached, passed).run().settlements.nodes
    roots = nodes[nodes["parent"].isna()].groupby("policy")["calls"].max()
    assert roots.to_dict() == {"passed": 1, "reached": 0}


def test_a_meter_of_the_root_leaves_children_alone() -> None:
    _, experiment = shipped()
    policy = PolicySpec(name="root", modules=(MeterSpec(calls=2, whose="root"),))
    nodes = experiment.with_policies(policy).run().settlements.nodes
    assert nodes.loc[nodes["parent"].isna(), "calls"].max() == 2
    assert nodes.loc[nodes["parent"].notna(), "calls"].max() > 2


def test_from_the_command_line_a_ceiling_becomes_a_file_for_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = str(datasets.data_dir() / "synthetic_runs.parquet")
    config, folder = tmp_path / "config.json", tmp_path / "project"
    for arguments in (
        ["ceiling", records, "--target", "0.85", "--write", str(config)],
        ["export", str(config), "--target", "claude-code", "--out", str(folder)],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    told = capsys.readouterr()
    usd = TunedConfig.read(config).policy.module("reservation_pool").cost_usd
    assert f"${usd:.4f}" in told.out
    assert (folder / "claude-flags.txt").read_text() == f"--max-budget-usd {usd}\n"
    assert "what a child asks for is not set aside" in told.err


def test_a_place_without_an_ending_is_a_folder_and_json_says_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = shipped()
    path, out = config.write(tmp_path / "config.json"), tmp_path / "limits"
    with pytest.raises(SystemExit):
        main(["export", str(path), "--target", "tanstack", "--form", "json", "--out", str(out), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert json.loads((out / "subagent-limits.json").read_text())["timeoutMs"] == 180_000
    assert {"target", "form", "files", "carried", "losses", "defaults", "derived"} <= set(data)
    with pytest.raises(SystemExit) as ended:
        main(["export", str(path), "--target", "claude-code", "--out", str(tmp_path / "one.txt")])
    assert ended.value.code == 2
    assert "expected a folder" in capsys.readouterr().err
