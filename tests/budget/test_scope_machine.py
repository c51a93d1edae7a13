"""Whatever happens in a scope: the pool adds up, and a restart never gives more than there was."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness_lab.budget import NOTHING, Child, Event, ReservationPool, Scope, Spend
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CALLS, COST, FRESH, Outcome
from harness_lab.usage import amounts

SMALL = st.integers(0, 60)
SPENDS = st.builds(
    lambda calls, tokens, cost, known: Spend(calls=calls, input=tokens, cost_nusd=cost, cost_known=known),
    st.integers(0, 3),
    SMALL,
    SMALL,
    st.sampled_from([True, True, True, False]),
)
ASKS = st.tuples(st.integers(0, 4), st.none(), st.none(), SMALL, st.none() | SMALL)


class ScopeMachine(RuleBasedStateMachine):
    """Keeps beside the scope what was charged, and nothing else."""

    @initialize(rules=st.sampled_from(["ours", "tangle-e1", "tangle-e3"]))
    def start(self, rules: str) -> None:
        self.scope = Scope(ReservationPool(amounts(calls=30, fresh=300, cost_usd=300e-9), rules=rules))
        self.charged = NOTHING

    @rule(ask=ASKS, wait=st.booleans())
    def spawn(self, ask: tuple[int | None, ...], wait: bool) -> None:
        self.scope.spawn("child", ask, wait=wait)

    @rule(data=st.data(), spend=SPENDS)
    def meter(self, data: st.DataObject, spend: Spend) -> None:
        child = self._one(data, "running")
        if child is not None:
            self.scope.meter(child, spend)

    @rule(data=st.data(), spend=SPENDS, outcome=st.sampled_from([Outcome.COMPLETED, Outcome.FAILED]))
    def settle(self, data: st.DataObject, spend: Spend, outcome: Outcome) -> None:
        child = self._one(data, "running")
        if child is not None:
            self.charged += child.spent + spend
            self.scope.settle(child, spend, outcome=outcome)
            with pytest.raises(AlreadySettled):
                self.scope.settle(child)

    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        child = self._one(data, "running")
        if child is not None:
            self.charged += child.spent
            self.scope.retain(child)

    @rule(data=st.data(), wait=st.booleans())
    def resume(self, data: st.DataObject, wait: bool) -> None:
        child = self._one(data, "pending")
        if child is not None:
            self.scope.resume(child, wait=wait)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        child = self._one(data, "running", "waiting")
        if child is not None:
            begins_again = child.settlement is not None and not child.begun
            self.charged += NOTHING if begins_again or child.state == "waiting" else child.spent
            self.scope.cancel(child)

    @rule(data=st.data())
    def turn_to_one_that_does_not_run(self, data: st.DataObject) -> None:
        child = self._one(data, "ended", "waiting", "pending")
        if child is not None:
            with pytest.raises(InputError):
                self.scope.meter(child, Spend(input=1))

    @invariant()
    def what_was_charged_is_there_once(self) -> None:
        spent = self.scope.pool.spent()
        assert (spent[CALLS], spent[FRESH]) == (self.charged.calls, self.charged.input)
        assert spent[COST] == self.charged.cost_nusd or self.scope.pool.rules.unknown == "raise"

    @invariant()
    def what_is_held_is_that_of_those_who_run(self) -> None:
        asks = [child.ask for child in self.scope.children if child.state == "running"]
        assert self.scope.pool.held()[FRESH] == sum(ask[FRESH] or 0 for ask in asks)
        assert len(self.scope.open_reservations()) == len(asks)

    @invariant()
    def a_restart_gives_no_more_than_there_was(self) -> None:
        lines = [json.dumps(event.to_dict()) for event in self.scope.journal]
        again = Scope.restore([Event.from_dict(json.loads(line)) for line in lines])
        for before, after in zip(self.scope.pool.available(), again.pool.available(), strict=True):
            assert before is None or (after is not None and after <= before)
        assert [event.seq for event in again.journal] == list(range(len(lines)))

    def _one(self, data: st.DataObject, *states: str) -> Child | None:
        found = [child for child in self.scope.children if child.state in states]
        return data.draw(st.sampled_from(found)) if found else None


TestScope = ScopeMachine.TestCase
TestScope.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
