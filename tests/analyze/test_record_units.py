"""Rows that stand for different things are never averaged."""

from __future__ import annotations

import pandas as pd
import pytest

from harness_lab.analyze import distribution, floors, run_table
from harness_lab.errors import InputError
from harness_lab.settlements import Settlements


def table(*units: str | None) -> Settlements:
    count = len(units)
    return Settlements.from_columns(
        {
            "run": [f"r{n}" for n in range(count)],
            "node": ["0"] * count,
            "record_unit": list(units),
            "outcome": ["completed"] * count,
            "input_total": [1_000 + n for n in range(count)],
            "cost_nusd": [10] * count,
        }
    )


@pytest.mark.parametrize("analysis", [run_table, floors, lambda data: distribution(data, "cost_nusd")])
def test_an_analysis_refuses_rows_of_two_units_and_says_how_to_choose(analysis) -> None:
    mixed = table("turn", "session", "turn")
    message = r"^record_unit: expected rows that all stand for the same thing, got 'turn \(2\), session \(1\)'"
    with pytest.raises(InputError, match=message + r"\. keep one: settlements\.where\(record_unit='turn'\)$"):
        analysis(mixed)
    analysis(mixed.where(record_unit="turn"))


def test_a_frame_is_checked_as_settlements_are() -> None:
    with pytest.raises(InputError, match=r"^record_unit"):
        run_table(table("call", "session").nodes)


def test_the_nodes_of_one_tree_are_one_unit() -> None:
    nodes = {"run": "r", "node": ["0", "1"], "parent": [None, "0"], "record_unit": "node", "outcome": "completed"}
    assert run_table(Settlements.from_columns(nodes))["nodes"].tolist() == [2]


def test_rows_that_do_not_name_their_unit_go_with_those_that_do() -> None:
    assert len(run_table(table("run", None))) == 2
    assert len(run_table(pd.DataFrame({"run": ["a"], "outcome": ["completed"]}))) == 1
