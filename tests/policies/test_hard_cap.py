"""A hard cap by hand: what is held, refused, charged, told to an observer, and what ends admission."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.clock import Time
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CHANNELS, COST, Code, Refusal
from harness_lab.policies import (
    CallHoldsSpec,
    CallRefused,
    Composed,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    call_holds,
    compose,
    durable_account,
    hard_cap,
    period_budget,
    reservation_pool,
    shared_ledger,
)
from harness_lab.policies.hard_cap import CallHolds
from harness_lab.pricing import CapPrices, RequestSize
from harness_lab.usage import amounts, nusd

NOW = Time(0)
CENT = nusd(0.01)
UNKNOWN = (1,) + (None,) * (len(CHANNELS) - 1)


class Observer:
    """Keeps what it is told, and refuses by a code if it is given one."""

    def __init__(self, refuse: str = "", *, broken: bool = False) -> None:
        self.told: list[Any] = []
        self.contexts: list[Any] = []
        self.refuse, self.broken = refuse, broken

    def reserving(self, reservation: Any, context: Any) -> None:
        if self.refuse:
            raise CallRefused(self.refuse)
        self.told.append(reservation)
        self.contexts.append(context)

    def settled(self, settlement: Any, context: Any) -> None:
        self.told.append(settlement)
        if self.broken:
            raise RuntimeError("disk full")


def begun(spec: PolicySpec) -> tuple[Composed, Ticket, CallHolds]:
    policy = spec.start("run-1")
    answer = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(answer, Grant)
    cap = next(module for module in policy.modules if isinstance(module, CallHolds))
    return policy, answer.ticket, cap


def ask(policy: Composed, node: Ticket, usd: float | None, **other: Any) -> Grant | Refusal:
    bound = amounts(calls=1, cost_usd=usd, **other)
    answer = policy.admit(StepAsk(node, 0, 0, bound), NOW)
    assert isinstance(answer, Grant | Refusal)
    return answer


def granted(answer: object) -> Ticket:
    assert isinstance(answer, Grant), str(answer)
    return answer.ticket


def spend(policy: Composed, ticket: Ticket, usd: float | None, status: Any = "completed") -> None:
    policy.settle(ticket, Use((1, 10, 20, 20, amounts(cost_usd=usd)[COST]), status), NOW)


def child(policy: Composed, parent: Ticket, slot: int = 0, **budget: Any) -> Ticket:
    return granted(policy.spawn(SpawnAsk(parent, (*parent.path, (0, slot, 0)), amounts(**budget)), NOW))


def test_the_worst_case_is_held_and_what_was_used_is_charged() -> None:
    policy, root, cap = begun(hard_cap(1.0))
    ticket = granted(ask(policy, root, 0.4))
    assert (cap.pot.held[COST], cap.pot.spent[COST]) == (40 * CENT, 0)
    spend(policy, ticket, 0.1)
    assert (cap.pot.held[COST], cap.pot.spent[COST]) == (0, 10 * CENT)


def test_reaching_the_cap_exactly_is_allowed_and_a_nano_dollar_more_is_not() -> None:
    policy, root, _ = begun(hard_cap(1.0))
    granted(ask(policy, root, 0.6))
    assert isinstance(ask(policy, root, 0.400000001), Refusal)
    granted(ask(policy, root, 0.4))


def test_a_refusal_names_cap_asked_and_free_and_what_would_help() -> None:
    policy, root, _ = begun(hard_cap(1.0))
    ticket = granted(ask(policy, root, 0.9))
    refusal = ask(policy, root, 0.5)
    assert isinstance(refusal, Refusal)
    (short,) = refusal.shortfalls
    assert (short.code, short.limit, short.asked, short.free) == (
        Code.COST_CAP_WOULD_EXCEED,
        100 * CENT,
        50 * CENT,
        10 * CENT,
    )
    assert short.helps == "wait"
    spend(policy, ticket, 0.9)
    later = ask(policy, root, 0.5)
    assert isinstance(later, Refusal)
    assert later.shortfalls[0].helps == "smaller"


@pytest.mark.parametrize(
    ("rule", "charged", "code"),
    [("charge-hold", 40, None), ("release", 0, Code.SPEND_UNKNOWN), ("charge-prompt", 0, Code.SPEND_UNKNOWN)],
)
def test_a_call_without_usage_is_settled_by_the_axis(rule: Any, charged: int, code: Code | None) -> None:
    policy, root, cap = begun(hard_cap(1.0, unknown_usage=rule))
    policy.settle(granted(ask(policy, root, 0.4)), Use(UNKNOWN), NOW)
    assert cap.pot.spent[COST] == charged * CENT
    answer = ask(policy, root, 0.4)
    assert (answer.code if isinstance(answer, Refusal) else None) == code


def test_charge_prompt_takes_the_prompts_part_where_the_bound_says_which_that_is() -> None:
    policy, root, cap = begun(hard_cap(1.0, unknown_usage="charge-prompt"))
    prices = CapPrices({"m": {"inputPerMTok": 3, "outputPerMTok": 15}})
    bound = prices.bound("m", RequestSize(text_bytes=10_000), output_ceiling=4096)
    policy.settle(granted(policy.admit(StepAsk(root, 0, 0, bound), NOW)), Use(UNKNOWN, "abandoned"), NOW)
    assert cap.pot.spent[COST] == nusd(0.03)


@pytest.mark.parametrize("status", ["failed", "abandoned"])
def test_a_call_that_failed_or_was_dropped_without_usage_is_charged_its_hold(status: Any) -> None:
    policy, root, cap = begun(hard_cap(1.0))
    policy.settle(granted(ask(policy, root, 0.4)), Use(UNKNOWN, status), NOW)
    assert (cap.pot.spent[COST], cap.pot.held[COST]) == (40 * CENT, 0)


def test_an_unsent_call_is_charged_nothing() -> None:
    policy, root, cap = begun(hard_cap(1.0))
    policy.settle(granted(ask(policy, root, 0.4)), Use((0,) * 5, "unsent"), NOW)
    assert (cap.pot.spent[COST], cap.pot.held[COST], cap.pot.spent[0]) == (0, 0, 0)


def test_a_bill_above_its_bound_is_charged_in_full_recorded_and_ends_admission() -> None:
    policy, root, cap = begun(hard_cap(10.0))
    spend(policy, granted(ask(policy, root, 0.4)), 0.7)
    assert cap.pot.spent[COST] == 70 * CENT
    (violation,) = cap.violations
    assert (violation.channels, violation.bound[COST], violation.billed[COST]) == (("cost",), 40 * CENT, 70 * CENT)
    refusal = ask(policy, root, 0.0)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BOUND_VIOLATED
    late = policy.spawn(SpawnAsk(root, ((0, 0, 0),), amounts()), NOW)
    assert isinstance(late, Refusal)


def test_a_bill_above_the_bound_of_a_channel_without_a_cap_ends_nothing() -> None:
    policy, root, cap = begun(hard_cap(10.0))
    spend(policy, granted(ask(policy, root, 0.4, tokens=5)), 0.1)
    assert cap.violations == []
    granted(ask(policy, root, 0.4))


def test_a_second_settlement_moves_no_money() -> None:
    policy, root, cap = begun(hard_cap(1.0))
    ticket = granted(ask(policy, root, 0.4))
    spend(policy, ticket, 0.2)
    with pytest.raises(AlreadySettled):
        spend(policy, ticket, 0.0)
    assert (cap.pot.spent[COST], cap.pot.held[COST]) == (20 * CENT, 0)


def test_a_call_without_a_bound_is_refused_with_every_reason_and_a_free_one_fits_a_cap_that_is_used_up() -> None:
    policy, root, _ = begun(hard_cap(0.0))
    plain = ask(policy, root, None)
    assert isinstance(plain, Refusal)
    assert plain.code is Code.UNBOUNDED
    bound = CapPrices({}).bound("m", RequestSize(text_bytes=1, documents=1), output_ceiling=1)
    told = policy.admit(StepAsk(root, 0, 0, bound), NOW)
    assert isinstance(told, Refusal)
    codes = [short.code for short in told.shortfalls]
    assert codes == [Code.COST_CAP_PRICE_MISSING, Code.COST_CAP_DOCUMENT_UNBOUNDED]
    granted(ask(policy, root, 0.0))


def test_a_childs_declared_cost_is_a_cap_inside_its_parents() -> None:
    policy, root, _ = begun(hard_cap(1.0))
    one = child(policy, root, cost_usd=0.3)
    grandchild = child(policy, one, 1)
    spend(policy, granted(ask(policy, grandchild, 0.2)), 0.2)
    refusal = ask(policy, one, 0.2)
    assert isinstance(refusal, Refusal)
    assert (refusal.shortfalls[0].limit, refusal.shortfalls[0].free) == (30 * CENT, 10 * CENT)
    granted(ask(policy, root, 0.8))
    assert len(ask(policy, one, 0.2).shortfalls) == 2  # type: ignore[union-attr]


def test_a_childs_declared_cost_is_a_cap_where_the_tree_has_none() -> None:
    policy, root, _ = begun(hard_cap(None))
    one = child(policy, root, cost_usd=0.3)
    granted(ask(policy, root, None))
    assert isinstance(ask(policy, one, 0.4), Refusal)
    assert isinstance(ask(policy, one, None), Refusal)


def test_tools_hold_nothing() -> None:
    policy, root, cap = begun(hard_cap(0.0))
    answer = policy.admit(StepAsk(root, 0, 0, amounts(), "tool", 3), NOW)
    policy.settle(granted(answer), Use((0,) * 5), NOW)
    assert cap.pot.open == 0


def test_caps_in_other_channels_count_calls_and_tokens() -> None:
    policy, root, cap = begun(call_holds(calls=2, tokens=100))
    first = granted(ask(policy, root, None, tokens=60))
    over = ask(policy, root, None, tokens=50)
    assert isinstance(over, Refusal)
    assert [(s.code, s.channel) for s in over.shortfalls] == [(Code.BUDGET_EXHAUSTED, "tokens")]
    spend(policy, first, None)
    granted(policy.admit(StepAsk(root, 1, 0, amounts(tokens=80)), NOW))
    assert cap.pot.held[:3] == [1, 0, 80]
    assert isinstance(ask(policy, root, None, tokens=0), Refusal)


def test_an_observer_is_told_before_the_hold_and_after_the_charge() -> None:
    seen = Observer()
    policy, root, _ = begun(hard_cap(1.0, observer=seen))
    prices = CapPrices({"a/m": {"inputPerMTok": 3, "outputPerMTok": 15}})
    bound = prices.bound("m", RequestSize(text_bytes=10_000), output_ceiling=4096, provider="a")
    spend(policy, granted(policy.admit(StepAsk(root, 3, 1, bound), NOW)), 0.02)
    reservation, settlement = seen.told
    assert (reservation.provider, reservation.model, reservation.worst_case_usd) == ("a", "m", 0.09144)
    assert (settlement.outcome, settlement.charged_usd, settlement.usage_known) == ("completed", 0.02, True)
    assert reservation.call_id == settlement.call_id == "run-1/#3.1#1"
    (context,) = seen.contexts
    assert (context.run, context.path, context.depth, context.call, context.attempt) == ("run-1", (), 0, 3, 1)


@pytest.mark.parametrize(("status", "outcome"), [("failed", "failed"), ("abandoned", "abandoned")])
def test_an_observer_is_told_when_usage_is_not_known(status: Any, outcome: str) -> None:
    seen = Observer()
    policy, root, _ = begun(hard_cap(1.0, observer=seen))
    policy.settle(granted(ask(policy, root, 0.4)), Use(UNKNOWN, status), NOW)
    assert (seen.told[1].outcome, seen.told[1].charged_usd, seen.told[1].usage_known) == (outcome, 0.4, False)


def test_an_observer_can_refuse_by_its_own_code_and_nothing_is_held() -> None:
    policy, root, cap = begun(hard_cap(1.0, observer=Observer("team-frozen")))
    refusal = ask(policy, root, 0.4)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.shortfalls[0].detail) == (Code.CALL_REFUSED, "team-frozen")
    assert (cap.pot.held[COST], cap.pot.open) == (0, 0)


def test_an_observer_is_not_told_of_what_a_limit_refuses() -> None:
    seen = Observer()
    policy, root, _ = begun(compose(shared_ledger(0), hard_cap(1.0, observer=seen)))
    assert isinstance(ask(policy, root, 0.4), Refusal)
    assert isinstance(ask(policy, root, 4.0), Refusal)
    assert seen.told == []


def test_an_observer_that_breaks_after_the_charge_changes_nothing() -> None:
    policy, root, cap = begun(compose(hard_cap(1.0, observer=Observer(broken=True)), shared_ledger(8)))
    ticket = granted(ask(policy, root, 0.4))
    with pytest.warns(RuntimeWarning, match="disk full"):
        spend(policy, ticket, 0.1)
    assert cap.pot.spent[COST] == 10 * CENT
    assert policy.modules[1].ledger.steps == 1  # type: ignore[attr-defined]


def test_a_waiting_call_is_observed_when_its_turn_comes() -> None:
    seen = Observer()
    policy, root, _ = begun(hard_cap(1.0, observer=seen))
    first = granted(ask(policy, root, 0.9))
    policy.admit(StepAsk(root, 1, 0, amounts(calls=1, cost_usd=0.5), wait_until=Time(10)), NOW)
    assert len(seen.told) == 1
    spend(policy, first, 0.1)
    assert [type(told).__name__ for told in seen.told] == ["CallReservation", "CallSettlement", "CallReservation"]
    assert len(list(policy.outbox())) == 1


def test_a_refusing_observer_takes_back_the_commit_of_a_durable_account(tmp_path: Any) -> None:
    account = durable_account(str(tmp_path / "a.db"), cost_usd=1.0, if_missing="create", synchronous="normal")
    with compose(hard_cap(5.0, observer=Observer("no")), account).open() as opened:
        policy = opened.start("run", now=Time(1_800_000_000 * 10**9))
        root = granted(policy.spawn(SpawnAsk(None, (), amounts()), Time(1_800_000_000 * 10**9)))
        refusal = policy.admit(StepAsk(root, 0, 0, amounts(calls=1, cost_usd=0.5)), Time(1_800_000_000 * 10**9))
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.CALL_REFUSED
        assert opened.state("durable_account").balance().held[COST] == 0


def test_cap_ledger_pool_and_period_stand_together_and_all_shortfalls_are_named() -> None:
    parts = (shared_ledger(1), hard_cap(0.5), reservation_pool(cost_usd=9.0), period_budget(cost_usd=0.1, cap="hard"))
    with compose(*parts).open() as opened:
        policy = opened.start("run", now=Time(1_800_000_000 * 10**9))
        root = granted(policy.spawn(SpawnAsk(None, (), amounts()), NOW))
        spend(policy, granted(policy.admit(StepAsk(root, 0, 0, amounts(calls=1, cost_usd=0.05)), NOW)), 0.05)
        refusal = policy.admit(StepAsk(root, 1, 0, amounts(calls=1, cost_usd=0.9)), NOW)
        assert isinstance(refusal, Refusal)
        assert [short.code for short in refusal.shortfalls] == [
            Code.STEPS_EXHAUSTED,
            Code.COST_CAP_WOULD_EXCEED,
            Code.BUDGET_EXHAUSTED,
        ]


def test_the_policy_is_data_and_the_observer_is_none_of_it() -> None:
    spec = hard_cap(2.0, observer=Observer())
    plain = spec.to_dict()
    assert plain == {
        "name": "hard cap",
        "modules": [{"cost_usd": 2.0, "unknown_usage": "charge-hold", "kind": "call_holds"}],
    }
    assert PolicySpec.from_dict(plain) == spec
    with pytest.raises(InputError, match="observer"):
        PolicySpec.from_dict({"name": "x", "modules": [{"kind": "call_holds", "observer": 1}]})


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1, True, "five"])
def test_odd_caps_are_refused(limit: Any) -> None:
    with pytest.raises(InputError):
        hard_cap(limit)
    with pytest.raises(InputError):
        CallHoldsSpec(observer=limit)
