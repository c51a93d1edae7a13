"""The agent runtime: one conversation through the loop, with its tools, approvals, budget and events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents import (
    AgentError,
    AgentRuntime,
    Events,
    ModelError,
    ModelResponse,
    ModeRegistry,
    Sessions,
    Tool,
    ToolAuthorizer,
    ToolRegistry,
    record_approval,
)
from harness_lab.agents.due import NOT_RUN
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.budget import RunBudget, RunContext
from harness_lab.errors import InputError
from harness_lab.outcome import Outcome
from harness_lab.policies import period_budget, reservation_pool, shared_ledger

if TYPE_CHECKING:
    from collections.abc import Mapping


def _runtime(script: list[Any], mode: Mapping[str, Any] | None = None, **options: Any) -> AgentRuntime:
    entry = {"system_prompt": "Be brief.", "tools": ["echo"], "max_steps": 4, **(mode or {})}
    tools = ToolRegistry().register(Tool("echo", lambda arguments: arguments.get("text", "echo")))
    repeat = options.pop("repeat_last", False)
    client = ScriptedClient(script, repeat_last=repeat)
    return AgentRuntime(client, ModeRegistry({"modes": {"chat": entry}}), tools, **options)


def _send(runtime: AgentRuntime, prompt: str = "go", **options: Any) -> Any:
    return asyncio.run(runtime.send(runtime.sessions.session("support"), prompt, **options))


def _results(runtime: AgentRuntime) -> list[str]:
    messages = runtime.sessions.session("support").messages
    return [r["result"] for m in messages if m["type"] == "tool_result" for r in m["results"]]


def test_a_run_that_answers_on_its_last_allowed_step_is_not_cut_off() -> None:
    response = _send(_runtime([calls("echo"), says("done")], {"max_steps": 2}))
    assert (response.text, response.outcome, response.cut_off) == ("done", Outcome.COMPLETED, False)


def test_a_cut_off_run_says_so_in_its_response_and_in_its_record() -> None:
    runtime = _runtime([calls("echo", text="so far")], repeat_last=True)
    response, run = _send(runtime), runtime.sessions.session("support").run
    assert (response.text, response.finish_reason) == ("so far", "budget_exhausted")
    assert response.stopped_because == "step budget exhausted (4 of 4 used)"
    assert run is not None
    assert (run.status, run.finish_reason, run.stopped_because) == (
        "exhausted",
        response.finish_reason,
        response.stopped_because,
    )


def test_a_session_is_held_for_the_whole_run_and_free_after_it() -> None:
    async def run() -> tuple[str, bool]:
        seen: list[str] = []

        async def again(arguments: Mapping[str, Any]) -> str:
            with pytest.raises(AgentError) as error:
                await runtime.send(session, "me too")
            seen.append(error.value.code)
            return "no"

        runtime = _runtime([calls("echo"), says("done")])
        runtime.tools.register(Tool("echo", again))
        session = runtime.sessions.session("support")
        await runtime.send(session, "go")
        return seen[0], session.held

    assert asyncio.run(run()) == ("session_locked", False)


@pytest.mark.parametrize("script", [[RuntimeError("down")], [calls("ghost")]])
def test_a_session_is_free_after_a_run_that_failed(script: list[Any]) -> None:
    runtime = _runtime(script)
    with pytest.raises((RuntimeError, AgentError)):
        _send(runtime)
    assert not runtime.sessions.session("support").held


def test_a_run_that_is_cancelled_from_outside_ends_cancelled_and_frees_its_session() -> None:
    async def run() -> Any:
        async def forever(arguments: Mapping[str, Any]) -> str:
            started.set()
            await asyncio.Event().wait()
            return ""

        started = asyncio.Event()
        runtime = _runtime([calls("echo")])
        runtime.tools.register(Tool("echo", forever))
        session = runtime.sessions.session("support")
        task = asyncio.ensure_future(runtime.send(session, "go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session

    session = asyncio.run(run())
    assert (session.held, session.run.status, session.run.finish_reason) == (False, "cancelled", "cancelled")


@pytest.mark.parametrize(("own", "ceiling", "steps"), [(None, 40, 4), (20, 40, 20), (99, 40, 40), (99, None, 99)])
def test_a_session_raises_its_step_limit_up_to_the_operators_ceiling(own: Any, ceiling: Any, steps: int) -> None:
    runtime = _runtime([calls("echo")], repeat_last=True, max_steps_ceiling=ceiling)
    if own is not None:
        runtime.sessions.session("support").using_max_steps(own)
    assert _send(runtime).usage.steps == steps


def test_a_context_replaces_the_configured_budget_and_keeps_its_ledger() -> None:
    context = RunContext.root("run-1", RunBudget(6, 1.0))
    response = _send(_runtime([calls("echo", cost_usd=0.6)], repeat_last=True), context=context)
    assert response.stopped_because == "cost budget exhausted (1.2000 of 1.0000 USD used)"
    assert (context.ledger.steps, context.ledger.cost_usd, response.run_id) == (2, 1.2, "run-1")


def test_a_call_without_a_cost_stops_a_capped_run_before_its_next_step() -> None:
    context = RunContext.root("run-1", RunBudget(6, 1.0))
    response = _send(_runtime([calls("echo")], repeat_last=True), context=context)
    assert response.usage.steps == 1
    assert response.stopped_because is not None
    assert response.stopped_because.startswith("cost budget cannot be enforced: 1 run(s) reported no cost")


def test_a_failed_call_is_charged_what_its_client_knows() -> None:
    used = []
    for error in (ModelError("never sent", sent=False), ModelError("cut", cost_usd=0.25), RuntimeError("down")):
        context = RunContext.root("run-1", RunBudget(6))
        with pytest.raises(type(error)):
            _send(_runtime([error]), context=context)
        used.append((context.ledger.steps, context.ledger.cost_usd, context.ledger.unmetered_runs))
    assert used == [(0, 0.0, 0), (1, 0.25, 0), (1, 0.0, 1)]


def test_a_cost_that_would_give_money_back_or_poison_the_sum_is_refused() -> None:
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="cost_usd"):
            ModelResponse(cost_usd=cost)


def test_a_cancelled_tree_finishes_the_step_in_flight_and_then_stops() -> None:
    context = RunContext.root("run-1", RunBudget(6))
    runtime = _runtime([calls("echo", text="half")], repeat_last=True)
    runtime.tools.register(Tool("echo", lambda arguments: context.ledger.cancel("the user left")))
    response = _send(runtime, context=context)
    assert (response.outcome, response.finish_reason) == (Outcome.CANCELLED, "cancelled")
    assert (response.stopped_because, context.ledger.steps) == ("the user left", 1)


def test_a_gated_tool_waits_for_a_person_and_runs_once_when_approved() -> None:
    ran: list[str] = []
    runtime = _runtime([calls("echo", text="x"), says("done"), says("again")], {"requires_approval": ["echo"]})
    runtime.tools.register(Tool("echo", lambda arguments: ran.append("ran") or "ok"))  # type: ignore[func-returns-value]
    session = runtime.sessions.session("support")
    first = _send(runtime)
    assert (first.finish_reason, ran) == ("awaiting_approval", [])
    record_approval(session, first.pending_approvals[0].id, approved=True)
    assert (_send(runtime, "").text, ran, _results(runtime)) == ("done", ["ran"], ["ok"])
    _send(runtime, "once more")
    assert ran == ["ran"]


@pytest.mark.parametrize(
    ("answer", "result"),
    [(None, "No approval response provided"), ("too risky", "too risky"), ("", "User denied tool execution")],
)
def test_a_gated_tool_does_not_run_without_a_yes(answer: str | None, result: str) -> None:
    runtime = _runtime([calls("echo"), says("ok")], {"requires_approval": ["*"]})
    pending = _send(runtime).pending_approvals[0]
    if answer is not None:
        record_approval(runtime.sessions.session("support"), pending.id, approved=False, reason=answer)
    _send(runtime, "")
    assert _results(runtime) == [result]


def test_an_approval_survives_a_restart_of_the_process() -> None:
    runtime = _runtime([calls("echo")], {"requires_approval": ["echo"]})
    pending = _send(runtime).pending_approvals[0]
    stored = runtime.sessions.session("support").to_dict()
    later = _runtime([says("done")], {"requires_approval": ["echo"]}, sessions=Sessions())
    session = later.sessions.restore(stored)
    record_approval(session, pending.id, approved=True)
    assert _send(later, "").text == "done"
    assert _results(later) == ["echo"]


def test_an_approval_that_nobody_asked_for_is_refused() -> None:
    runtime = _runtime([says("hello")])
    _send(runtime)
    with pytest.raises(AgentError, match="No call waits for approval") as error:
        record_approval(runtime.sessions.session("support"), "apr_made_up", approved=True)
    assert error.value.code == "approval_not_pending"


@pytest.mark.parametrize("first", [True, False])
def test_the_first_answer_to_a_call_is_final(first: bool) -> None:
    runtime = _runtime([calls("echo"), says("ok")], {"requires_approval": ["echo"]})
    pending, session = _send(runtime).pending_approvals[0], runtime.sessions.session("support")
    record_approval(session, pending.id, approved=first)
    for later in (True, False):
        with pytest.raises(AgentError, match="No call waits for approval") as error:
            record_approval(session, pending.id, approved=later)
        assert error.value.code == "approval_not_pending"
    _send(runtime, "")
    assert _results(runtime) == (["echo"] if first else ["User denied tool execution"])


def test_of_two_answers_in_a_stored_conversation_the_first_one_stands() -> None:
    runtime = _runtime([calls("echo"), says("ok")], {"requires_approval": ["echo"]})
    pending, session = _send(runtime).pending_approvals[0], runtime.sessions.session("support")
    record_approval(session, pending.id, approved=False)
    session.messages.append({**session.messages[-1], "approved": True})
    _send(runtime, "")
    assert _results(runtime) == ["User denied tool execution"]


def test_an_approved_call_that_is_no_longer_authorised_does_not_block_the_session() -> None:
    allowed = [True]
    authorizer = ToolAuthorizer(call=lambda *_: allowed[0])
    runtime = _runtime([calls("echo"), says("ok")], {"requires_approval": ["echo"]}, authorizer=authorizer)
    record_approval(runtime.sessions.session("support"), _send(runtime).pending_approvals[0].id, approved=True)
    allowed[0] = False
    assert _send(runtime, "").text == "ok"
    assert _results(runtime) == ["Not run: this call to echo is not authorized."]


def test_what_ran_before_a_denied_call_is_kept() -> None:
    authorizer = ToolAuthorizer(call=lambda _, tool, arguments: tool.name == "echo")
    runtime = _runtime([calls("echo", "other")], {"tools": ["*"]}, authorizer=authorizer)
    runtime.tools.register(Tool("other", lambda arguments: "no"))
    with pytest.raises(AgentError, match=r"call to tool \[other\] is not authorized"):
        _send(runtime)
    assert _results(runtime) == ["echo", NOT_RUN]


def test_a_tool_that_may_not_be_offered_is_not() -> None:
    runtime = _runtime([says("ok")], authorizer=ToolAuthorizer(offer=lambda session, tool: False))
    _send(runtime)
    assert isinstance(runtime.client, ScriptedClient)
    assert list(runtime.client.requests[0].tools) == []


def test_a_policy_that_is_defined_and_switched_off_is_refused() -> None:
    with pytest.raises(AgentError, match="defined and switched off"):
        ToolAuthorizer(call=lambda *_: True, enabled=False)


def test_a_caller_narrows_the_tools_and_never_widens_them() -> None:
    runtime = _runtime([says("ok")], repeat_last=True)
    runtime.tools.register(Tool("delete", lambda arguments: "gone"))
    for names in (None, ["*"], ["echo", "delete"], ["delete"], []):
        _send(runtime, tool_names=names)
    assert isinstance(runtime.client, ScriptedClient)
    offered = [[tool.name for tool in request.tools] for request in runtime.client.requests]
    assert offered == [["echo"], ["echo"], ["echo"], [], []]


def test_a_second_factory_of_one_name_replaces_the_first_and_warns() -> None:
    tools = ToolRegistry().register_factory("t", lambda session: Tool("t", lambda _: "first"))
    with pytest.warns(UserWarning, match=r"factory of tool \[t\] is replaced"):
        tools.register_factory("t", lambda session: Tool("t", lambda _: "second"))
    assert tools.resolve(["t"], Sessions().session("s"))["t"].handle({}) == "second"


def test_a_listener_that_raises_is_warned_about_and_ignored() -> None:
    seen: list[Any] = []

    def broken(event: Any) -> None:
        raise ValueError("boom")

    runtime = _runtime([says("done", cost_usd=0.5)], events=Events().listen(broken).listen(seen.append))
    with pytest.warns(RuntimeWarning, match="a listener of run.* raised ValueError"):
        assert _send(runtime).text == "done"
    assert [event.name for event in seen] == ["run.started", "run.finished"]
    assert (seen[1].steps, seen[1].cost_usd, seen[1].stopped_because) == (1, 0.5, None)


def test_an_event_of_a_failed_run_does_not_carry_the_errors_words() -> None:
    seen: list[Any] = []
    with pytest.raises(RuntimeError, match="secret"):
        _send(_runtime([RuntimeError("secret")], events=Events().listen(seen.append)))
    assert (seen[1].name, seen[1].failure) == ("run.failed", "RuntimeError")


def test_other_modules_of_a_policy_are_asked_behind_the_ledger() -> None:
    policy = shared_ledger(5)
    runtime = _runtime([calls("echo")], repeat_last=True, policy=policy)
    assert _send(runtime).stopped_because == "step budget exhausted (5 of 5 used)"
    runtime = _runtime([calls("echo")], repeat_last=True, policy=reservation_pool(calls=2))
    response = _send(runtime)
    assert (response.outcome, response.usage.steps) == (Outcome.EXHAUSTED, 2)
    assert response.stopped_because is not None
    assert response.stopped_because.startswith("budget-exhausted (calls)")


def test_an_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="default, prism-py, prism-ts, prism-php"):
        _runtime([], rules="prism-go")


def test_a_run_stopped_by_a_period_budget_names_the_limit_with_its_figures() -> None:
    with _runtime([calls("echo")], policy=period_budget(calls=1, every="day"), repeat_last=True) as runtime:
        why = _send(runtime).stopped_because
    assert why.startswith("budget-exhausted (calls): asked 1, free 0 of 1;")
    assert "day, reset at" in why


@pytest.mark.parametrize("answer", [None, "hello"])
def test_a_client_that_answers_with_no_response_fails_in_one_clear_line(answer: Any) -> None:
    with pytest.raises(InputError, match="answer of the client: expected a ModelResponse"):
        _send(_runtime([answer]))


def test_a_call_that_waits_is_given_up_by_the_next_prompt() -> None:
    runtime = _runtime([calls("echo"), says("ok")], {"requires_approval": ["echo"]})
    pending = _send(runtime).pending_approvals[0]
    _send(runtime, "something else")
    assert _results(runtime) == ["No approval response provided"]
    with pytest.raises(AgentError, match="No call waits for approval"):
        record_approval(runtime.sessions.session("support"), pending.id, approved=True)
