"""What cannot be searched or stepped is refused before anything is simulated, in one error that says what would do."""

from __future__ import annotations

import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import shared_ledger, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.tune import Knob, one_step_more, sensitivity, sensitivity_of_records, tune

pytest.importorskip("optuna")
pytest.importorskip("SALib")
NAME = "shared_ledger.max_steps"


def world(*, runs: int = 20, free: bool = False) -> Experiment:
    agent = AgentProfile(
        model="m", calls=Distribution.of("lognorm", s=0.5, scale=10), startup_tokens=Distribution.constant(2000)
    )
    model = ModelProfile(output_tokens=Distribution.constant(100), latency_s=Distribution.constant(1))
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    return Experiment(
        workload=Workload(agents={"solo": agent}, root="solo"),
        provider=MockProvider(models={"m": model}, prices=prices),
        policies=(unlimited() if free else shared_ledger(40, name="p"),), runs=runs,
    )  # fmt: skip


@pytest.fixture
def nothing_simulated(monkeypatch):
    def never(*_: object, **__: object) -> object:
        pytest.fail("something was simulated")

    monkeypatch.setattr(Experiment, "run", never)


@pytest.mark.usefixtures("nothing_simulated")
@pytest.mark.parametrize(
    ("knobs", "more", "says"),
    [
        ([Knob(name=NAME, low=-5, high=60)], {}, "max_steps: expected a whole number from 0"),
        ([Knob(name=NAME, low=5, high=60.5)], {}, "range of .*: expected whole numbers"),
        ([Knob(name=NAME, low=5, high=60), Knob(name=NAME, low=5, high=9)], {}, "each once"),
        ([Knob(name=NAME, low=5, high=60)], {"at_least": {"completed": 2}}, r"a share in \[0, 1\] for completed"),
        ([Knob(name=NAME, low=5, high=60)], {"at_most": {"cost_nusd": -1}}, "a number of at least 0 for cost_nusd"),
    ],
)
def test_ranges_and_constraints_that_cannot_be(knobs: list, more: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        tune(world(), knobs, **more)


@pytest.mark.usefixtures("nothing_simulated")
def test_too_few_runs_and_a_policy_without_limits() -> None:
    knob = Knob(name=NAME, low=5, high=60)
    with pytest.raises(InputError, match=r"^runs: expected at least 10 in a trial, got 5"):
        tune(world(runs=5), [knob])
    with pytest.raises(InputError, match="sets, got 'none is set'"):
        tune(world(free=True), [knob])
    with pytest.raises(InputError, match=r"^limits: expected a policy that sets one"):
        one_step_more(world(free=True))


@pytest.mark.usefixtures("nothing_simulated")
@pytest.mark.parametrize(
    ("method", "samples"), [("sobol", 0), ("sobol", 3), ("sobol", 1), ("morris", 1), ("morris", 0)]
)
def test_samples_that_tell_nothing(method: str, samples: int) -> None:
    with pytest.raises(InputError, match=r"^samples: expected"):
        sensitivity(world(), {"calls": (0.5, 2.0)}, method=method, samples=samples)


@pytest.mark.parametrize(
    ("inputs", "more", "says"),
    [
        (("charm",), {}, "inputs: expected columns of numbers, such as"),
        (("agent",), {}, "inputs: expected columns of numbers"),
        (("calls",), {"metric": "charm"}, "metric: expected columns of numbers"),
        (("calls",), {"metric": "calls"}, "other than the metric"),
        (("calls",), {"seed": -1}, "seed: expected a whole number of at least 0"),
    ],
)
def test_inputs_that_cannot_be_ranked(inputs: tuple, more: dict, says: str) -> None:
    data = pd.DataFrame({"run": range(80), "outcome": "completed", "calls": range(80), "cost_nusd": range(80)})
    with pytest.raises(InputError, match=says):
        sensitivity_of_records(data.assign(agent="a"), inputs, **more)
