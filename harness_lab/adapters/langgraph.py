"""LangGraph: the recursion limit of a graph of an agent and its tools."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.loops import AskedLoop, LoopAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from harness_lab.adapters.protocol import Child


class LangGraph(LoopAdapter):
    """The limit counts super-steps: a call is one, its tools another, and the last one must find the graph at its end.

    The graph is the plain one of the documentation, an agent and its tools in a circle: a limit of n lets ⌈n/2⌉ calls
    through, and ends also a run whose answer is there but that has no step left to notice. A child is a graph that a
    node calls: it takes the limit over and counts its own steps. Branches of one step are one step, however many calls
    they make. Compaction within the agent's node is no step (as a node of its own it would be one).
    """

    name = "langgraph"
    package = "langgraph"
    requires = "langgraph>=1.2"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "recursion_limit: super-steps of one graph, two for a call with its tools; 10,007 where nobody says"
    }
    script: ClassVar[str] = """\
from langgraph.graph import START, StateGraph
def run(recursion_limit, fails_at=0):
    calls = 0
    def agent(state):
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise RuntimeError("the call failed")
        return {}
    graph = StateGraph(dict)
    graph.add_node("agent", agent)
    graph.add_node("tools", lambda state: {})
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "tools")
    graph.add_edge("tools", "agent")
    try:
        graph.compile().invoke({}, {"recursion_limit": recursion_limit})
    except Exception as error:
        print(calls, "calls, then", str(error).partition("\\n")[0])"""

    def __init__(self, *, calls: int | None = None) -> None:
        self.calls = calls
        _taken(calls)

    def start(self, model: Callable[[], Coroutine[Any, Any, Any]]) -> Coroutine[Any, Any, Any]:
        """Run the graph."""
        return _run(self.calls, model)

    def over(self, error: BaseException) -> bool:
        """Whether it is the steps."""
        from langgraph.errors import GraphRecursionError  # type: ignore[import-not-found]

        return isinstance(error, GraphRecursionError)

    def shown(self) -> str:
        """Return the steps."""
        return repr(10_007 if self.calls is None else self.calls)

    def at_once(self) -> None:
        """Take the calls as branches of one step."""

    def child(self, child: Child) -> LangGraph:
        """Give a child the same limit, with nothing counted."""
        return LangGraph(calls=self.calls)


@cache
def _graph() -> Any:
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

    async def agent(state: dict[str, Any]) -> dict[str, Any]:
        return {"model": state["model"], "told": await state["model"]()}

    async def tools(state: dict[str, Any]) -> dict[str, Any]:
        return state

    async def after(state: dict[str, Any]) -> str:
        return "tools" if state["told"] == "more" else END

    graph = StateGraph(dict)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", after, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile()


def _run(steps: int | None, model: Callable[[], Coroutine[Any, Any, Any]]) -> Coroutine[Any, Any, Any]:
    config = {} if steps is None else {"recursion_limit": steps}
    run: Coroutine[Any, Any, Any] = _graph().ainvoke({"model": model}, config)
    return run


@cache
def _taken(steps: int | None) -> None:
    """Check that the package takes a limit; it says so when a graph is run, and its error is raised here."""
    started = AskedLoop(lambda model: _run(steps, model))
    if not started.wants and started.ended is not None:
        raise started.ended
    started.stop()


ADAPTER = LangGraph
