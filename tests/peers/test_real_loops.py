"""Adapters of loops held against the real ones, run as their users run them; see ``test_inside``."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from asked_tree import MOST, NOW, Tree, needs

from harness_lab import Distribution, MockProvider, ModelProfile
from harness_lab.adapters import loop_agent
from harness_lab.outcome import Refusal
from harness_lab.policies import StepAsk, unlimited
from harness_lab.simulate import simulate_agent
from harness_lab.usage import amounts

pytestmark = pytest.mark.filterwarnings("default")  # what the packages warn of is not ours


# OpenAI Agents: a model that never is done


def _openai_model(most: int = MOST, ask: str = "more", many: int = 1, answers_on: int = MOST + 2) -> Any:
    from agents import Model, ModelResponse, Usage  # type: ignore[import-not-found]
    from openai.types.responses import (  # type: ignore[import-not-found]
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class NeverDone(Model):  # type: ignore[misc]
        calls = 0

        async def get_response(self, *_given: Any, **_named: Any) -> Any:
            self.calls += 1
            if self.calls > most:
                raise OverflowError("given up")
            if self.calls == answers_on:
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                said = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
                return ModelResponse(output=[said], usage=Usage(), response_id="r")
            asked = [
                ResponseFunctionToolCall(arguments='{"input": "x"}' if ask == "kid" else "{}", name=ask,
                                         call_id=f"{id(self)}.{self.calls}.{i}", type="function_call")
                for i in range(many)
            ]  # fmt: skip
            return ModelResponse(output=asked, usage=Usage(), response_id=None)

        def stream_response(self, *_given: Any, **_named: Any) -> Any:
            raise NotImplementedError

    return NeverDone()


def _openai_agent(model: Any, **more: Any) -> Any:
    from agents import Agent, function_tool

    @function_tool(name_override="more")
    def goes_on() -> str:
        """Go on."""
        return "more"

    return Agent(name="a", model=model, **({"tools": [goes_on]} | more))


def _openai_run(agent: Any, **limits: Any) -> BaseException | None:
    from agents import RunConfig, Runner

    try:
        asyncio.run(Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True), **limits))
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("limits", [{"calls": 0}, {"calls": 1}, {"calls": 3}, {}, {"calls": None}])
def test_an_openai_agents_run_makes_as_many_calls_as_its_adapter_admits(limits: Any) -> None:
    needs("openai-agents")
    model = _openai_model()
    ended = _openai_run(_openai_agent(model), **({"max_turns": limits["calls"]} if limits else {}))
    assert type(ended).__name__ == ("OverflowError" if limits.get("calls", 1) is None else "MaxTurnsExceeded")
    assert Tree("openai-agents", **limits).calls() == min(model.calls, MOST)


@pytest.mark.parametrize("own", [None, 2])
def test_an_openai_agents_child_has_turns_of_its_own(own: int | None) -> None:
    needs("openai-agents")
    below, above = _openai_model(), _openai_model(ask="kid", many=2)
    told = {} if own is None else {"max_turns": own}
    kid = _openai_agent(below).as_tool("kid", "a child", **told)
    assert type(_openai_run(_openai_agent(above, tools=[kid]), max_turns=3)).__name__ == "MaxTurnsExceeded"
    tree = Tree("openai-agents", calls=3)
    asked = {} if own is None else {"calls": own}
    for name in "abcdef":
        tree.child(name, **asked)
    assert sum(tree.calls(name) for name in "abcdef") == below.calls == 6 * (10 if own is None else own)
    assert tree.calls() == above.calls == 3


def test_an_openai_agents_handoff_stays_in_the_run() -> None:
    needs("openai-agents")
    second = _openai_model()
    first = _openai_model(ask="transfer_to_a")
    _openai_run(_openai_agent(first, tools=[], handoffs=[_openai_agent(second)]), max_turns=4)
    assert (first.calls, second.calls) == (1, 3)


def test_a_failed_call_ends_an_openai_agents_run() -> None:
    needs("openai-agents")
    model = _openai_model(most=1)
    assert isinstance(_openai_run(_openai_agent(model), max_turns=5), OverflowError)
    tree = Tree("openai-agents", calls=5)
    tree.call()
    assert [tree.call(status="failed"), tree.call()] == [True, False]
    assert model.calls == 2


def test_a_compaction_of_openai_agents_is_no_turn_and_its_use_is_metered() -> None:
    """A-38: a model call of a run whose purpose is no turn."""
    needs("openai-agents")
    from agents import RunConfig, Runner, SQLiteSession
    from agents.memory import OpenAIResponsesCompactionSession  # type: ignore[import-not-found]
    from openai.types.responses.response_usage import (  # type: ignore[import-not-found]
        InputTokensDetails,
        OutputTokensDetails,
        ResponseUsage,
    )

    used = ResponseUsage(
        input_tokens=191_990, input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens=10, output_tokens_details=OutputTokensDetails(reasoning_tokens=0), total_tokens=192_000,
    )  # fmt: skip

    async def compact(**_given: Any) -> Any:
        return SimpleNamespace(output=[{"type": "message", "role": "user", "content": "short"}], usage=used)

    client = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    session = OpenAIResponsesCompactionSession(
        "s", SQLiteSession("s"), client=client, compaction_mode="input", should_trigger_compaction=lambda _seen: True
    )
    model, config = _openai_model(answers_on=3), RunConfig(tracing_disabled=True)
    run = Runner.run(_openai_agent(model), "go", session=session, max_turns=3, run_config=config)
    usage = asyncio.run(run).context_wrapper.usage
    assert (model.calls, usage.requests, usage.total_tokens) == (3, 1, 192_000)
    tree = Tree("openai-agents", calls=3)
    compaction = StepAsk(tree.nodes["root"], 1, 0, amounts(calls=1), "compaction")
    assert not isinstance(tree.policy.admit(compaction, NOW), Refusal)
    assert tree.calls() == 3


# LangGraph: an agent and its tools in a circle


def _graph(calls: list[int], needs_calls: int = MOST, **agent_options: Any) -> Any:
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

    def agent(_state: Any) -> Any:
        calls.append(1)
        return {"done": len(calls) >= needs_calls}

    graph = StateGraph(dict)
    graph.add_node("agent", agent, **agent_options)
    graph.add_node("tools", lambda _state: {"done": False})
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: END if state["done"] else "tools", ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile()


def _graph_run(graph: Any, **config: Any) -> BaseException | None:
    from langgraph.errors import GraphRecursionError  # type: ignore[import-not-found]

    try:
        graph.invoke({}, config)
    except GraphRecursionError as error:
        return error  # type: ignore[no-any-return]
    return None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 25])
def test_a_graph_makes_as_many_calls_as_its_adapter_admits(limit: int) -> None:
    needs("langgraph")
    calls: list[int] = []
    assert _graph_run(_graph(calls), recursion_limit=limit) is not None
    assert Tree("langgraph", calls=limit).calls() == len(calls) == (limit + 1) // 2


def test_a_graph_whose_answer_is_there_ends_at_its_limit_all_the_same() -> None:
    needs("langgraph")
    assert _graph_run(_graph([], needs_calls=2), recursion_limit=3) is not None
    assert _graph_run(_graph([], needs_calls=2), recursion_limit=4) is None
    assert _whole("langgraph", 3, wants=2) == ({2}, {"exhausted"})
    assert _whole("langgraph", 4, wants=2) == ({2}, {"completed"})


def _whole(adapter: str, limit: int, *, wants: int) -> tuple[set[int], set[str]]:
    """Return the calls and outcomes of runs of a whole loop in the simulator."""
    model = ModelProfile(output_tokens=Distribution.constant(5), latency_s=Distribution.constant(1))
    agent = loop_agent(adapter, wants=lambda _seat: wants, calls=limit)
    provider = MockProvider(models={"m": model})
    nodes = simulate_agent(agent, provider=provider, policies=[unlimited()], runs=3).settlements.nodes
    return set(nodes["calls"]), set(nodes["outcome"])


def test_an_openai_agents_answer_on_the_last_turn_is_a_normal_end() -> None:
    """A-33: a model that answers on its third call, limit 3."""
    needs("openai-agents")
    assert _whole("openai-agents", 3, wants=3) == ({3}, {"completed"})
    assert _whole("openai-agents", 3, wants=4) == ({3}, {"exhausted"})


def test_a_graph_that_is_used_again_counts_anew() -> None:
    """A-35: a step limit of each run, one object used for three of them."""
    needs("langgraph")
    calls: list[int] = []
    graph = _graph(calls)
    for run in (1, 2, 3):
        assert _graph_run(graph, recursion_limit=4) is not None
        assert len(calls) == 2 * run


def test_branches_of_one_step_are_one_step() -> None:
    needs("langgraph")
    from langgraph.graph import START, StateGraph
    from langgraph.types import Send  # type: ignore[import-not-found]

    calls: list[int] = []
    graph = StateGraph(dict)
    graph.add_node("plan", lambda _state: {})
    graph.add_node("work", lambda _state: calls.append(1))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _state: [Send("work", {}) for _ in range(5)], ["work"])
    graph.add_edge("work", "plan")
    assert _graph_run(graph.compile(), recursion_limit=3) is not None
    tree = Tree("langgraph", calls=3)
    asks = [StepAsk(tree.nodes["root"], n, 0, amounts(calls=1)) for n in range(5)]
    assert sum(not isinstance(tree.policy.admit(ask, NOW), Refusal) for ask in asks) == len(calls) == 5


def test_a_graph_below_a_node_takes_the_limit_over_and_counts_its_own_steps() -> None:
    needs("langgraph")
    from langgraph.graph import START, StateGraph

    calls: list[int] = []
    below = _graph(calls)
    graph = StateGraph(dict)
    graph.add_node("node", lambda _state: {"ended": str(_graph_run(below))})
    graph.add_edge(START, "node")
    graph.add_edge("node", "node")
    _graph_run(graph.compile(), recursion_limit=4)
    tree = Tree("langgraph", calls=4)
    tree.child("kid")
    assert 4 * tree.calls("kid") == len(calls) == 8  # four nodes, two calls below each


def test_what_a_node_tries_again_is_no_step() -> None:
    needs("langgraph")
    from langgraph.types import RetryPolicy

    failed: list[int] = []

    class Sometimes(list):  # type: ignore[type-arg]
        def append(self, one: Any) -> None:
            if len(failed) < 2:
                failed.append(1)
                raise TimeoutError
            super().append(one)

    calls = Sometimes()
    again = RetryPolicy(max_attempts=5, retry_on=TimeoutError, initial_interval=0.0)
    assert _graph_run(_graph(calls, retry_policy=again), recursion_limit=4) is not None
    tree = Tree("langgraph", calls=4)
    assert [tree.call(status="failed"), tree.call(status="failed", attempt=1), tree.call(attempt=2)] == [True] * 3
    assert 1 + tree.calls() == len(calls) == 2
