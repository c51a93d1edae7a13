"""Public cases of limits that are translated into another unit, run against the export as it stands."""

from __future__ import annotations

import pytest

from harness_lab.errors import InputError
from harness_lab.export import export
from harness_lab.export.steps import StepModel
from harness_lab.export.targets.langgraph import langgraph
from harness_lab.policies import iteration_budget

GRAPH = StepModel(base=6, per_unit=4, unit="tool calls")


def test_a_limit_of_graph_steps_shows_how_many_tool_calls_it_really_allows() -> None:
    # 6 + 4 k steps for k tool calls
    assert [GRAPH.within(limit) for limit in (25, 60, 10)] == [4, 13, 1]
    assert GRAPH.limit_for(10) == 46


def test_the_cost_of_a_call_in_steps_is_fitted_from_traces() -> None:
    assert StepModel.fit([(0, 6), (1, 10), (3, 18)], unit="tool calls") == GRAPH


def test_traces_that_no_single_model_explains_are_refused() -> None:
    with pytest.raises(InputError, match="paths differ in length"):
        StepModel.fit([(0, 6), (1, 10), (3, 25)])
    with pytest.raises(InputError, match="at least two different counts"):
        StepModel.fit([(1, 10), (1, 10)])


def test_the_export_writes_the_steps_and_reads_the_calls_back() -> None:
    written = export(iteration_budget(10), langgraph(GRAPH))
    assert written.settings == {"recursion_limit": 46}
    (meter,) = written.read_back().modules
    assert meter.to_dict()["calls"] == 10
