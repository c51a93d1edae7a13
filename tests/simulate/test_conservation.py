"""After every simulated run the books close, and a module that loses or makes money is found out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.bench.trees import tree_experiment
from harness_lab.budget import ReservationPool, RunLedger
from harness_lab.errors import NotConserved
from harness_lab.policies import shared_ledger
from harness_lab.policies.tree_limits import TreeLimits


def run(engine: Any = "kernel") -> None:
    tree_experiment(10).run(engine=engine, backend="serial")


@pytest.mark.parametrize("engine", ["kernel", "asyncio"])
def test_sound_modules_pass(engine: str) -> None:
    run(engine)


def test_a_pool_that_does_not_release_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReservationPool, "reconcile", lambda self, allocation: ())
    with pytest.raises(NotConserved, match=r"^books do not close \(policy money in a tree, run \d+\): the pool still"):
        run()


def test_a_slot_that_is_never_given_back_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeLimits, "settle", lambda self, ticket, use, now: None)
    with pytest.raises(NotConserved, match=r"slot\(s\) are still taken|still wait"):
        run()


def test_money_that_is_booked_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = RunLedger.charge

    def twice(self: RunLedger, cost: int | None) -> None:
        charge(self, cost)
        charge(self, cost)

    monkeypatch.setattr(RunLedger, "charge", twice)
    with pytest.raises(NotConserved, match="nano-dollars are booked and nodes reported"):
        tree_experiment(3).with_policies(shared_ledger(50)).run(engine="kernel", backend="serial")


def test_money_that_is_lost_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLedger, "charge", lambda self, cost: None)
    with pytest.raises(NotConserved, match=r"^books do not close .*: 0 nano-dollars are booked"):
        run()


def test_the_error_survives_a_worker_process() -> None:
    import pickle

    error = NotConserved("policy p, run 3", "2 slot(s) are still taken")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own
