"""What each preset answers, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AlreadySettled, InputError, UnitMismatch
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import CHANNELS, INPUT, Code, Refusal
from harness_lab.policies import (
    COMPLETED,
    Composed,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.policies.log import Logged
from harness_lab.usage import amounts

PI = FloorKey(backend="pi", model="tangle-router/glm-5.2")
FLOORS = FloorTable((FloorRow(key=PI, floor=31_211, n=6),))
NOW = Time(0)
BOUND = amounts(calls=1, input=900, tokens=1_000, fresh=1_000, cost_usd=0.4)
NOTHING = (0,) * len(CHANNELS)


def begun(spec: PolicySpec) -> tuple[Composed, Ticket]:
    policy = spec.start()
    return policy, granted(policy.spawn(SpawnAsk(None, (), amounts()), NOW))


def granted(answer: Any) -> Ticket:
    assert isinstance(answer, Grant), str(answer)
    return answer.ticket


def child(parent: Ticket, slot: int = 0, key: FloorKey | None = None, **ask: Any) -> SpawnAsk:
    return SpawnAsk(parent, (*parent.path, (0, slot, 0)), amounts(**ask), key)


def call(policy: Composed, node: Ticket, usd: float | None = 0.1, tokens: int = 10, now: Time = NOW) -> Any:
    """Ask for a call and settle it; return the code of a refusal."""
    answer = policy.admit(StepAsk(node, 0, 0, BOUND), now)
    if isinstance(answer, Refusal):
        return answer.code
    cost = amounts(cost_usd=usd)[4]
    policy.settle(granted(answer), Use((1, tokens, tokens, tokens, cost)), now)
    return "granted"


@pytest.mark.parametrize("ask", [2_000, 8_000, 12_000, 20_000])
def test_after_a_refusal_at_the_floor_the_pool_is_what_it_was(ask: int) -> None:
    policy, root = begun(reservation_pool(input=100_000, floors=FLOORS))
    pool = policy.modules[1].pool  # type: ignore[attr-defined]
    refusal = policy.spawn(child(root, key=PI, input=ask), NOW)
    assert isinstance(refusal, Refusal)
    (short,) = refusal.shortfalls
    assert (short.code, short.limit, short.asked, short.helps) == (Code.BELOW_RUNTIME_FLOOR, 31_211, ask, "larger")
    assert "the floor is 31,211" in str(refusal)
    assert f"{31_211 - ask:,} are missing" in str(refusal)
    assert (pool.free()[INPUT], pool.held()[INPUT], pool.spent()[INPUT]) == (100_000, 0, 0)


def test_an_ask_below_the_floor_and_above_the_pool_is_told_both_and_the_floor_binds() -> None:
    policy, root = begun(reservation_pool(input=5_000, floors=FLOORS))
    refusal = policy.spawn(child(root, key=PI, input=8_000), NOW)
    assert isinstance(refusal, Refusal)
    assert [short.code for short in refusal.shortfalls] == [Code.BELOW_RUNTIME_FLOOR, Code.BUDGET_EXHAUSTED]
    assert refusal.code is Code.BELOW_RUNTIME_FLOOR


def test_the_floor_is_asked_only_of_children_that_name_a_measured_path() -> None:
    policy, root = begun(runtime_floors(FLOORS))
    unmeasured = FloorKey(backend="inline", model="glm-5.2")
    for ask in (child(root, input=1), child(root, key=unmeasured, input=1), child(root, key=PI), child(root, key=PI)):
        granted(policy.spawn(ask, NOW))
    granted(policy.spawn(child(root, key=PI, input=31_211), NOW))


def test_an_ask_in_another_unit_than_the_floor_is_an_error_that_names_both() -> None:
    policy, root = begun(runtime_floors(FLOORS))
    with pytest.raises(UnitMismatch, match=r"a unit in which it was measured \(input-total\).*tokens in total"):
        policy.spawn(child(root, key=PI, tokens=40_000), NOW)
    with pytest.raises(UnitMismatch, match=r"input-total.*newly-presented"):
        policy.spawn(
            child(root, key=FloorKey(backend=PI.backend, model=PI.model, unit="newly-presented"), fresh=5), NOW
        )


def test_the_ledger_is_checked_before_a_call_and_charged_after_it_so_it_overshoots_by_one() -> None:
    policy, root = begun(shared_ledger(8, 1.0))
    assert [call(policy, root, 0.6) for _ in range(3)] == ["granted", "granted", Code.COST_EXHAUSTED]
    assert policy.modules[0].ledger.cost_usd == 1.2  # type: ignore[attr-defined]


def test_ten_calls_of_a_dime_exhaust_a_dollar_exactly() -> None:
    policy, root = begun(shared_ledger(99, 1.0))
    assert [call(policy, root, 0.1) for _ in range(11)] == [*["granted"] * 10, Code.COST_EXHAUSTED]


def test_what_a_child_spends_is_gone_for_its_parent_and_its_ask_bounds_it() -> None:
    policy, root = begun(shared_ledger(5))
    one = granted(policy.spawn(child(root, calls=2), NOW))
    assert [call(policy, one) for _ in range(3)] == ["granted", "granted", Code.STEPS_EXHAUSTED]
    assert [call(policy, root) for _ in range(4)] == [*["granted"] * 3, Code.STEPS_EXHAUSTED]
    refusal = policy.spawn(child(root, 1), NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.STEPS_EXHAUSTED


@pytest.mark.parametrize("spec", [shared_ledger(9, 5.0), reservation_pool(cost_usd=5.0)], ids=lambda s: s.name)
def test_an_unknown_cost_under_a_cap_stops_the_tree_with_a_reason(spec: PolicySpec) -> None:
    policy, root = begun(spec)
    one = granted(policy.spawn(child(root), NOW))
    assert call(policy, one, None) == "granted"
    assert call(policy, one) is Code.SPEND_UNKNOWN
    assert call(policy, root) is Code.SPEND_UNKNOWN
    refusal = policy.spawn(child(root, 1), NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.SPEND_UNKNOWN


@pytest.mark.parametrize("spec", [shared_ledger(9), reservation_pool(tokens=900)], ids=lambda s: s.name)
def test_an_unknown_cost_without_a_cap_stops_nothing(spec: PolicySpec) -> None:
    policy, root = begun(spec)
    assert [call(policy, root, None) for _ in range(3)] == ["granted"] * 3


@pytest.mark.parametrize(
    "spec",
    [shared_ledger(9, 1.0, unknown_usage="charge-hold"), reservation_pool(cost_usd=1.0, unknown_usage="charge-hold")],
    ids=lambda s: s.name,
)
def test_an_unknown_cost_may_be_charged_at_the_worst_case_of_its_call(spec: PolicySpec) -> None:
    policy, root = begun(spec)
    answers = [call(policy, root, None) for _ in range(4)]
    exhausted = {Code.COST_EXHAUSTED, Code.BUDGET_EXHAUSTED}
    assert answers[:3] == ["granted"] * 3  # 0.4 each
    assert answers[3] in exhausted


def test_seconds_are_counted_from_the_start_of_the_tree_and_checked_between_calls() -> None:
    policy, root = begun(shared_ledger(9, None, 60))
    assert call(policy, root, now=Time(60 * NS_PER_S - 1)) == "granted"
    assert call(policy, root, now=Time(60 * NS_PER_S)) is Code.TIME_EXHAUSTED


def test_a_child_that_used_up_its_ask_is_stopped_or_recorded() -> None:
    for inside, last in (("stop", Code.BUDGET_EXHAUSTED), ("record", "granted")):
        policy, root = begun(reservation_pool(tokens=100, inside=inside))  # type: ignore[arg-type]
        one = granted(policy.spawn(child(root, tokens=20), NOW))
        assert [call(policy, one, tokens=15) for _ in range(3)] == ["granted", "granted", last]


def test_the_first_limit_in_order_binds_and_every_limit_is_reported() -> None:
    policy, root = begun(tree_limits(0, 0, 0))
    refusal = policy.spawn(child(root), NOW)
    assert isinstance(refusal, Refusal)
    assert [short.code for short in refusal.shortfalls] == [Code.MAX_DEPTH, Code.MAX_CALLS, Code.MAX_CONCURRENT]


def test_slots_are_counted_over_the_tree_or_for_each_parent() -> None:
    for concurrency, answer in (("tree", Refusal), ("parent", Grant)):
        policy, root = begun(tree_limits(max_concurrent=1, concurrency=concurrency))  # type: ignore[arg-type]
        one = granted(policy.spawn(child(root), NOW))
        assert isinstance(policy.spawn(child(one), NOW), answer)
        assert isinstance(policy.spawn(child(root, 1), NOW), Refusal)


def test_no_child_outlives_its_parent() -> None:
    policy, root = begun(tree_limits(timeout_s=10))
    one = policy.spawn(child(root), Time(0))
    two = policy.spawn(child(granted(one)), Time(4 * NS_PER_S))
    assert isinstance(one, Grant)
    assert isinstance(two, Grant)
    assert (root.deadline, one.deadline, two.deadline) == (None, 10 * NS_PER_S, 10 * NS_PER_S)


def test_a_step_that_was_never_sent_charges_nothing() -> None:
    spec = compose(shared_ledger(1, 0.1), reservation_pool(calls=1, tokens=10))
    policy, root = begun(spec)
    for _ in range(3):
        step = granted(policy.admit(StepAsk(root, 0, 0, BOUND), NOW))
        policy.settle(step, Use((1, 10, 10, 10, 10**9), "unsent"), NOW)
    assert call(policy, root) == "granted"


def test_a_second_settlement_is_an_error_that_carries_the_first_and_moves_no_money() -> None:
    policy, root = begun(compose(shared_ledger(9, 1.0), reservation_pool(tokens=100)))
    step = granted(policy.admit(StepAsk(root, 3, 0, BOUND), NOW))
    first = Use((1, 10, 10, 10, 5))
    policy.settle(step, first, NOW)
    with pytest.raises(AlreadySettled, match=r"^call 3 of node / was already settled") as caught:
        policy.settle(step, Use((1, 99, 99, 99, 99)), NOW)
    assert caught.value.first is first
    assert policy.modules[0].ledger.cost_nusd == 5  # type: ignore[attr-defined]
    assert policy.modules[1].pool.spent() == (1, 10, 10, 10, 5)  # type: ignore[attr-defined]


def test_a_node_that_is_closed_twice_frees_one_slot() -> None:
    policy, root = begun(tree_limits(max_concurrent=2))
    one = granted(policy.spawn(child(root), NOW))
    granted(policy.spawn(child(root, 1), NOW))
    policy.close(one, Use(NOTHING), COMPLETED, NOW)
    with pytest.raises(AlreadySettled, match=r"^node /0\.0 was already settled"):
        policy.close(one, Use(NOTHING), COMPLETED, NOW)
    assert policy.modules[0].running == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), 0.5, True, "9", 10**20], ids=repr)
def test_a_bad_amount_never_reaches_an_account(bad: Any) -> None:
    _, root = begun(unlimited())
    amount = (None, None, bad, None, None)
    with pytest.raises(InputError, match=r"^ask \(tokens\): expected a whole number"):
        SpawnAsk(root, ((0, 0, 0),), amount)
    with pytest.raises(InputError, match=r"^use \(tokens\): expected a whole number"):
        Use(amount)
    with pytest.raises(InputError, match=r"^bound \(tokens\): expected a whole number"):
        StepAsk(root, 0, 0, amount)


def test_without_modules_everything_is_granted() -> None:
    policy, root = begun(unlimited())
    deep = root
    for _ in range(20):
        deep = granted(policy.spawn(child(deep), NOW))
    assert call(policy, deep, None) == "granted"
    assert deep.depth == 20
    assert deep.deadline is None


def test_a_log_writes_down_every_answer_and_changes_none() -> None:
    plain, root = begun(compose(shared_ledger(1), tree_limits(1, 1)))
    logged = Logged(compose(shared_ledger(1), tree_limits(1, 1)).start())
    top = granted(logged.spawn(SpawnAsk(None, (), amounts()), NOW))
    for policy, node in ((plain, root), (logged, top)):
        granted(policy.spawn(child(node), NOW))
        assert isinstance(policy.spawn(child(node, 1), NOW), Refusal)
        step = granted(policy.admit(StepAsk(node, 0, 0, BOUND), NOW))
        policy.settle(step, Use((1, 1, 1, 1, 1)), NOW)
        assert isinstance(policy.admit(StepAsk(node, 1, 0, BOUND), NOW), Refusal)
    assert logged.decisions == [
        ("/", "spawn", -1, -1, "granted", None),
        ("/0.0", "spawn", -1, -1, "granted", None),
        ("/0.1", "spawn", -1, -1, "max-concurrent: asked 1, free 0 of 1; helps: wait", None),
        ("/", "admit", 0, 0, "granted", None),
        ("/", "admit", 1, 0, "steps-exhausted (calls): free 0 of 1; helps: nothing", None),
    ]
