"""The pictures of the panels: no words leave them or lie on others, with one, two and twenty policies of long names."""

from __future__ import annotations

import pytest
from drawn_texts import drawn, outside, overlapping

import harness_lab as lab
from harness_lab import widgets
from harness_lab.simulate import from_gallery
from harness_lab.widgets import Settings


@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_comparison_reads_well(count: int) -> None:
    scene = from_gallery("coding-agent")
    names = [f"ledger {k} with a name that is really long, longer than any line" for k in range(count)]
    policies = tuple(lab.shared_ledger(20 + 2 * k, name=name) for k, name in enumerate(names))
    made = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=policies, runs=30)
    panel = widgets.compare(made.run(progress=False, backend="serial"))
    panel.metric.value = "spend"
    figure = panel.picture.figure()
    texts = drawn(figure)
    assert outside(figure, texts) == []
    assert overlapping(texts) == []


def test_the_explorer_reads_well_beside_its_baseline() -> None:
    panel = widgets.explore("deep-research", settings=Settings(workload="deep-research", calls=30), runs=40)
    panel.controls["depth"].value = 1
    figure = panel.finish().picture.figure()
    texts = drawn(figure)
    assert outside(figure, texts) == []
    assert overlapping(texts) == []
