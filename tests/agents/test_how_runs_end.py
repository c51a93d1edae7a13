"""Every way in which a run can end, and how each place that tells of it names that end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents import AgentError, ModelError
from harness_lab.agents.scripted import calls, says
from harness_lab.budget import RunBudget
from harness_lab.budget.durable import DurableAccount
from harness_lab.errors import AccountUnavailable
from harness_lab.policies import AtLimit, compose, durable_account, tree_limits
from tests.kit.ended_runs import Brake, World, raises, sleeps, unanswered

if TYPE_CHECKING:
    from pathlib import Path

PRICED = [calls("dig", task="x", cost_usd=0.1), says("done", cost_usd=0.1)]
FINISHED, FAILED, WAITS = ["run.started", "run.finished"], ["run.started", "run.failed"], ["run.started"]
Child = tuple[Callable[[], World], tuple[Any, ...], tuple[Any, ...], list[str], tuple[Any, ...]]

CHILDREN: dict[str, Child] = {
    # the parent's tool result (outcome, retryable, reason); the child's run record (status, finish_reason, failure);
    # its events; its settlement row (outcome, stopped_by, cause)
    "answers": (
        lambda: World([says("found")]),
        ("completed", False, None), ("completed", "stop", None), FINISHED, ("completed", None, "none"),
    ),
    "steps used up": (
        lambda: World([calls("echo")], declared={"max_steps": 1}, repeat=True, big=list(PRICED)),
        ("exhausted", False, "step budget exhausted (2 of 2 used)"),
        ("exhausted", "budget_exhausted", None), FINISHED, ("exhausted", "steps-exhausted", "limit"),
    ),
    "cost used up": (
        lambda: World([calls("echo", cost_usd=0.5)], declared={"max_cost_usd": 0.4}, big=list(PRICED)),
        ("exhausted", False, "cost budget exhausted (0.6000 of 0.5000 USD used)"),
        ("exhausted", "budget_exhausted", None), FINISHED, ("exhausted", "cost-exhausted", "limit"),
    ),
    "cost unknown": (
        lambda: World([calls("echo")], declared={"max_cost_usd": 0.4}, big=list(PRICED)),
        ("exhausted", False, "cost budget cannot be enforced: 1 run(s) reported no cost, so spend against the 0.5000 "
         "USD cap is unknown"),
        ("exhausted", "budget_exhausted", None), FINISHED, ("exhausted", "spend-unknown", "limit"),
    ),
    "time used up": (
        lambda: World([calls("slow")], declared={"max_seconds": 5}, tools={"slow": sleeps(6)},
                      child={"tools": ["slow"]}),
        ("exhausted", False, "time budget exhausted (6s of 5s used)"),
        ("timed_out", "budget_exhausted", None), FINISHED, ("timed_out", "time-exhausted", "limit"),
    ),
    "its deadline passes": (
        lambda: World([calls("slow")], tools={"slow": sleeps(6)}, child={"tools": ["slow"]},
                      options={"policy": tree_limits(max_depth=3, timeout_s=5)}),
        ("exhausted", False, "the time limit was reached"),
        ("timed_out", "budget_exhausted", None), FINISHED, ("timed_out", "deadline", "limit"),
    ),
    "cancelled while it ran": (
        lambda: World([calls("stop"), says("x")]),
        ("cancelled", False, "enough"), ("cancelled", "cancelled", None), FINISHED, ("cancelled", "cancelled", "user"),
    ),
    "waits for a person": (
        lambda: World([calls("echo")], child={"requires_approval": ["echo"]}),
        ("awaiting_approval", False, "it waits for a person's approval"),
        ("awaiting_approval", "awaiting_approval", None), WAITS, ("awaiting_approval", None, "user"),
    ),
    "a call is denied": (
        lambda: World([calls("secret"), says("x")]),
        ("denied", False, "call_not_authorized"),
        ("failed", None, "call_not_authorized"), FAILED, ("failed", None, "user"),
    ),
    "calls a tool that is not there": (
        lambda: World([calls("ghost"), says("x")]),
        ("denied", False, "tool_not_available"),
        ("failed", None, "tool_not_available"), FAILED, ("failed", None, "model"),
    ),
    "its mode lists a tool that is not there": (
        lambda: World([says("x")], child={"tools": ["ghost"]}),
        ("denied", False, "tool_not_available"),
        ("failed", None, "tool_not_available"), FAILED, ("failed", None, "infrastructure"),
    ),
    "its client fails": (
        lambda: World([RuntimeError("down")]),
        ("failed", True, "RuntimeError"), ("failed", None, "RuntimeError"), FAILED, ("failed", None, "infrastructure"),
    ),
    "nothing was sent": (
        lambda: World([ModelError("offline", sent=False)]),
        ("failed", True, "ModelError"), ("failed", None, "ModelError"), FAILED, ("failed", None, "infrastructure"),
    ),
    "a tool fails": (
        lambda: World([calls("bad"), says("x")], tools={"bad": raises(OSError("q"))}, child={"tools": ["bad"]}),
        ("completed", False, None), ("completed", "stop", None), FINISHED, ("completed", None, "none"),
    ),
    "a tool raises what nobody catches": (
        lambda: World([calls("bad"), says("x")], tools={"bad": raises(Brake())}, child={"tools": ["bad"]}),
        ("completed", False, None), ("completed", "stop", None), FINISHED, ("completed", None, "none"),
    ),
}  # fmt: skip
NEVER_RAN: dict[str, tuple[Callable[[], World], tuple[Any, ...], tuple[Any, ...] | None]] = {
    "no steps are left": (
        lambda: World([says("x")], budget=RunBudget(1)),
        ("exhausted", False, "step budget exhausted (1 of 1 used)"), ("denied", "steps-exhausted", "limit"),
    ),
    "it could make no step": (
        lambda: World([says("x")], declared={"max_steps": 0}),
        ("exhausted", False, "no steps remain in the run tree for this subagent"),
        ("denied", "steps-exhausted", "limit"),
    ),
    "the tree is cancelled": (
        lambda: World([says("x")], big=[calls("stop", "dig", task="x"), says("x")], lead={"tools": ["stop"]}),
        ("cancelled", False, "enough"), ("denied", "cancelled", "user"),
    ),
    "it is the fifth level": (
        lambda: World([says("x")], depth=3),
        ("denied", False, "subagent nesting reached the maximum depth of 4"), ("denied", "max-depth", "limit"),
    ),
    "a policy allows fewer levels": (
        lambda: World([says("x")], options={"policy": tree_limits(max_depth=0)}),
        ("denied", False, "subagent nesting reached the maximum depth of 1"), ("denied", "max-depth", "limit"),
    ),
    "its mode is malformed": (
        lambda: World([says("x")], child={"max_steps": 0}), ("failed", True, "mode_malformed"), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", CHILDREN)
def test_how_a_child_ended_is_told_in_one_way_in_each_place(how: str) -> None:
    make, handed, record, events, row = CHILDREN[how]
    world = make()
    world.send()
    found, run, written = world.handed, world.runtime.sessions.session("top::sub::dig").run, world.written["dig"]
    assert (found["outcome"], found["retryable"], found["reason"]) == handed
    assert found["succeeded"] is (handed[0] == "completed")
    assert run is not None
    assert (run.status, run.finish_reason, run.failure) == record
    assert world.told("top::sub::dig") == events
    assert (written["outcome"], written["stopped_by"], written["cause"]) == row
    assert world.session.run is not None
    assert world.session.run.failure is None
    assert unanswered(world.session) == unanswered(world.runtime.sessions.session("top::sub::dig")) == []


@pytest.mark.parametrize("how", NEVER_RAN)
def test_a_child_that_never_ran_has_no_session_and_no_event(how: str) -> None:
    make, handed, row = NEVER_RAN[how]
    world = make()
    world.send()
    found, written = world.handed, world.written.get("dig")
    assert (found["outcome"], found["retryable"], found["reason"]) == handed
    assert found["usage"]["steps"] == 0
    assert world.runtime.sessions.session("top::sub::dig").run is None
    assert world.told("top::sub::dig") == []
    assert written is None if row is None else (written["outcome"], written["stopped_by"], written["cause"]) == row


Root = tuple[Callable[[], World], type[BaseException] | None, list[str], tuple[Any, ...]]
ROOTS: dict[str, Root] = {
    # what is raised; its events; its run record: status, finish_reason, stopped_because, failure
    "answers": (lambda: World([], [says("x")]), None, FINISHED, ("completed", "stop", None, None)),
    "steps used up": (
        lambda: World([], [calls("echo")], budget=RunBudget(1)), None, FINISHED,
        ("exhausted", "budget_exhausted", "step budget exhausted (1 of 1 used)", None),
    ),
    "time used up": (
        lambda: World([], [calls("slow")], tools={"slow": sleeps(6)}, lead={"tools": ["slow"]},
                      budget=RunBudget(9, None, 5)),
        None, FINISHED, ("timed_out", "budget_exhausted", "time budget exhausted (6s of 5s used)", None),
    ),
    "cancelled": (
        lambda: World([], [calls("stop")], lead={"tools": ["stop"]}), None, FINISHED,
        ("cancelled", "cancelled", "enough", None),
    ),
    "waits for a person": (
        lambda: World([], [calls("echo")], lead={"requires_approval": ["echo"]}), None, WAITS,
        ("awaiting_approval", "awaiting_approval", None, None),
    ),
    "pauses at its limit": (
        lambda: World([], [calls("echo")], budget=RunBudget(1), options={
            "policy": compose(tree_limits(), at_limit=AtLimit(then="pause"))}),
        None, WAITS, ("awaiting_approval", "awaiting_approval", "step budget exhausted (1 of 1 used)", None),
    ),
    "wraps up at its limit": (
        lambda: World([], [calls("echo"), says("so far")], budget=RunBudget(1), options={
            "policy": compose(tree_limits(), at_limit=AtLimit(then="wrap-up"))}),
        None, FINISHED, ("exhausted", "budget_exhausted", "step budget exhausted (1 of 1 used)", None),
    ),
    "its client fails": (
        lambda: World([], [RuntimeError("down")]), RuntimeError, FAILED, ("failed", None, None, "RuntimeError"),
    ),
    "its client raises what nobody catches": (
        lambda: World([], [Brake()]), RuntimeError, FAILED, ("failed", None, None, "RuntimeError"),
    ),
    "a call is denied": (
        lambda: World([], [calls("secret")], lead={"tools": ["secret"]}), AgentError, FAILED,
        ("failed", None, None, "call_not_authorized"),
    ),
    "calls a tool that is not there": (
        lambda: World([], [calls("ghost")]), AgentError, FAILED, ("failed", None, None, "tool_not_available"),
    ),
    "its mode lists a tool that is not there": (
        lambda: World([], [says("x")], lead={"tools": ["ghost"]}), AgentError, FAILED,
        ("failed", None, None, "tool_not_available"),
    ),
    "the process is told to end": (
        lambda: World([], [calls("bad")], tools={"bad": raises(SystemExit(3))}, lead={"tools": ["bad"]}), SystemExit,
        FAILED, ("failed", None, None, "SystemExit"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ROOTS)
def test_how_a_run_ended_is_told_by_one_event_and_its_record(how: str) -> None:
    make, error, events, record = ROOTS[how]
    world = make()
    if error is None:
        world.send()
    else:
        with pytest.raises(error):
            world.send()
    run = world.session.run
    assert world.told("top") == events
    assert run is not None
    assert not world.session.held
    assert (run.status, run.finish_reason, run.stopped_because, run.failure) == record
    assert unanswered(world.session) == []


def test_a_run_whose_account_could_not_be_asked_has_failed_and_says_whose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(
        [], [says("x")], options={"policy": durable_account(str(tmp_path / "a"), calls=8, if_missing="create")}
    )

    def gone(self: DurableAccount, ticket: Any, *args: Any, **options: Any) -> Any:
        raise AccountUnavailable(self.path, "the disk is gone")

    monkeypatch.setattr(DurableAccount, "hold", gone)
    response = world.send()
    run = world.session.run
    assert (response.outcome, world.told("top")) == ("failed", FAILED)
    assert run is not None
    assert (run.status, run.failure) == ("failed", "account-unavailable")
    assert "the disk is gone" in (run.stopped_because or "")
