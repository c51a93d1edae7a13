"""Runs inside the environment of agents.txt: loads exports with the real packages and says what they hold.

Not a test itself. Reads ``{"cases": [{"kind": ..., "files": {...}, ...}]}`` from standard input and writes one answer
a case, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
CALLS_AT_MOST = 60


def run_file(text: str) -> dict[str, Any]:
    """Run an exported Python file as its user would."""
    names: dict[str, Any] = {}
    exec(compile(text, "export.py", "exec"), names)  # noqa: S102 - that is what loading it means
    return names


def pydantic_ai(case: dict[str, Any]) -> Any:
    """Return the limits, and how many requests a run that never ends may make."""
    from dataclasses import asdict

    from pydantic_ai.usage import UsageLimits

    if case["form"] == "json":
        limits = UsageLimits(**json.loads(case["text"]))
    else:
        limits = run_file(case["text"])["USAGE_LIMITS"]
    held = {key: value for key, value in asdict(limits).items() if value is not None and value is not False}
    cost = held.get("cost_limit")
    held |= {} if cost is None else {"cost_limit": float(cost)}
    return {"held": held, "calls": _pydantic_calls(limits) if case.get("run") else None}


def _pydantic_calls(limits: Any) -> int:
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import UsageLimitExceeded
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage

    calls = 0

    def never_done(_messages: Any, _info: Any) -> ModelResponse:
        nonlocal calls
        calls += 1
        return ModelResponse(parts=[ToolCallPart("more", {})], usage=RequestUsage(input_tokens=8, output_tokens=2))

    agent = Agent(FunctionModel(never_done))
    agent.tool_plain(lambda: "more", name="more")
    with suppress(UsageLimitExceeded):
        agent.run_sync("go", usage_limits=limits)
    return calls


def openai_agents(case: dict[str, Any]) -> Any:
    """Return how many turns a run that never ends may take."""
    limits = json.loads(case["text"]) if case["form"] == "json" else run_file(case["text"])["RUN_LIMITS"]
    limits.pop("as_tool", None)
    return {"held": limits, "calls": asyncio.run(_turns(limits)) if case.get("run") else None}


async def _turns(limits: dict[str, Any]) -> int:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.exceptions import MaxTurnsExceeded
    from openai.types.responses import ResponseFunctionToolCall

    set_tracing_disabled(True)
    calls = 0

    class NeverDone(Model):
        async def get_response(self, *_given: Any, **_named: Any) -> Any:
            nonlocal calls
            calls += 1
            asked = ResponseFunctionToolCall(arguments="{}", call_id=f"c{calls}", name="more", type="function_call")
            return ModelResponse(output=[asked], usage=Usage(), response_id=None)

        def stream_response(self, *_given: Any, **_named: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def more() -> str:
        """Go on."""
        return "more"

    with suppress(MaxTurnsExceeded):
        await Runner.run(Agent(name="a", model=NeverDone(), tools=[more]), "go", **limits)
    return calls


def langgraph(case: dict[str, Any]) -> Any:
    """Return how many model calls a graph of an agent and its tools may make, which ends after `needs` of them."""
    from langgraph.errors import GraphRecursionError
    from langgraph.graph import END, START, StateGraph

    config = json.loads(case["text"]) if case["form"] == "json" else run_file(case["text"])["CONFIG"]
    if not case.get("run"):
        return {"held": config, "calls": None}
    calls = 0

    def agent(state: dict[str, int]) -> dict[str, int]:
        nonlocal calls
        calls += 1
        return {"calls": state["calls"] + 1}

    graph = StateGraph(dict)
    graph.add_node("agent", agent)
    graph.add_node("tools", lambda state: state)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda s: END if s["calls"] >= case["needs"] else "tools", ["tools", END])
    graph.add_edge("tools", "agent")
    try:
        graph.compile().invoke({"calls": 0}, config)
        done = True
    except GraphRecursionError:
        done = False
    return {"held": config, "calls": calls, "done": done}


def litellm(case: dict[str, Any]) -> Any:
    """Return what the proxy's own limiters admit in a session, and how it reads a budget."""
    agent = json.loads(case["files"].get("litellm-agent.json", "{}")).get("litellm_params", {})
    budgets = json.loads(case["files"].get("litellm-budgets.json", "[]"))
    read = []
    for body in budgets:
        from litellm.litellm_core_utils.duration_parser import duration_in_seconds
        from litellm.proxy._types import BudgetNewRequest

        given = BudgetNewRequest(**{k: v for k, v in body.items() if k not in ("for", "send_to")})
        span = given.budget_duration
        held = {"max_budget": given.max_budget, "soft_budget": given.soft_budget}
        read.append(held | {"seconds": None if span is None or span.endswith("mo") else duration_in_seconds(span)})
    if "litellm-models.json" in case["files"]:
        return [_cost(name, info) for name, info in json.loads(case["files"]["litellm-models.json"]).items()]
    admitted = asyncio.run(_session(agent)) if case.get("run") else None
    return {"held": agent, "budgets": read, "admitted": admitted}


def _cost(name: str, info: dict[str, Any]) -> float:
    """Let the package price a call of 1,000 prompt tokens, of which 400 were read from a cache, and 100 of output."""
    from litellm import ModelResponse, completion_cost, register_model
    from litellm.types.utils import PromptTokensDetailsWrapper, Usage

    register_model({name: info | {"litellm_provider": "openai", "mode": "chat"}})
    details = PromptTokensDetailsWrapper(cached_tokens=400)
    usage = Usage(prompt_tokens=1000, completion_tokens=100, total_tokens=1100, prompt_tokens_details=details)
    return float(completion_cost(ModelResponse(model=name, usage=usage), model=name))


async def _session(params: dict[str, Any]) -> Any:
    """Ask the two limiters before each call of one session, and charge 0.25 dollars after it."""
    from litellm.caching.caching import DualCache
    from litellm.proxy._types import UserAPIKeyAuth
    from litellm.proxy.agent_endpoints.agent_registry import global_agent_registry
    from litellm.proxy.hooks.max_budget_per_session_limiter import _PROXY_MaxBudgetPerSessionHandler as Budget
    from litellm.proxy.hooks.max_iterations_limiter import _PROXY_MaxIterationsHandler as Iterations
    from litellm.proxy.utils import InternalUsageCache
    from litellm.types.agents import AgentResponse

    card = {"name": "a", "url": "http://127.0.0.1", "version": "1", "description": "", "skills": []}
    agent = AgentResponse(agent_id="a", agent_name="a", litellm_params=params, agent_card_params=card)
    global_agent_registry.agent_list = [agent]
    cache = InternalUsageCache(DualCache())
    limiters, key = (Iterations(cache), Budget(cache)), UserAPIKeyAuth(agent_id="a")
    asked = {"metadata": {"session_id": "s", "agent_id": "a"}, "model": "m"}
    for admitted in range(CALLS_AT_MOST):
        for limiter in limiters:
            try:
                await limiter.async_pre_call_hook(key, cache.dual_cache, asked, "completion")
            except Exception:  # whatever it refuses with
                return admitted
        spent = {"litellm_params": {"metadata": asked["metadata"]}, "response_cost": 0.25}
        await limiters[1].async_log_success_event(spent, None, None, None)
    return CALLS_AT_MOST


def claude_agent_sdk(case: dict[str, Any]) -> Any:
    """Return the command line that the SDK makes of its options."""
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

    options = json.loads(case["text"]) if case["form"] == "json" else run_file(case["text"])["OPTIONS"]
    agents = {name: AgentDefinition(**fields) for name, fields in options.pop("agents", {}).items()}
    given = ClaudeAgentOptions(**options, agents=agents or None, cli_path="claude")
    command = SubprocessCLITransport("x", given)._build_command()
    flags = {key: command[command.index(key) + 1] for key in ("--max-turns", "--max-budget-usd") if key in command}
    denied = command[command.index("--disallowedTools") + 1] if "--disallowedTools" in command else None
    return {"flags": flags, "env": given.env, "denied": denied, "agents": {n: a.maxTurns for n, a in agents.items()}}


def claude_code(case: dict[str, Any]) -> Any:
    """Return what the real client says to the flags and files: without a login it stops after it has read them."""
    import claude_agent_sdk as sdk

    client = Path(sdk.__file__).parent / "_bundled" / "claude"
    with tempfile.TemporaryDirectory() as folder:
        for path, text in case["files"].items():
            place = Path(folder) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        env = {"PATH": os.environ["PATH"], "HOME": folder, "DISABLE_AUTOUPDATER": "1"}
        command = [str(client), "-p", "x", *case["files"].get("claude-flags.txt", "").split()]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    return {"said": (done.stdout + done.stderr).strip()[-300:]}


KINDS = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "langgraph": langgraph,
    "litellm": litellm,
    "claude-agent-sdk": claude_agent_sdk,
    "claude-code": claude_code,
}


def main() -> None:
    """Answer what is asked."""
    told = sys.stdout
    sys.stdout = sys.stderr
    json.dump([KINDS[case["kind"]](case) for case in json.load(sys.stdin)["cases"]], told)


if __name__ == "__main__":
    main()
