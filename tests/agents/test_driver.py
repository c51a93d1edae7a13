"""A driver takes turns until it has delivered, and none that could start nobody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from harness_lab.agents import Turn, drive
from harness_lab.budget import BudgetFault, Child, ReservationPool, ReservationsOpen, Scope, ScopeSpec, Spend
from harness_lab.outcome import FRESH
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness_lab.agents import Driven


def _driven(scope: Scope, turn: Callable[[Scope, int], Awaitable[Turn]], max_turns: int | None = None) -> Driven:
    return asyncio.run(drive(scope, turn, max_turns=max_turns))


def test_turns_end_once_not_even_one_share_is_left() -> None:
    async def turn(_scope: Scope, _number: int) -> Turn:
        return Turn(spend=Spend(input=150, output=50))

    driven = _driven(ScopeSpec(limits=amounts(fresh=1_000), share=amounts(fresh=500)).start(), turn)
    assert (driven.stopped, driven.turns, driven.shortfalls[0].free) == ("budget", 3, 400)


def test_no_turn_is_bought_where_no_child_could_start() -> None:
    async def turn(_scope: Scope, _number: int) -> Turn:
        raise AssertionError("a turn was bought")

    scope = Scope(ReservationPool(amounts(calls=0, fresh=10)), share=amounts(calls=1, fresh=1))
    assert (_driven(scope, turn).stopped, scope.accounting().total.input) == ("budget", 0)


def test_a_driver_goes_on_until_it_has_delivered_and_the_best_child_is_named() -> None:
    async def turn(scope: Scope, number: int) -> Turn:
        child = scope.spawn(f"child {number}")
        assert isinstance(child, Child)
        scope.settle(child, Spend(calls=1, input=10), output=number, score=(0.3, 0.8, 0.5)[number - 1])
        return Turn(spend=Spend(input=5), delivered=number == 3, output="done")

    scope = ScopeSpec(limits=amounts(calls=40, fresh=1_000)).start()
    driven = _driven(scope, turn)
    assert (driven.stopped, driven.turns, driven.output) == ("delivered", 3, "done")
    assert driven.best is not None
    assert driven.best.output == 2
    assert scope.pool.free()[FRESH] == 955


def test_a_turn_whose_cost_nobody_knows_fails_the_run_under_rules_that_say_so() -> None:
    async def turn(_scope: Scope, _number: int) -> Turn:
        return Turn()

    driven = _driven(ScopeSpec(limits=amounts(fresh=100, cost_usd=1), rules="tangle-e2").start(), turn)
    assert (driven.stopped, driven.turns) == ("failed", 1)
    assert isinstance(driven.error, BudgetFault)
    assert driven.error.unknown == ("cost",)


def test_a_run_that_delivers_while_a_child_holds_a_part_fails_loud() -> None:
    async def turn(scope: Scope, _number: int) -> Turn:
        scope.spawn("child")
        return Turn(spend=Spend(), delivered=True)

    with pytest.raises(ReservationsOpen):
        _driven(ScopeSpec(limits=amounts(calls=4)).start(), turn)


def test_one_that_has_had_its_turns_lists_what_it_left_open() -> None:
    async def turn(scope: Scope, number: int) -> Turn:
        scope.spawn(f"child {number}")
        return Turn(spend=Spend())

    driven = _driven(ScopeSpec(limits=amounts(calls=40)).start(), turn, max_turns=2)
    assert (driven.stopped, [leak.name for leak in driven.leaks]) == ("turns", ["child 1", "child 2"])
