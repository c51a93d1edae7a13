"""The shared ledger under any sequence of questions: it says what was settled, and lets no one start too late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import CALLS, COST, Code, Refusal
from harness_lab.policies import COMPLETED, Grant, SpawnAsk, StepAsk, Ticket, Use, shared_ledger
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.budget import Ceiling

NOTHING = Use((0,) * 5)
NODE = st.integers(0, 20)
COSTS = st.none() | st.integers(0, 5)


class LedgerMachine(RuleBasedStateMachine):
    """Nodes start, call, settle and end in any order, under a ledger that a plain sum follows."""

    @initialize(steps=st.integers(0, 8), cost=st.none() | st.integers(0, 20), seconds=st.none() | st.integers(0, 9))
    def begin(self, steps: int, cost: int | None, seconds: int | None) -> None:
        self.limits = (steps, cost, seconds)
        self.policy = shared_ledger(steps, None if cost is None else cost / 10**9, seconds).start()
        self.now, self.spent, self.unknown, self.calls = Time(0), 0, 0, 0
        root: Any = self.policy.spawn(SpawnAsk(None, (), amounts()), self.now)
        self.nodes: list[Ticket] = [root.ticket]
        self.flying: list[Ticket] = []
        self.ledger = self.policy.modules[0].ledger  # type: ignore[attr-defined]
        self.most_in_flight = 0

    def ceiling(self, node: Ticket) -> Ceiling:
        found: Ceiling = node.memory[0]
        return found

    @rule(which=NODE, steps=st.none() | st.integers(0, 9), cost=st.none() | st.integers(0, 30))
    def spawn(self, which: int, steps: int | None, cost: int | None) -> None:
        parent = self.nodes[which % len(self.nodes)]
        ask = SpawnAsk(parent, (*parent.path, (0, len(self.nodes), 0)), (steps, None, None, None, cost))
        answer: Any = self.policy.spawn(ask, self.now)
        assert isinstance(answer, Refusal) == (self.ledger.binding(self.ceiling(parent)) is not None)
        if isinstance(answer, Grant):
            own, above = self.ceiling(answer.ticket), self.ceiling(parent)
            assert own.steps <= above.steps
            assert above.cost_nusd < 0 or 0 <= own.cost_nusd <= above.cost_nusd
            assert steps is None or own.steps <= self.ledger.steps + steps
            self.nodes.append(answer.ticket)

    @rule(which=NODE)
    def admit(self, which: int) -> None:
        node = self.nodes[which % len(self.nodes)]
        before = (self.ledger.steps, self.ledger.cost_nusd)
        answer: Any = self.policy.admit(StepAsk(node, 0, 0, amounts(calls=1)), self.now)
        code = self.ledger.binding(self.ceiling(node))
        assert (self.ledger.steps, self.ledger.cost_nusd) == before
        assert (answer.code if isinstance(answer, Refusal) else None) == code
        if isinstance(answer, Grant):
            self.flying.append(answer.ticket)
            self.most_in_flight = max(self.most_in_flight, len(self.flying))

    @precondition(lambda self: self.flying)
    @rule(which=NODE, cost=COSTS, unsent=st.booleans())
    def settle(self, which: int, cost: int | None, unsent: bool) -> None:
        step = self.flying.pop(which % len(self.flying))
        use = Use((1, 1, 1, 1, cost), "unsent" if unsent else "completed")
        self.policy.settle(step, use, self.now)
        with pytest.raises(AlreadySettled):
            self.policy.settle(step, use, self.now)
        if not unsent:
            self.calls, self.spent = self.calls + 1, self.spent + (cost or 0)
            self.unknown += cost is None

    @precondition(lambda self: len(self.nodes) > 1)
    @rule()
    def close(self) -> None:
        self.policy.close(self.nodes.pop(), NOTHING, COMPLETED, self.now)

    @rule(seconds=st.integers(0, 3))
    def wait(self, seconds: int) -> None:
        self.now = Time(self.now + seconds * NS_PER_S)

    @invariant()
    def it_says_what_was_settled_and_overshoots_by_no_more_than_what_was_in_flight(self) -> None:
        assert (self.ledger.steps, self.ledger.cost_nusd) == (self.calls, self.spent)
        assert self.ledger.unmetered_runs == self.unknown
        assert self.ledger.steps <= self.limits[0] + max(0, self.most_in_flight - 1)
        root = self.policy.would(StepAsk(self.nodes[0], 0, 0, amounts()), self.now)
        used_up = self.calls >= self.limits[0]
        late = self.limits[2] is not None and self.now >= self.limits[2] * NS_PER_S
        paid = self.limits[1] is not None and (self.unknown > 0 or self.spent >= self.limits[1])
        assert (root is not None) == (used_up or late or paid)
        assert root is None or not used_up or root.code is Code.STEPS_EXHAUSTED

    def teardown(self) -> None:
        """The channels are where this test takes them to be."""
        assert (CALLS, COST) == (0, 4)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
