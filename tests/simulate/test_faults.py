"""Faults: what dies, is cancelled, jumps, is slow or refuses; books stay whole, and luck stays where it was."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.errors import InputError
from harness_lab.outcome import TOKENS
from harness_lab.policies import PolicySpec, compose, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import (
    AgentProfile,
    ClockJumps,
    Experiment,
    Fault,
    ParentCancelled,
    SlowStore,
    Spawn,
    WorkerDies,
    Workload,
)
from harness_lab.simulate.rows import nodes_frame
from harness_lab.simulate.worlds import BusyWorld, _Period
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

CONSTANT = Distribution.constant
ASK = 6_000
AFTER = Distribution.of("uniform", loc=1, scale=20)
ALL = (
    WorkerDies(chance=0.3),
    ParentCancelled(chance=0.3, after_s=AFTER),
    ClockJumps(at_s=7, by_s=-4),
    SlowStore(delay_s=Distribution.of("uniform", loc=0, scale=2), refuse_chance=0.05),
)


def an_experiment(*policies: PolicySpec, faults: tuple[Fault, ...] = (), runs: int = 60) -> Experiment:
    lead = AgentProfile(
        model="m",
        calls=CONSTANT(4),
        startup_tokens=CONSTANT(1_000),
        spawns=(Spawn(agent="kid", count=3, after=(0, 2), budget=amounts(tokens=ASK)),),
    )
    kid = AgentProfile(model="m", calls=CONSTANT(4), startup_tokens=CONSTANT(500), tool_s=CONSTANT(1))
    model = ModelProfile(output_tokens=CONSTANT(50), latency_s=Distribution.of("uniform", loc=1, scale=3))
    workload = Workload(agents={"lead": lead, "kid": kid}, root="lead", faults=faults)
    return Experiment(workload=workload, provider=MockProvider(models={"m": model}), policies=policies, runs=runs)


def rows(*policies: PolicySpec, faults: tuple[Fault, ...], **options: Any) -> Any:
    return an_experiment(*policies, faults=faults).run(backend="serial", **options).settlements.nodes


def test_a_worker_that_dies_is_told_as_failed_and_what_was_held_for_it_is_never_given_back() -> None:
    experiment = an_experiment(reservation_pool(tokens=200_000), faults=(WorkerDies(chance=0.5, agents=("kid",)),))
    world, dead, held = experiment.world(), [], []
    assert isinstance(world, BusyWorld)
    for run in range(20):
        period = _Period(world, experiment.policies[0], run, keep_calls=False, keep_decisions=False)
        policy: Any = period._policy("x", 0)
        period._policy = lambda _run, _number, policy=policy: policy  # type: ignore[misc]
        period.play("kernel")
        ends = nodes_frame(period.rows[0].nodes, policy="p", scenario="s", backend="b")["outcome"]
        dead.append(int((ends == "failed").sum()))
        held.append(policy.inner.modules[0].pool.held()[TOKENS])
    assert sum(dead) > 20
    assert held == [ASK * many for many in dead]


def test_about_as_many_die_as_the_chance_says_and_others_have_the_same_luck() -> None:
    sick, well = rows(unlimited(), faults=(WorkerDies(chance=0.4, agents=("kid",)),)), rows(unlimited(), faults=())
    kids = sick[sick["agent"] == "kid"]
    assert (kids["outcome"] == "failed").mean() == pytest.approx(0.4, abs=0.08)
    assert kids.loc[kids["outcome"] == "failed", "calls"].isin([1, 2, 3, 4]).all()
    names = ["run", "node", "calls", "input_total", "output"]
    alive = sick[sick["outcome"] == "completed"][names]
    assert len(alive.merge(well[names], on=names)) == len(alive)


def test_a_parent_that_is_cancelled_takes_all_below_it_along() -> None:
    nodes = rows(unlimited(), faults=(ParentCancelled(chance=1.0, after_s=CONSTANT(9), agents=("lead",)),))
    roots = nodes[nodes["parent"].isna()]
    assert (roots["outcome"] == "cancelled").all()
    assert (roots["duration_ns"] == 9 * 10**9).all()
    assert nodes.loc[nodes["agent"] == "kid", "outcome"].isin(["completed", "cancelled"]).all()
    assert ((nodes["start_ns"] + nodes["duration_ns"]) <= 9 * 10**9).all()


@pytest.mark.parametrize("by", [-3_600.0, -2.0, 3_600.0])
def test_a_clock_that_jumps_neither_hangs_a_run_nor_makes_it_endless(by: float) -> None:
    tight = compose(
        tree_limits(max_concurrent=1, timeout_s=30, concurrency="parent"), shared_ledger(40, max_seconds=90)
    )
    nodes = rows(
        PolicySpec(name="queue", modules=tight.modules, max_wait_s=20),
        unlimited(),
        faults=(ClockJumps(at_s=6, by_s=by),),
    )
    queue = nodes[nodes["policy"] == "queue"]
    assert set(queue["outcome"]) <= {"completed", "exhausted", "timed_out", "denied"}
    assert queue["duration_ns"].max() < 600 * 10**9


def test_a_clock_that_jumps_ahead_uses_up_time_that_never_passed() -> None:
    ledger = shared_ledger(100, max_seconds=3_000)
    calm, jumped = rows(ledger, faults=()), rows(ledger, faults=(ClockJumps(at_s=6, by_s=3_600),))
    assert (calm["outcome"] == "completed").all()
    assert (jumped.loc[jumped["parent"].isna(), "outcome"] == "timed_out").all()


def test_a_slow_store_delays_every_answer_and_one_that_refuses_says_why() -> None:
    calm = rows(unlimited(), faults=())
    slow = rows(unlimited(), faults=(SlowStore(delay_s=CONSTANT(2)),))
    roots, late = (t[t["parent"].isna()].set_index("run")["duration_ns"] for t in (calm, slow))
    assert ((late - roots) >= 2 * 4 * 10**9).all()
    assert (slow["wait_ns"] >= 2 * 10**9).all()
    refused = rows(unlimited(), faults=(SlowStore(refuse_chance=0.2),))
    assert set(refused["stopped_by"].dropna()) == {"account-unavailable"}


def test_all_faults_together_end_every_run_and_the_same_run_alone_is_the_same() -> None:
    policies = (
        unlimited(),
        compose(reservation_pool(tokens=30_000), tree_limits(max_concurrent=2, max_calls=5), name="x"),
    )
    experiment = an_experiment(*policies, faults=ALL)
    nodes = experiment.run(backend="serial").settlements.nodes
    assert nodes[nodes["parent"].isna()].groupby("policy").size().tolist() == [60, 60]
    again = experiment.run(only=[17], backend="serial").settlements.nodes
    assert again.equals(nodes[nodes["run"] == "17"].reset_index(drop=True))
    assert {"failed", "cancelled", "completed"} <= set(nodes["outcome"])


def test_without_cancelling_both_runtimes_agree_under_faults() -> None:
    experiment = an_experiment(unlimited(), reservation_pool(tokens=20_000), faults=(ALL[0], ALL[2], ALL[3]), runs=20)
    kernel, asyncio = (experiment.run(engine=engine, backend="serial") for engine in ("kernel", "asyncio"))  # type: ignore[arg-type]
    assert kernel.digest() == asyncio.digest()


def test_cancelling_is_refused_on_the_asyncio_engine() -> None:
    with pytest.raises(InputError, match=r"^engine: expected kernel, or auto, for ParentCancelled, got 'asyncio'"):
        an_experiment(unlimited(), faults=(ParentCancelled(chance=0.0, after_s=AFTER),)).run(engine="asyncio")


def test_a_chance_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"^chance of a fault: expected 0 to 1, got 2"):
        WorkerDies(chance=2)
