"""Somebody else's limiter beside ours: the same luck, the same tables, every engine and worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness_lab import Distribution, MockProvider, ModelProfile, Price, PriceTable, compare, explain, sweep
from harness_lab.adapters import Adapter, policy
from harness_lab.errors import InputError
from harness_lab.policies import compose, shared_ledger, tree_limits
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, load_experiment
from harness_lab.tune.parameters import parameters, with_parameter

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.adapters import Call
    from harness_lab.policies import PolicySpec

FILE = """
[workload]
gallery = "coding-agent"
[[policies]]
name = "theirs"
[policies.adapter]
adapter = "check-then-add"
limits = { calls = 8, cost_usd = 0.2 }
[policies.tree_limits]
max_depth = 1
"""


class Take(Adapter):
    """Takes when asked; one counter for the tree."""

    name = "take"

    def __init__(self, *, calls: int = 8) -> None:
        self.left = calls

    def before_call(self, call: Call) -> str | None:
        if self.left == 0:
            return "nothing is left"
        self.left -= 1
        return None

    def not_sent(self, call: Call) -> None:
        self.left += 1


def world(*policies: PolicySpec, runs: int = 120, error_rate: float = 0.05) -> Experiment:
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.6, scale=300),
        latency_s=Distribution.of("gamma", a=2, scale=1.5),
        error_rate=error_rate,
    )
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    many, few = Distribution.of("poisson", mu=5), Distribution.constant(4)
    lead = AgentProfile(
        model="m", calls=many, startup_tokens=Distribution.constant(5000), spawns=(Spawn(agent="kid", chance=0.4),)
    )
    kid = AgentProfile(model="m", calls=few, startup_tokens=Distribution.constant(2000))
    workload = Workload(agents={"lead": lead, "kid": kid}, root="lead")
    return Experiment(
        workload=workload, provider=MockProvider(models={"m": model}, prices=prices), policies=policies, runs=runs
    )


def test_prism_ends_every_run_as_our_ledger_does() -> None:
    pytest.importorskip("prism_harness")
    theirs, ours = policy("prism-ai-harness", calls=8, cost_usd=0.2), shared_ledger(8, 0.2)
    nodes = world(theirs, ours).run(progress=False).settlements.nodes
    found = [
        nodes[nodes["policy"] == spec.name][["outcome", "calls", "cost_nusd", "duration_ns"]].reset_index(drop=True)
        for spec in (theirs, ours)
    ]
    assert found[0].equals(found[1])
    assert 0 < (found[0]["outcome"] == "exhausted").sum() < len(found[0])


def test_a_counter_that_adds_afterwards_lets_more_through() -> None:
    specs = (policy("check-then-add", cost_usd=0.05), policy(Take, calls=8), shared_ledger(8))
    found = compare(world(*specs).run(progress=False))
    assert "check-then-add" in found.summary()
    assert "adapter.adapter" in found.summary()  # the comparison says in what they differ


def test_workers_and_blocks_change_nothing() -> None:
    experiment = world(policy("check-then-add", calls=8), policy(Take, calls=5), runs=60)
    alone = experiment.run(progress=False).settlements.nodes
    assert experiment.run(progress=False, workers=2, block=7).settlements.nodes.equals(alone)


def test_the_asyncio_engine_says_the_same() -> None:
    experiment = world(policy(Take, calls=5), runs=20)
    both = [experiment.run(progress=False, engine=engine).settlements.nodes for engine in ("kernel", "asyncio")]
    assert both[0].equals(both[1])


def test_it_composes_with_ours_and_each_refuses() -> None:
    composed = compose(policy(Take, calls=6), tree_limits(max_calls=1), name="both")
    nodes = world(composed).run(progress=False).settlements.nodes
    assert {"call-refused", "max-calls"} <= set(nodes["stopped_by"].dropna())
    assert nodes[nodes["depth"] == 0]["calls"].max() <= 6


def test_its_own_limit_is_swept_by_simulation() -> None:
    experiment = world(policy("check-then-add", calls=4), runs=60)
    found = sweep(experiment, "calls", [2, 6])
    assert "somebody else's" in found.reasons[0]
    for value, stopped in zip((2, 6), found.to_frame()["stopped"], strict=True):
        alone = world(policy("check-then-add", calls=value), runs=60).run(progress=False).settlements.nodes
        root = alone[alone["depth"] == 0]
        assert (root["stopped_by"] == "steps-exhausted").sum() == stopped


def test_one_run_is_explained() -> None:
    experiment = world(policy(Take, calls=2))
    told = explain(experiment, 0, policy="take").summary()
    assert "nothing is left" in told


def test_an_experiment_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(FILE, "utf-8")
    (spec,) = load_experiment(file).policies
    assert spec == compose(policy("check-then-add", calls=8, cost_usd=0.2), tree_limits(1), name="theirs")
    file.write_text(FILE.replace("check-then-add", "no-such"), "utf-8")
    with pytest.raises(InputError, match=r"policies\.0\.adapter: expected one of check-then-add"):
        load_experiment(file)


def test_its_limits_are_numbers_that_can_be_turned() -> None:
    spec = compose(policy("check-then-add", calls=4), shared_ledger(9), name="both")
    assert [(one.name, one.value) for one in parameters(spec)] == [("adapter.calls", 4), ("shared_ledger.max_steps", 9)]
    turned = with_parameter(spec, "adapter.calls", 7)
    assert turned == compose(policy("check-then-add", calls=7), shared_ledger(9), name="both")
    with pytest.raises(InputError, match=r"a number of the policy such as adapter\.calls"):
        with_parameter(spec, "adapter.seconds", 7)
