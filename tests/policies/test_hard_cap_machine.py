"""Whatever is asked and in whatever order it ends: no cap is crossed while bounds hold, and the books balance."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness_lab.clock import Time
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import COST, Refusal
from harness_lab.policies import (
    COMPLETED,
    Grant,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    hard_cap,
    locked,
    reservation_pool,
    shared_ledger,
)
from harness_lab.policies.hard_cap import CallHolds
from harness_lab.usage import amounts

NOW = Time(0)
SMALL = st.integers(0, 9)


def money(nusd: int | None) -> tuple[int | None, ...]:
    return (None, None, None, None, nusd)


class Books:
    """An observer that keeps books of its own, by call id."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.settled_ids: set[str] = set()
        self.charged = 0

    def reserving(self, reservation: Any, context: Any) -> None:
        assert reservation.call_id not in self.open
        assert reservation.call_id not in self.settled_ids
        self.open[reservation.call_id] = reservation.worst_case_nusd

    def settled(self, settlement: Any, context: Any) -> None:
        del self.open[settlement.call_id]
        self.settled_ids.add(settlement.call_id)
        self.charged += settlement.charged_nusd


class CapMachine(RuleBasedStateMachine):
    """Keeps beside the cap a list of calls, and derives every balance from it."""

    @initialize(cap=st.integers(0, 40), rule=st.sampled_from(["charge-hold", "release"]), soft=st.booleans())
    def start(self, cap: int, rule: Any, soft: bool) -> None:
        self.books = Books()
        spec = hard_cap(cap / 1e9, unknown_usage=rule, observer=self.books)
        self.policy = (compose(spec, shared_ledger(30), reservation_pool(calls=25)) if soft else spec).start("r")
        self.cap, self.rule = cap, rule
        self.module = next(m for m in self.policy.modules if isinstance(m, CallHolds))
        root = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        assert isinstance(root, Grant)
        self.nodes = [root.ticket]
        self.caps: dict[Ticket, int] = {root.ticket: cap}
        self.flight: list[tuple[Ticket, int]] = []
        self.charges: list[tuple[Ticket, int]] = []
        self.violated = False
        self.done: list[Ticket] = []

    def under(self, node: Ticket, step: Ticket) -> bool:
        above: Ticket | None = step.parent
        while above is not None and above is not node:
            above = above.parent
        return above is node

    @rule(data=st.data(), declared=st.one_of(st.none(), st.integers(0, 15)))
    def spawn(self, data: st.DataObject, declared: int | None) -> None:
        parent = data.draw(st.sampled_from(self.nodes))
        if parent.depth >= 3:
            return
        path = (*parent.path, (0, len(self.nodes), 0))
        answer = self.policy.spawn(SpawnAsk(parent, path, money(declared)), NOW)
        if isinstance(answer, Grant):
            self.nodes.append(answer.ticket)
            if declared is not None:
                self.caps[answer.ticket] = declared

    @rule(data=st.data(), bound=st.one_of(st.none(), SMALL))
    def ask(self, data: st.DataObject, bound: int | None) -> None:
        node = data.draw(st.sampled_from(self.nodes))
        before = (list(self.module.pot.spent), list(self.module.pot.held), dict(self.books.open))
        answer = self.policy.admit(StepAsk(node, 0, 0, money(bound)), NOW)
        if isinstance(answer, Grant):
            assert bound is not None
            assert not self.violated
            self.flight.append((answer.ticket, bound))
        else:
            assert before == (self.module.pot.spent, self.module.pot.held, self.books.open)

    @precondition(lambda self: self.flight)
    @rule(data=st.data(), how=st.sampled_from(["known", "known", "unknown", "dropped", "unsent", "above"]))
    def settle(self, data: st.DataObject, how: str) -> None:
        ticket, bound = self.flight.pop(data.draw(st.integers(0, len(self.flight) - 1)))
        use = {
            "known": lambda: Use(money(data.draw(st.integers(0, bound)))),
            "unknown": lambda: Use(money(None)),
            "dropped": lambda: Use(money(None), "abandoned"),
            "unsent": lambda: Use((0,) * 5, "unsent"),
            "above": lambda: Use(money(bound + 3)),
        }[how]()
        self.policy.settle(ticket, use, NOW)
        self.violated |= how == "above"
        unknown = bound if self.rule == "charge-hold" else 0
        self.charges.append((ticket, unknown if use.spent[COST] is None else use.spent[COST]))
        self.done.append(ticket)

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def settle_again(self, data: st.DataObject) -> None:
        with pytest.raises(AlreadySettled):
            self.policy.settle(data.draw(st.sampled_from(self.done)), Use(money(1)), NOW)

    @invariant()
    def books_balance(self) -> None:
        if not hasattr(self, "policy"):
            return
        pot = self.module.pot
        assert pot.held[COST] == sum(bound for _, bound in self.flight) == sum(self.books.open.values())
        assert pot.spent[COST] == sum(charge for _, charge in self.charges) == self.books.charged
        assert pot.open == len(self.flight)

    @invariant()
    def no_cap_is_crossed_while_bounds_hold(self) -> None:
        if not hasattr(self, "policy") or self.violated:
            return
        for node, cap in self.caps.items():
            gone = sum(amount for step, amount in [*self.flight, *self.charges] if self.under(node, step))
            assert gone <= cap

    def teardown(self) -> None:
        for ticket, bound in getattr(self, "flight", []):
            self.policy.settle(ticket, Use(money(bound)), NOW)
        for node in reversed(getattr(self, "nodes", [])):
            self.policy.close(node, Use((0,) * 5), COMPLETED, NOW)
        if hasattr(self, "policy"):
            assert self.module.pot.held == [0] * 5
            assert self.books.open == {}


TestCap = CapMachine.TestCase
TestCap.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


@settings(max_examples=40, deadline=None)
@given(bounds=st.lists(st.integers(1, 6), min_size=1, max_size=4), cap=st.integers(0, 12), short=st.integers(0, 2))
def test_no_interleaving_of_calls_crosses_the_cap(bounds: list[int], cap: int, short: int) -> None:
    moves = [(i, half) for i in range(len(bounds)) for half in ("ask", "settle")]
    for order in itertools.permutations(moves) if len(moves) <= 6 else [moves, moves[::-1]]:
        if any(order.index((i, "settle")) < order.index((i, "ask")) for i in range(len(bounds))):
            continue
        policy = hard_cap(cap / 1e9).start()
        root = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        assert isinstance(root, Grant)
        _play(policy, root.ticket, order, bounds, cap, short)


def _play(policy: Any, root: Ticket, order: Any, bounds: list[int], cap: int, short: int) -> None:
    flight: dict[int, Ticket] = {}
    pot = policy.modules[0].pot
    for i, half in order:
        if half == "ask":
            answer = policy.admit(StepAsk(root, i, 0, money(bounds[i])), NOW)
            fits = pot.spent[COST] + pot.held[COST] <= cap
            assert fits
            if isinstance(answer, Grant):
                flight[i] = answer.ticket
            else:
                assert pot.spent[COST] + pot.held[COST] + bounds[i] > cap
        elif i in flight:
            policy.settle(flight.pop(i), Use(money(max(0, bounds[i] - short))), NOW)
    assert pot.held[COST] == 0
    assert pot.spent[COST] <= cap


def test_threads_that_share_one_cap_never_cross_it() -> None:
    inner = hard_cap(50e-9).start()
    policy, root = locked(inner), inner.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(root, Grant)
    module: Any = inner.modules[0]
    peaks: list[int] = []

    def work() -> None:
        for i in range(200):
            answer = policy.admit(StepAsk(root.ticket, i, 0, money(7)), NOW)
            peaks.append(module.pot.spent[COST] + module.pot.held[COST])
            if not isinstance(answer, Refusal):
                policy.settle(answer.ticket, Use(money(i % 2)), NOW)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(peaks) <= 50
    assert module.pot.held[COST] == 0
    assert 0 < module.pot.spent[COST] <= 50
