"""Random trees of spawns, failures, timeouts and cancels on every axis of the tree limits, on both runtimes.

At no moment more children than allowed, no slot leaked, nothing runs after its group returned, and the same refusals on
the virtual-time kernel and on asyncio.
"""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.groups import Agents, Cancelled, Group, StartRefused
from harness_lab.agents.ports import Call, Child, Children, Rest
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.policies import COMPLETED, Grant, PolicySpec, Refused, SpawnAsk, tree_limits
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import SimRuntime, VirtualLoop
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

MS = 1_000_000
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))

times = st.integers(0, 6)
leaf = st.lists(st.tuples(st.just("sleep"), times) | st.just(("raise",)), min_size=1, max_size=2)


def _inner(below: Any) -> Any:
    """Return what an agent may do that starts others."""
    start = st.tuples(st.just("start"), below)
    run = st.tuples(st.just("run"), below)
    modes = st.sampled_from(["cancel-siblings", "collect"])
    group = st.tuples(st.just("group"), modes, st.lists(below, min_size=1, max_size=3), st.booleans())
    plain = st.tuples(st.just("sleep"), times) | st.just(("raise",)) | st.tuples(st.just("cancel"), st.integers(0, 2))
    stubborn = st.tuples(st.just("stubborn"), times)
    return st.lists(start | run | group | plain | stubborn, min_size=1, max_size=4)


plans = _inner(st.recursive(leaf, _inner, max_leaves=8))


@st.composite
def specs(draw: Any) -> PolicySpec:
    """Draw limits on every axis; a combination that could deadlock is refused when it is built."""
    some = st.none() | st.integers(0, 3)
    try:
        return tree_limits(
            draw(some),
            draw(st.none() | st.integers(0, 3)),
            draw(st.none() | st.integers(0, 8)),
            draw(st.none() | st.sampled_from([0, 0.002, 0.004, 0.007])),
            concurrency=draw(st.sampled_from(["tree", "parent"])),
            lend=draw(st.booleans()),
            on_timeout=draw(st.sampled_from(["cancel", "cooperative", "detach"])),
            timeout_from=draw(st.sampled_from(["start", "arrival"])),
            give_back=draw(st.booleans()),
            max_wait_s=draw(st.none() | st.sampled_from([0, 0.001, 0.003, 0.02])),
        )
    except InputError:
        assume(False)
        raise


class Watched:
    """A policy whose answers are counted independently of what it counts itself."""

    def __init__(self, spec: PolicySpec) -> None:
        self.policy: Any = spec.start()
        self.limits = spec.module("tree_limits")
        self.modules, self.tick, self.cancel = self.policy.modules, self.policy.tick, self.policy.cancel
        self.settle, self.admit = self.policy.settle, self.policy.admit
        self.open: dict[Any, Any] = {}
        self.starts = 0
        self.told: list[Any] = []

    def spawn(self, ask: SpawnAsk, now: Time) -> Any:
        answer = self.policy.spawn(ask, now)
        self.told.append((now, ask.path, type(answer).__name__, str(getattr(answer, "code", ""))))
        return self._seen(answer)

    def close(self, node: Any, use: Any, end: Any, now: Time) -> None:
        self.policy.close(node, use, end, now)
        was = self.open.pop(node, None)
        if was is not None and use.status == "unsent" and self.limits.give_back:
            self.starts -= 1

    def outbox(self) -> Any:
        for news in self.policy.outbox():
            self._seen(getattr(news, "grant", None))
            if isinstance(news, Refused):
                self.told.append((news.ticket.path, str(news.refusal.code)))
            yield news

    def _seen(self, answer: Any) -> Any:
        if isinstance(answer, Grant) and answer.ticket.parent is not None:
            self.open[answer.ticket] = answer.ticket.parent
            self.starts += 1
            self._check(answer.ticket)
        return answer

    def _check(self, ticket: Any) -> None:
        limits, most = self.limits, self.limits.max_concurrent
        family = [node for node, above in self.open.items() if above is ticket.parent]
        lenders = {above for node, above in self.open.items() if limits.lend and node.ask.awaited}
        running = family if limits.concurrency == "parent" else [node for node in self.open if node not in lenders]
        assert most is None or len(running) <= most, "more children at once than allowed"
        assert limits.max_calls is None or self.starts <= limits.max_calls
        assert limits.max_depth is None or len(ticket.path) <= limits.max_depth


class Play:
    """One plan on one runtime."""

    def __init__(self, engine: str, spec: PolicySpec) -> None:
        self.loop = VirtualLoop()
        self.runtime: Any = SimRuntime() if engine == "kernel" else AsyncioRuntime(self.loop)
        self.engine = engine
        self.policy = Watched(spec)
        self.live: dict[Any, int] = {}
        self.log: list[Any] = []

    def run(self, plan: Any) -> None:
        answer = self.policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
        assert isinstance(answer, Grant)
        root = Agents(self.runtime, self.policy, answer.ticket, {"w": self.agent})

        async def main() -> None:
            try:
                await self.act(root, plan)
            except (ValueError, Cancelled, StartRefused) as error:
                self.log.append((self.runtime.now(), type(error).__name__))
            await root.close()

        if self.engine == "kernel":
            self.runtime.kernel.spawn(main(), "main")
            self.runtime.kernel.run()
        else:
            self.loop.run_until_complete(main())
            self.loop.run_on()

    async def agent(self, below: Agents, plan: Any) -> None:
        """Do what a plan says, and keep book of who is alive."""
        path = below.node.path
        self.live[path] = self.live.get(path, 0) + 1
        try:
            await self.act(below, plan)
        finally:
            self.live[path] -= 1

    async def act(self, below: Agents, plan: Any) -> None:
        started: list[Any] = []
        for what, *rest in plan:
            if what == "sleep":
                await self.runtime.sleep(rest[0] * MS)
            elif what == "stubborn":
                await self._stubborn(rest[0])
            elif what == "raise":
                raise ValueError("it failed")
            elif what == "start":
                started += self._tried(below, rest[0])
            elif what == "run":
                await self._ran(below, rest[0])
            elif what == "cancel":
                for operation in started[: rest[0]]:
                    operation.cancel()
            else:
                await self._grouped(below, *rest)

    async def _stubborn(self, ms: int) -> None:
        """Do not heed a stop until the work is done."""
        until = self.runtime.now() + ms * MS
        try:
            await self.runtime.sleep(ms * MS)
        except CancelledError:
            await self.runtime.sleep(max(0, until - self.runtime.now()))

    def _tried(self, below: Any, plan: Any) -> list[Any]:
        try:
            return [below.start("w", plan)]
        except StartRefused as refused:
            self.log.append((self.runtime.now(), str(refused.refusal.code)))
            return []

    async def _ran(self, below: Any, plan: Any) -> None:
        try:
            await below.run("w", plan)
        except (ValueError, Cancelled, StartRefused) as error:
            self.log.append((self.runtime.now(), type(error).__name__))

    async def _grouped(self, below: Agents, mode: Any, plans: Any, raises: bool) -> None:
        members: list[Any] = []

        async def body(group: Group) -> None:
            for plan in plans[:-1]:
                members.extend(self._tried(group, plan))
            if raises:
                raise ValueError("the body failed")
            await group.run("w", plans[-1])

        try:
            await below.group(body, on_failure=mode)
        except (ValueError, Cancelled, StartRefused) as error:
            self.log.append((self.runtime.now(), type(error).__name__))
        finally:
            assert all(member.done for member in members), "a child outlived its group"

    def check(self) -> None:
        """Nothing is open, nobody waits and nobody lives once a tree has ended."""
        assert not any(self.live.values())
        assert self.policy.open == {}
        assert self.policy.modules[0].running == 0
        assert self.policy.tick(Time(10**12)) is None
        assert list(self.policy.outbox()) == []


def both(spec: PolicySpec, plan: Any) -> tuple[Play, Play]:
    plays = Play("kernel", spec), Play("asyncio", spec)
    for play in plays:
        play.run(plan)
        play.check()
    return plays


def _compare(spec: PolicySpec, plan: Any) -> None:
    one, two = both(spec, plan)
    event(f"refusals: {min(3, sum(1 for told in one.policy.told if told[2:3] == ('Refusal',)))}")
    assert one.policy.told == two.policy.told
    assert one.log == two.log


@settings(RELAXED, max_examples=150)
@example(spec=tree_limits(1, 1, max_wait_s=0), plan=[("start", [("sleep", 0)]), ("run", [("raise",)])])
@example(spec=tree_limits(1, 1, max_wait_s=1), plan=[("start", [("raise",)]), ("run", [("sleep", 1)])])
@example(spec=tree_limits(), plan=[("start", [("start", [("sleep", 0)])]), ("run", [("sleep", 0)])])
@given(spec=specs(), plan=plans)
def test_trees_of_code_keep_their_limits_and_both_runtimes_refuse_the_same(spec: PolicySpec, plan: Any) -> None:
    _compare(spec, plan)


moves = st.tuples(st.just("sleep"), times) | st.just(("raise",)) | st.just(("call",))


def _batch(below: Any) -> Any:
    """Return what an agent does that starts children and waits for them."""
    children = st.tuples(st.just("children"), st.lists(below, min_size=1, max_size=4))
    return st.lists(moves | children | children, min_size=1, max_size=3)


batches = _batch(st.recursive(st.lists(moves, min_size=1, max_size=2), _batch, max_leaves=10))


class Loop:
    """One plan of calls, rests and batches of children through the agent loop, on one runtime."""

    def __init__(self, engine: str, spec: PolicySpec, plan: Any) -> None:
        self.policy, self.rows, loop = Watched(spec), [], VirtualLoop()
        runtime: Any = SimRuntime() if engine == "kernel" else AsyncioRuntime(loop)
        answers = ModelProfile(output_tokens=Distribution.constant(1), latency_s=Distribution.constant(0.002))
        model = MockProvider(models={"m": answers}).compile()
        main = Harness(runtime, self.policy, model, self).run("root", amounts(), lambda: brain(plan))  # type: ignore[arg-type]
        if engine == "kernel":
            runtime.kernel.spawn(main, "main")
            runtime.kernel.run()
        else:
            loop.run_until_complete(main)
            loop.run_on()
        assert self.policy.open == {}
        assert self.policy.modules[0].running == 0

    def node(self, record: Any) -> None:
        ended = self.rows[-1][-1] if self.rows else 0
        assert record.ended >= ended, "rows come in the order of time"
        self.rows.append((record.path, str(record.end.outcome), record.end.stopped_by, record.started, record.ended))

    def call(self, *_: Any) -> None:
        return


def brain(plan: Any) -> Any:
    for number, (what, *rest) in enumerate(plan):
        if what == "sleep":
            yield Rest(rest[0] * MS)
        elif what == "call":
            yield Call("m", number, number, 0, 1)
        elif what == "raise":
            raise ValueError("it failed")
        else:
            yield Children([_child(number, slot, one) for slot, one in enumerate(rest[0])])
    return COMPLETED


def _child(call: int, slot: int, plan: Any) -> Child:
    return Child(agent="kid", budget=amounts(), call=call, slot=slot, brain=lambda: brain(plan))


def _compare_loops(spec: PolicySpec, plan: Any) -> None:
    plan = [move for move in plan if move[0] != "raise"]  # a root's error ends its world at once
    one, two = Loop("kernel", spec, plan), Loop("asyncio", spec, plan)
    assert one.policy.told == two.policy.told
    assert one.rows == two.rows


@settings(RELAXED, max_examples=150)
@given(spec=specs(), plan=batches)
def test_trees_of_the_loop_keep_their_limits_and_both_runtimes_refuse_the_same(spec: PolicySpec, plan: Any) -> None:
    _compare_loops(spec, plan)


@pytest.mark.slow
@settings(RELAXED, max_examples=5_000)
@given(spec=specs(), plan=batches)
def test_many_trees_of_the_loop_keep_their_limits(spec: PolicySpec, plan: Any) -> None:
    _compare_loops(spec, plan)


@pytest.mark.slow
@settings(RELAXED, max_examples=5_000)
@given(spec=specs(), plan=plans)
def test_many_trees_of_code_keep_their_limits(spec: PolicySpec, plan: Any) -> None:
    _compare(spec, plan)
