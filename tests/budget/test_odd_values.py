"""Odd values at every door of the budgets: one line says what was expected, and the books have not moved."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.budget import (
    PeriodBudget,
    PeriodLimits,
    Quantity,
    ReservationPool,
    RunBudget,
    RunContext,
    RunLedger,
    Scope,
    Spend,
)
from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.iteration import IterationBudget
from harness_lab.budget.lease import LeasedTask
from harness_lab.clock import ManualClock, Time
from harness_lab.errors import InputError, UnknownTicket
from harness_lab.limits import SubagentBudget, SubagentLimits
from harness_lab.usage import amounts

NO_NUMBERS = [
    True,
    "3",
    b"1",
    [1],
    {"x": 1},
    object(),
    1j,
    math.nan,
    math.inf,
    -math.inf,
    Decimal("NaN"),
    np.bool_(True),
]
NO_COUNTS = [*NO_NUMBERS, -1, -0.5, 1.5, Decimal("1.5"), np.int64(-1), np.float64("nan"), 10**30, 10**5000]
NO_INSTANTS = [*NO_NUMBERS, 1.0, 1.5, Decimal(2), np.float64(3)]
NO_OBJECTS = [*NO_COUNTS, 0, None]
BAD = {
    "count": st.sampled_from(NO_COUNTS) | st.integers(max_value=-1) | st.integers(min_value=2**63),
    "instant": st.sampled_from(NO_INSTANTS) | st.floats(),
    "epoch": st.sampled_from([*NO_INSTANTS, -1, 10**30]) | st.floats() | st.integers(max_value=-1),
    "object": st.sampled_from(NO_OBJECTS) | st.integers() | st.text(max_size=3),
    "shape": st.sampled_from(NO_OBJECTS) | st.lists(st.integers(), max_size=4).map(tuple),
}

Door = tuple[str, Callable[[Any, Any], object]]


def tokens(value: Any) -> Any:
    return (None, None, value, None, None)


def ledger() -> RunLedger:
    return RunLedger("r", clock=ManualClock())


LEDGER: list[Door] = [
    ("count", lambda it, v: it.record_steps(v)),
    ("count", lambda it, v: it.charge(v)),
    ("object", lambda it, v: it.exhaustion(v)),
    ("object", lambda it, v: RunContext(it, RunBudget(3)).for_child(v, "p")),
    ("count", lambda it, v: RunBudget(v).nested_within(RunBudget(1), it)),
]
POOL: list[Door] = [
    ("count", lambda it, v: it.reserve(tokens(v))),
    ("shape", lambda it, v: it.reserve(v)),
    ("count", lambda it, v: it.reserve(tokens(1), keep=tokens(v))),
    ("object", lambda it, v: it.reserve(tokens(1), v if v is not None else 0)),
    ("count", lambda it, v: it.shortfalls(tokens(v))),
    ("count", lambda it, v: it.charge(it.root, tokens(v))),
    ("object", lambda it, v: it.charge(v if v is not None else 0, tokens(1))),
    ("count", lambda it, v: it.observe(tokens(v))),
    ("shape", lambda it, v: it.observe(v)),
    ("object", lambda it, v: it.book(it.root, v)),
    ("object", lambda it, v: it.reconcile(v)),
    ("count", lambda it, v: it.even_share(tokens(v))),
    ("count", lambda it, v: it.even_share(tokens(1), together=v)),
    ("count", lambda it, v: it.book(it.root, Spend(input=v))),
    ("count", lambda it, v: it.book(it.root, Spend(cost_nusd=v))),
    ("count", lambda it, v: it.book(it.root, Spend(resources={"x": Quantity(unit="s", amount=v)}))),
    ("count", lambda it, v: it.book(it.root, Spend(resources=v))),
]
SCOPE: list[Door] = [
    ("count", lambda it, v: it.spawn("n", tokens(v))),
    ("shape", lambda it, v: it.spawn("n", v)),
    ("count", lambda it, v: it.spawn("n", tokens(1), lasts_ns=v)),
    ("instant", lambda it, v: it.spawn("n", tokens(1), now=v)),
    ("count", lambda it, v: it.spawn("n", tokens(1), keep=tokens(v))),
    ("object", lambda it, v: it.turn(v)),
    ("object", lambda it, v: it.meter(it.children[0], v)),
    ("count", lambda it, v: it.settle(it.children[0], v)),
    ("object", lambda it, v: it.settle(v)),
    ("object", lambda it, v: it.cancel(v)),
]
PERIOD: list[Door] = [
    ("count", lambda it, v: it.reserve("g", tokens(v), 5)),
    ("epoch", lambda it, v: it.reserve("g", tokens(1), v)),
    ("count", lambda it, v: it.reserve(v if v != "3" else 3, tokens(1), 5)),
    ("count", lambda it, v: it.shortfalls("g", tokens(v), 5)),
    ("epoch", lambda it, v: it.pot("g", v)),
    ("count", lambda it, v: it.settle(it.reserved, tokens(v), 6)),
    ("epoch", lambda it, v: it.settle(it.reserved, tokens(1), v)),
    ("object", lambda it, v: it.settle(v, tokens(1), 6)),
]
ACCOUNT: list[Door] = [
    ("count", lambda it, v: it.hold("y", tokens(v), 12)),
    ("epoch", lambda it, v: it.hold("y", tokens(1), v if type(v) is not float or not v.is_integer() else 0.5)),
    ("count", lambda it, v: it.hold("y", tokens(1), 12, prompt=tokens(v))),
    ("count", lambda it, v: it.hold("y", tokens(1), 12, periods=v or 0)),
    ("count", lambda it, v: it.hold("y", tokens(1), 12, note=v if v != "3" else 3)),
    ("count", lambda it, v: it.would(tokens(v), 12)),
    ("count", lambda it, v: it.settle("x", tokens(v), 12)),
    ("shape", lambda it, v: it.settle("x", v, 12)),
    ("count", lambda it, v: it.set_limits(tokens(v), now_ns=12)),
    ("object", lambda it, v: it.define(v, now_ns=12)),
    ("count", lambda it, v: it.reopen(v if v != "3" else 3, now_ns=12)),
]
COUNTER: list[Door] = [
    ("count", lambda it, v: it.consume(v)),
    ("count", lambda it, v: it.withdraw(v)),
    ("count", lambda it, v: setattr(it, "max_total", v)),
    ("count", lambda it, v: it.charge(v)),
]
LEASE: list[Door] = [
    ("instant", lambda it, v: it.claim("w", v)),
    ("count", lambda it, v: it.claim("w", Time(6), -1 if isinstance(v, float) and 0 < v < 9e9 else v)),
    ("instant", lambda it, v: it.extend("w", v, 5)),
    ("count", lambda it, v: it.extend("w", Time(6), v)),
]
TREE: list[Door] = [
    ("instant", lambda it, v: it.child_deadline(v)),
    ("instant", lambda it, v: it.child(v)),
    ("count", lambda it, v: it.reserve(v if type(v) is not int else -1)),
    ("count", lambda it, v: SubagentBudget(it.limits, depth=v)),
    ("count", lambda it, v: SubagentLimits(max_calls=v)),
]


class _Period(PeriodBudget):
    def __init__(self) -> None:
        super().__init__(PeriodLimits(name="d", limits=amounts(tokens=100), window=None))
        self.reserved: Any = self.reserve("g", tokens(10), 5)


def scope() -> Scope:
    made = Scope(ReservationPool(amounts(tokens=100)))
    made.spawn("first", tokens(10))
    return made


def lease() -> LeasedTask:
    task = LeasedTask("t")
    task.claim("w", Time(5), 100.0)
    return task


def pool_books(it: ReservationPool) -> object:
    return it.free(), it.held(), it.spent(), it.root.closed, it.root.unknown, it.split_known


MAKERS: dict[str, tuple[Callable[[], Any], Callable[[Any], object], list[Door]]] = {
    "ledger": (ledger, lambda it: (it.steps, it.cost_nusd, it.unmetered_runs), LEDGER),
    "pool": (lambda: ReservationPool(amounts(tokens=100, cost_usd=1)), pool_books, POOL),
    "scope": (
        scope,
        lambda it: (pool_books(it.pool), len(it.journal), [(c.state, c.begun, c.spent) for c in it.children]),
        SCOPE,
    ),
    "period": (_Period, lambda it: (it.pot("g", 6).spent, it.pot("g", 6).held, it.reserved.charge), PERIOD),
    "counter": (lambda: IterationBudget(5), lambda it: (it.used, it.refunds, it.max_total), COUNTER),
    "lease": (lease, lambda it: (it.holder, it.expires), LEASE),
    "tree": (lambda: SubagentBudget(SubagentLimits(max_calls=3, timeout_s=5)), lambda it: it.calls, TREE),
}
DOORS = [(name, i) for name, (_, _, doors) in MAKERS.items() for i in range(len(doors))]


def refused(thing: Any, books: Callable[[Any], object], door: Door, value: object) -> None:
    before = books(thing)
    with pytest.raises(InputError) as caught:
        door[1](thing, value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert books(thing) == before


@pytest.mark.parametrize(("name", "i"), DOORS)
@settings(max_examples=25)
@given(data=st.data())
def test_an_odd_value_is_refused_in_one_line_and_the_books_stay(name: str, i: int, data: st.DataObject) -> None:
    make, books, doors = MAKERS[name]
    kind = doors[i][0]
    value = data.draw(BAD[kind])
    if kind == "count" and (isinstance(value, float) and value.is_integer() and value >= 0):
        return
    refused(make(), books, doors[i], value)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> DurableAccount:
    path = tmp_path_factory.mktemp("odd") / "a.db"
    made = DurableAccount.create(path, amounts(tokens=100), now_ns=10, synchronous="normal")
    made.hold("x", tokens(10), 11)
    return made


@pytest.mark.parametrize("i", range(len(ACCOUNT)))
def test_an_odd_value_leaves_no_trace_in_an_account_on_disk(i: int, account: DurableAccount) -> None:
    odd = {"count": NO_COUNTS, "epoch": [*NO_NUMBERS, -1, 0.5, 10**30], "object": NO_OBJECTS, "shape": NO_OBJECTS}
    for value in odd[ACCOUNT[i][0]]:
        refused(account, lambda it: str(it.balance()), ACCOUNT[i], value)


@pytest.mark.parametrize("three", [3, 3.0, np.int64(3), np.uint8(3), np.float64(3)])
def test_whole_numbers_of_other_kinds_are_taken_for_what_they_are(three: Any) -> None:
    book, pool, counter = ledger(), ReservationPool(amounts(tokens=9)), IterationBudget(9)
    book.record_steps(three)
    pool.charge(pool.root, tokens(three))
    assert counter.consume(three)
    for kept in (book.steps, pool.spent()[2], counter.used):
        assert (kept, type(kept)) == (3, int)


@pytest.mark.parametrize("dollars", ["5", "0.5", b"1", [1], True, np.bool_(True), "", 1j])
def test_dollars_are_numbers_and_no_text(dollars: Any) -> None:
    with pytest.raises(InputError, match=r"^max_cost_usd: expected a finite number of dollars"):
        RunBudget(1, dollars)
    with pytest.raises(InputError, match=r"^max_cost_usd: expected a finite number of dollars"):
        RunBudget.from_config({"max_cost_usd": dollars})
    with pytest.raises(InputError, match=r"^cost_usd: expected a finite number of dollars"):
        amounts(cost_usd=dollars)


@pytest.mark.parametrize("two", [2, 2.0, np.int64(2), np.float64(2), np.float32(2), np.uint8(2)])
def test_numbers_of_numpy_are_numbers_in_dollars_and_in_seconds(two: Any) -> None:
    assert RunBudget(two, two, two).nested_within(RunBudget(9), RunLedger("r", clock=ManualClock())) == RunBudget(
        2, 2, 2
    )


def test_a_durable_hold_knows_no_prompt_above_its_bound_and_no_name_that_cannot_be_written(tmp_path: Any) -> None:
    account = DurableAccount.create(
        tmp_path / "a.db", amounts(cost_usd=1), now_ns=0, hold_seconds=1, unknown_usage="charge-prompt"
    )
    half = amounts(cost_usd=0.5)
    with pytest.raises(
        InputError, match=r"^prompt \(cost\): expected at most the bound of 500,000,000, got 2000000000$"
    ):
        account.hold("a", half, 1, prompt=amounts(cost_usd=2))
    for what, name, note in (("hold_id", "\ud800", ""), ("note", "a", "\udfff")):
        with pytest.raises(InputError, match=f"^{what}: expected text that UTF-8 can hold"):
            account.hold(name, half, 1, note=note)
    with pytest.raises(InputError, match=r"^reason: expected text that UTF-8 can hold"):
        account.reopen("\ud800", now_ns=1)
    assert not account.balance().held[-1]
    assert account.hold("a", half, 1, prompt=half).id == "a"  # type: ignore[union-attr]
    account.expire(2 * 10**9)
    assert account.balance().spent[-1] == 500_000_000
    account.close()


def test_a_period_budget_settles_its_own_holds_only_and_shows_what_they_are() -> None:
    day = PeriodLimits(name="day", limits=amounts(cost_usd=1), window=None)
    one, other = PeriodBudget(day), PeriodBudget(day)
    hold: Any = one.reserve("red", amounts(calls=1, cost_usd=0.5), 0)
    assert repr(hold) == "<hold under day of red: 1 calls, $0.50, open>"
    with pytest.raises(UnknownTicket, match="was not given by this budget"):
        other.settle(hold, amounts(cost_usd=0.1), 1)
    settled = one.settle(hold, (1, 2, 3, 3, None), 1)
    assert repr(settled) == "<charge of 1 calls, 2 input, 3 tokens, 3 fresh; cost unknown>"
    assert repr(one.pot("red", 1)).startswith("<limits $1.00; spent 1 calls, 2 input")
