"""OpenAI Agents: ``max_turns`` of its own ``Runner``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.loops import LoopAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from harness_lab.adapters.protocol import Child

TURNS = 10
"""``max_turns`` where nobody says, also of an agent that is a tool."""


class OpenAIAgents(LoopAdapter):
    """A turn is one call of the model with the tools that it asked for; a child has turns of its own.

    A child is an agent as a tool: a run of its own, with ``max_turns`` of its own, 10 where ``as_tool`` is not told. A
    handoff stays in the run, and its turns count on. The calls that compact a session are no turns.
    """

    name = "openai-agents"
    package = "openai-agents"
    requires = "openai-agents>=0.24"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "max_turns: turns of one run; an agent that is a tool has 10 of its own where nobody says"
    }
    script: ClassVar[str] = '''\
import asyncio
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall
class NeverDone(Model):
    calls = fails_at = 0
    async def get_response(self, *given, **named):
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError("the call failed")
        more = ResponseFunctionToolCall(arguments="{}", call_id=str(self.calls), name="more", type="function_call")
        return ModelResponse(output=[more], usage=Usage(), response_id=None)
    def stream_response(self, *given, **named):
        raise NotImplementedError
@function_tool
def more() -> str:
    """Go on."""
    return "more"
def run(max_turns, fails_at=0):
    model = NeverDone()
    model.fails_at = fails_at
    agent, config = Agent(name="a", model=model, tools=[more]), RunConfig(tracing_disabled=True)
    try:
        asyncio.run(Runner.run(agent, "go", max_turns=max_turns, run_config=config))
    except Exception as error:
        print(model.calls, "calls, then", error)'''

    def __init__(self, *, calls: int | None = TURNS) -> None:
        self.calls = calls

    def start(self, model: Callable[[], Coroutine[Any, Any, Any]]) -> Coroutine[Any, Any, Any]:
        """Run an agent with a tool."""
        from agents import Agent, RunConfig, Runner  # type: ignore[import-not-found]

        agent = Agent(name="agent", model=_waiting()(model), tools=[_tool()])
        config = RunConfig(tracing_disabled=True)
        run: Coroutine[Any, Any, Any] = Runner.run(agent, "go", max_turns=self.calls, run_config=config)
        return run

    def over(self, error: BaseException) -> bool:
        """Whether it is the turns."""
        from agents.exceptions import MaxTurnsExceeded  # type: ignore[import-not-found]

        return isinstance(error, MaxTurnsExceeded)

    def shown(self) -> str:
        """Return the turns."""
        return repr(self.calls)

    def child(self, child: Child) -> OpenAIAgents:
        """Give a child turns of its own."""
        return OpenAIAgents(calls=TURNS if child.calls is None else child.calls)


@cache
def _waiting() -> Any:
    """Return a class of models that wait for their reply: the tool once more, or an answer."""
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import (  # type: ignore[import-not-found]
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Waiting(Model):  # type: ignore[misc]
        def __init__(self, reply: Callable[[], Coroutine[Any, Any, Any]]) -> None:
            self._reply, self._calls = reply, 0

        async def get_response(self, *_given: Any, **_named: Any) -> Any:
            told = await self._reply()
            self._calls += 1
            name = f"call-{self._calls}"
            if told == "more":
                said: Any = ResponseFunctionToolCall(arguments="{}", call_id=name, name="more", type="function_call")
            else:
                text = ResponseOutputText(text=told, type="output_text", annotations=[])
                said = ResponseOutputMessage(
                    id=name, content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[said], usage=Usage(requests=1), response_id=None)

        def stream_response(self, *_given: Any, **_named: Any) -> Any:
            raise NotImplementedError

    return Waiting


@cache
def _tool() -> Any:
    from agents import function_tool

    def more() -> str:
        """Go on."""
        return "more"

    return function_tool(more)


ADAPTER = OpenAIAgents
