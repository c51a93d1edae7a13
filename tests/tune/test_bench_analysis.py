"""The benchmark of questions answers for each of them, on each shape of table."""

from __future__ import annotations

import pytest

from harness_lab.analyze import run_table
from harness_lab.bench.analysis import group_by, question_ratios, two_policies
from harness_lab.bench.tables import TABLES, records


def test_every_question_is_measured_against_a_group_by_of_the_same_frame() -> None:
    found = question_ratios(quick=True)
    asked = {name.split(": ")[1] for name in found["each"]}
    assert {"floor", "ceiling", "flat price", "reprice", "compare"} <= asked
    assert set(found["each"]) == {f"{table}: {question}" for table in TABLES for question in asked}
    assert found["value"] == max(found["each"].values())
    assert found["unit"] == "group-bys"
    assert len(group_by(records(100))) == 100


@pytest.mark.parametrize(("name", "nodes"), [("single nodes", 1), ("trees", 4), ("clusters", 1)])
def test_tables_have_the_size_that_was_asked_for_and_two_policies_share_their_runs(name: str, nodes: int) -> None:
    table = TABLES[name](400)
    runs = run_table(two_policies(table))
    assert len(table) == 400
    assert runs["nodes"].eq(nodes).all()
    assert runs.groupby("run")["policy"].nunique().eq(2).all()
