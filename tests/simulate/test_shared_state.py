"""Budgets that many runs share: period budgets, shared pools, a durable account; each period begins afresh."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness_lab import compare
from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec, compose, durable_account, period_budget, reservation_pool, shared_ledger
from harness_lab.simulate import Arrivals, Precision, explain

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.simulate import Experiment


@pytest.fixture
def periods(busy: Experiment) -> Experiment:
    """Three periods of some ten runs of three users."""
    arrivals = Arrivals(period_s=1_000, at_s=tuple(range(0, 1_000, 100)), users=3)
    return replace(busy, runs=3, workload=replace(busy.workload, arrivals=arrivals))


def policies(path: Path) -> tuple[PolicySpec, ...]:
    return (
        shared_ledger(25, name="alone"),
        period_budget(calls=60, every="day", name="a day"),
        period_budget(calls=40, by="user", every="day", name="a user's day"),
        compose(shared_ledger(200), reservation_pool(calls=70), name="shared pool"),
        durable_account(str(path / "account.db"), calls=60, name="account"),
    )


def test_runs_that_share_a_budget_are_simulated_together_whatever_the_backend(
    periods: Experiment, tmp_path: Path
) -> None:
    one = periods.with_policies(*policies(tmp_path))
    digests = {one.run(backend="serial").digest(), one.run(backend="serial", block=1).digest()}
    assert len({*digests, one.run(backend="loky", workers=2, block=2).digest()}) == 1
    assert list(tmp_path.iterdir()) == []  # the account that was named is not touched


def test_a_shared_budget_bounds_all_runs_of_a_period_and_the_next_period_begins_afresh(
    periods: Experiment, tmp_path: Path
) -> None:
    nodes = periods.with_policies(*policies(tmp_path)).run(backend="serial").settlements.nodes
    calls = nodes.groupby(["policy", "session"])["attempts"].sum()
    for name, most in (("a day", 60), ("shared pool", 70), ("account", 60)):
        assert calls[name].between(most * 0.8, most + 12).all()  # checked before, charged after; in flight ends
    users = nodes[nodes["policy"] == "a user's day"].groupby(["session", "user"])["attempts"].sum()
    assert users.max() <= 52


def test_periods_are_what_is_independent(periods: Experiment, tmp_path: Path) -> None:
    result = replace(periods, runs=6).with_policies(*policies(tmp_path)[:2]).run(backend="serial")
    assert result.manifest["cluster"] == "session"
    assert compare(result).cluster == "session"
    many = replace(periods, runs=40).with_policies(policies(tmp_path)[0])
    until = many.run(backend="serial", until=Precision(half_width=0.2)).manifest
    assert until["precision"]["widest_half_width"] > 0


def test_a_run_under_an_account_is_explained_without_touching_it(periods: Experiment, tmp_path: Path) -> None:
    one = periods.with_policies(policies(tmp_path)[-1])
    nodes = one.run(backend="serial").settlements.where(run="1.4").nodes
    assert explain(one, "1.4").nodes.equals(nodes)
    assert list(tmp_path.iterdir()) == []


def test_a_budget_that_runs_share_needs_runs_that_meet(busy: Experiment) -> None:
    with pytest.raises(InputError, match=r"^workload: expected arrivals, for a day, got 'runs alone'\. Workload\("):
        busy.with_policies(period_budget(calls=60, every="day", name="a day")).run()
