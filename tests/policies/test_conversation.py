"""Whatever is asked of whatever composition: a refusal consumes nothing, a ticket closes once, nothing leaks."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness_lab.clock import ManualClock, Time
from harness_lab.errors import AlreadySettled
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import CHANNELS, Refusal
from harness_lab.policies import (
    COMPLETED,
    Granted,
    PolicySpec,
    Refused,
    ReservationPoolSpec,
    RuntimeFloorsSpec,
    SharedLedgerSpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    TreeLimitsSpec,
    Use,
    Wait,
)

NOTHING = (0,) * len(CHANNELS)
PATH = FloorKey(backend="b", model="m")
AMOUNTS = st.tuples(*[st.sampled_from([None, None, 0, 1, 2, 3, 5])] * len(CHANNELS))
LEDGERS = st.builds(SharedLedgerSpec, max_steps=st.integers(0, 30), max_cost_usd=st.sampled_from([None, 40e-9]))
POOLS = st.builds(
    ReservationPoolSpec,
    calls=st.sampled_from([None, 9]),
    input=st.sampled_from([None, 5, 7]),
    cost_usd=st.sampled_from([None, 8e-9]),
    unknown_usage=st.sampled_from(["release", "charge-hold"]),
)
TREES = st.builds(
    TreeLimitsSpec,
    max_depth=st.sampled_from([None, None, 0, 1, 2]),
    max_concurrent=st.sampled_from([None, 0, 1, 1, 2]),
    max_calls=st.sampled_from([None, None, 3, 8]),
    timeout_s=st.sampled_from([None, None, 0, 2]),
    concurrency=st.just("parent"),
)
FLOORS = st.builds(RuntimeFloorsSpec, table=st.just(FloorTable((FloorRow(key=PATH, floor=2),))))


@st.composite
def specs(draw: st.DrawFn) -> PolicySpec:
    order = draw(st.permutations([LEDGERS, POOLS, TREES, FLOORS]))
    modules = tuple(draw(module) for module in order if draw(st.booleans()))
    return PolicySpec(name="random", modules=modules, max_wait_s=draw(st.sampled_from([None, 0, 2, 4, 4])))


class Conversation(RuleBasedStateMachine):
    """Asks whatever may be asked; keeps beside the policy only who is open and who waits."""

    @initialize(spec=specs())
    def start(self, spec: PolicySpec) -> None:
        self.now = Time(0)
        self.policy = spec.start()
        self.nodes: list[Ticket] = []
        self.steps: list[Ticket] = []
        self.waiting: list[Ticket] = []
        self.settled: list[Ticket] = []
        self.born = 0
        self.ran = 0
        self._ask(self.policy.spawn, SpawnAsk(None, (), (None,) * len(CHANNELS)))

    @rule(seconds=st.integers(0, 3))
    def time_goes_by(self, seconds: int) -> None:
        self.now = Time(self.now + seconds * 10**9)
        self.policy.tick(self.now)
        self._drain()

    @rule(budget=AMOUNTS, data=st.data(), named=st.booleans())
    def spawn(self, budget: Any, data: st.DataObject, named: bool) -> None:
        parent = data.draw(st.sampled_from(self.nodes), label="parent")
        self.born += 1
        key = PATH if named and budget[1] is not None else None
        self._ask(self.policy.spawn, SpawnAsk(parent, (*parent.path, (0, self.born, 0)), budget, key))

    @rule(data=st.data())
    def admit(self, data: st.DataObject) -> None:
        self._ask(self.policy.admit, StepAsk(data.draw(st.sampled_from(self.nodes)), 0, 0, (1, 3, 4, 4, 5)))

    @rule(data=st.data(), spent=AMOUNTS, status=st.sampled_from(["completed", "failed", "abandoned", "unsent"]))
    def settle(self, data: st.DataObject, spent: Any, status: Any) -> None:
        if not self.steps:
            return
        step = data.draw(st.sampled_from(self.steps))
        self.policy.settle(step, Use(spent, status), self.now)
        self._ended(self.steps, step)

    @rule(data=st.data(), ran=st.booleans())
    def close(self, data: st.DataObject, ran: bool) -> None:
        if len(self.nodes) < 2:
            return
        node = data.draw(st.sampled_from(self.nodes[1:]))  # parents before children too: a child may be detached
        self.policy.close(node, Use(NOTHING, "completed" if ran else "unsent"), COMPLETED, self.now)
        self.ran -= not ran
        self._ended(self.nodes, node)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        if not self.waiting:
            return
        ticket = data.draw(st.sampled_from(self.waiting))
        self.policy.settle(ticket, Use(NOTHING, "unsent"), self.now)
        self._ended(self.waiting, ticket)

    @rule(data=st.data(), spent=AMOUNTS)
    def settle_again(self, data: st.DataObject, spent: Any) -> None:
        if not self.settled:
            return
        ticket = data.draw(st.sampled_from(self.settled))
        before = self._state()
        with pytest.raises(AlreadySettled):
            self.policy.settle(ticket, Use(spent), self.now)
        assert self._state() == before

    @invariant()
    def the_modules_hold_what_is_open_and_no_more(self) -> None:
        children = [node for node in self.nodes if node.parent is not None]
        for module in self.policy.modules:
            if hasattr(module, "running"):
                assert module.running == len(children)
                for node in self.nodes:
                    assert node.memory[module.index].active == sum(child.parent is node for child in children)
            if hasattr(module, "running") and self.nodes:
                assert self.nodes[0].memory[module.index].view.calls == self.ran

    @invariant()
    def limits_hold_at_every_moment(self) -> None:
        for module in self.policy.modules:
            for node in self.nodes if hasattr(module, "running") else ():
                seen, limits = node.memory[module.index], node.memory[module.index].view.limits
                assert limits.max_depth is None or node.depth <= max(limits.max_depth, 0)
                assert limits.max_calls is None or seen.view.calls <= limits.max_calls
                assert limits.max_concurrent is None or seen.active <= limits.max_concurrent
                inherited = None if node.parent is None else node.parent.deadline
                if inherited is not None and self.now <= inherited:  # later, a child gets no time at all
                    assert node.deadline is not None
                    assert node.deadline <= inherited

    @invariant()
    def nobody_waits_who_could_go_on(self) -> None:
        heads: dict[Any, Ticket] = {}
        for ticket in self.waiting:
            heads.setdefault((ticket.parent, type(ticket.ask)), ticket)
        for (_, kind), ticket in heads.items():
            asked = [m for m in self.policy.modules if (m.asks_spawn if kind is SpawnAsk else m.asks_step)]
            assert any(module.short(ticket.ask, self.now) for module in asked)

    def teardown(self) -> None:
        if not hasattr(self, "policy"):
            return
        while self.steps or len(self.nodes) > 1:
            rest = self.steps or self.nodes[1:]
            self.policy.settle(rest[-1], Use(NOTHING), self.now)
            self._ended(self.steps if self.steps else self.nodes, rest[-1])
        for module in self.policy.modules:
            assert getattr(module, "running", 0) == 0
            if hasattr(module, "pool"):
                assert module.pool.held() == NOTHING

    def _ask(self, question: Any, ask: Any) -> None:
        before = self._state()
        would = self.policy.would(ask, self.now)
        assert self._state() == before
        answer = question(ask, self.now)
        if isinstance(answer, Refusal):
            assert would is not None
            assert would.shortfalls == answer.shortfalls
            assert self._state() == before
            return
        assert would is None
        if isinstance(answer, Wait):
            self.waiting.append(answer.ticket)
        else:
            self._opened(answer.ticket)

    def _opened(self, ticket: Ticket) -> None:
        is_node = isinstance(ticket.ask, SpawnAsk)
        (self.nodes if is_node else self.steps).append(ticket)
        self.ran += is_node and ticket.parent is not None

    def _ended(self, among: list[Ticket], ticket: Ticket) -> None:
        among.remove(ticket)
        self.settled.append(ticket)
        self._drain()

    def _drain(self) -> None:
        for news in self.policy.outbox():
            assert isinstance(news, (Granted, Refused))
            self.waiting.remove(news.ticket)
            if isinstance(news, Granted):
                self._opened(news.ticket)
            else:
                self.settled.append(news.ticket)

    def _state(self) -> Any:
        return _frozen([self.policy, *self.nodes, *self.steps, *self.waiting, *self.settled], {})


def _frozen(value: Any, seen: dict[int, int]) -> Any:
    """Return a value that is equal exactly when all that can be reached is: slots, lists, queues."""
    if value is None or isinstance(value, (int, float, str, ManualClock)) or callable(value):
        return 0 if isinstance(value, ManualClock) else value
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return [(_frozen(key, seen), _frozen(item, seen)) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [_frozen(item, seen) for item in value]
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [(name, _frozen(getattr(value, name), seen)) for name in names]


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
