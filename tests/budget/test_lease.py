"""A worker keeps a task as long as the run may still spend."""

from __future__ import annotations

import math

import pytest

from harness_lab.budget import RunBudget, RunLedger
from harness_lab.budget.lease import LeasedTask, LeaseGrant, LeaseRefusal, extend_lease
from harness_lab.clock import NS_PER_S, ManualClock, Time
from harness_lab.errors import InputError


def held(elapsed: float = 0.0, steps: int = 0, cost: float = 0.0) -> tuple[LeasedTask, RunLedger, ManualClock]:
    clock = ManualClock()
    ledger = RunLedger("run", clock=clock)
    clock.advance(elapsed)
    ledger.record_steps(steps)
    ledger.record_cost(cost)
    task = LeasedTask("task")
    task.claim("worker-1", clock.now(), 10_000)
    return task, ledger, clock


@pytest.mark.parametrize(
    ("max_seconds", "elapsed", "lease", "granted"),
    [(None, 0, 60, 60), (60, 0, 300, 60), (6000, 0, 300, 300), (None, 10_000, 300, 300), (60, 10.7, 300, 49)],
)
def test_granted_is_the_lease_or_the_whole_seconds_left(
    max_seconds: float | None, elapsed: float, lease: float, granted: float
) -> None:
    task, ledger, clock = held(elapsed)
    answer = extend_lease(task, "worker-1", ledger, RunBudget(8, None, max_seconds), lease)
    assert answer == LeaseGrant(granted, Time(clock.now() + round(granted * NS_PER_S)))


@pytest.mark.parametrize(
    ("ledger", "budget", "reason"),
    [
        ({"elapsed": 120}, RunBudget(8, None, 60), "time budget"),
        ({"steps": 8}, RunBudget(8, None, 6000), "step budget"),
        ({"cost": 1.05}, RunBudget(8, 1.0, 6000), "cost budget"),
        ({"elapsed": 59.5}, RunBudget(8, None, 60), "less than a second"),
    ],
)
def test_a_run_that_may_not_take_a_step_gets_no_lease(ledger: dict[str, float], budget: RunBudget, reason: str) -> None:
    task, book, _ = held(**ledger)  # type: ignore[arg-type]
    before = task.expires
    answer = extend_lease(task, "worker-1", book, budget)
    assert isinstance(answer, LeaseRefusal)
    assert answer.code == "run-not-permitted"
    assert reason in answer.reason
    assert task.expires == before


def test_a_new_expiry_may_lie_before_the_old_one() -> None:
    task, ledger, clock = held()
    extend_lease(task, "worker-1", ledger, RunBudget(8), 30)
    assert task.expires == clock.now() + 30 * NS_PER_S


def test_only_the_holder_may_extend_and_only_in_time() -> None:
    task, ledger, clock = held()
    budget = RunBudget(8)
    other = extend_lease(task, "worker-2", ledger, budget)
    assert isinstance(other, LeaseRefusal)
    assert other == LeaseRefusal("task-lease-not-held", "task is held by worker-1, not by worker-2")
    clock.advance(10_000)
    late = extend_lease(task, "worker-1", ledger, budget)
    assert isinstance(late, LeaseRefusal)
    assert late.code == "task-lease-not-held"
    assert isinstance(task.claim("worker-2", clock.now()), LeaseGrant)


def test_a_task_that_is_held_cannot_be_claimed_and_one_that_has_ended_neither() -> None:
    task, ledger, clock = held()
    claim = task.claim("worker-2", clock.now())
    assert isinstance(claim, LeaseRefusal)
    assert claim.code == "task-lease-not-held"
    assert task.finish("worker-2", "completed") is not None
    assert task.finish("worker-1", "completed") is None
    for answer in (task.claim("worker-2", clock.now()), extend_lease(task, "worker-1", ledger, RunBudget(8))):
        assert isinstance(answer, LeaseRefusal)
        assert answer.code == "task-already-terminal"


def test_the_budget_is_asked_before_who_holds_the_task() -> None:
    task, ledger, _ = held(steps=8)
    answer = extend_lease(task, "worker-2", ledger, RunBudget(8))
    assert isinstance(answer, LeaseRefusal)
    assert answer.code == "run-not-permitted"


@pytest.mark.parametrize("seconds", [0, -1, -0.001, -300, math.nan, math.inf, -math.inf, True, "60"])
def test_a_lease_that_is_no_finite_time_above_0_is_refused_before_all_else(seconds: float) -> None:
    task, ledger, clock = held(steps=8)
    with pytest.raises(InputError, match="seconds"):
        extend_lease(task, "worker-1", ledger, RunBudget(8), seconds)
    with pytest.raises(InputError, match="seconds"):
        LeasedTask("t").claim("worker-1", clock.now(), seconds)
    with pytest.raises(InputError, match=r"^worker: expected a name"):
        extend_lease(task, "", ledger, RunBudget(8))
