"""An adapter as a module of a policy: asked last, told what came of it, one object a node."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.adapters import Adapter, AdapterSpec, No, policy
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import (
    COMPLETED,
    PolicySpec,
    Shadow,
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    durable_account,
    period_budget,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.adapters import Call, Child, Used

NOW = Time(0)
ONE = Use(amounts(calls=1, input=90, tokens=100, fresh=100, cost_usd=0.25))


class Diary(Adapter):
    """Takes when it is asked, and writes down what it is told."""

    name = "diary"

    def __init__(self, *, calls: int | None = None, max_depth: int = 9) -> None:
        self.left, self.depth, self.told = calls, max_depth, []  # type: ignore[var-annotated]

    def before_call(self, call: Call) -> No | None:
        if self.left == 0:
            return No("no call is left", "calls")
        self.left = None if self.left is None else self.left - 1
        self.told.append(f"before {call.node}#{call.number}.{call.attempt} {call.kind} {call.most.cost_usd}")
        return None

    def after_call(self, call: Call, used: Used) -> None:
        self.told.append(f"after {used.status} {used.output_tokens} {used.cost_usd} {used.programmatic}")

    def not_sent(self, call: Call) -> None:
        self.left = None if self.left is None else self.left + 1
        self.told.append("not sent")

    def before_tools(self, call: Call) -> str | None:
        return "too many tools" if call.count > 3 else None

    def after_tools(self, call: Call, used: Used) -> None:
        self.told.append(f"{call.count} tools")

    def child(self, child: Child) -> Adapter | str:
        self.told.append(f"child {child.node} {child.calls} {child.asked.tokens}")
        return "too deep" if child.depth > self.depth else self

    def end(self) -> None:
        self.told.append("end")


def begun(**limits: Any) -> tuple[Any, Any, Diary]:
    started = policy(Diary, **limits).start()
    root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket  # type: ignore[union-attr]
    diary: Any = started.modules[0].root  # type: ignore[attr-defined]
    return started, root, diary


def step(node: Any, call: int = 0, **more: Any) -> StepAsk:
    return StepAsk(node, call, more.pop("attempt", 0), amounts(**more.pop("bound", {})), **more)


def test_a_call_is_asked_before_and_told_after() -> None:
    started, root, diary = begun()
    granted = started.admit(step(root, 4, attempt=1, bound={"cost_usd": 0.5}), NOW)
    started.settle(granted.ticket, Use(ONE.spent, "failed", "programmatic"), NOW)
    assert diary.told == ["before /#4.1 model 0.5", "after failed 10 0.25 True"]


def test_unknown_usage_stays_unknown() -> None:
    started, root, diary = begun()
    granted = started.admit(step(root), NOW)
    started.settle(granted.ticket, Use(amounts(calls=1)), NOW)
    assert diary.told[-1] == "after completed None None False"


def test_a_refusal_names_its_limit_and_reason() -> None:
    started, root, _ = begun(calls=0)
    refused = started.admit(step(root), NOW)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.shortfalls[0].channel) == (Code.STEPS_EXHAUSTED, "calls")
    assert str(refused) == "steps-exhausted (calls): no call is left; helps: nothing"


def test_what_another_limit_refuses_is_never_asked() -> None:
    spec = compose(policy(Diary), shared_ledger(0))
    started: Any = spec.start()
    root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    assert started.admit(step(root), NOW).code is Code.STEPS_EXHAUSTED
    assert started.modules[0].root.told == []


def test_what_another_adapter_refuses_was_not_sent() -> None:
    started: Any = compose(policy(Diary, calls=2), policy(Diary, calls=0)).start()
    root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    assert isinstance(started.admit(step(root), NOW), Refusal)
    assert (started.modules[0].root.left, started.modules[0].root.told[-1]) == (2, "not sent")


def test_a_call_that_never_left_is_told_as_such() -> None:
    started, root, diary = begun(calls=1)
    granted = started.admit(step(root), NOW)
    started.settle(granted.ticket, Use((0,) * 5, "unsent"), NOW)
    assert (diary.left, diary.told[-1]) == (1, "not sent")


def test_tools_are_a_question_of_their_own_and_whole() -> None:
    started, root, diary = begun(calls=0)
    granted = started.admit(step(root, kind="tool", count=3), NOW)
    started.settle(granted.ticket, Use(amounts(calls=0)), NOW)
    assert diary.told == ["3 tools"]
    assert isinstance(started.admit(step(root, kind="tool", count=4), NOW), Refusal)


def test_a_wrap_up_lies_outside_the_limit_and_is_told() -> None:
    started, root, diary = begun(calls=0)
    granted = started.admit(step(root, kind="wrap-up"), NOW)
    started.settle(granted.ticket, ONE, NOW)
    assert diary.told == ["after completed 10 0.25 False"]


def test_a_child_may_share_have_its_own_or_be_refused() -> None:
    started, root, diary = begun(max_depth=1)
    kid = started.spawn(SpawnAsk(root, ((2, 0, 0),), amounts(calls=7, tokens=50)), NOW).ticket
    refused = started.spawn(SpawnAsk(kid, ((2, 0, 0), (0, 1, 0)), amounts()), NOW)
    assert (str(refused.code), refused.shortfalls[0].detail) == ("call-refused", "too deep")
    assert diary.told == ["child /2.0 7 50", "child /2.0/0.1 None None"]
    assert kid.memory[0] is diary


def test_an_adapter_that_shares_ends_once_with_its_node() -> None:
    started, root, diary = begun()
    kid = started.spawn(SpawnAsk(root, ((0, 0, 0),), amounts()), NOW).ticket
    for node in (kid, root):
        started.close(node, Use((0,) * 5), COMPLETED, NOW)
    assert diary.told.count("end") == 1


def test_a_shadow_asks_it_and_admits_all_the_same() -> None:
    shadow = Shadow(policy(Diary, calls=1).start())
    root = shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    for call in range(3):
        shadow.settle(shadow.admit(step(root, call), NOW).ticket, ONE, NOW)
    assert [answer.answer for answer in shadow.answers] == ["granted", "granted", "refused", "moot"]


def test_runs_begin_afresh() -> None:
    spec = policy(Diary, calls=1)
    for _ in range(2):
        started: Any = spec.start()
        root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
        assert not isinstance(started.admit(step(root), NOW), Refusal)


def test_the_policy_is_data_and_can_be_sent() -> None:
    spec = policy("check-then-add", calls=3, cost_usd=0.5)
    plain = {"kind": "adapter", "adapter": "check-then-add", "limits": {"calls": 3, "cost_usd": 0.5}}
    assert spec.to_dict() == {"name": "check-then-add", "modules": [plain]}
    assert PolicySpec.from_dict(spec.to_dict()) == spec == pickle.loads(pickle.dumps(spec))  # noqa: S301
    assert hash(spec.modules[0]) == hash(policy("check-then-add", calls=3, cost_usd=0.5).modules[0])


def test_a_limit_is_changed_or_left_out() -> None:
    spec = AdapterSpec(adapter=Diary, limits=(("calls", 3),))
    assert spec.with_limit("calls", 5).limits == (("calls", 5),)
    assert spec.with_limit("calls", None).limits == ()
    assert (spec.takes("max_depth"), spec.takes("cost_usd")) == (True, False)


@pytest.mark.parametrize(
    ("limit", "ours"), [("max_depth", "max_depth"), ("max_concurrent", "max_concurrent"), ("max_children", "max_calls")]
)
def test_a_limit_of_the_tree_that_a_package_has_not_is_named_as_ours_has_it(limit: str, ours: str) -> None:
    theirs: dict[str, Any] = {limit: 2}
    own: dict[str, Any] = {ours: 2}
    with pytest.raises(InputError, match=rf"tree_limits\({ours}=\.\.\.\)\) holds that beside it"):
        policy("check-then-add", **theirs)
    beside = compose(policy("check-then-add", calls=3), tree_limits(**own))
    assert getattr(beside.module("tree_limits"), ours) == 2


def test_an_odd_limit_is_told_before_a_run() -> None:
    with pytest.raises(InputError, match="limits of diary: expected some of calls, max_depth, got \\['tokens'\\]"):
        policy(Diary, tokens=3)
    for odd in ("3", True, [3]):
        with pytest.raises(InputError, match=r"^limits of diary: expected numbers, or None, got \{'calls': "):
            policy(Diary, calls=odd)


class Picky(Diary):
    """A package that refuses a limit where it is built."""

    name = "picky"

    def __init__(self, *, calls: int = 3) -> None:
        if calls < 1:
            raise ValueError("at least one")
        super().__init__(calls=calls)


def test_what_a_package_refuses_is_one_line_with_its_words() -> None:
    with pytest.raises(InputError, match=r"^limits of picky: expected what its package takes, got .*: at least one"):
        policy(Picky, calls=0)


def test_it_stands_beside_a_budget_that_outlives_the_run() -> None:
    spec = compose(policy(Diary, calls=2), period_budget(calls=3, by="user"))
    told = []
    with spec.open() as opened:
        for run in ("one", "two"):
            started: Any = opened.start(run, {"user": "ann"}, NOW, wall_ns=10**18)
            root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
            for call in range(3):
                answer = started.admit(step(root, call, bound={"calls": 1}), NOW)
                told.append(str(answer.code) if isinstance(answer, Refusal) else "yes")
                if told[-1] == "yes":
                    started.settle(answer.ticket, ONE, NOW)
    assert told == ["yes", "yes", "steps-exhausted", "yes", "budget-exhausted", "budget-exhausted"]


def test_what_it_refuses_is_taken_back_from_a_durable_account(tmp_path: Path) -> None:
    account = durable_account(str(tmp_path / "account.db"), calls=5, if_missing="create")
    with compose(policy(Diary, calls=1), account).open() as opened:
        started: Any = opened.start("run", {}, NOW, wall_ns=10**18)
        root = started.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
        first = started.admit(step(root, 0, bound={"calls": 1}), NOW)
        started.settle(first.ticket, ONE, NOW)
        assert [started.admit(step(root, call, bound={"calls": 1}), NOW).code for call in (1, 2)] == [
            Code.STEPS_EXHAUSTED,
            Code.STEPS_EXHAUSTED,
        ]
        balance = opened.state("durable_account").balance()
    assert (balance.spent[0], balance.held[0]) == (1, 0)
