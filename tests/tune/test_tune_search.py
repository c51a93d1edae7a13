"""The search: what it finds, what it stops early, how it resumes, and that quoted figures come from fresh draws."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec, shared_ledger
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.tune import Knob, NoTrialFits, SearchStopped, tune

pytest.importorskip("optuna")

STEPS = Knob(name="shared_ledger.max_steps", low=5, high=60)


def world(policy: PolicySpec, *, runs: int = 80, seed: int = 0) -> Experiment:
    agent = AgentProfile(
        model="m", calls=Distribution.of("lognorm", s=0.5, scale=10), startup_tokens=Distribution.constant(2000)
    )
    model = ModelProfile(output_tokens=Distribution.of("lognorm", s=0.5, scale=300), latency_s=Distribution.constant(1))
    provider = MockProvider(models={"m": model}, prices=PriceTable({"m": (Price.usd_per_million(input=3, output=15),)}))
    workload = Workload(agents={"solo": agent}, root="solo")
    return Experiment(workload=workload, provider=provider, policies=(policy,), runs=runs, seed=seed)


def test_the_search_finds_the_smallest_budget_that_meets_the_constraint() -> None:
    found = tune(world(shared_ledger(60, name="p")), [STEPS], at_least={"completed": 0.7}, trials=14, confirm_runs=400)
    exact = float(np.exp(np.log(10) + 0.5 * 0.5244))  # seven in ten runs need no more steps
    assert exact - 2 <= found.values["shared_ledger.max_steps"] <= exact + 12
    assert found.quoted["completed"].high >= 0.7
    assert found.policy.module("shared_ledger").max_steps == found.values["shared_ledger.max_steps"]


def test_hopeless_trials_stop_early_and_say_why() -> None:
    found = tune(world(shared_ledger(60, name="p")), [STEPS], at_least={"completed": 0.9}, trials=12, confirm_runs=100)
    stopped = found.trials[found.trials["state"] == "pruned"]
    assert len(stopped) > 0
    assert stopped["stopped"].str.contains("out of reach|worse than the best so far").all()


def test_without_pruning_the_same_proposals_are_all_finished() -> None:
    found = tune(world(shared_ledger(60, name="p"), runs=40), [STEPS], trials=5, prune=False, confirm_runs=80)
    assert set(found.trials["state"]) == {"complete"}


def test_quoted_figures_are_those_of_the_third_seed_simulated_by_hand() -> None:
    found = tune(world(shared_ledger(60, name="p"), runs=40), [STEPS], trials=5, confirm_runs=100)
    assert found.seeds == (0, 1, 2)
    again = world(found.policy, runs=100, seed=2).run().settlements.nodes
    assert found.quoted["cost_nusd"].value == pytest.approx(again["cost_nusd"].mean() * 1e-9)
    search = world(found.policy, runs=40).run().settlements.nodes["cost_nusd"].mean() * 1e-9
    assert found.curse["cost_nusd"] == pytest.approx(search - found.quoted["cost_nusd"].value)


def test_several_objectives_give_a_front_and_a_rule() -> None:
    experiment = world(shared_ledger(30, name="p"), runs=40)
    both = ("completed", "cost_nusd")
    found = tune(experiment, [STEPS], objectives=both, trials=8, confirm_runs=120)
    assert found.rule.startswith("least spend among those not to be told from the best in completion")
    frugal = tune(experiment, [STEPS], objectives=both, trials=8, confirm_runs=120, worth={"cost_nusd": 1.0})
    assert frugal.quoted["cost_nusd"].value <= found.quoted["cost_nusd"].value
    assert frugal.rule == "largest worth (spend 1)"


def test_a_study_resumes_where_it_was_left(tmp_path) -> None:
    experiment, place = world(shared_ledger(60, name="p"), runs=40), tmp_path / "study.log"
    first = tune(experiment, [STEPS], trials=4, confirm_runs=60, storage=place)
    told: list[tuple[int, int]] = []
    second = tune(experiment, [STEPS], trials=6, confirm_runs=60, storage=place, progress=lambda *at: told.append(at))
    assert second.trials["shared_ledger.max_steps"].tolist()[:4] == first.trials["shared_ledger.max_steps"].tolist()
    assert told == [(5, 6), (6, 6)]


def stop_after(trials: int):
    """Tell progress until so many trials have ended, then interrupt as Ctrl-C does."""

    def tell(done: int, _of: int) -> None:
        if done == trials:
            raise KeyboardInterrupt

    return tell


def test_an_interrupted_search_has_its_trials_and_goes_on_from_its_storage(tmp_path) -> None:
    experiment, place = world(shared_ledger(60, name="p"), runs=40), tmp_path / "study.log"
    with pytest.raises(SearchStopped, match=r"stopped with 3 of 5 trials ended.*the same search goes on") as stop:
        tune(experiment, [STEPS], trials=5, confirm_runs=60, storage=place, progress=stop_after(3))
    assert stop.value.best["shared_ledger.max_steps"] in stop.value.trials["shared_ledger.max_steps"].tolist()
    found = tune(experiment, [STEPS], trials=5, confirm_runs=60, storage=place)
    assert found.trials["trial"].tolist() == [0, 1, 2, 3, 4]
    assert found.trials["shared_ledger.max_steps"].tolist()[:3] == stop.value.trials["shared_ledger.max_steps"].tolist()


def test_a_trial_that_an_interruption_cuts_counts_for_nothing_and_is_said_nowhere(monkeypatch, capfd) -> None:
    import sys

    module = sys.modules["harness_lab.tune.search"]
    real, calls = module.simulate, []

    def cut(*given: object) -> object:
        calls.append(1)
        if len(calls) == 8:  # the policy as it stands, then blocks of trials: amid the second
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(module, "simulate", cut)
    with pytest.raises(SearchStopped, match="They were not kept") as stop:
        tune(world(shared_ledger(60, name="p"), runs=40), [STEPS], trials=5, confirm_runs=60)
    assert len(stop.value.trials) == 1
    assert capfd.readouterr().err == ""


def test_a_storage_that_keeps_another_search_is_refused(tmp_path) -> None:
    experiment, place = world(shared_ledger(60, name="p"), runs=40), tmp_path / "study.log"
    tune(experiment, [STEPS], trials=2, confirm_runs=60, storage=place)
    with pytest.raises(
        InputError, match=r"^storage: expected a study of this search, got 'one with another experiment"
    ):
        tune(world(shared_ledger(60, name="p"), runs=30), [STEPS], trials=2, confirm_runs=60, storage=place)
    other = tmp_path / "notes.txt"
    other.write_text("no journal")
    with pytest.raises(InputError, match=r"^storage: expected a journal file"):
        tune(experiment, [STEPS], trials=2, storage=other)
    assert other.read_text() == "no journal"


def test_the_present_policy_is_the_first_trial() -> None:
    found = tune(world(shared_ledger(33, name="p"), runs=40), [STEPS], trials=2, confirm_runs=60)
    assert found.trials["shared_ledger.max_steps"].iloc[0] == 33


def test_constraints_that_nothing_meets_are_said() -> None:
    small = Knob(name="shared_ledger.max_steps", low=1, high=3)
    with pytest.raises(NoTrialFits, match=r"^constraints: expected a trial that meets them"):
        tune(world(shared_ledger(3, name="p"), runs=40), [small], at_least={"completed": 0.99}, trials=3)


def test_least_spend_keeps_the_completion_of_the_policy_as_it_stands_unless_told_otherwise() -> None:
    low = Knob(name="shared_ledger.max_steps", low=2, high=31)
    experiment = world(shared_ledger(30, name="p"))
    kept = tune(experiment, [low], trials=8, confirm_runs=200)
    stands = experiment.run().settlements.nodes["outcome"].eq("completed").mean()
    assert kept.trials.set_index("trial").loc[lambda t: t["feasible"], "completed"].min() >= stands - 0.0501
    assert kept.quoted["completed"].value >= stands - 0.1
    assert f"Had to hold: {kept.constraints[0]} (not asked for: 0.05 below the policy as it stands" in kept.summary()
    free = tune(experiment, [low], at_least={"completed": 0}, trials=8, confirm_runs=200)
    assert free.quoted["completed"].value < stands - 0.1


def test_misuse_is_named() -> None:
    experiment = world(shared_ledger(3, name="p"))
    with pytest.raises(InputError, match=r"^knobs"):
        tune(experiment, [Knob(name="tree_limits.max_depth", low=1, high=3)])
    with pytest.raises(InputError, match=r"^objectives"):
        tune(experiment, [STEPS], objectives=("charm",))
    with pytest.raises(InputError, match=r"^range"):
        Knob(name="x", low=3, high=3)


def test_without_optuna_the_error_says_what_to_install(monkeypatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name == "optuna":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'harness-lab\[tune\]'"):
        tune(world(shared_ledger(3, name="p")), [STEPS])


def test_the_result_has_its_words_and_its_picture() -> None:
    found = tune(world(shared_ledger(60, name="p"), runs=40), [STEPS], trials=3, confirm_runs=60)
    assert "on draws that did not choose it" in found.summary()
    assert "Next:" in found.explain()
    assert len(found.to_frame()) == 3
    assert found.plot().get_xlabel() == "spend, $ (filled: chosen)"
