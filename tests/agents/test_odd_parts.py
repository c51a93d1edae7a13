"""What a runtime is put together from: what is none is refused at the door, what breaks ends no run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentRuntime, ModelResponse, ModeRegistry, Tool, ToolAuthorizer, ToolRegistry
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.errors import InputError
from harness_lab.policies import Shadowed, hard_cap, shared_ledger
from tests.kit.ended_runs import Brake, World, raises

MODES = ModeRegistry({"modes": {"chat": {}}})


class NotAsync:
    def complete(self, request: Any) -> ModelResponse:
        return says("x")


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"client": None}, "client: expected an object with a method complete, got None"),
        ({"client": ScriptedClient}, "client: expected an object with a method complete, got <class"),
        ({"modes": {"modes": {}}}, "modes: expected a ModeRegistry of the config, got {'modes': {}}"),
        ({"tools": [1]}, r"tools: expected a ToolRegistry, or None, got \[1\]"),
        ({"sessions": 5}, "sessions: expected Sessions, or None, got 5"),
        ({"events": print}, "events: expected Events, or None, got <built-in"),
        ({"recorder": "x.jsonl"}, "recorder: expected an object with a method node, got 'x.jsonl'"),
        ({"authorizer": print}, "authorizer: expected an object with a method allows_call, got <built-in"),
        ({"bound": 5}, "bound: expected a function of a request, or None, got 5"),
        ({"tell_budget": "no"}, "tell_budget: expected True or False, got 'no'"),
        ({"max_steps_ceiling": -1}, "max_steps_ceiling: expected a whole number"),
    ],
)
def test_a_part_of_a_runtime_that_is_none_is_refused_at_the_door(part: dict[str, Any], line: str) -> None:
    given: dict[str, Any] = {"client": ScriptedClient(), "modes": MODES} | part
    with pytest.raises(InputError, match=f"^{line}"):
        AgentRuntime(**given)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Tool("", print), "name of a tool: expected printable text without blanks, got ''"),
        (lambda: Tool("a b", print), "name of a tool: expected printable text without blanks, got 'a b'"),
        (lambda: Tool("x", None), r"function of tool \[x\]: expected a function, got None"),  # type: ignore[arg-type]
        (lambda: Tool("x", print, parameters=5), r"parameters of tool \[x\]: expected a JSON schema"),  # type: ignore[arg-type]
        (lambda: ToolRegistry().register(print), "tool: expected a Tool, or what has a name and a method handle"),  # type: ignore[arg-type]
        (lambda: ToolRegistry().register_factory("x", 5), r"factory of tool \[x\]: expected a function"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_tool_is_refused_where_it_is_registered(make: Any, line: str) -> None:
    with pytest.raises(InputError, match=f"^{line}"):
        make()


FACTORIES: list[tuple[Any, type[Exception]]] = [
    (raises(OSError("x")), OSError),
    (raises(Brake()), RuntimeError),
    (lambda session: None, InputError),
    (lambda session: Tool("other", print), InputError),
]


@pytest.mark.parametrize(("factory", "error"), FACTORIES)
def test_a_factory_that_breaks_fails_its_run_and_no_other(factory: Any, error: type[Exception]) -> None:
    world = World([says("x")], child={"tools": ["made"]})
    world.registry.register_factory("made", factory)
    assert world.send().outcome == "completed"
    assert (world.handed["outcome"], world.handed["reason"]) == ("failed", error.__name__)
    alone = World([], [says("x")], lead={"tools": ["made"]})
    alone.registry.register_factory("made", factory)
    with pytest.raises(error):
        alone.send()
    assert (alone.told("top"), alone.session.held) == (["run.started", "run.failed"], False)


@pytest.mark.parametrize("answer", [None, "no: not for you", 1, 0])
@pytest.mark.parametrize("which", ["call", "offer"])
def test_an_authorization_policy_answers_true_or_false_and_nothing_else_is_a_yes(which: str, answer: Any) -> None:
    ran: list[Any] = []
    world = World([], [calls("t"), says("x")], lead={"tools": ["t"]}, tools={"t": ran.append})
    asking: dict[str, Any] = {which: lambda *asked: answer}
    world.runtime.authorizer = ToolAuthorizer(**asking)
    with pytest.raises(InputError, match=r"^answer of the authorization policy: expected True or False, got "):
        world.send()
    assert ran == []


def test_a_client_that_is_not_async_says_so() -> None:
    world = World([])
    world.runtime.client = NotAsync()  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"^complete of the client: expected an async method, got"):
        world.send()


def test_a_listener_or_recorder_that_breaks_is_warned_about_and_the_run_goes_on() -> None:
    class Broken:
        def node(self, *row: Any) -> None:
            raise ValueError("full")

    world = World([says("x")])
    world.runtime.recorder = Broken()  # type: ignore[assignment]
    world.runtime.events.listen(raises(Brake()))
    with pytest.warns(RuntimeWarning) as told:
        assert world.send().outcome == "completed"
    words = [str(one.message) for one in told]
    assert sum("a settlement row could not be written: full" in one for one in words) == 2
    assert sum("raised Brake()" in one for one in words) == 4


def test_a_shadow_whose_rows_cannot_be_written_stops_nothing() -> None:
    shadow = Shadowed(shared_ledger(1), sink=raises(OSError("disk")))
    world = World([says("x")], options={"shadow": shadow})
    with pytest.warns(RuntimeWarning, match=r"the row of a shadow's answer could not be written: OSError"):
        assert world.send().outcome == "completed"


@pytest.mark.parametrize("error", [ZeroDivisionError(), Brake()])
def test_a_bound_that_breaks_leaves_the_call_unbounded_and_a_cap_refuses_it(error: BaseException) -> None:
    options = {"policy": hard_cap(1.0), "bound": raises(error)}
    world = World([], [says("x")], options=options)
    with pytest.warns(RuntimeWarning, match=r"^a call could not be bounded: "):
        response = world.send()
    assert (response.outcome, world.client.requests) == ("exhausted", [])


def test_two_subagents_of_one_address_run_one_after_the_other() -> None:
    class Slow:
        async def complete(self, request: Any) -> ModelResponse:
            await asyncio.sleep(1)
            first = request.model == "big" and len(request.messages) == 1
            return calls("dig", "dug", task="x") if first else says("x")

    world = World([])
    shared = {"mode": "child", "scope": "one"}
    modes = {"lead": {"model": "big", "subagents": {"dig": shared, "dug": shared}}, "child": {"model": "small"}}
    world.runtime.modes, world.runtime.client = ModeRegistry({"default": "lead", "modes": modes}), Slow()
    world.send()
    assert [row["outcome"] for row in world.written.values()] == ["completed"] * 3


def test_a_mode_that_starts_itself_ends_at_the_fourth_level() -> None:
    world = World(
        [], [calls("me", task="x")], repeat=True, lead={"subagents": {"me": {"mode": "lead", "max_steps": 3}}}
    )
    assert world.send().outcome == "exhausted"
    assert len(world.runtime.sessions._open) == 4


@pytest.mark.parametrize(("own", "ceiling", "steps"), [(100, 40, 40), (100, None, 100), (3, 0, 0), (5, 5, 5)])
def test_a_sessions_own_steps_never_pass_the_operators_ceiling(own: int, ceiling: int | None, steps: int) -> None:
    world = World([], [calls("echo")], repeat=True, options={"max_steps_ceiling": ceiling})
    session = world.session.using_max_steps(own)
    assert asyncio.run(world.runtime.send(session, "go")).usage.steps == steps
