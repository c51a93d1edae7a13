"""Limits of one system in the settings of another: what is carried, what stands in, and how many runs that changes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab import datasets
from harness_lab.errors import InputError
from harness_lab.export import TARGETS, Translation, read_back, translate
from harness_lab.export.decisions import KINDS, Answer, Run, kind_of
from harness_lab.export.steps import StepModel
from harness_lab.export.targets.langgraph import langgraph
from harness_lab.export.translation.usage import between, grid
from harness_lab.export.translation.worlds import world_of
from harness_lab.simulate import Arrivals, from_gallery


@cache
def made(source: str, target: str, said: tuple[tuple[str, Any], ...], **options: Any) -> Translation:
    options = {"workload": "deep-research", "runs": 40, "search_runs": 20} | options
    return translate(dict(said), source=source, target=target, **options)


THREE = {
    ("prism", "max_steps"): 3,
    ("pydantic-ai", "request_limit"): 3,
    ("openai-agents", "max_turns"): 3,
    ("claude-agent-sdk", "max_turns"): 3,
    ("litellm", "max_iterations"): 3,
    ("langgraph", "recursion_limit"): 1,  # super-steps: one for the model and one for its tools
    ("crewai", "max_iter"): 4,  # one more, for an answer
    ("hermes", "max_turns"): 4,  # one more, for a summary
}
"""Model calls of a main agent that never ends by itself, under a limit of three."""


@pytest.mark.parametrize(("system", "setting"), THREE)
def test_a_limit_of_three_is_another_number_of_calls_elsewhere(system: str, setting: str) -> None:
    found = translate({setting: 3}, source=system, target="toml", workload="marathon", runs=5)
    _, experiment = world_of("marathon", runs=5, seed=0)
    nodes = experiment.with_policies(found.policy).run().settlements.nodes
    assert set(nodes["calls"]) == {THREE[system, setting]}


def test_one_limit_of_steps_is_another_count_for_every_graph() -> None:
    graph = langgraph(StepModel(base=6, per_unit=4))
    found = translate({"recursion_limit": 25}, source=graph, target="openai-agents", runs=3)
    assert found.written.settings == {"max_turns": 4}


def test_what_is_counted_alike_is_carried_without_a_search_and_no_run_differs() -> None:
    found = made("prism", "pydantic-ai", (("max_steps", 40),), workload="coding-agent")
    assert found.written.settings["request_limit"] == 40
    assert (found.searched, found.in_vain) == ((), ())
    assert found.differing.value == 0
    assert "Treated differently: 0 [0, 0.08762] (95 %, n = 40, Wilson)" in found.summary()


def test_limits_that_no_run_reaches_are_said_to_have_bound_in_none() -> None:
    found = made("langgraph", "openai-agents", (("recursion_limit", 2500),))
    assert (found.bound, found.met) == ((0, 0), 40)
    assert "A limit of LangGraph bound in 0 of 40 runs, of OpenAI Agents SDK in 0: these runs" in found.summary()
    tight = made("langgraph", "openai-agents", (("recursion_limit", 25),))
    assert 0 < min(tight.bound) <= max(tight.bound) <= 40
    assert "say nothing of what is beyond" not in tight.summary()


@pytest.mark.parametrize(("source", "target", "what"), [("langchain", "prism", "source"), ("prism", "x", "target")])
def test_a_system_that_there_is_not_is_called_by_its_own_argument(source: str, target: str, what: str) -> None:
    with pytest.raises(InputError, match=rf"^{what}: expected one of "):
        translate({"max_steps": 3}, source=source, target=target)


def test_a_session_that_counts_a_call_when_it_starts_ends_runs_that_a_ledger_lets_go_on() -> None:
    found = made("prism", "litellm", (("max_steps", 40),), workload="coding-agent")
    assert found.written.settings["max_iterations"] == 40
    assert 0 < found.differing.value < 0.5
    assert found.kinds["ended earlier"].value == found.differing.value


def test_the_answer_in_the_docs_is_the_one_that_is_given() -> None:
    page = (Path(__file__).parents[2] / "docs" / "translate.md").read_text("utf-8")
    shown = page.partition("```\nLangGraph (")[2].partition("\n```")[0]
    found = translate({"recursion_limit": 25}, source="langgraph", target="claude-agent-sdk")
    assert found.summary().startswith(f"LangGraph ({shown}")


def test_a_ledger_that_is_used_up_refuses_a_childs_start_and_a_session_only_its_first_call() -> None:
    found = made("prism", "pydantic-ai", (("max_steps", 40),))
    assert found.kinds["start let in"].value == found.differing.value > 0
    assert found.ends.value == 0


def test_a_graphs_limit_binds_no_subagent_of_claude_until_it_is_named() -> None:
    said = (("recursion_limit", 25),)
    loose = made("langgraph", "claude-agent-sdk", said)
    named = made("langgraph", "claude-agent-sdk", said, agents=("searcher",))
    assert loose.written.settings == {"max_turns": 12}
    assert loose.kinds["ended later"].value == loose.differing.value > 0.5
    assert "recursion_limit = 25: holds for no child: name the agents" in loose.summary()
    assert named.written.settings["agents"]["searcher"]["maxTurns"] == 12
    assert named.differing.value == 0


def test_dollars_become_the_closest_count_of_turns_and_the_count_is_confirmed_on_other_runs() -> None:
    found = made("pydantic-ai", "openai-agents", (("cost_limit", 0.05),), workload="coding-agent")
    (one,) = found.searched
    assert (one.key, one.value) == ("max_turns", "cost_limit")
    assert one.differing < one.without
    assert one.seed != found.seed
    assert found.read_back == replace(read_back("openai-agents", found.written.files), name=found.read_back.name)
    assert found.differing.n == 40


def test_a_setting_that_makes_it_worse_is_not_written_and_that_is_said() -> None:
    found = made("langgraph", "pydantic-ai", (("recursion_limit", 25),))
    assert found.written.settings == {"request_limit": None}
    assert "recursion_limit: none of " in found.in_vain[0]
    assert "request_limit is closer on 20 other runs" in found.summary()
    assert "derive it again" not in found.summary()


def test_what_the_target_has_no_word_for_is_listed_and_nothing_is_made_up() -> None:
    found = made("tanstack", "prism", (("maxDepth", 0), ("maxCalls", 3)))
    assert [loss.value for loss in found.written.losses] == ["maxDepth = 0", "maxCalls = 3"]
    assert found.kinds["start let in"].value == found.differing.value == 1


def test_kinds_add_up_and_every_figure_has_its_runs_and_interval() -> None:
    found = made("pydantic-ai", "openai-agents", (("cost_limit", 0.05),), workload="coding-agent")
    frame = found.to_frame().set_index("kind")
    assert frame.loc[list(KINDS), "value"].sum() == pytest.approx(found.differing.value)
    assert set(frame["n"]) == {40}
    assert frame[["low", "high"]].notna().all().all()
    assert "<pre>" in found._repr_html_()
    assert "Next: " in found.explain()


def test_the_same_question_has_the_same_answer() -> None:
    first, second = (
        translate({"cost_limit": 0.05}, source="pydantic-ai", target="openai-agents", workload="coding-agent",
                  runs=20, search_runs=10)
        for _ in range(2)
    )  # fmt: skip
    assert first.summary() == second.summary()
    assert first.written.files == second.written.files


def test_a_limit_that_is_left_out_leaves_the_systems_own_and_that_is_said() -> None:
    found = made("hermes", "codex", (("max_spawn_depth", 1),))
    assert any(text.startswith("agent.max_turns: 90") for text in found.defaults)
    assert any("job" not in text for text in found.written.defaults)


@pytest.mark.parametrize(
    ("source", "said", "does"),
    [("prism", {"max_cost_usd": 0.5}, "max_steps: 8"), ("openai-agents", {"as_tool": {"x": 3}}, "max_turns: 10")],
)
def test_what_is_not_said_is_no_limit_here_and_what_the_system_does_then_is_told(
    source: str, said: dict[str, Any], does: str
) -> None:
    found = translate(said, source=source, target="pydantic-ai", workload="coding-agent", runs=2, search_runs=0)
    assert found.defaults == (does,)
    assert found.written.settings["request_limit"] is None


PAIRS = [(one, two) for one, system in TARGETS.items() if system.knobs for two in TARGETS]


def holds(source: str, target: str) -> None:
    said = {TARGETS[source].knobs[0].key: 40}
    found = translate(said, source=source, target=target, workload="reviewer-panel", runs=2, search_runs=0)
    assert found.differing.n == 2
    assert found.written.carried or found.written.losses or not TARGETS[target].knobs
    assert not any(one.value.startswith("meter") for one in (*found.written.carried, *found.written.losses))


@pytest.mark.parametrize(("source", "target"), PAIRS[::8])
def test_every_system_can_be_translated_into_another(source: str, target: str) -> None:
    holds(source, target)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_system_can_be_translated_into_every_other(source: str, target: str) -> None:
    holds(source, target)


def test_budgets_of_a_period_are_left_out_where_runs_are_alone_and_simulated_where_they_meet() -> None:
    said = {"budgets": [{"for": "user", "max_budget": 0.05, "budget_duration": "1d"}]}
    alone = translate(said, source="litellm", target="toml", workload="coding-agent", runs=5)
    assert any("give it arrivals" in text for text in alone.unsimulated)
    _, experiment = world_of("coding-agent", runs=1, seed=0)
    busy = replace(experiment.workload, arrivals=Arrivals(period_s=86_400, per_day=10, users=1))
    met = translate(said, source="litellm", target="codex", workload=replace(experiment, workload=busy), runs=3)
    assert met.unsimulated == ()
    assert met.kinds["ended later"].value == 1
    assert met.differing.clusters == 3
    assert met.differing.n > 15


def test_runs_of_a_busy_month_are_taken_one_by_one_where_limits_are_of_a_run() -> None:
    found = translate({"max_steps": 9}, source="prism", target="litellm", workload="team-month", runs=3)
    assert found.differing.n == 3
    assert from_gallery("team-month").workload.arrivals is not None


def test_records_of_ones_own_are_a_workload_too_and_their_agents_can_be_named() -> None:
    records = datasets.data_dir() / "synthetic_runs.parquet"
    _, experiment = world_of(records, runs=20, seed=0)
    loose, named = (
        translate({"recursion_limit": 13}, source="langgraph", target="claude-code", workload=experiment, runs=20,
                  agents=agents)
        for agents in ((), ("worker", "reviewer"))
    )  # fmt: skip
    assert loose.kinds["ended later"].value == loose.differing.value > 0.3
    assert named.differing.value == 0


def test_a_workload_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(InputError, match="coding-agent, deep-research"):
        translate({"max_steps": 9}, source="prism", target="litellm", workload="no such")


def answers(*told: tuple[str, str, str]) -> list[Answer]:
    return [Answer(node, question, 0, 0, answer) for node, question, answer in told]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ([("a", "admit", "granted")], [("a", "admit", "granted")], None),
        ([("a", "admit", "granted")], [("a", "admit", "refused")], "ended earlier"),
        ([("a", "admit", "refused")], [("a", "admit", "granted")], "ended later"),
        ([("b", "spawn", "granted")], [("b", "spawn", "refused")], "start refused"),
        ([("b", "spawn", "refused")], [("b", "spawn", "granted")], "start let in"),
        ([("b", "spawn", "waits")], [("b", "spawn", "refused")], "waits otherwise"),
        ([("a", "admit", "granted")], [], "ended earlier"),
        ([("a", "spawn", "granted")], [("b", "admit", "granted")], "ended later"),
    ],
)
def test_a_run_is_of_the_kind_of_its_first_difference(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], kind: str | None
) -> None:
    one, two = (Run(answers(*told), completed=True) for told in (before, after))
    assert kind_of(one, two) == kind


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=30), st.integers(1, 12), st.booleans())
def test_amounts_that_are_tried_are_short_rising_and_positive(sample: list[float], points: int, whole: bool) -> None:
    chosen = grid(sample, points=points, whole=whole)
    assert chosen == sorted(set(chosen))
    assert all(amount > 0 for amount in chosen)
    assert len(chosen) <= points
    inner = between(1.0, 9.0, points=points, whole=whole)
    assert all(1 < amount < 9 for amount in inner)
