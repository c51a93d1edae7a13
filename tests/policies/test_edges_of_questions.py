"""What a policy refuses to be asked: tickets of others, times in seconds; and how its answers read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.clock import ManualClock, Time, instant
from harness_lab.errors import InputError, UnknownTicket
from harness_lab.outcome import Code, Refusal, Shortfall
from harness_lab.policies import (
    COMPLETED,
    Grant,
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    hard_cap,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.policies.compose import Composed

NOW = Time(0)
NOTHING = Use((0,) * 5)


def begun() -> tuple[Composed, Any]:
    policy = compose(tree_limits(timeout_s=2.5), hard_cap(0.05)).start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    return policy, root.ticket


def step(node: Any) -> StepAsk:
    return StepAsk(node, 0, 0, amounts(calls=1, cost_usd=0.01))


def test_a_ticket_of_another_policy_is_unknown_to_every_question_and_moves_nothing() -> None:
    (policy, _), (other, theirs) = begun(), begun()
    held: Any = other.admit(step(theirs), NOW)
    for question in (
        lambda: policy.spawn(SpawnAsk(theirs, ((0, 0, 0),), amounts()), NOW),
        lambda: policy.admit(step(theirs), NOW),
        lambda: policy.settle(held.ticket, NOTHING, NOW),
        lambda: policy.close(theirs, NOTHING, COMPLETED, NOW),
    ):
        with pytest.raises(UnknownTicket, match="was not given by this policy"):
            question()
    other.settle(held.ticket, NOTHING, NOW)


@pytest.mark.parametrize("bad", [1.5, 0.0, "1", None])
def test_a_time_that_is_no_whole_nanoseconds_is_refused_in_one_line(bad: Any) -> None:
    policy, root = begun()
    with pytest.raises(InputError, match="now: expected whole nanoseconds, got"):
        policy.admit(step(root), bad)
    with pytest.raises(InputError, match="now: expected whole nanoseconds"):
        shared_ledger(1).start().spawn(SpawnAsk(None, (), amounts()), bad)
    with pytest.raises(InputError, match="start_ns"):
        ManualClock(bad)


def test_a_float_is_no_bound_for_waiting_and_an_integer_of_another_library_is() -> None:
    numpy = pytest.importorskip("numpy")
    _, root = begun()
    with pytest.raises(InputError, match="wait_until: expected whole nanoseconds"):
        StepAsk(root, 0, 0, amounts(), wait_until=2.5)  # type: ignore[arg-type]
    assert type(instant("now", numpy.int64(7))) is int


def test_a_grant_and_a_ticket_say_what_they_are_for_in_a_short_line() -> None:
    policy, root = begun()
    child: Any = policy.spawn(SpawnAsk(root, ((0, 1, 0),), amounts()), NOW)
    assert isinstance(child, Grant)
    assert repr(child) == "Grant(node /0.1, deadline 2.5 s)"
    assert repr(Grant(root, amounts(tokens=8000, cost_usd=0.5), "small", ["half is used"])) == (
        "Grant(node /, tokens 8,000, cost $0.50, model small, 1 warning(s))"
    )
    policy.close(child.ticket, NOTHING, COMPLETED, NOW)
    assert repr(child.ticket) == "<node /0.1, settled>"


def test_money_is_said_in_dollars_time_in_seconds_and_what_was_not_asked_is_left_out() -> None:
    policy, root = begun()
    refused = policy.admit(StepAsk(root, 0, 0, amounts(calls=1, cost_usd=0.4)), NOW)
    assert str(refused).startswith("cost-cap-would-exceed (cost): asked $0.40, free $0.05 of $0.05; helps: smaller")
    late = Shortfall(Code.DEADLINE, 2_500_000_000, 3_000_000_000, 0, "nothing", "time")
    assert str(late) == "deadline (time): asked at 3 s, the limit is 2.5 s; helps: nothing"
    unknown = Shortfall(Code.SPEND_UNKNOWN, 25_000, None, None, "nothing", "cost")
    assert str(unknown) == "spend-unknown (cost): free unknown of $0.000025; helps: nothing"


def test_a_closed_node_is_refused_whatever_it_asks_and_takes_nothing_from_its_siblings() -> None:
    policy: Any = compose(tree_limits(3, 2, 5), reservation_pool(cost_usd=1.0)).start("r")
    root = policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    child = policy.spawn(SpawnAsk(root, ((0, 0, 0),), amounts(cost_usd=0.1)), NOW).ticket
    late = policy.admit(StepAsk(child, 0, 0, amounts(cost_usd=0.1)), NOW).ticket
    policy.close(child, Use(amounts(cost_usd=0)), COMPLETED, NOW)
    for ask in (StepAsk(child, 1, 0, amounts(cost_usd=0.1)), SpawnAsk(child, ((0, 0, 0), (0, 0, 0)), amounts())):
        answer = (policy.admit if isinstance(ask, StepAsk) else policy.spawn)(ask, NOW)
        assert isinstance(answer, Refusal)
        assert answer.code is Code.PARENT_ENDED
        assert policy.would(ask, NOW) == answer
    policy.settle(late, Use(amounts(calls=1, cost_usd=0.1)), NOW)  # what was in flight is charged all the same
    assert isinstance(policy.spawn(SpawnAsk(root, ((0, 1, 0),), amounts(cost_usd=0.5)), NOW), Grant)
