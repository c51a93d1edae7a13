"""At a limit: one last call to wrap up, a pause, a warning or a cheaper model; asked by hand, and of agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentRuntime, ModelResponse, ModeRegistry, Tool, ToolCall, ToolRegistry
from harness_lab.agents.scripted import ScriptedClient
from harness_lab.clock import Time
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import COST, Code, Outcome, Refusal
from harness_lab.policies import (
    AtLimit,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    durable_account,
    hard_cap,
    period_budget,
    reservation_pool,
    shared_ledger,
)
from harness_lab.usage import amounts, nusd

NOW = Time(0)
WRAP = AtLimit(then="wrap-up")


def begun(spec: PolicySpec) -> tuple[Any, Ticket]:
    policy = spec.start("run")
    root = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(root, Grant)
    return policy, root.ticket


def call(policy: Any, node: Ticket, usd: float = 0.4, kind: Any = "model") -> Any:
    """Ask for a call and settle it."""
    bound = amounts(calls=1, cost_usd=usd)
    answer = policy.admit(StepAsk(node, 0, 0, bound, kind), NOW)
    if isinstance(answer, Grant):
        policy.settle(answer.ticket, Use((1, 5, 9, 9, bound[COST])), NOW)
    return answer


def test_a_wrap_up_is_admitted_outside_the_limit_once_and_booked_apart() -> None:
    policy, root = begun(compose(hard_cap(1.0), at_limit=WRAP))
    call(policy, root)
    assert call(policy, root, kind="wrap-up").code is Code.WRAP_UP_USED
    call(policy, root)
    assert call(policy, root).then == "wrap-up"
    assert isinstance(call(policy, root, kind="wrap-up"), Grant)
    assert call(policy, root, kind="wrap-up").code is Code.WRAP_UP_USED
    pot = policy.modules[0].pot
    assert (pot.spent[COST], pot.held[COST], pot.apart[COST]) == (nusd(0.8), 0, nusd(0.4))
    assert (policy.apart.steps, policy.apart.spent[COST]) == (1, nusd(0.4))


def test_ledger_and_pool_count_the_wrap_up_because_it_happened() -> None:
    policy, root = begun(compose(shared_ledger(1), reservation_pool(calls=1), at_limit=WRAP))
    call(policy, root)
    call(policy, root)
    call(policy, root, kind="wrap-up")
    ledger, pool = policy.modules
    assert (ledger.ledger.steps, pool.pool.spent()[0], policy.apart.steps) == (2, 2, 1)


def test_a_period_budget_counts_the_wrap_up_too() -> None:
    spec = compose(shared_ledger(0), period_budget(calls=9), at_limit=WRAP)
    with spec.open() as opened:
        policy = opened.start("run", now=Time(1_800_000_000 * 10**9))
        root: Any = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        call(policy, root.ticket)
        assert isinstance(call(policy, root.ticket, kind="wrap-up"), Grant)
        assert policy.apart.steps == 1  # type: ignore[attr-defined]


def test_each_node_has_one_wrap_up_and_a_stopped_node_none() -> None:
    policy, root = begun(compose(shared_ledger(0), at_limit=WRAP))
    policy.modules[0].ledger.steps = 0
    call(policy, root)
    policy.cancel(root, "enough", NOW)
    assert call(policy, root, kind="wrap-up").code is Code.CANCELLED
    assert call(policy, root).then == "stop"


def test_what_is_no_limit_is_followed_by_nothing() -> None:
    policy, root = begun(compose(hard_cap(1.0), at_limit=WRAP))
    answer = policy.admit(StepAsk(root, 0, 0, amounts(calls=1)), NOW)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.then) == (Code.UNBOUNDED, "stop")


def test_a_wrap_up_is_settled_once() -> None:
    policy, root = begun(compose(shared_ledger(0), at_limit=WRAP))
    call(policy, root)
    ticket = policy.admit(StepAsk(root, 0, 0, amounts(), "wrap-up"), NOW).ticket
    policy.settle(ticket, Use((1, 1, 1, 1, 1)), NOW)
    with pytest.raises(AlreadySettled):
        policy.settle(ticket, Use((1, 1, 1, 1, 1)), NOW)
    assert policy.apart.steps == 1


def test_from_a_share_on_grants_warn_and_name_a_cheaper_model() -> None:
    axis = AtLimit(warn_at=0.5, cheaper_model="small", cheaper_at=0.8)
    policy, root = begun(compose(hard_cap(1.0), shared_ledger(10), at_limit=axis))
    answers = [call(policy, root, 0.3) for _ in range(3)]
    assert [a.model for a in answers] == [None, None, "small"]
    assert [len(a.warnings) for a in answers] == [0, 1, 1]
    assert answers[1].warnings[0] == "cost: $0.60 of $1.00 used or held"


def test_the_axis_is_data() -> None:
    spec = compose(shared_ledger(3), at_limit=AtLimit(then="pause", warn_at=0.9))
    assert PolicySpec.from_dict(spec.to_dict()) == spec
    assert spec.to_dict()["at_limit"] == {"then": "pause", "warn_at": 0.9, "cheaper_at": 0.8}
    for wrong in ({"then": "go-on"}, {"warn_at": 2}, {"warn_at": True}, {"cheaper_model": ""}, {"unknown": 1}, "stop"):
        with pytest.raises(InputError):
            PolicySpec.from_dict({"name": "x", "at_limit": wrong})


def test_nothing_is_spent_outside_the_cap_of_many_processes() -> None:
    with pytest.raises(InputError, match="durable account"):
        compose(durable_account("a.db", calls=1), at_limit=WRAP)


TOOL = ModelResponse(text="working", tool_calls=[ToolCall(id="c", name="echo")], cost_usd=0.1)
DONE = ModelResponse(text="this is what I have", cost_usd=0.2)


def run(axis: AtLimit, script: list[Any]) -> tuple[Any, ScriptedClient, Any]:
    client = ScriptedClient(script)
    modes = ModeRegistry({"modes": {"chat": {"max_steps": 9, "tools": ["echo"], "model": "big"}}})
    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    policy = compose(shared_ledger(2), at_limit=axis)
    service = AgentRuntime(client, modes, tools, policy=policy)
    session = service.sessions.session("s")
    return asyncio.run(service.send(session, "go")), client, session


def test_an_agent_wraps_up_without_tools_and_ends_as_exhausted() -> None:
    response, client, session = run(WRAP, [TOOL, TOOL, DONE])
    assert (response.outcome, response.text) == (Outcome.EXHAUSTED, "this is what I have")
    assert "step budget exhausted (2 of 2 used)" in response.stopped_because
    assert [len(request.tools) for request in client.requests] == [1, 1, 0]
    assert "last answer" in client.requests[2].system_prompt
    assert session.messages[-1]["content"] == "this is what I have"
    assert response.tree.cost_usd == pytest.approx(0.4)


def test_tools_that_a_wrap_up_asks_for_all_the_same_do_not_run() -> None:
    response, client, _ = run(WRAP, [TOOL, TOOL, TOOL])
    assert (response.outcome, len(client.requests), len(response.tool_calls)) == (Outcome.EXHAUSTED, 3, 2)


def test_a_wrap_up_that_fails_leaves_the_run_exhausted() -> None:
    response, _, _ = run(WRAP, [TOOL, TOOL, RuntimeError("down")])
    assert (response.outcome, response.text) == (Outcome.EXHAUSTED, "working")


def test_an_agent_pauses_at_its_limit_and_says_why() -> None:
    response, client, _ = run(AtLimit(then="pause"), [TOOL, TOOL])
    assert (response.outcome, response.finish_reason) == (Outcome.AWAITING_APPROVAL, "awaiting_approval")
    assert "step budget exhausted" in response.stopped_because
    assert len(client.requests) == 2


def test_an_agent_goes_on_with_the_cheaper_model() -> None:
    _, client, _ = run(AtLimit(cheaper_model="small", cheaper_at=0.5), [TOOL, TOOL])
    assert [request.model for request in client.requests] == ["big", "small"]


def test_an_agent_is_warned_from_a_share_on_and_not_before() -> None:
    half, _, _ = run(AtLimit(warn_at=0.5), [TOOL, DONE])
    assert (half.outcome, half.warnings) == (Outcome.COMPLETED, ("calls: 1 of 2 used or held",))
    assert run(AtLimit(warn_at=0.9), [TOOL, DONE])[0].warnings == ()
