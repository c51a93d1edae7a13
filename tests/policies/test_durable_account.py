"""The durable account among the four questions: last in a composition, and its commit decides."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from harness_lab.budget.durable import DurableAccount
from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AccountUnavailable, AlreadySettled, InputError
from harness_lab.outcome import COST, Code, Refusal
from harness_lab.policies import (
    OpenPolicy,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Use,
    Wait,
    compose,
    durable_account,
    period_budget,
    shared_ledger,
)
from harness_lab.policies.protocol import Grant, Granted
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.policies import Ticket
    from harness_lab.policies.opened import SharedComposed

WALL = 1_800_000_000 * NS_PER_S


def spec(folder: Path, **options: object) -> PolicySpec:
    defaults: dict[str, object] = {"cost_usd": 1.0, "if_missing": "create", "synchronous": "normal", "busy_s": 0.0}
    return durable_account(str(folder / "account.db"), **(defaults | options))  # type: ignore[arg-type]


def started(policy: OpenPolicy, run: str = "r", **groups: str) -> tuple[SharedComposed, Ticket]:
    composed = policy.start(run, groups, Time(0), wall_ns=WALL)
    root = composed.spawn(SpawnAsk(None, (), amounts()), Time(0))
    assert isinstance(root, Grant)
    return composed, root.ticket


def ask(node: Ticket, usd: float, call: int = 0, wait: int | None = None) -> StepAsk:
    return StepAsk(node, call, 0, amounts(cost_usd=usd), wait_until=None if wait is None else Time(wait))


def account_of(policy: OpenPolicy) -> DurableAccount:
    found = policy.state("durable_account")
    assert isinstance(found, DurableAccount)
    return found


def test_runs_share_one_account_and_a_step_is_held_and_settled_in_it(tmp_path: Path) -> None:
    with spec(tmp_path).open() as policy:
        (one, node), (two, other) = started(policy, "a"), started(policy, "b")
        grant = one.admit(ask(node, 0.7), Time(1))
        assert isinstance(grant, Grant)
        assert isinstance(two.admit(ask(other, 0.7), Time(1)), Refusal)
        one.settle(grant.ticket, Use(amounts(cost_usd=0.2)), Time(2))
        assert isinstance(two.admit(ask(other, 0.7), Time(3)), Grant)
        assert account_of(policy).balance().spent[COST] == nusd(0.2)
        assert one.blocking


def test_it_must_be_the_last_of_a_composition(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^modules: expected durable_account in the last place"):
        compose(spec(tmp_path), shared_ledger(3))
    assert compose(shared_ledger(3), spec(tmp_path)).scope == "shared"


def test_what_the_account_refuses_is_held_nowhere(tmp_path: Path) -> None:
    with compose(period_budget(cost_usd=9, every="day"), spec(tmp_path)).open() as policy:
        run, node = started(policy)
        assert isinstance(run.admit(ask(node, 2), Time(1)), Refusal)
        assert policy.state("period_budget").pot("", WALL).held == [0] * 5
        assert account_of(policy).balance().held == (0,) * 5


def test_what_another_module_refuses_is_not_held_in_the_account_and_both_are_reported(tmp_path: Path) -> None:
    with compose(period_budget(cost_usd=0.5, every="day"), spec(tmp_path)).open() as policy:
        run, node = started(policy)
        refusal = run.admit(ask(node, 2), Time(1))
        assert isinstance(refusal, Refusal)
        assert [short.detail.split(",")[0] for short in refusal.shortfalls] == ["day", "account"]
        assert account_of(policy).history() == ()


def test_an_account_that_cannot_be_asked_admits_nothing_and_says_so(tmp_path: Path) -> None:
    with compose(shared_ledger(5), spec(tmp_path)).open() as policy:
        run, node = started(policy)
        other = sqlite3.connect(account_of(policy).path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refusal = run.admit(ask(node, 0.1), Time(1))
        other.execute("ROLLBACK")
        other.close()
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.ACCOUNT_UNAVAILABLE
        assert "database is locked" in str(refusal)
        assert isinstance(run.admit(ask(node, 0.1), Time(2)), Grant)


def test_a_settlement_that_cannot_be_written_moves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    with compose(shared_ledger(5), spec(tmp_path)).open() as policy:
        run, node = started(policy)
        grant = run.admit(ask(node, 0.5), Time(1))
        assert isinstance(grant, Grant)
        other = sqlite3.connect(account_of(policy).path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(AccountUnavailable):
            run.settle(grant.ticket, Use(amounts(cost_usd=0.2)), Time(2))
        other.execute("ROLLBACK")
        other.close()
        ledger = run.modules[0].ledger  # type: ignore[attr-defined]
        assert ledger.steps == 0
        run.settle(grant.ticket, Use(amounts(cost_usd=0.2)), Time(3))
        assert (ledger.steps, account_of(policy).balance().spent[COST]) == (1, nusd(0.2))
        with pytest.raises(AlreadySettled):
            run.settle(grant.ticket, Use(amounts(cost_usd=0.2)), Time(4))


class Crash(Exception):
    """Stands for whatever interrupts a composition."""


def test_a_composition_that_is_interrupted_leaves_nothing_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_lab.policies.period_budget import PeriodBudgetModule

    def crash(*_: object) -> None:
        raise Crash

    with compose(period_budget(cost_usd=9, every="day"), spec(tmp_path)).open() as policy:
        run, node = started(policy)
        with monkeypatch.context() as patched:
            patched.setattr(PeriodBudgetModule, "hold", crash)
            with pytest.raises(Crash):
                run.admit(ask(node, 0.5), Time(1))
        assert account_of(policy).open_holds() == ()
        assert account_of(policy).balance().spent[COST] == 0


def test_who_waits_is_asked_about_again_when_others_have_given_back(tmp_path: Path) -> None:
    with spec(tmp_path).open() as policy:
        (one, node), (two, other) = started(policy, "a"), started(policy, "b")
        held = one.admit(ask(node, 0.9), Time(1))
        assert isinstance(held, Grant)
        assert isinstance(two.admit(ask(other, 0.5, wait=10 * NS_PER_S), Time(1)), Wait)
        assert account_of(policy).balance().held[COST] == nusd(0.9)
        assert two.tick(Time(2)) == NS_PER_S + 2
        one.settle(held.ticket, Use(amounts(cost_usd=0.1)), Time(3))
        assert two.tick(Time(4)) is None
        (news,) = two.outbox()
        assert isinstance(news, Granted)
        two.settle(news.ticket, Use(amounts(cost_usd=0.1)), Time(5))
        assert account_of(policy).balance().spent[COST] == nusd(0.2)


def test_a_restarted_run_of_the_same_name_repeats_no_call(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with spec(tmp_path).open() as policy:
            run, node = started(policy, "nightly")
            assert isinstance(run.admit(ask(node, 0.4), Time(1)), Grant)
            names = [hold.id for hold in account_of(policy).open_holds()]
    assert names == ["nightly~1/#model 0.0#1", "nightly~2/#model 0.0#1"]


def test_period_budgets_in_the_file_are_shared_by_all_who_open_it(tmp_path: Path) -> None:
    policies = [spec(tmp_path, periods=(period_budget(cost_usd=0.5, by="user", every="day", cap="hard"),)).open()] * 2
    (one, node), (two, other) = started(policies[0], user="ann"), started(policies[1], user="ann")
    assert isinstance(one.admit(ask(node, 0.4), Time(1)), Grant)
    refusal = two.admit(ask(other, 0.4), Time(2))
    assert isinstance(refusal, Refusal)
    assert refusal.shortfalls[0].helps == "wait"
    tomorrow = Time(24 * 3600 * NS_PER_S)
    assert isinstance(two.admit(ask(other, 0.4), tomorrow), Grant)


def test_an_account_of_other_caps_or_none_at_all_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(AccountUnavailable, match="no such file"):
        spec(tmp_path, if_missing="refuse").open()
    spec(tmp_path).open().close()
    with pytest.raises(InputError, match=r"^durable account: expected the caps and rule of the file"):
        spec(tmp_path, if_missing="refuse", cost_usd=2.0).open()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    whole = compose(shared_ledger(4), spec(tmp_path, periods=(period_budget(calls=5, by="user", every="week"),)))
    assert PolicySpec.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    with pytest.raises(InputError, match=r"^periods: expected period budgets"):
        PolicySpec.from_dict(
            {"name": "p", "modules": [{"kind": "durable_account", "path": "x", "periods": [{"no": 1}]}]}
        )
