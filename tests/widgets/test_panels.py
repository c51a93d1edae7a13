from __future__ import annotations

from datetime import timedelta

import pytest

import harness_lab as lab
from harness_lab import datasets, widgets
from harness_lab.simulate import from_gallery


@pytest.fixture(scope="module")
def experiment() -> lab.Experiment:
    scene = from_gallery("deep-research")
    few = lab.compose(lab.tree_limits(2, 2, 4), lab.shared_ledger(30, 2.0), name="few children")
    many = lab.shared_ledger(60, name="ledger")
    return lab.Experiment(workload=scene.workload, provider=scene.provider, policies=(few, many), runs=60)


@pytest.fixture(scope="module")
def result(experiment: lab.Experiment) -> object:
    return experiment.run(progress=False)


def test_a_moved_floor_says_the_costs_of_the_analysis() -> None:
    panel = widgets.floor_explorer(datasets.load_synthetic_runs())
    panel.pick["agent"].value = "worker"
    before = panel.picture.value
    panel.floor.value = 90_000
    rows = datasets.load_synthetic_runs().nodes
    from harness_lab.analyze import floor_costs

    wanted = floor_costs(rows[rows["agent"] == "worker"], candidates=[panel.floor.value])
    assert panel.costs().summary() == wanted.summary()
    assert "90,0" in panel.readout.value.replace("89,9", "90,0")
    assert panel.picture.value != before


def test_mixed_and_stale_evidence_is_marked() -> None:
    runs = datasets.load_synthetic_runs()
    panel = widgets.floor_explorer(runs, stale_after=timedelta(days=1), now_ns=2 * 10**18)
    assert "Mixed evidence: 3 paths" in panel.readout.value
    panel.pick["agent"].value = "worker"
    assert "Mixed" not in panel.readout.value
    assert "Stale evidence" in panel.readout.value


def test_a_path_without_settlements_says_so() -> None:
    panel = widgets.floor_explorer(datasets.load_synthetic_runs())
    panel.pick["agent"].value, panel.pick["backend"].value = "worker", "synth-api"
    assert "nothing can be said" in panel.readout.value
    assert "no rows" in panel.picture.value


def test_stepping_through_a_run_tells_each_event(experiment: lab.Experiment) -> None:
    panel = widgets.run_viewer(experiment, 1, policy="few children")
    before = panel.picture.value
    panel.only.value = "refused"
    panel.on.click()
    assert panel.event["answer"] == "refused"
    assert "max-concurrent" in panel.readout.value
    assert panel.picture.value != before
    refused = panel.step.value
    panel.only.value = "any"
    panel.back.click()
    assert panel.step.value == refused - 1


def test_the_picture_of_a_run_tells_reasons_under_the_pointer(experiment: lab.Experiment) -> None:
    panel = widgets.run_viewer(lab.explain(experiment, 1, policy="few children"))
    assert "<title>" in panel.picture.value
    assert "-&gt; refused: max-concurrent" in panel.picture.value


def test_the_comparison_shows_the_metric_that_is_chosen(result: object) -> None:
    panel = widgets.compare(result)
    before = panel.picture.value
    panel.metric.value = "spend"
    assert str(panel.comparison.policies[0].spend).split(" ")[0] in panel.readout.value
    assert panel.picture.value != before


def test_choosing_a_policy_lists_its_runs(result: object) -> None:
    panel = widgets.compare(result, baseline="ledger")
    panel.policy.value = "ledger"
    assert set(panel.chosen()["policy"]) == {"ledger"}
    assert "60 runs of ledger" in panel.runs.value


def test_the_quality_panel_explains_the_finding_that_is_chosen() -> None:
    panel = widgets.quality(datasets.load_synthetic_runs())
    assert "node(s)" in panel.readout.value
    found = panel.report.findings[0]
    panel.finding.value = found.code
    assert found.effect.split("&")[0][:20] in panel.readout.value


def test_controls_of_all_panels_are_labelled(experiment: lab.Experiment, result: object) -> None:
    runs = datasets.load_synthetic_runs()
    panels = (widgets.floor_explorer(runs), widgets.run_viewer(experiment, 0, policy="ledger"), widgets.compare(result))
    for panel in (*panels, widgets.quality(runs)):
        controls = _leaves(panel)
        assert controls
        assert all(one.description for one in controls)


def _leaves(box: object) -> list[object]:
    found = []
    for child in box.children:
        if hasattr(child, "children"):
            found += _leaves(child)
        elif hasattr(child, "disabled"):
            found.append(child)
    return found
