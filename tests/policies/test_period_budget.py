"""Period budgets among the four questions: one state, many runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import (
    Grant,
    OpenPolicy,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Use,
    Wait,
    compose,
    period_budget,
    shared_ledger,
)
from harness_lab.policies.protocol import Granted
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.policies.compose import Composed

DAY = 86_400 * NS_PER_S
NOON = 20_000 * DAY + DAY // 2


def started(policy: OpenPolicy, run: str, **groups: str) -> tuple[Composed, object]:
    composed = policy.start(run, groups, Time(0), wall_ns=NOON)
    root = composed.spawn(SpawnAsk(None, (), amounts()), Time(0))
    assert isinstance(root, Grant)
    return composed, root.ticket


def call(run: tuple[Composed, object], usd: float, *, at: int = 1, number: int = 0) -> Grant | Wait | Refusal:
    policy, node = run
    answer = policy.admit(StepAsk(node, number, 0, amounts(cost_usd=usd)), Time(at))  # type: ignore[arg-type]
    if isinstance(answer, Grant):
        policy.settle(answer.ticket, Use(amounts(cost_usd=usd)), Time(at))
    return answer


def test_runs_of_one_user_share_a_window_and_those_of_another_do_not() -> None:
    policy = period_budget(cost_usd=1, by="user", every="day").open()
    assert isinstance(call(started(policy, "r1", user="ann"), 0.6), Grant)
    refusal = call(started(policy, "r2", user="ann"), 0.6)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BUDGET_EXHAUSTED
    assert isinstance(call(started(policy, "r3", user="bob"), 0.6), Grant)


def test_the_runs_own_clock_is_told_what_the_wall_shows() -> None:
    run = started(period_budget(cost_usd=1, every="day").open(), "r")
    assert isinstance(call(run, 1.0, at=DAY // 2 - 1), Grant)  # the last nanosecond of the day
    assert isinstance(call(run, 1.0, at=DAY // 2 - 1), Refusal)
    assert isinstance(call(run, 1.0, at=DAY // 2), Grant)


def test_a_run_budget_is_fresh_for_each_run_and_the_period_is_not() -> None:
    policy = compose(shared_ledger(2), period_budget(calls=3, by="session")).open()
    one, two = started(policy, "r1", session="s"), started(policy, "r2", session="s")
    assert [type(call(one, 0)).__name__ for _ in range(3)] == ["Grant", "Grant", "Refusal"]
    assert [type(call(two, 0)).__name__ for _ in range(2)] == ["Grant", "Refusal"]
    assert policy.scope == "session"


def test_several_period_budgets_compose_and_a_refusal_reports_each() -> None:
    policy = compose(
        period_budget(cost_usd=1, by="user", every="day"), period_budget(cost_usd=1, by=("team", "key"), rolling_s=60)
    ).open()
    refusal = call(started(policy, "r", user="ann", team="t", key="k"), 2)
    assert isinstance(refusal, Refusal)
    assert [short.detail.split(",")[0] for short in refusal.shortfalls] == ['day by user (["ann"])', "60 s by team"]


def test_a_refusal_consumes_nothing_in_any_module() -> None:
    policy = compose(period_budget(cost_usd=5, every="day"), period_budget(cost_usd=1, every="week")).open()
    assert isinstance(call(started(policy, "r"), 2), Refusal)
    budget = policy.state("period_budget")
    assert budget.pot("", NOON).held == [0] * 5


def test_who_waits_for_the_turn_of_a_window_is_answered_there() -> None:
    spec = PolicySpec(name="p", modules=period_budget(cost_usd=1, rolling_s=60).modules, max_wait_s=100)
    run = started(spec.open(), "r")
    call(run, 1.0, at=0)
    answer = call(run, 1.0, at=1)
    assert isinstance(answer, Wait)
    policy, _ = run
    assert policy.tick(Time(59 * NS_PER_S)) == 60 * NS_PER_S
    assert list(policy.outbox()) == []
    assert policy.tick(Time(60 * NS_PER_S)) is None
    (news,) = policy.outbox()
    assert isinstance(news, Granted)


def test_a_dry_run_changes_nothing() -> None:
    policy, node = started(period_budget(cost_usd=1, every="day").open(), "r")
    ask = StepAsk(node, 0, 0, amounts(cost_usd=0.7))  # type: ignore[arg-type]
    assert [policy.would(ask, Time(1)) for _ in range(3)] == [None] * 3


def test_a_policy_whose_state_outlives_a_run_must_be_opened() -> None:
    with pytest.raises(InputError, match=r"^policy: expected one whose state lasts one run, got 'shared'"):
        period_budget(calls=1).start("r")


def test_a_run_must_name_the_groups_that_are_asked_for() -> None:
    with pytest.raises(InputError, match=r"^groups of the run: expected team for"):
        period_budget(calls=1, by=("user", "team")).open().start("r", {"user": "ann"}, Time(0), wall_ns=NOON)


def test_a_clock_that_is_not_the_walls_is_refused_without_it() -> None:
    with pytest.raises(InputError, match=r"^now: expected epoch nanoseconds, or wall_ns"):
        period_budget(calls=1).open().start("r", {}, Time(5))


def test_groups_that_look_alike_are_not_one() -> None:
    spec = period_budget(calls=1, by=("user", "key")).modules[0]
    one, two = ({"user": a, "key": b} for a, b in (("a", 'b"'), ('a", "b', "")))
    assert spec.group(one) == '["a", "b\\""]'  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        spec.group(two)  # type: ignore[attr-defined]


def test_what_is_written_is_read_back() -> None:
    spec = compose(
        shared_ledger(4),
        period_budget(cost_usd=5, by="user", every="month", zone="Asia/Tokyo", day=31, carry="capped", carry_windows=2),
        period_budget(tokens=10, rolling_s=60, cap="hard", unknown_usage="charge-hold"),
    )
    assert PolicySpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"every": "day", "rolling_s": 5}, r"^every and rolling_s: expected one of them"),
        ({"every": "day", "zone": "Nowhere"}, r"^zone: expected"),
        ({"by": ("user", "user")}, r"^by: expected different names"),
        ({"calls": -1}, r"^calls: expected a whole number"),
        ({"unknown_usage": "guess"}, r"^unknown_usage: expected"),
    ],
)
def test_what_makes_no_budget_is_said_in_one_line(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        period_budget(**wrong)  # type: ignore[arg-type]
