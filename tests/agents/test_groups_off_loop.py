"""Agents started by code under a policy that does I/O: asked in its thread, as the loop asks it; nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from harness_lab.agents import AsyncioRuntime
from harness_lab.agents.groups import Agents, Cancelled, StartRefused
from harness_lab.outcome import Code, Outcome
from harness_lab.policies import SpawnAsk, tree_limits
from harness_lab.usage import amounts


class OnDisk:
    """A policy that does I/O: each question about a child waits until the event loop has run on."""

    blocking = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._loop = threading.get_ident()
        self.channels = inner.channels
        self.asked = threading.Event()
        self.answer = threading.Event()

    def spawn(self, ask: Any, now: Any) -> Any:
        self._off_the_loop()
        self.asked.set()
        self.answer.wait()
        return self._inner.spawn(ask, now)

    def close(self, *how: Any) -> None:
        self._off_the_loop()
        self._inner.close(*how)

    def tick(self, now: Any) -> Any:
        self._off_the_loop()
        return self._inner.tick(now)

    def outbox(self) -> Any:
        return self._inner.outbox()

    def _off_the_loop(self) -> None:
        assert threading.get_ident() != self._loop, "asked on the event loop"


class Played:
    """A body of code as a root's, under such a policy."""

    def __init__(self, **limits: Any) -> None:
        self.inner: Any = tree_limits(**limits).start()
        self.ran: list[Any] = []

    async def worker(self, _below: Agents, task: Any) -> Any:
        self.ran.append(task)
        await asyncio.sleep(0)
        return task

    async def _play(self, body: Any) -> Any:
        self.policy: Any = OnDisk(self.inner)
        runtime = AsyncioRuntime()
        root = self.inner.spawn(SpawnAsk(None, (), amounts()), runtime.now()).ticket
        agents = Agents(runtime, self.policy, root, {"w": self.worker})  # type: ignore[arg-type]
        try:
            return await body(agents)
        finally:
            self.policy.answer.set()
            await agents.close()

    def play(self, body: Any) -> Any:
        return asyncio.run(self._play(body))

    @property
    def running(self) -> int:
        return int(self.inner.modules[0].running)


def test_the_loop_goes_on_while_a_start_is_asked_about() -> None:
    played = Played(max_concurrent=2)

    async def body(agents: Agents) -> Any:
        operation = agents.start("w", "late")
        await asyncio.to_thread(played.policy.asked.wait)
        assert played.ran == []  # the question is under way, and the loop is here
        played.policy.answer.set()
        return await operation.result()

    assert played.play(body) == "late"
    assert played.running == 0


def test_a_refusal_of_such_a_policy_is_in_the_result_and_names_the_limit() -> None:
    played = Played(max_calls=1)

    async def body(agents: Agents) -> Any:
        played.policy.answer.set()
        first, second = agents.start("w", 1), agents.start("w", 2)
        assert await first.result() == 1
        with pytest.raises(StartRefused, match="max-calls"):
            await second.result()
        return second.end

    end = played.play(body)
    assert (end.outcome, end.stopped_by) == (Outcome.DENIED, Code.MAX_CALLS)
    assert played.ran == [1]


def test_a_start_that_is_stopped_while_it_is_asked_about_is_given_back() -> None:
    played = Played(max_concurrent=1)

    async def body(agents: Agents) -> Any:
        operation = agents.start("w", "never")
        await asyncio.to_thread(played.policy.asked.wait)
        operation.cancel()
        played.policy.answer.set()
        with pytest.raises(Cancelled):
            await operation.result()
        return await agents.run("w", "second")

    assert played.play(body) == "second"
    assert (played.ran, played.running) == (["second"], 0)


def test_one_that_is_stopped_before_its_turn_is_never_asked_about() -> None:
    played = Played(max_calls=1)

    async def body(agents: Agents) -> Any:
        operation = agents.start("w", "never")
        operation.cancel()
        assert not (await operation.settled()).ok
        assert not played.policy.asked.is_set()
        played.policy.answer.set()
        return await agents.run("w", "second")

    assert played.play(body) == "second"


def test_a_group_under_such_a_policy_ends_with_all_its_children() -> None:
    played = Played(max_depth=1, max_concurrent=2, max_wait_s=60)

    async def body(agents: Agents) -> Any:
        played.policy.answer.set()

        async def inside(group: Any) -> Any:
            return [await operation.result() for operation in [group.start("w", i) for i in range(5)]]

        return await agents.group(inside)

    assert played.play(body) == [0, 1, 2, 3, 4]
    assert played.running == 0
