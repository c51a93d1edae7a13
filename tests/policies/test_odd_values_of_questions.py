"""Odd values in the four questions and the news: one line says what was expected, and no limit has moved."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from harness_lab.clock import Time
from harness_lab.errors import InputError, UnknownTicket
from harness_lab.policies import (
    COMPLETED,
    AtLimit,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    hard_cap,
    iteration_budget,
    period_budget,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = (1, 1, 1, 1, 1)
NO_NUMBERS = [True, "3", b"1", [1], {"x": 1}, object(), 1j, math.nan, math.inf, Decimal("NaN"), np.bool_(True), 1.5]
NO_INSTANTS = [*NO_NUMBERS, 1.0, np.float64(3), None]
NO_COUNTS = [*NO_NUMBERS, -1, np.int64(-1), 10**30]
NO_OBJECTS = [*NO_COUNTS, None, 0]


class Asked:
    """A policy with a root, one step in flight, and what its limits say."""

    def __init__(self, spec: PolicySpec) -> None:
        opened = spec.open() if spec.scope != "run" else None
        self.policy: Any = spec.start() if opened is None else opened.start("r", {"user": "ann"}, wall_ns=10**18)
        granted: Any = self.policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
        self.root: Any = granted.ticket
        admitted: Any = self.policy.admit(StepAsk(self.root, 0, 0, ONE), Time(1))
        self.step: Any = admitted.ticket

    def books(self) -> object:
        gauges = [m.gauges(self.root, Time(2)) for m in self.policy.modules if hasattr(m, "gauges")]
        return gauges, self.step.state, self.root.state, self.policy.waiting


SPECS = {
    "ledger": shared_ledger(9, 1.0),
    "pool": reservation_pool(tokens=100),
    "cap": hard_cap(1.0),
    "tree": tree_limits(max_depth=2, max_concurrent=2),
    "iterations": iteration_budget(5),
    "period": period_budget(calls=9, by="user", every="day"),
    "all, and a limit's end": compose(
        shared_ledger(9, 1.0), reservation_pool(tokens=100), at_limit=AtLimit(warn_at=0.5)
    ),
}
QUESTIONS: dict[str, tuple[list[Any], Callable[[Asked, Any], object]]] = {
    "spawn now": (NO_INSTANTS, lambda it, v: it.policy.spawn(SpawnAsk(it.root, ((0, 0, 0),), amounts()), v)),
    "spawn ask": (NO_OBJECTS, lambda it, v: it.policy.spawn(v, Time(2))),
    "spawn parent": (NO_OBJECTS[:-2], lambda it, v: it.policy.spawn(SpawnAsk(v, ((0, 0, 0),), amounts()), Time(2))),
    "admit now": (NO_INSTANTS, lambda it, v: it.policy.admit(StepAsk(it.root, 1, 0, ONE), v)),
    "admit node": (NO_OBJECTS, lambda it, v: it.policy.admit(StepAsk(v, 1, 0, ONE), Time(2))),
    "settle step": (NO_OBJECTS, lambda it, v: it.policy.settle(v, Use(ONE), Time(2))),
    "settle use": (NO_OBJECTS, lambda it, v: it.policy.settle(it.step, v, Time(2))),
    "settle now": (NO_INSTANTS, lambda it, v: it.policy.settle(it.step, Use(ONE), v)),
    "close node": (NO_OBJECTS, lambda it, v: it.policy.close(v, Use(ONE), COMPLETED, Time(2))),
    "close use": (NO_OBJECTS, lambda it, v: it.policy.close(it.root, v, COMPLETED, Time(2))),
    "close end": (NO_OBJECTS, lambda it, v: it.policy.close(it.root, Use(ONE), v, Time(2))),
    "close now": (NO_INSTANTS, lambda it, v: it.policy.close(it.root, Use(ONE), COMPLETED, v)),
    "cancel node": (NO_OBJECTS, lambda it, v: it.policy.cancel(v, "stop", Time(2))),
    "cancel reason": (
        [v for v in NO_OBJECTS if type(v) is not str],
        lambda it, v: it.policy.cancel(it.root, v, Time(2)),
    ),
    "cancel now": (NO_INSTANTS, lambda it, v: it.policy.cancel(it.root, "stop", v)),
    "would": (NO_OBJECTS, lambda it, v: it.policy.would(v, Time(2))),
    "would now": (NO_INSTANTS, lambda it, v: it.policy.would(StepAsk(it.root, 1, 0, ONE), v)),
    "tick": (NO_INSTANTS, lambda it, v: it.policy.tick(v)),
}
VALUES: dict[str, tuple[list[Any], Callable[[Any], object]]] = {
    "ask": (NO_COUNTS, lambda v: SpawnAsk(None, (), (None, None, v, None, None))),
    "asks": (NO_OBJECTS, lambda v: SpawnAsk(None, (), v)),
    "path": (NO_OBJECTS, lambda v: SpawnAsk(None, v, amounts())),
    "together": (NO_COUNTS, lambda v: SpawnAsk(None, (), amounts(), together=v)),
    "wait_until": (NO_INSTANTS[:-1], lambda v: SpawnAsk(None, (), amounts(), wait_until=v)),
    "bound": (NO_COUNTS, lambda v: StepAsk(None, 0, 0, (None, v, None, None, None))),  # type: ignore[arg-type]
    "count": (NO_COUNTS[:-1], lambda v: StepAsk(None, 0, 0, ONE, count=v)),  # type: ignore[arg-type]
    "call": (NO_NUMBERS, lambda v: StepAsk(None, v, 0, ONE)),  # type: ignore[arg-type]
    "attempt": (NO_NUMBERS, lambda v: StepAsk(None, 0, v, ONE)),  # type: ignore[arg-type]
    "kind": ([*NO_OBJECTS, "wrapup"], lambda v: StepAsk(None, 0, 0, ONE, kind=v)),  # type: ignore[arg-type]
    "spent": (NO_COUNTS, lambda v: Use((1, 1, 1, 1, v))),
    "spents": (NO_OBJECTS, lambda v: Use(v)),
    "status": ([*NO_OBJECTS, "complete"], lambda v: Use(ONE, v)),
    "turn": ([*NO_OBJECTS, "script"], lambda v: Use(ONE, "completed", v)),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("policy", SPECS)
def test_an_odd_value_is_refused_in_one_line_and_no_limit_moves(policy: str, question: str) -> None:
    values, ask = QUESTIONS[question]
    asked = Asked(SPECS[policy])
    before = asked.books()
    for value in values:
        with pytest.raises(InputError) as caught:
            ask(asked, value)
        assert "\n" not in str(caught.value)
        assert asked.books() == before
    asked.policy.settle(asked.step, Use(ONE), Time(3))
    asked.policy.close(asked.root, Use(ONE), COMPLETED, Time(4))


@pytest.mark.parametrize("name", VALUES)
def test_an_odd_value_makes_no_question_and_no_use(name: str) -> None:
    values, make = VALUES[name]
    for value in values:
        with pytest.raises(InputError) as caught:
            make(value)
        assert "\n" not in str(caught.value)


def test_a_grant_or_a_refusal_is_not_taken_for_a_ticket() -> None:
    policy: Any = shared_ledger(1).start()
    grant = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    with pytest.raises(InputError, match=r"^ticket: expected the ticket of a grant, got Grant\(node /\)$"):
        policy.settle(grant, Use(ONE), Time(1))


@pytest.mark.parametrize("policy", SPECS)
def test_a_ticket_of_another_policy_is_unknown_to_every_question(policy: str) -> None:
    mine, other = Asked(SPECS[policy]), Asked(SPECS[policy])
    before = mine.books()
    asks: tuple[Callable[[], object], ...] = (
        lambda: mine.policy.spawn(SpawnAsk(other.root, ((0, 0, 0),), amounts()), Time(2)),
        lambda: mine.policy.admit(StepAsk(other.root, 1, 0, ONE), Time(2)),
        lambda: mine.policy.would(StepAsk(other.root, 1, 0, ONE), Time(2)),
        lambda: mine.policy.settle(other.step, Use(ONE), Time(2)),
        lambda: mine.policy.close(other.root, Use(ONE), COMPLETED, Time(2)),
        lambda: mine.policy.cancel(other.root, "stop", Time(2)),
    )
    for ask in asks:
        with pytest.raises(UnknownTicket, match="was not given by this policy"):
            ask()
        assert mine.books() == before
