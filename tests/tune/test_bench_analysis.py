"""The benchmark of questions answers for each of them."""

from __future__ import annotations

from harness_lab.bench.analysis import group_by, question_ratios, records


def test_every_question_is_measured_against_a_group_by_of_the_same_frame() -> None:
    found = question_ratios(quick=True)
    assert {"floor", "ceiling", "flat price", "compare"} <= set(found["each"])
    assert found["value"] == max(found["each"].values())
    assert len(group_by(records(100))) == 100
