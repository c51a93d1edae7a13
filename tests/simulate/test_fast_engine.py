"""The fast engine: row for row what the kernel gives, and a plain word where it cannot be used."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lab import draws
from harness_lab.bench.trees import tree_experiment
from harness_lab.errors import InputError, TreeTooLarge
from harness_lab.policies import AtLimit, PolicySpec, compose, iteration_budget, shared_ledger, tree_limits, unlimited
from harness_lab.providers.tables import Table
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, engines, fast
from harness_lab.simulate.engines import choose_engine
from harness_lab.simulate.rows import nodes_frame
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

pytest.importorskip("numba", reason="the fast engine needs the extra [fast]")

Experiments = st.SearchStrategy[Experiment]
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def check_same(experiment: Experiment) -> None:
    world = experiment.world(fast=True)
    for spec in experiment.policies:
        if fast.why_not(experiment.workload, experiment.provider, spec) is None:
            kept = {"keep_calls": False, "keep_decisions": False}
            runs = range(experiment.runs)
            mine, _ = world.block(spec, runs, engine="fast", **kept)
            theirs, _ = world.block(spec, runs, engine="kernel", **kept)
            assert isinstance(mine, fast.FastRows)
            labels = {"policy": "p", "scenario": "s", "backend": "b"}
            assert nodes_frame(mine.nodes, **labels).equals(nodes_frame(theirs.nodes, **labels))


def varied(experiment: Experiment, seed: int) -> Experiment:
    """Return the experiment with other choices of its tree limits, where it has some."""
    luck = Random(seed)  # noqa: S311 - no secret
    spec = experiment.policies[0]
    if spec.module("tree_limits") is None:
        return experiment
    changes = {
        "timeout_from": luck.choice(["start", "arrival"]),
        "give_back": luck.random() < 0.5,
        "lend": luck.random() < 0.5,
    }
    return experiment.with_policies(spec.with_module("tree_limits", **changes), unlimited())


@settings(RELAXED, max_examples=80)
@given(data=st.data(), seed=st.integers(0, 2**20))
def test_the_fast_engine_agrees_row_for_row_on_random_worlds(
    data: st.DataObject, seed: int, experiments: Experiments
) -> None:
    check_same(varied(data.draw(experiments), seed))


@pytest.mark.slow
@settings(RELAXED, max_examples=10_000)
@given(data=st.data(), seed=st.integers(0, 2**20))
def test_the_fast_engine_agrees_on_many_random_worlds(data: st.DataObject, seed: int, experiments: Experiments) -> None:
    check_same(varied(data.draw(experiments), seed))


def test_results_have_the_digest_of_the_kernel(busy: Experiment) -> None:
    one, two = (busy.run(engine=engine, backend="serial") for engine in ("kernel", "fast"))  # type: ignore[arg-type]
    assert one.digest() == two.digest()
    assert (one.manifest["engine"], two.manifest["engine"]) == ("kernel", "fast")


def test_results_do_not_depend_on_workers_or_the_size_of_a_block(busy: Experiment) -> None:
    whole = busy.run(engine="fast", backend="serial").digest()
    assert busy.run(engine="fast", backend="serial", block=7).digest() == whole
    assert busy.run(engine="fast", backend="loky", workers=2, block=11).digest() == whole


def test_large_trees_and_long_waits_agree() -> None:
    check_same(tree_experiment(40))
    kids = Spawn(agent="kid", count=150, budget=amounts(calls=2))
    agents = {"root": _agent(2, kids), "kid": _agent(3, Spawn(agent="leaf", count=2)), "leaf": _agent(1)}
    crowd = replace(tree_experiment(2), workload=Workload(agents=agents, root="root"))
    check_same(crowd.with_policies(tree_limits(2, 3, concurrency="parent", max_wait_s=900), unlimited()))


def _agent(calls: int, *spawns: Spawn) -> AgentProfile:
    some = Distribution.constant(1000)
    return AgentProfile(model="m", calls=Distribution.constant(calls), startup_tokens=some, spawns=spawns)


def test_a_tree_that_never_ends_is_given_up_as_by_the_kernel() -> None:
    forever = Workload(agents={"root": _agent(1, Spawn(agent="root"))}, root="root")
    endless = replace(tree_experiment(1), workload=forever).with_policies(unlimited())
    with pytest.raises(TreeTooLarge):
        endless.run(engine="fast", backend="serial")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"policies": (iteration_budget(3),)}, "the module iteration_budget"),
        ({"policies": (tree_limits(timeout_s=9, on_timeout="detach"),)}, "on_timeout of tree_limits"),
        ({"policies": (compose(shared_ledger(3), name="x", at_limit=AtLimit()),)}, "at_limit of the policy"),
        ({"policies": (shared_ledger(3),)}, None),
    ],
)
def test_what_lies_outside_the_family_is_named(change: dict[str, Any], why: str | None) -> None:
    one = replace(tree_experiment(1), **change)
    assert fast.why_not(one.workload, one.provider, one.policies[0]) == why


def test_a_subclass_of_a_known_part_is_not_taken_for_it(busy: Experiment) -> None:
    class Other(Workload):
        pass

    other = Other(agents=busy.workload.agents, root=busy.workload.root)
    assert fast.why_not(other, busy.provider, unlimited()) == "the workload is a Other"


def chosen(busy: Experiment, wanted: Any = "auto", spec: PolicySpec | None = None, **how: Any) -> tuple[str, str]:
    how = {"trees": 100_000, "keeps": None} | how
    return choose_engine(wanted, busy.workload, busy.provider, spec or unlimited(), **how)


def test_auto_says_what_it_chose_and_why(busy: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(busy) == ("fast", "in its family")
    assert chosen(busy, trees=50) == ("kernel", "50 trees; the fast engine pays from 10,000 on")
    assert chosen(busy, keeps="calls") == ("kernel", "it keeps no calls")
    assert chosen(busy, spec=iteration_budget(2))[1] == "the module iteration_budget is not in its family"
    monkeypatch.setattr(fast, "installed", lambda: False)
    assert chosen(busy)[1] == "numba is not installed (pip install 'harness-lab[fast]')"


def test_the_manifest_says_it_for_each_policy(busy: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "FAST_FROM", 40)
    mixed = busy.with_policies(unlimited(), iteration_budget(3))
    manifest = mixed.run(backend="serial").manifest
    assert manifest["engine"] == "fast and kernel"
    assert manifest["engine_why"] == {
        "unlimited": "fast: in its family",
        "iteration budget": "kernel: the module iteration_budget is not in its family",
    }


def test_asking_for_the_fast_engine_where_it_cannot_be_used_is_refused_with_the_reason(busy: Experiment) -> None:
    with pytest.raises(InputError, match=r"engine.*expected kernel, or auto.*the module iteration_budget"):
        busy.with_policies(iteration_budget(3)).run(engine="fast")


def test_draws_and_tables_have_the_same_bits_compiled() -> None:
    from harness_lab.simulate.fast.words import child_key, run_key, value, word

    table = Table(Distribution.of("lognorm", s=1.2, scale=900))
    cells = np.array([table.cells()], np.int64)
    key = draws.run_key(7, 3)
    assert run_key(np.uint64(7), 3) % 2**64 == key
    signed = np.int64(key - 2**64 if key >= 2**63 else key)
    assert child_key(signed, 5, 2) % 2**64 == draws.child_key(key, 5, 2)
    for call in range(3000):
        bits = draws.word(key, call, 1, 4)
        assert int(word(signed, call, 1, 4)) == bits
        assert value(cells, 0, np.uint64(bits)) == table.draw(bits)


def test_compiled_rules_are_the_rules_of_the_modules() -> None:
    from harness_lab.simulate.fast import jit

    luck = Random(1)  # noqa: S311 - no secret
    rules = [rule for rule in vars(jit).values() if hasattr(rule, "py_func") and rule.py_func.__code__.co_argcount < 11]
    assert len(rules) == 11
    for rule in rules:
        size = rule.py_func.__code__.co_argcount
        for _ in range(300):
            numbers = [luck.choice([-1, 0, 1, luck.randint(0, 10**6)]) for _ in range(size)]
            if rule.py_func.__name__ in ("half_even", "up"):
                numbers = [abs(numbers[0]), 1 + abs(numbers[1])]
            assert rule(*numbers) == rule.py_func(*numbers)
