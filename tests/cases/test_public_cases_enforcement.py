"""Public cases of holds, caps, unknown and free, zero and exact limits, bounds and money; each test names its case.

Here the cap of one tree, its ledger and its pool answer; the durable account and period budgets answer theirs in a file
of their own. Not offered, on purpose: admitting calls outside a cap (A-03's lenient half), and an estimate in place of
usage that was not reported (A-20's second half).
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from harness_lab.agents.ports import PartialReply
from harness_lab.budget import ReservationPool, RunBudget, RunLedger
from harness_lab.clock import ManualClock, Time
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CALLS, CHANNELS, COST, TOKENS, Code, Refusal
from harness_lab.policies import (
    COMPLETED,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    call_holds,
    compose,
    hard_cap,
    iteration_budget,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.pricing import CapPrices, RequestSize, measure
from harness_lab.usage import TokenCounts, amounts, nusd, usd

NOW = Time(0)
UNKNOWN = (1,) + (None,) * (len(CHANNELS) - 1)


class Run:
    """One node under a policy, asked by hand."""

    def __init__(self, spec: PolicySpec) -> None:
        self.policy: Any = spec.start("run")
        answer = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        assert isinstance(answer, Grant)
        self.node = answer.ticket
        self.number = 0

    @property
    def pot(self) -> Any:
        return next(m.pot for m in self.policy.modules if hasattr(m, "pot"))

    @property
    def money(self) -> tuple[float, float]:
        """Spent and held, dollars."""
        return usd(self.pot.spent[COST]), usd(self.pot.held[COST])

    def ask(self, cost: float | None = None, bound: Any = None) -> Any:
        self.number += 1
        worst = amounts(calls=1, cost_usd=cost) if bound is None else bound
        return self.policy.admit(StepAsk(self.node, self.number, 0, worst), NOW)

    def spend(self, cost: float) -> Any:
        answer = self.ask(cost)
        if isinstance(answer, Grant):
            self.end(answer.ticket, cost)
        return answer

    def end(self, ticket: Ticket, cost: float | None, status: Any = "completed") -> None:
        self.policy.settle(ticket, Use((1, None, None, None, amounts(cost_usd=cost)[COST]), status), NOW)


def refused(answer: Any) -> Refusal:
    assert isinstance(answer, Refusal)
    return answer


def test_a01_of_five_calls_that_ask_at_once_one_fits() -> None:
    run = Run(hard_cap(1.0))
    run.spend(0.90)
    answers = [run.ask(0.08) for _ in range(5)]
    peak = sum(run.money)
    admitted = [answer for answer in answers if isinstance(answer, Grant)]
    short = refused(answers[1]).shortfalls[0]
    assert (len(admitted), peak, short.limit, short.free) == (1, 0.98, nusd(1.0), nusd(0.02))
    run.end(admitted[0].ticket, 0.08)
    assert run.money == (0.98, 0.0)


def test_a02_a_hold_is_the_calls_own_worst_case() -> None:
    run, prices = Run(hard_cap(5.0)), CapPrices({"m": {"inputPerMTok": 0, "outputPerMTok": 25}})
    bound = prices.bound("m", RequestSize(text_bytes=1000), output_ceiling=10_000)
    admitted = [a for a in (run.ask(bound=bound) for _ in range(100)) if isinstance(a, Grant)]
    assert (len(admitted), run.money) == (20, (0.0, 5.0))
    for grant in admitted:
        run.end(grant.ticket, 0.1)
    assert run.money == (2.0, 0.0)


def test_a03_without_a_price_nothing_is_admitted() -> None:
    run = Run(hard_cap(1.0))
    bound = CapPrices({}).bound("m", RequestSize(text_bytes=1), output_ceiling=1)
    assert [refused(run.ask(bound=bound)).code for _ in range(3)] == [Code.COST_CAP_PRICE_MISSING] * 3
    assert run.money == (0.0, 0.0)


def test_a08_a_hold_is_bounded_by_the_models_maximum_and_not_by_what_is_left() -> None:
    run, prices = Run(hard_cap(2000.0)), CapPrices({"m": {"inputPerMTok": 0, "outputPerMTok": 15}})
    bound = prices.bound("m", RequestSize(text_bytes=1), output_ceiling=16_384)
    assert all(isinstance(run.ask(bound=bound), Grant) for _ in range(10))
    assert run.money == (0.0, 2.4576)
    whole = Run(hard_cap(2000.0))
    answers = [whole.ask(2000.0) for _ in range(10)]
    assert sum(isinstance(answer, Refusal) for answer in answers) == 9


@pytest.mark.parametrize(("reported", "spent"), [(0.0, 280.0), (2.0, 282.0)])
def test_a09_every_way_out_closes_the_hold(reported: float, spent: float) -> None:
    run = Run(hard_cap(800.0, unknown_usage="charge-hold"))
    run.spend(280.0)
    held = [run.ask(26.0).ticket for _ in range(20)]
    assert run.money == (280.0, 520.0)
    run.end(held.pop(), reported, "abandoned")
    for ticket in held:
        run.policy.settle(ticket, Use((0,) * 5, "unsent"), NOW)
    assert run.money == (spent, 0.0)
    assert isinstance(run.ask(1.0), Grant)


def test_a09_calls_that_were_dropped_without_usage_are_charged_by_the_stated_rule() -> None:
    run = Run(hard_cap(800.0))
    run.spend(280.0)
    held = [run.ask(26.0).ticket for _ in range(20)]
    for ticket in held:
        run.policy.settle(ticket, Use(UNKNOWN, "abandoned"), NOW)
    assert run.money == (800.0, 0.0)


def test_a10_a_call_that_failed_before_any_output_keeps_no_hold() -> None:
    run = Run(hard_cap(1.0))
    for _ in range(4):
        run.end(run.ask(0.30).ticket, 0.0, "failed")
        assert run.money == (0.0, 0.0)
    assert isinstance(run.spend(0.30), Grant)
    assert run.money == (0.30, 0.0)


def test_a11_a_release_gives_back_its_own_hold() -> None:
    run = Run(hard_cap(1.0))
    first, second = run.ask(0.2).ticket, run.ask(0.5).ticket
    run.policy.settle(first, Use((0,) * 5, "unsent"), NOW)
    assert run.money == (0.0, 0.5)
    run.end(second, 0.5)
    assert run.money == (0.5, 0.0)


def test_a12_the_first_settlement_stands() -> None:
    run = Run(hard_cap(10.0))
    ticket = run.ask(2.20).ticket
    run.end(ticket, 1.65)
    with pytest.raises(AlreadySettled) as second:
        run.end(ticket, 0.0)
    assert second.value.first.spent[COST] == nusd(1.65)  # type: ignore[attr-defined]
    assert usd(nusd(10.0) - run.pot.spent[COST]) == 8.35


def test_a15_a_missing_cost_makes_spend_unknown_and_is_never_zero() -> None:
    run = Run(shared_ledger(9, 1.60))
    run.end(run.ask(0.5).ticket, 0.40)
    run.policy.settle(run.ask(0.5).ticket, Use((1, None, 120_000, None, None)), NOW)
    short = refused(run.ask(0.5)).shortfalls[0]
    assert (short.code, short.free) == (Code.SPEND_UNKNOWN, None)
    ledger = run.policy.modules[0].ledger
    assert (ledger.cost_usd, ledger.unmetered_runs) == (0.40, 1)


def test_a15_without_a_cost_cap_the_step_is_admitted_and_a_step_that_used_no_model_is_known() -> None:
    run = Run(shared_ledger(9))
    run.policy.settle(run.ask().ticket, Use(UNKNOWN), NOW)
    assert isinstance(run.ask(), Grant)
    capped = Run(shared_ledger(9, 1.60))
    capped.policy.settle(capped.ask().ticket, Use((0,) * 5), NOW)
    assert isinstance(capped.ask(), Grant)


def test_a16_a_partly_unknown_total_is_a_lower_bound_with_its_coverage() -> None:
    run = Run(hard_cap(2.0, unknown_usage="release"))
    tickets = [run.ask(0.1).ticket for _ in range(10)]
    for i, ticket in enumerate(tickets):
        run.end(ticket, 0.5 if i < 2 else None)
    assert (run.money[0], run.pot.unknown[COST]) == (1.0, 8)
    exact = Run(hard_cap(2.0, unknown_usage="release"))
    for _ in range(10):
        exact.spend(0.1)
    assert (exact.money[0], exact.pot.unknown[COST]) == (1.0, 0)


def test_a17_known_to_be_zero_and_unknown_are_two_values() -> None:
    run = Run(hard_cap(0.0))
    assert isinstance(run.ask(0.0), Grant)
    assert refused(run.ask(None)).code is Code.UNBOUNDED
    assert TokenCounts(input_fresh=0, output=0).total == 0
    assert TokenCounts(input_fresh=None, output=0).total is None


def test_a18_what_is_free_for_sure_fits_a_cap_that_is_used_up() -> None:
    run = Run(compose(iteration_budget(3), hard_cap(10.0)))
    prices = CapPrices(
        {"free": {"inputPerMTok": 0, "outputPerMTok": 0}, "paid": {"inputPerMTok": 1, "outputPerMTok": 1}}
    )
    free, none, paid = (prices.bound(m, RequestSize(text_bytes=9), output_ceiling=9) for m in ("free", "no", "paid"))
    run.spend(10.0)
    run.end(run.ask(bound=free).ticket, 0.0)
    assert run.money == (10.0, 0.0)
    assert refused(run.ask(bound=none)).code is Code.COST_CAP_PRICE_MISSING
    assert refused(run.ask(bound=paid)).code is Code.COST_CAP_WOULD_EXCEED
    run.end(run.ask(bound=free).ticket, 0.0)
    assert refused(run.ask(bound=free)).code is Code.ITERATIONS_EXHAUSTED


@pytest.mark.parametrize(
    ("make", "dimension"),
    [
        (lambda n: call_holds(cost_usd=n), "cost"),
        (lambda n: call_holds(tokens=n), "tokens"),
        (lambda n: call_holds(calls=n), "calls"),
        (lambda n: reservation_pool(calls=n), "calls"),
        (lambda n: reservation_pool(tokens=n), "tokens"),
        (lambda n: reservation_pool(cost_usd=n), "cost"),
        (lambda n: shared_ledger(9, n), "cost"),
        (lambda n: shared_ledger(9, None, n), "time"),
    ],
)
def test_a19_a_limit_of_zero_blocks_the_first_step_and_none_is_no_limit(make: Any, dimension: str) -> None:
    bound = (1, 10, 10, 10, nusd(0.1))
    assert refused(Run(make(0)).ask(bound=bound)).shortfalls[0].channel == dimension
    assert isinstance(Run(make(None)).ask(bound=bound), Grant)


def test_a19_no_calls_and_no_children() -> None:
    assert refused(Run(shared_ledger(0)).ask()).code is Code.STEPS_EXHAUSTED
    for limits, code in (((None, None, 0), Code.MAX_CALLS), ((0,), Code.MAX_DEPTH)):
        run = Run(tree_limits(*limits))
        child = SpawnAsk(run.node, ((0, 0, 0),), amounts())
        assert refused(run.policy.spawn(child, NOW)).code is code
    run = Run(tree_limits())
    assert isinstance(run.policy.spawn(SpawnAsk(run.node, ((0, 0, 0),), amounts()), NOW), Grant)


def test_a20_usage_that_is_absent_is_unknown_and_a_token_cap_says_that_it_cannot_be_enforced() -> None:
    run = Run(call_holds(tokens=30_000, unknown_usage="release"))
    for _ in range(2):
        answer = run.ask(bound=(1, 10, 100, 100, None))
        if isinstance(answer, Grant):
            run.policy.settle(answer.ticket, Use(UNKNOWN), NOW)
    assert refused(answer).code is Code.SPEND_UNKNOWN
    assert (run.pot.spent[CALLS], run.pot.unknown[TOKENS]) == (1, 1)


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), float("-inf"), -1, True, "five"])
def test_a21_odd_limits_are_refused_by_name(limit: Any) -> None:
    makers: list[tuple[str, Any]] = [
        ("max_steps", lambda: RunBudget(limit)),
        ("cost_usd", lambda: hard_cap(limit)),
        ("tokens", lambda: call_holds(tokens=limit)),
        ("max_cost_usd", lambda: shared_ledger(9, limit)),
        ("calls", lambda: reservation_pool(calls=limit)),
    ]
    for name, make in makers:
        with pytest.raises(InputError, match=name):
            make()


def test_a21_a_report_of_no_number_is_never_added() -> None:
    run = Run(hard_cap(1.0))
    ticket = run.ask(0.3).ticket
    with pytest.raises(InputError):
        Use((1, None, None, None, float("nan")))  # type: ignore[arg-type]
    with pytest.raises(InputError):
        nusd(float("nan"))
    run.end(ticket, None)
    assert run.money == (0.3, 0.0)


def test_a22_negative_usage_is_refused_and_the_hold_is_charged() -> None:
    run = Run(hard_cap(1.0))
    run.spend(0.5)
    ticket = run.ask(0.2).ticket
    with pytest.raises(InputError, match="input_fresh"):
        TokenCounts(input_fresh=-5_000, output=10)
    with pytest.raises(InputError):
        PartialReply("completed", (1, -5_000, None, None, -1)) and Use((1, -5_000, None, None, -1))
    run.end(ticket, None)
    assert run.money == (0.7, 0.0)


@pytest.mark.parametrize("wish", [None, 10, 50])
def test_a23_a_childs_limit_is_its_own_or_what_the_tree_has_left(wish: int | None) -> None:
    ledger, parent = RunLedger.start("r", clock=ManualClock()), RunBudget(3)
    ledger.record_steps(1)
    child = RunBudget(wish or 50).nested_within(parent, ledger)
    assert child.max_steps - ledger.steps == 2
    wide = RunBudget(10).nested_within(RunBudget(80), ledger)
    assert wide.max_steps - ledger.steps == 10


def test_a25_a_parent_with_nothing_left_starts_nobody() -> None:
    run = Run(reservation_pool(tokens=10_000))
    run.policy.settle(run.ask(bound=(1, 9_000, 10_000, 10_000, 0)).ticket, Use((1, 9_000, 10_000, 10_000, 0)), NOW)
    answer = run.policy.spawn(SpawnAsk(run.node, ((0, 0, 0),), amounts(tokens=1)), NOW)
    assert refused(answer).shortfalls[0].free == 0


def test_a26_what_a_child_did_not_use_comes_back_once() -> None:
    run = Run(reservation_pool(calls=20))
    child = run.policy.spawn(SpawnAsk(run.node, ((0, 0, 0),), amounts(calls=5)), NOW).ticket
    for i in range(2):
        step = run.policy.admit(StepAsk(child, i, 0, amounts(calls=1)), NOW).ticket
        run.policy.settle(step, Use((1, 1, 1, 1, 1)), NOW)
    pool: ReservationPool = run.policy.modules[0].pool
    assert (pool.held()[CALLS], pool.free()[CALLS]) == (5, 15)
    run.policy.close(child, Use((2, 2, 2, 2, 2)), COMPLETED, NOW)
    with pytest.raises(AlreadySettled):
        run.policy.close(child, Use((2, 2, 2, 2, 2)), COMPLETED, NOW)
    assert (pool.spent()[CALLS], pool.held()[CALLS], pool.free()[CALLS]) == (2, 0, 18)


SCOPES: dict[str, Any] = {
    "run": lambda: (hard_cap(10.0), None),
    "child": lambda: (hard_cap(None), 10.0),
    "pool": lambda: (reservation_pool(cost_usd=10.0), None),
    "ledger": lambda: (shared_ledger(99, 10.0), None),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_a34_one_boundary_rule_for_every_scope(scope: str) -> None:
    spec, declared = SCOPES[scope]()
    run = Run(spec)
    if declared is not None:
        ask = SpawnAsk(run.node, ((0, 0, 0),), amounts(cost_usd=declared))
        run.node = run.policy.spawn(ask, NOW).ticket
    run.spend(9.99)
    assert isinstance(run.spend(0.01), Grant)
    short = refused(run.ask(0.01)).shortfalls[0]
    assert (short.limit, short.free) == (nusd(10.0), 0)


@pytest.mark.parametrize(("text", "true_tokens"), [("a" * 8_000, 2_000), ("日" * 8_000, 9_600)])
def test_a49_bytes_are_a_bound_where_four_characters_a_token_is_none(text: str, true_tokens: int) -> None:
    size = measure(text, [])
    assert size.text_bytes >= true_tokens
    assert size.text_bytes == (8_000 if text[0] == "a" else 24_000)
    estimate = Run(call_holds(input=2_500))
    assert isinstance(estimate.ask(bound=(1, len(text) // 4, None, None, None)), Grant)
    by_bytes = Run(call_holds(input=2_500))
    assert refused(by_bytes.ask(bound=(1, size.text_bytes, None, None, None))).shortfalls[0].channel == "input"
    exact = Run(call_holds(input=2_500))
    assert isinstance(exact.ask(bound=(1, true_tokens, None, None, None)), Grant) == (true_tokens <= 2_500)


@pytest.mark.parametrize("seed", range(3))
def test_a54_money_adds_exactly_in_any_order(seed: int) -> None:
    run = Run(hard_cap(1.0))
    assert [isinstance(run.spend(0.1), Grant) for _ in range(11)] == [True] * 10 + [False]
    assert run.money == (1.0, 0.0)
    charges = [nusd(x) for x in (0.1, 0.000001, 0.3333)] * 1_000
    random.Random(seed).shuffle(charges)  # noqa: S311
    *_, total = itertools.accumulate(charges)
    assert total == nusd(433.301)


def test_a28_use_reaches_every_node_above() -> None:
    run = Run(call_holds(tokens=50_000))
    nodes = [run.node]
    for used in (1_000, 4_000, 6_000):
        step = run.policy.admit(StepAsk(nodes[-1], 0, 0, (1, used, used, used, 0)), NOW).ticket
        run.policy.settle(step, Use((1, used, used, used, 0)), NOW)
        path = (*nodes[-1].path, (0, 0, 0))
        nodes.append(run.policy.spawn(SpawnAsk(nodes[-1], path, amounts(tokens=20_000)), NOW).ticket)
    subtrees = [node.memory[0][-1].spent[TOKENS] for node in nodes[:3]]
    assert subtrees == [11_000, 10_000, 6_000]
