from __future__ import annotations

import asyncio
import json

import pytest

from harness_lab.errors import InputError
from harness_lab.export import TunedConfig
from harness_lab.simulate import build_experiment
from harness_lab.widgets import Explorer, Settings, explore
from harness_lab.widgets.controls import NO_LIMIT

START = Settings(cost_usd=1.0, calls=60)


def small(runs: int = 60) -> Explorer:
    return explore("coding-agent", settings=START, runs=runs, seed=3)


def test_a_moved_budget_gives_the_figures_of_the_experiment_itself() -> None:
    panel = small().finish()
    panel.controls["cost_usd"].value = 0.3
    panel.finish()
    result = Settings(cost_usd=0.3, calls=60).experiment(runs=60, seed=3).run(progress=False)
    nodes = result.settlements.nodes
    found = panel.effect()
    assert found.completed.value == pytest.approx((nodes["outcome"] == "completed").mean())
    assert found.spend.value == pytest.approx(nodes["cost_nusd"].mean() / 1e9)
    assert found.pairs == 60
    assert "n = 60" in panel.readout.value


def test_the_picture_and_the_readout_change_with_the_control() -> None:
    panel = small()
    before = panel.picture.value, panel.readout.value
    panel.controls["cost_usd"].value = 0.3
    assert panel.picture.value != before[0]
    assert panel.readout.value != before[1]


def test_the_difference_is_taken_pair_by_pair_against_what_is_pinned() -> None:
    panel = small().finish()
    assert panel.effect().differences == {}
    panel.controls["calls"].value = 20
    assert panel.finish().effect().differences["completed"].value < 0
    panel.pin.click()
    assert "these settings are the baseline" in panel.readout.value


def test_a_part_is_said_to_be_one_and_the_rest_is_simulated_when_there_is_time() -> None:
    panel = small(runs=400)
    assert "a part" in panel.status.value
    panel.finish()
    assert panel.status.value == "<p role='status'>400 of 400 runs</p>"


def test_stopping_keeps_what_is_done() -> None:
    async def stopped() -> Explorer:
        panel = small(runs=2000)
        while panel.runs.done < 40:
            await asyncio.sleep(0.001)
        panel.stop.click()
        done = panel.runs.done
        await asyncio.sleep(0.05)
        assert panel.runs.done == done < 2000
        return panel

    assert "stopped; what is done is kept" in asyncio.run(stopped()).status.value


def test_the_settings_read_back_from_toml_are_the_same_experiment() -> None:
    import tomllib

    panel = small()
    panel.controls["depth"].value = 2
    panel.show_as.value = "TOML (experiment file)"
    read = build_experiment(tomllib.loads(panel.text.value))
    assert read.policies == panel.runs.experiment.policies
    assert read.workload == panel.runs.experiment.workload


def test_the_config_and_the_code_say_the_same_limits() -> None:
    panel = small()
    config = TunedConfig.from_json(panel.settings_as("config (JSON)"))
    assert json.loads(config.to_json())["policy"]["modules"][0]["max_cost_usd"] == 1.0
    assert "Settings(workload='coding-agent', cost_usd=1.0, calls=60)" in panel.settings_as("Python")


def test_a_floor_refuses_children_that_ask_for_less() -> None:
    panel = explore("deep-research", settings=Settings(workload="deep-research"), runs=20)
    panel.controls["floor"].value = 800_000
    nodes = panel.finish().runs.table
    assert nodes["starts"].sum() == 0


def test_dearer_calls_cost_more_and_no_limit_is_none() -> None:
    panel = small().finish()
    for name in ("cost_usd", "calls"):
        panel.controls[name].value = NO_LIMIT
    assert (panel.settings.cost_usd, panel.settings.calls) == (None, None)
    free = panel.finish().effect().spend.value
    panel.controls["price"].value = 2.0
    assert panel.finish().effect().spend.value == pytest.approx(2 * free, rel=1e-3)


def test_every_control_has_a_label() -> None:
    panel = small(runs=20)
    assert all(control.description for control in panel.controls.values())
    assert not any(button.icon for button in (panel.pin, panel.stop))


def test_an_unknown_world_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="coding-agent"):
        explore("coding")
    with pytest.raises(InputError, match="do not meet"):
        explore("team-month")
