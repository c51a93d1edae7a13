"""Adapters held against the packages that they are about: real agents and sessions, run as their users do.

These tests run inside the environment that has the packages (``test_inside`` starts them there), and are skipped
elsewhere.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from asked_tree import MOST, NOW, Tree, needs

from harness_lab.outcome import Refusal
from harness_lab.policies import StepAsk
from harness_lab.usage import amounts

pytestmark = pytest.mark.filterwarnings("default")  # what the packages warn of is not ours


# pydantic-ai: a model that never is done, 8 prompt tokens and 2 of output a call, a quarter of a dollar


def _pydantic_model(seen: list[int], parts: int = 1) -> Any:
    from decimal import Decimal

    from pydantic_ai.messages import ModelResponse, ToolCallPart  # type: ignore[import-not-found]
    from pydantic_ai.models.function import FunctionModel  # type: ignore[import-not-found]
    from pydantic_ai.usage import RequestUsage  # type: ignore[import-not-found]

    def never_done(_messages: Any, _info: Any) -> Any:
        seen.append(1)
        if len(seen) > MOST:
            raise OverflowError
        usage = RequestUsage(input_tokens=8, output_tokens=2, cost=Decimal("0.25"))
        return ModelResponse(parts=[ToolCallPart("more", {}) for _ in range(parts)], usage=usage)

    return FunctionModel(never_done)


def _pydantic_calls(**limits: Any) -> int:
    from pydantic_ai import Agent  # type: ignore[import-not-found]
    from pydantic_ai.exceptions import UsageLimitExceeded  # type: ignore[import-not-found]
    from pydantic_ai.usage import UsageLimits

    seen: list[int] = []
    agent = Agent(_pydantic_model(seen))
    agent.tool_plain(lambda: "more", name="more")
    with suppress(UsageLimitExceeded):
        agent.run_sync("go", usage_limits=UsageLimits(**limits))
    return len(seen)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [({"calls": n}, {"request_limit": n}) for n in (0, 1, 3)]
    + [({}, {})]
    + [({"tokens": n}, {"total_tokens_limit": n}) for n in (0, 9, 10, 11, 25, 30)]
    + [({"input": n}, {"input_tokens_limit": n}) for n in (7, 8, 9)]
    + [({"cost_usd": n}, {"cost_limit": n}) for n in (0, 0.25, 0.5, 0.6)],
)
def test_a_pydantic_ai_agent_makes_as_many_requests_as_its_adapter_admits(ours: Any, theirs: Any) -> None:
    needs("pydantic-ai")
    from decimal import Decimal

    if "cost_limit" in theirs:
        theirs = {"cost_limit": Decimal(str(theirs["cost_limit"]))}
    tree = Tree("pydantic-ai", **ours)
    assert tree.calls(input=8, tokens=10, cost_usd=0.25) == _pydantic_calls(**theirs)


def test_a_pydantic_ai_child_counts_on_the_usage_and_has_limits_of_its_own() -> None:
    """A-23: children get the parent's running total but not its limits."""
    needs("pydantic-ai")
    from pydantic_ai import Agent, RunContext
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.usage import UsageLimits

    above: list[int] = []
    below: list[int] = []
    child, parent = Agent(_pydantic_model(below)), Agent(_pydantic_model(above))
    child.tool_plain(lambda: "more", name="more")

    async def delegate(ctx: Any) -> str:
        with suppress(UsageLimitExceeded):
            await child.run("go", usage=ctx.usage)
        return "done"

    delegate.__annotations__["ctx"] = RunContext[None]
    parent.tool(delegate, name="more")
    with suppress(UsageLimitExceeded):
        parent.run_sync("go", usage_limits=UsageLimits(request_limit=3))
    tree = Tree("pydantic-ai", calls=3)
    tree.call()
    tree.child("kid")
    assert (tree.calls("kid"), tree.calls()) == (len(below), len(above) - 1) == (49, 0)


def test_pydantic_ai_looks_at_a_batch_of_tool_calls_whole() -> None:
    """A-04: a limit of 6 tool calls, 8 asked for in one turn."""
    needs("pydantic-ai")
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.usage import UsageLimits

    ran: list[int] = []
    agent = Agent(_pydantic_model([], parts=8))
    agent.tool_plain(lambda: ran.append(1), name="more")
    with pytest.raises(UsageLimitExceeded):
        agent.run_sync("go", usage_limits=UsageLimits(tool_calls_limit=6))
    tree = Tree("pydantic-ai", tool_calls=6)
    batch = StepAsk(tree.nodes["root"], 1, 0, amounts(), "tool", 8)
    assert isinstance(tree.policy.admit(batch, NOW), Refusal)
    assert not ran


def test_an_attempt_that_a_pydantic_ai_fallback_moved_on_from_is_no_request() -> None:
    needs("pydantic-ai")
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
    from pydantic_ai.models.fallback import FallbackModel  # type: ignore[import-not-found]
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    def fails(_messages: Any, _info: Any) -> Any:
        raise ModelHTTPError(503, "m")

    seen: list[int] = []
    agent = Agent(FallbackModel(FunctionModel(fails), _pydantic_model(seen)))
    agent.tool_plain(lambda: "more", name="more")
    with suppress(UsageLimitExceeded):
        agent.run_sync("go", usage_limits=UsageLimits(request_limit=3))
    tree = Tree("pydantic-ai", calls=3)
    pairs = sum(tree.call(status="failed") and tree.call(attempt=1) for _ in range(5))
    assert pairs == len(seen) == 3


# LiteLLM: sessions of its proxy


def test_five_requests_of_one_litellm_session_at_once_are_counted_before_they_leave() -> None:
    """A-01: parallel turns on one figure; the session's count of calls holds, its dollars do not."""
    needs("litellm")
    from harness_lab.adapters.litellm import LiteLLM

    async def at_once(session: Any) -> int:
        hooks, asked = session._hooks, {"metadata": session._session}
        spent = {"litellm_params": asked, "response_cost": 0.9}
        await hooks[1].async_log_success_event(spent, None, None, None)
        said = [_asks(hook, session, asked) for hook in hooks for _ in range(5)]
        return sum(one is None for one in await asyncio.gather(*said, return_exceptions=True))

    assert asyncio.run(at_once(LiteLLM(calls=3))) == 3 + 5
    assert asyncio.run(at_once(LiteLLM(cost_usd=1.0))) == 5 + 5
    assert Tree("litellm", calls=3).calls() == 3


async def _asks(hook: Any, session: Any, asked: Any) -> Any:
    return await hook.async_pre_call_hook(session._auth, session._cache, dict(asked), "completion")


def test_a_litellm_session_counts_what_it_refused() -> None:
    needs("litellm")
    tree = Tree("litellm", calls=2)
    assert [tree.call() for _ in range(4)] == [True, True, False, False]
    said = tree.policy.admit(StepAsk(tree.nodes["root"], 9, 0, amounts(calls=1)), NOW)
    assert "Current count: 5, max_iterations: 2" in str(said)
