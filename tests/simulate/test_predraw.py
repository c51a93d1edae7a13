"""Draws made together are those made one at a time: who simulates, and in what company, is not seen in any row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab import draws
from harness_lab.bench.trees import tree_experiment
from harness_lab.policies import compose
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile, Table
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, predraw
from harness_lab.stats.distributions import Distribution

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


def trees(runs: int = 24, *, seed: int = 3) -> Experiment:
    """Return trees in which everything is drawn: calls, tools, counts of children, two models."""
    skewed = Distribution.of("lognorm", s=1.0, scale=900)
    many = Distribution.of("uniform", scale=3.9)
    calls = Distribution.of("uniform", loc=1, scale=6)
    pause = Distribution.of("expon", scale=2.0)
    rules = (Spawn(agent="b", count=many, chance=0.5), Spawn(agent="a", count=1, after=(2,), chance=0.3))
    agents = {
        "a": AgentProfile(
            model="m", calls=calls, startup_tokens=skewed, growth_tokens=skewed, tool_s=pause, spawns=rules
        ),
        "b": AgentProfile(model="n", calls=calls, startup_tokens=skewed, growth_tokens=skewed, failure_rate=0.2),
    }
    model = ModelProfile(output_tokens=skewed, latency_s=pause, error_rate=0.2, unreported_rate=0.1, cache_share=0.5)
    other = ModelProfile(output_tokens=skewed, latency_s=pause, seconds_per_output_token=0.01)
    provider = MockProvider(
        models={"m": model, "n": other}, prices=PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    )
    workload = Workload(agents=agents, root="a")
    return Experiment(workload=workload, provider=provider, policies=(compose(name="none"),), runs=runs, seed=seed)


def rows(experiment: Experiment, runs: range | list[int]) -> list[tuple[Any, ...]]:
    """Return the rows of some runs of the first policy, on the kernel."""
    world = experiment.world()
    found, _ = world.block(experiment.policies[0], runs, engine="kernel", keep_calls=True, keep_decisions=False)
    return [*found.nodes, *found.calls]  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [trees, tree_experiment])
def test_rows_are_the_same_with_and_without_drawing_ahead(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = make(24)
    ahead = rows(experiment, range(24))
    monkeypatch.setattr(predraw, "_FEWEST", 10**9)
    assert rows(experiment, range(24)) == ahead


def test_what_lies_beyond_the_bounds_is_drawn_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(trees(), range(24))
    for bound, value in (("_CALLS", 2), ("_LEVELS", 1), ("_NODES", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(predraw, bound, value)
            assert rows(trees(), range(24)) == whole


def test_a_run_alone_is_the_run_in_company() -> None:
    company = rows(trees(), range(24))
    assert [row for row in company if row[0] == 17] == rows(trees(), [17])


def test_nothing_is_left_behind_when_the_block_has_ended() -> None:
    world = trees().world()
    with predraw.drawn_ahead(world.agent, world.model, 3, range(24)):
        assert world.agent.drawn is not None
    assert world.agent.drawn is None
    assert world.model.answers("m").drawn is None  # type: ignore[attr-defined]


def test_what_is_drawn_ahead_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    world, asked = tree_experiment(24).world(), []
    word = draws.word
    monkeypatch.setattr(draws, "word", lambda *name: asked.append(name) or word(*name))
    world.block(tree_experiment(1).policies[0], range(24), engine="kernel", keep_calls=False, keep_decisions=False)
    assert 0 < len(asked) < 24 * 12  # retries, and whether children are due: less than one for four calls


@given(WORDS)
def test_many_values_of_a_table_are_its_values_one_by_one(found: list[int]) -> None:
    table = Table(Distribution.of("lognorm", s=1.5, scale=700))
    edges = [0, 2**64 - 1, 1 << 52, 4095 << 52, *found]
    assert table.draw_many(np.array(edges, dtype=np.uint64)).tolist() == [table.draw(word) for word in edges]


@given(WORDS, st.integers(0, 100_000), st.integers(0, 31), st.integers(0, 31))
def test_many_words_are_the_words_one_by_one(keys: list[int], call: int, lane: int, purpose: int) -> None:
    found = predraw.words(np.array(keys, dtype=np.uint64), call, lane, purpose).tolist()
    assert found == [draws.word(key, call, lane, purpose) for key in keys]
