"""Waiting: served in order for each parent, bounded, holding nothing, and refused when built if it could deadlock."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CHANNELS, TOKENS, Code, Refusal
from harness_lab.policies import (
    COMPLETED,
    Composed,
    Grant,
    Granted,
    PolicySpec,
    Refused,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    Wait,
    compose,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

NOW, NOTHING = Time(0), Use((0,) * len(CHANNELS), "unsent")


class World:
    """A policy and a root; children are named by numbers."""

    def __init__(self, spec: PolicySpec) -> None:
        self.policy: Composed = spec.start()
        self.root = self.open(self.policy.spawn(SpawnAsk(None, (), amounts()), NOW))
        self.names: dict[Ticket, str] = {}
        self.at = NOW

    def open(self, answer: Any) -> Ticket:
        assert isinstance(answer, Grant)
        return answer.ticket

    def spawn(self, name: str, parent: Ticket | None = None, *, wait_s: float | None = None, **ask: Any) -> Any:
        until = None if wait_s is None else Time(self.at + round(wait_s * NS_PER_S))
        above = parent if parent is not None else self.root
        path = (*above.path, (0, len(self.names), 0))
        answer = self.policy.spawn(SpawnAsk(above, path, amounts(**ask), wait_until=until), self.at)
        if not isinstance(answer, Refusal):
            self.names[answer.ticket] = name
        return answer

    def end(self, ticket: Ticket, used: int = 0) -> list[str]:
        """End a child that used some tokens, and return the news."""
        if used:
            step = self.open(self.policy.admit(StepAsk(ticket, 0, 0, (None,) * len(CHANNELS)), self.at))
            self.policy.settle(step, Use((1, used, used, used, 0)), self.at)
        self.policy.close(ticket, Use((0,) * len(CHANNELS)), COMPLETED, self.at)
        return self.news()

    def news(self) -> list[str]:
        found = []
        for news in self.policy.outbox():
            assert isinstance(news, (Granted, Refused))
            word = "granted" if isinstance(news, Granted) else str(news.refusal.code)
            found.append(f"{self.names[news.ticket]} {word}")
        return found


def test_whoever_waits_is_granted_when_enough_comes_back() -> None:
    world = World(reservation_pool(tokens=100))
    a = world.spawn("a", tokens=80)
    b = world.spawn("b", tokens=60, wait_s=9)
    pool = world.policy.modules[0].pool  # type: ignore[attr-defined]
    assert isinstance(b, Wait)
    assert pool.held()[TOKENS] == 80
    assert world.end(a.ticket, 10) == ["b granted"]
    assert (pool.free()[TOKENS], pool.held()[TOKENS]) == (30, 60)


def test_what_could_never_be_covered_is_refused_at_once() -> None:
    world = World(reservation_pool(tokens=100))
    world.spawn("a", tokens=80)
    refusal = world.spawn("b", tokens=101, wait_s=9)
    assert (refusal.code, refusal.shortfalls[0].helps) == (Code.BUDGET_EXHAUSTED, "smaller")


def test_whoever_cannot_be_served_any_more_is_refused_and_the_next_in_line_is_served() -> None:
    world = World(reservation_pool(tokens=100))
    a = world.spawn("a", tokens=90)
    world.spawn("big", tokens=50, wait_s=9)
    world.spawn("small", tokens=20, wait_s=9)
    assert world.end(a.ticket, 70) == ["big budget-exhausted", "small granted"]


def test_a_later_ask_does_not_overtake_an_earlier_one_of_its_parent_though_it_would_fit() -> None:
    world = World(reservation_pool(tokens=100))
    a = world.spawn("a", tokens=80)
    world.spawn("big", tokens=60, wait_s=9)
    assert isinstance(world.spawn("small", tokens=10, wait_s=9), Wait)
    assert isinstance(world.spawn("impatient", tokens=10), Grant)  # it asked for an answer now
    assert world.end(a.ticket) == ["big granted", "small granted"]


def test_the_children_of_another_parent_are_a_line_of_their_own() -> None:
    world = World(reservation_pool(tokens=100))
    other = world.open(world.spawn("other"))
    world.spawn("a", tokens=80)
    world.spawn("big", tokens=60, wait_s=9)
    assert isinstance(world.spawn("small", other, tokens=10, wait_s=9), Grant)


def test_waiting_is_bounded_and_the_next_in_line_is_served_then() -> None:
    world = World(reservation_pool(tokens=100))
    world.spawn("a", tokens=80)
    big = world.spawn("big", tokens=60, wait_s=1)
    world.spawn("small", tokens=10, wait_s=9)
    assert big.until == NS_PER_S
    assert world.policy.tick(Time(NS_PER_S - 1)) == NS_PER_S
    assert world.news() == []
    assert world.policy.tick(Time(NS_PER_S)) is None
    assert world.news() == ["big waited-too-long", "small granted"]


def test_the_bound_of_the_policy_holds_where_the_ask_names_none() -> None:
    world = World(tree_limits(max_depth=1, max_concurrent=1, max_wait_s=2.5))
    world.spawn("a")
    world.at = Time(NS_PER_S)
    assert world.spawn("b").until == 3.5 * NS_PER_S
    assert world.spawn("c", wait_s=1).until == 2 * NS_PER_S


def test_waiting_changes_nothing_in_the_ask_so_it_can_be_asked_again() -> None:
    world = World(tree_limits(max_depth=1, max_concurrent=1, max_wait_s=1))
    world.spawn("a")
    ask = SpawnAsk(world.root, ((0, 9, 0),), amounts())
    first = world.policy.spawn(ask, NOW)
    again = world.policy.spawn(ask, Time(7 * NS_PER_S))
    assert isinstance(first, Wait)
    assert isinstance(again, Wait)
    assert (ask.wait_until, again.until) == (None, 8 * NS_PER_S)


def test_a_dry_run_says_nothing_against_an_ask_that_would_wait() -> None:
    world = World(tree_limits(max_depth=1, max_concurrent=1, max_wait_s=1))
    world.spawn("a")
    assert world.policy.would(SpawnAsk(world.root, ((0, 9, 0),), amounts()), NOW) is None
    deep = world.policy.would(SpawnAsk(next(iter(world.names)), ((0, 9, 0),), amounts()), NOW)
    assert deep is not None
    assert deep.code is Code.MAX_DEPTH


def test_whoever_withdraws_while_waiting_held_nothing_and_lets_the_next_one_on() -> None:
    world = World(reservation_pool(tokens=100))
    a = world.spawn("a", tokens=90)
    waits = world.spawn("w", tokens=50, wait_s=9)
    world.spawn("n", tokens=10, wait_s=9)
    world.policy.close(waits.ticket, NOTHING, COMPLETED, NOW)
    assert world.news() == ["n granted"]
    with pytest.raises(AlreadySettled):
        world.policy.close(waits.ticket, NOTHING, COMPLETED, NOW)
    assert world.end(a.ticket, 40) == []


def test_granted_and_cancelled_in_one_instant_gives_everything_back_even_the_start() -> None:
    spec = compose(tree_limits(max_depth=1, max_concurrent=1, max_calls=2, max_wait_s=9), reservation_pool(tokens=100))
    world = World(spec)
    a = world.spawn("a", tokens=60)
    b = world.spawn("b", tokens=60)
    assert world.end(a.ticket) == ["b granted"]
    world.policy.close(b.ticket, NOTHING, COMPLETED, NOW)
    tree, pool = world.policy.modules
    assert (tree.running, pool.pool.held()[TOKENS]) == (0, 0)  # type: ignore[attr-defined]
    assert isinstance(world.spawn("c", tokens=60), Grant)  # the second start, since b never ran


def test_nobody_waits_for_a_slot_that_does_not_exist() -> None:
    world = World(tree_limits(max_depth=1, max_concurrent=0, max_wait_s=9))
    refusal = world.spawn("a")
    assert (refusal.code, refusal.shortfalls[0].helps) == (Code.MAX_CONCURRENT, "nothing")


@pytest.mark.parametrize("max_depth", [None, 2, 5])
def test_slots_counted_over_the_tree_and_a_queue_are_refused_where_parents_may_hold_them_all(max_depth: Any) -> None:
    with pytest.raises(InputError, match=r"^max_wait_s: expected concurrency='parent', lend=True or max_depth=1"):
        tree_limits(max_depth=max_depth, max_concurrent=2, max_wait_s=1)
    with pytest.raises(InputError, match=r"^max_wait_s"):
        compose(tree_limits(max_depth=max_depth, max_concurrent=2), PolicySpec(name="queue", max_wait_s=1))


def test_combinations_that_cannot_deadlock_may_queue() -> None:
    for depth in (0, 1):
        assert tree_limits(max_depth=depth, max_concurrent=2, max_wait_s=1).max_wait_s == 1
    assert tree_limits(max_depth=4, max_concurrent=2, max_wait_s=1, concurrency="parent").max_wait_s == 1
    assert tree_limits(max_depth=4, max_calls=2, max_wait_s=1).max_wait_s == 1


def test_a_composition_waits_no_longer_than_the_shortest_bound() -> None:
    pool = PolicySpec(name="queue", modules=reservation_pool(tokens=5).modules, max_wait_s=7)
    both = compose(pool, tree_limits(1, 1, max_wait_s=3))
    assert (both.max_wait_s, both.name) == (3, "queue + tree limits")


def test_whoever_waits_is_asked_about_again_when_its_own_limit_has_moved_and_then_by_every_module() -> None:
    world = World(compose(shared_ledger(2), tree_limits(max_depth=1, max_concurrent=1, max_wait_s=9)))
    a = world.spawn("a")
    world.spawn("b")
    for call in (0, 1):
        step = world.open(world.policy.admit(StepAsk(a.ticket, call, 0, (None,) * len(CHANNELS)), NOW))
        world.policy.settle(step, Use((1, 0, 0, 0, 0)), NOW)
    assert world.news() == []  # the ledger is used up, but it is a slot that b waits for
    assert world.end(a.ticket) == ["b steps-exhausted"]


def test_whoever_waits_for_one_limit_may_have_to_wait_for_another_then() -> None:
    world = World(compose(reservation_pool(tokens=100), tree_limits(max_depth=1, max_concurrent=2, max_wait_s=9)))
    a, b = world.spawn("a", tokens=30), world.spawn("b", tokens=40)
    world.spawn("c", tokens=70)  # both fall short; the pool is asked first
    assert world.end(a.ticket) == []
    assert world.spawn("d", tokens=10, wait_s=0).ticket.blocker is None  # its turn has not come
    assert world.end(b.ticket) == ["c granted", "d granted"]


def test_the_end_of_a_step_moves_only_those_who_wait_for_what_steps_move() -> None:
    limits = tree_limits(max_depth=5, max_concurrent=1, max_calls=4, concurrency="parent", max_wait_s=9)
    world = World(compose(reservation_pool(tokens=100), limits))
    a = world.spawn("a", tokens=80)
    world.spawn("waits for a's slot")
    x = world.spawn("x", a.ticket)
    y = world.spawn("y", x.ticket, tokens=60)
    world.spawn("waits for y's tokens", x.ticket, tokens=30)
    last = world.spawn("the last start", y.ticket)
    step = world.open(world.policy.admit(StepAsk(last.ticket, 0, 0, (None,) * len(CHANNELS)), NOW))
    world.policy.settle(step, Use((1, 1, 1, 1, 0)), NOW)
    assert world.news() == []
    world.policy.close(last.ticket, NOTHING, COMPLETED, NOW)  # it never ran: its start is given back
    assert world.end(y.ticket) == ["waits for y's tokens granted"]
    assert world.end(a.ticket) == ["waits for a's slot max-calls"]
