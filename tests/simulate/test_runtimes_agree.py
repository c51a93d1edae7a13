"""The kernel and the virtual asyncio loop give the same rows and the same decisions, ties and cancels included."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lab.simulate import Experiment

Experiments = st.SearchStrategy[Experiment]
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _check_rows(experiment: Experiment) -> None:
    world, runs = experiment.world(), range(experiment.runs)
    for spec in experiment.policies:
        one, mine = world.block(spec, runs, engine="kernel", keep_calls=True, keep_decisions=True)
        two, theirs = world.block(spec, runs, engine="asyncio", keep_calls=True, keep_decisions=True)
        assert mine == theirs
        assert one.nodes == two.nodes
        assert one.calls == two.calls


def _check_digests(experiment: Experiment) -> None:
    one = experiment.run(engine="kernel", backend="serial", decisions=True)
    two = experiment.run(engine="asyncio", backend="serial", decisions=True)
    assert one.digest() == two.digest()
    for name in one.policies:
        assert one.same_decisions(two, name).same


@settings(RELAXED, max_examples=60)
@given(data=st.data())
def test_both_runtimes_agree_row_for_row_on_random_worlds(data: st.DataObject, experiments: Experiments) -> None:
    _check_rows(data.draw(experiments))


@settings(RELAXED, max_examples=10)
@given(data=st.data())
def test_both_runtimes_agree_digest_for_digest_on_random_worlds(data: st.DataObject, experiments: Experiments) -> None:
    _check_digests(data.draw(experiments))


def test_both_runtimes_agree_on_a_busy_world(busy: Experiment) -> None:
    _check_digests(busy)


@pytest.mark.slow
@settings(RELAXED, max_examples=3_000)
@given(data=st.data())
def test_both_runtimes_agree_on_many_random_worlds(data: st.DataObject, experiments: Experiments) -> None:
    _check_rows(data.draw(experiments))
