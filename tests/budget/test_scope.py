"""A scope: children on one pool, what is written of them, and the same books from what was written."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from harness_lab.budget import (
    Child,
    Event,
    ExecutionRetained,
    NotDelivered,
    Quantity,
    ReservationPool,
    ReservationsOpen,
    Scope,
    ScopeSpec,
    Spend,
    WorkFailed,
    advice,
)
from harness_lab.clock import Time
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import COST, FRESH, Cause, Code, Outcome, Refusal
from harness_lab.usage import amounts

ASK = amounts(calls=2, fresh=40)


def _scope(**more: Any) -> Scope:
    return Scope(ReservationPool(amounts(calls=20, fresh=100, cost_usd=1), **more))


def _started(scope: Scope, name: str = "child", ask: Any = ASK, **more: Any) -> Child:
    child = scope.spawn(name, ask, **more)
    assert isinstance(child, Child)
    return child


def _again(scope: Scope, **more: Any) -> Scope:
    lines = [json.dumps(event.to_dict()) for event in scope.journal]
    return Scope.restore([Event.from_dict(json.loads(line)) for line in lines], **more)


def test_work_that_ends_is_charged_and_the_rest_comes_back() -> None:
    scope = _scope()
    child = _started(scope)

    def work(meter: Any) -> str:
        meter(Spend(calls=1, input=20, output=5))
        return "found"

    settled = scope.run(child, work)
    assert (settled.result(), settled.id, settled.seq, settled.overspent) == ("found", "root:s0", 0, ())
    assert (scope.pool.free()[FRESH], scope.pool.held()[FRESH]) == (75, 0)
    with pytest.raises(AlreadySettled):
        scope.settle(child)


def test_an_overspender_that_finished_is_done_and_its_journal_says_the_same() -> None:
    scope = _scope()
    settled = scope.settle(_started(scope), Spend(input=90), output="found")
    assert (settled.completed, settled.overspent[0].spent) == (True, 90)
    assert _again(scope).children[0].settlement == settled


@pytest.mark.parametrize(
    ("error", "cause"),
    [(WorkFailed("no"), None), (RuntimeError("no"), Cause.MODEL), (InputError("x", expected="y", got=1), "infra")],
)
def test_work_that_raises_before_it_reported_anything_used_nobody_knows_how_much(error: Exception, cause: Any) -> None:
    scope = Scope(ReservationPool(amounts(fresh=100)))

    def work(_meter: Any) -> None:
        raise error

    settled = scope.run(_started(scope, ask=amounts(fresh=40)), work)
    assert settled.cause is (Cause.INFRASTRUCTURE if cause == "infra" else cause)
    assert (settled.spent.tokens_known, settled.spent.cost_known) == (False, False)
    with pytest.raises(NotDelivered, match="child is failed"):
        settled.result()


def test_a_child_that_was_let_go_of_has_no_last_word_before_it_is_known_to_be_gone() -> None:
    scope = _scope()
    child = _started(scope)

    def work(meter: Any) -> None:
        meter(Spend(input=90))
        raise ExecutionRetained("its host is gone")

    settled = scope.run(child, work)
    assert (settled.retained, settled.seq, settled.overspent) == ("pending", None, ())
    assert scope.release(child, destroyed=None) is None
    assert scope.release(child, destroyed=False) is None
    gone = scope.release(child, destroyed=True)
    assert gone is not None
    assert (gone.retained, gone.outcome, gone.seq) == ("released", Outcome.FAILED, 0)
    assert [event.kind for event in scope.journal[2:]] == ["reconciled", "teardown", "teardown", "settled"]


def test_a_child_that_comes_back_is_charged_once_for_each_stay() -> None:
    scope = _scope()
    child = _started(scope)
    scope.meter(child, Spend(input=10))
    scope.retain(child)
    assert scope.resume(child) is child
    assert _again(scope).pool.free()[FRESH] == scope.pool.free()[FRESH] == 50
    assert scope.settle(child, Spend(input=5)).spent.input == 15
    assert _again(scope).pool.free()[FRESH] == scope.pool.free()[FRESH] == 85


def test_a_restart_charges_what_nobody_knows_in_full_and_does_not_move_the_deadline() -> None:
    scope = ScopeSpec(limits=amounts(calls=20, fresh=100), lasts_s=60).start(Time(5))
    _started(scope)
    _started(scope, "dead")
    again = _again(scope, died=["root:s1"])
    assert (again.deadline, again.pool.free()[FRESH], again.pool.held()[FRESH]) == (Time(60 * 10**9 + 5), 60, 0)
    assert [child.state for child in again.children] == ["pending", "pending"]
    late = again.spawn("late", ASK, now=Time(60 * 10**9 + 5))
    assert isinstance(late, Refusal)
    assert late.code is Code.DEADLINE


def test_work_with_a_key_is_done_once() -> None:
    scope = _scope()
    done = _started(scope, key="k", task="t")
    refused = scope.spawn("again", ASK, key="k", task="t")
    assert isinstance(refused, Refusal)
    assert refused.code is Code.KEY_IN_USE
    scope.settle(done, output="found")
    assert scope.spawn("again", ASK, key="k", task="t") is done
    other = scope.spawn("again", ASK, key="k", task="another")
    assert isinstance(other, Refusal)
    assert other.code is Code.KEY_CONFLICT


def test_work_with_a_key_that_failed_or_was_lost_is_done_again_and_says_so() -> None:
    scope = Scope(ReservationPool(amounts(calls=20, fresh=100)))
    scope.settle(_started(scope, key="k"), outcome=Outcome.FAILED, reason="it exploded")
    second = _started(scope, "second", key="k")
    assert (second.prior, second.prior_reason) == ("retried", "it exploded")
    again = _again(scope)
    doubt = again.spawn("third", ASK, key="k")
    assert isinstance(doubt, Refusal)
    assert doubt.code is Code.KEY_IN_DOUBT
    assert _started(again, "third", key="k", again=True).prior == "lost"


def test_those_in_line_are_served_in_order_and_refused_once_it_is_hopeless() -> None:
    scope = _scope()
    holder = _started(scope, ask=amounts(fresh=90))
    large, small = (_started(scope, str(size), amounts(fresh=size), wait=True) for size in (50, 20))
    never = scope.spawn("never", amounts(fresh=101), wait=True)
    assert isinstance(never, Refusal)
    assert (large.state, small.state) == ("waiting", "waiting")
    scope.settle(holder, Spend(input=70))
    assert (large.refusal is not None, small.state) == (True, "running")


def test_a_driver_keeps_its_share_for_itself() -> None:
    scope = ScopeSpec(limits=amounts(fresh=20_000), share=amounts(fresh=4_000), owner_share=0.2).start()
    children = [_started(scope, str(i), None, wait=True) for i in range(6)]
    assert [child.state for child in children] == ["running"] * 4 + ["waiting"] * 2
    assert scope.pool.free()[FRESH] == 4_000


def test_a_share_larger_than_the_whole_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"^share \(fresh\): expected at most the total of 1,000, got 2000$"):
        ScopeSpec(limits=amounts(fresh=1_000), share=amounts(fresh=2_000))
    with pytest.raises(InputError, match=r"^owner_share: expected a part from 0 to below 1, got 1$"):
        ScopeSpec(limits=amounts(), owner_share=1)


def test_a_driver_below_another_draws_on_its_share_and_every_token_is_counted_once() -> None:
    scope = _scope()
    scope.turn(Spend(input=7))
    middle = _started(scope)
    below = scope.nested(middle)
    below.turn(Spend(input=5))
    below.settle(_started(below, "leaf", amounts(fresh=20)), Spend(calls=1, input=11))
    scope.settle(middle)
    books = scope.accounting()
    assert (books.inference.input, books.work.input, books.total.input) == (12, 11, 23)
    assert (scope.pool.free()[FRESH], _again(scope).pool.free()[FRESH]) == (77, 77)


def test_a_run_with_a_result_and_an_open_reservation_fails_loud_and_one_without_lists_it() -> None:
    scope = _scope()
    child = _started(scope, key="k")
    with pytest.raises(InputError, match=r"^input: "):
        scope.settle(child, {"input": -1})
    with pytest.raises(ReservationsOpen, match=r"^1 reservation\(s\) are still open: child$"):
        scope.finish(delivered=True)
    assert [(leak.name, leak.key, leak.stage) for leak in scope.finish(delivered=False)] == [("child", "k", "admitted")]
    late = scope.spawn("late", ASK)
    assert isinstance(late, Refusal)
    assert late.code is Code.PARENT_ENDED


def test_an_unknown_use_of_a_resource_fails_the_child_where_the_rules_say_so() -> None:
    pool = ReservationPool(
        amounts(fresh=100), resources={"gpu": Quantity(unit="seconds", amount=10)}, rules="tangle-e3"
    )
    scope = Scope(pool)
    child = _started(scope, ask=amounts(fresh=10), resources={"gpu": Quantity(unit="seconds", amount=2)})
    settled = scope.settle(child, Spend(input=50), output="found")
    assert (settled.outcome, settled.cause, settled.output) == (Outcome.FAILED, Cause.INFRASTRUCTURE, None)
    assert settled.reason.endswith("resource:gpu: unknown spend under a limit")
    assert pool.available()[-1] == 0


def test_the_books_are_the_same_when_money_was_unknown() -> None:
    scope = _scope()
    scope.settle(_started(scope), Spend.reported(input=3, cost_usd=None))
    assert scope.pool.available() == _again(scope).pool.available()
    assert scope.pool.available()[COST] == 0


@pytest.mark.parametrize("code", [Code.KEY_CONFLICT, Code.KEY_IN_USE, Code.KEY_IN_DOUBT, Code.MAX_DEPTH])
def test_a_refusal_that_is_not_the_budgets_does_not_speak_of_the_pool(code: Code) -> None:
    from harness_lab.outcome import Shortfall

    told = advice(Refusal((Shortfall(code, None, None, None, "nothing"),)))
    assert "pool" not in told
    assert len(told) > 20


def test_a_journal_with_a_line_lost_or_twice_is_refused_and_a_whole_one_is_not() -> None:
    scope = _scope()
    scope.settle(_started(scope, "a"), Spend(calls=1, input=20, output=5))
    _started(scope, "b")
    whole = list(scope.journal)
    assert Scope.restore(whole).pool.free()[FRESH] == 100 - 25 - 40
    for lost in range(1, len(whole) - 1):
        with pytest.raises(InputError, match=rf"journal: expected seq {lost} next, without gaps, got {lost + 1}"):
            Scope.restore(whole[:lost] + whole[lost + 1 :])
    with pytest.raises(InputError, match="journal"):
        Scope.restore([*whole, whole[-1]])


def test_a_journal_in_another_order_or_cut_short_gives_no_more_than_the_whole_one() -> None:
    scope = _scope()
    scope.settle(_started(scope, "a"), Spend(calls=1, input=20, output=5))
    scope.settle(_started(scope, "b"), Spend(calls=1, input=1, output=1))
    whole = list(scope.journal)
    left = Scope.restore(whole).pool.free()[FRESH]
    assert left is not None
    for kept in range(1, len(whole)):
        cut = Scope.restore(whole[:kept])
        started = {event.child for event in whole[:kept] if event.kind == "spawned"}
        free = cut.pool.free()[FRESH]
        assert free is not None
        assert free <= left or len(started) < 2  # a start that was never written is not known
    for one, two in combinations(range(1, len(whole)), 2):
        moved = list(whole)
        moved[one], moved[two] = replace(whole[two], seq=one), replace(whole[one], seq=two)
        with suppress(InputError):
            assert Scope.restore(moved).pool.free()[FRESH] == left
    backwards = [whole[0], *(replace(event, seq=i + 1) for i, event in enumerate(reversed(whole[1:])))]
    with pytest.raises(InputError, match=r"^journal, seq 1: expected a child that was started before, got "):
        Scope.restore(backwards)


@pytest.mark.parametrize("journal", [None, 5, "opened", [{"seq": 0}], [None]])
def test_what_is_no_journal_is_one_line(journal: Any) -> None:
    with pytest.raises(InputError, match=r"^journal: expected "):
        Scope.restore(journal)
