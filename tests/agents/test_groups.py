"""Agents started by code: counted, timed and refused like any child, on both runtimes; nothing outlives its group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.agents import AsyncioRuntime
from harness_lab.agents.groups import Agents, Cancelled, Group, StartRefused
from harness_lab.agents.harness_agent import HarnessAgent, HarnessStopped
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Outcome
from harness_lab.policies import Grant, PolicySpec, SpawnAsk, shared_ledger, tree_limits, unlimited
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, SimRuntime, Spawn, VirtualLoop, Workload
from harness_lab.simulate.rows import Rows
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

MS = 1_000_000
Body = Callable[[Agents], Awaitable[Any]]


class World:
    """A policy, a runtime, and a log of (milliseconds, what)."""

    def __init__(self, engine: str, spec: PolicySpec) -> None:
        self.loop = VirtualLoop()
        self.runtime: Any = SimRuntime() if engine == "kernel" else AsyncioRuntime(self.loop)
        self.engine = engine
        self.policy = spec.start()
        self.log: list[tuple[int, str]] = []

    def note(self, what: str) -> None:
        self.log.append((self.runtime.now() // MS, what))

    def agent(self, ms: int, raises: str = "") -> Callable[[Agents, Any], Awaitable[Any]]:
        async def code(_below: Agents, task: Any) -> Any:
            try:
                await self.runtime.sleep(ms * MS)
            except BaseException:
                self.note(f"{task} aborted")
                raise
            self.note(f"{task} ended")
            if raises:
                raise ValueError(raises)
            return task

        return code

    def play(self, body: Body, **agents: Any) -> Any:
        """Run a body as the root's code; return its value or the error it raised."""
        answer = self.policy.spawn(SpawnAsk(None, (), amounts()), self.runtime.now())
        assert isinstance(answer, Grant)
        root = Agents(self.runtime, self.policy, answer.ticket, agents)
        out: list[Any] = []

        async def main() -> None:
            try:
                out.append(await body(root))
            except Exception as error:
                out.append(error)
            await root.close()
            self.note("over")

        if self.engine == "kernel":
            self.runtime.kernel.spawn(main(), "main")
            self.runtime.kernel.run()
        else:
            self.loop.run_until_complete(main())
            self.loop.run_on()
        return out[0]


@pytest.fixture(params=["kernel", "asyncio"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_failing_child_stops_its_siblings_and_is_the_error_of_the_group(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        async def inside(group: Group) -> Any:
            group.start("slow", "a")
            return await group.run("bad", "b")

        return await root.group(inside)

    error = world.play(body, slow=world.agent(300), bad=world.agent(10, "boom"))
    assert isinstance(error, ValueError)
    assert world.log == [(10, "b ended"), (10, "a aborted"), (10, "over")]


def test_collected_failures_stop_nobody_and_the_group_waits_for_all(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        async def inside(group: Group) -> Any:
            group.start("slow", "a")
            return await group.run("bad", "b")

        return await root.group(inside, on_failure="collect")

    assert isinstance(world.play(body, slow=world.agent(100), bad=world.agent(10, "boom")), ValueError)
    assert world.log == [(10, "b ended"), (100, "a ended"), (100, "over")]


def test_a_settled_run_stops_nobody_but_is_stopped_by_another_failure(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        async def inside(group: Group) -> Any:
            slow = group.start("slow", "a")
            with pytest.raises(ValueError, match="boom"):
                await group.run("bad", "b")
            return await slow.settled()

        return await root.group(inside)

    how = world.play(body, slow=world.agent(300), bad=world.agent(10, "boom"))
    assert (how.ok, str(how.error)) == (False, "Cancelled.")


def test_a_late_child_runs_and_one_after_the_end_is_refused(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        kept: list[Group] = []

        async def inside(group: Group) -> Any:
            kept.append(group)
            with pytest.raises(ValueError, match="boom"):
                await group.run("bad", "b")
            return await group.run("slow", "late")

        assert await root.group(inside) == "late"
        with pytest.raises(InputError, match="after its end"):
            kept[0].start("slow")
        return "done"

    assert world.play(body, slow=world.agent(100), bad=world.agent(10, "boom")) == "done"


def test_a_body_that_raises_stops_nobody_and_is_raised_after_all_have_ended(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        async def inside(group: Group) -> Any:
            group.start("slow", "a")
            raise KeyError("body error")

        return await root.group(inside)

    assert isinstance(world.play(body, slow=world.agent(200)), KeyError)
    assert world.log == [(200, "a ended"), (200, "over")]


def test_children_started_by_code_are_counted_and_refused(engine: str) -> None:
    world = World(engine, tree_limits(max_calls=2))

    async def body(root: Agents) -> Any:
        return [await root.run("w", "1"), await root.run("w", "2"), await root.run("w", "3")]

    error = world.play(body, w=world.agent(1))
    assert isinstance(error, StartRefused)
    assert error.refusal.code is Code.MAX_CALLS
    assert [what for _, what in world.log] == ["1 ended", "2 ended", "over"]


def test_a_childs_own_children_stand_under_the_same_limits(engine: str) -> None:
    world = World(engine, tree_limits(max_depth=1))

    async def lead(below: Agents, _task: Any) -> Any:
        below.start("w", "x")

    async def body(root: Agents) -> Any:
        return await root.run("lead")

    error = world.play(body, lead=lead, w=world.agent(1))
    assert isinstance(error, StartRefused)
    assert error.refusal.code is Code.MAX_DEPTH


def test_a_time_limit_holds_for_children_started_by_code(engine: str) -> None:
    world = World(engine, tree_limits(timeout_s=0.05))

    async def body(root: Agents) -> Any:
        operation = root.start("slow", "a")
        how = await operation.settled()
        assert operation.end is not None
        return operation.end.outcome, isinstance(how.error, Cancelled)

    assert world.play(body, slow=world.agent(200)) == (Outcome.TIMED_OUT, True)
    assert world.log == [(50, "a aborted"), (50, "over")]


def test_a_parent_that_ends_takes_what_it_started_in_the_background_with_it(engine: str) -> None:
    world = World(engine, tree_limits(max_concurrent=2))

    async def lead(below: Agents, _task: Any) -> Any:
        below.start("slow", "left behind")
        return "gone"

    async def body(root: Agents) -> Any:
        return await root.run("lead")

    assert world.play(body, lead=lead, slow=world.agent(500)) == "gone"
    assert world.policy.modules[0].running == 0  # type: ignore[attr-defined]
    assert world.log[-1] == (0, "over")


def test_a_child_stopped_before_its_turn_never_runs_and_gives_its_start_back(engine: str) -> None:
    world = World(engine, tree_limits(max_calls=1, max_concurrent=1))

    async def body(root: Agents) -> Any:
        operation = root.start("w", "never")
        operation.cancel()
        assert not (await operation.settled()).ok
        return await root.run("w", "second")

    assert world.play(body, w=world.agent(5)) == "second"
    assert [what for _, what in world.log] == ["second ended", "over"]


def test_an_unknown_agent_or_rule_is_named(engine: str) -> None:
    world = World(engine, unlimited())

    async def body(root: Agents) -> Any:
        with pytest.raises(InputError, match="one of w"):
            root.start("nobody")
        with pytest.raises(InputError, match="cancel-siblings or collect"):
            await root.group(body, on_failure="shrug")  # type: ignore[arg-type]
        return "said"

    assert world.play(body, w=world.agent(1)) == "said"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(0, 60)), max_size=6),
    st.integers(1, 3),
    st.sampled_from(["cancel-siblings", "collect"]),
    st.none() | st.integers(5, 50),
)
def test_both_runtimes_tell_the_same_story_and_no_slot_is_leaked(
    children: list[tuple[int, bool, int]], most: int, rule: str, timeout_ms: int | None
) -> None:
    stories = []
    for engine in ("kernel", "asyncio"):
        spec = tree_limits(max_concurrent=most, timeout_s=None if timeout_ms is None else timeout_ms / 1000)
        world = World(engine, spec)
        agents = {f"a{i}": world.agent(ms, "boom" if bad else "") for i, (ms, bad, _) in enumerate(children)}

        async def body(root: Agents, world: World = world) -> Any:
            async def inside(group: Group) -> Any:
                for i, (_, _, pause) in enumerate(children):
                    try:
                        group.start(f"a{i}", str(i))
                    except StartRefused as error:
                        world.note(f"{i} refused: {error.refusal.code}")
                    await world.runtime.sleep(pause * MS)
                if children:
                    await group.run("a0", "again")

            return await root.group(inside, on_failure=rule)  # type: ignore[arg-type]

        told = repr(world.play(body, **agents))
        tree: Any = world.policy.modules[0]
        assert tree.running == 0
        assert tree.peak <= most
        stories.append((told, world.log))
    assert stories[0] == stories[1]


def test_a_whole_harness_as_a_child_stays_inside_its_parents_limits(engine: str) -> None:
    grandchild = AgentProfile(model="m", calls=Distribution.constant(1), startup_tokens=Distribution.constant(5))
    inner = AgentProfile(
        model="m",
        calls=Distribution.constant(2),
        startup_tokens=Distribution.constant(5),
        spawns=(Spawn(agent="leaf", count=3, after=(0,)),),
    )
    workload = Workload(agents={"inner": inner, "leaf": grandchild}, root="inner").compile()
    model = ModelProfile(output_tokens=Distribution.constant(1), latency_s=Distribution.constant(1))
    rows = Rows()
    harness = HarnessAgent(
        name="inner",
        description="does it all",
        model=MockProvider(models={"m": model}).compile(),
        brain=lambda task: workload["inner"].brain(task),
        sink=rows,
    )
    world = World(engine, tree_limits(max_calls=3, max_depth=2))
    assert world.play(lambda root: root.run("inner", 7), inner=harness).outcome is Outcome.COMPLETED
    ended = [(row[4], str(row[6]), row[7]) for row in rows.nodes]
    assert sorted(ended, key=str) == [
        ("inner", "completed", None),
        ("leaf", "completed", None),
        ("leaf", "completed", None),
        ("leaf", "denied", Code.MAX_CALLS),
    ]


def test_a_harness_that_a_limit_stops_is_an_error_that_names_it(engine: str) -> None:
    profile = AgentProfile(model="m", calls=Distribution.constant(9), startup_tokens=Distribution.constant(5))
    agent = Workload(agents={"inner": profile}, root="inner").compile()["inner"]
    model = ModelProfile(output_tokens=Distribution.constant(1), latency_s=Distribution.constant(1))
    provider = MockProvider(models={"m": model}).compile()
    harness = HarnessAgent(name="inner", description="", model=provider, brain=agent.brain, sink=Rows())
    error = World(engine, shared_ledger(3)).play(lambda root: root.run("inner", 7), inner=harness)
    assert isinstance(error, HarnessStopped)
    assert error.end.stopped_by == Code.STEPS_EXHAUSTED


def test_a_parent_is_told_at_the_time_limit_while_its_child_keeps_its_slot_until_it_has_ended(engine: str) -> None:
    world = World(engine, tree_limits(max_concurrent=1, timeout_s=0.02, on_timeout="detach"))

    async def body(root: Agents) -> Any:
        operation = root.start("slow", "a")
        how = await operation.settled()
        world.note(f"told, slots {world.policy.modules[0].running}")  # type: ignore[attr-defined]
        await operation.over()
        assert operation.end is not None
        return how.ok, operation.end.outcome, operation.value

    assert world.play(body, slow=world.agent(80)) == (False, Outcome.TIMED_OUT, None)
    assert world.log == [(20, "told, slots 1"), (80, "a ended"), (80, "over")]
    assert world.policy.modules[0].running == 0  # type: ignore[attr-defined]


def test_a_group_waits_for_a_child_that_goes_on_after_its_time(engine: str) -> None:
    world = World(engine, tree_limits(timeout_s=0.02, on_timeout="detach"))

    async def body(root: Agents) -> Any:
        async def inside(group: Group) -> Any:
            return (await group.run_settled("slow", "a")).ok

        return await root.group(inside)

    assert world.play(body, slow=world.agent(80)) is False
    assert world.log == [(80, "a ended"), (80, "over")]


def test_one_that_goes_on_after_its_time_can_still_be_stopped(engine: str) -> None:
    world = World(engine, tree_limits(timeout_s=0.02, on_timeout="detach"))

    async def body(root: Agents) -> Any:
        operation = root.start("slow", "a")
        await operation.settled()
        operation.cancel()
        await operation.over()
        return operation.done

    assert world.play(body, slow=world.agent(80)) is True
    assert world.log == [(20, "a aborted"), (20, "over")]
