"""The simulator's own loop on SimPy's bare events: the stricter comparison, in which only the event loop differs.

No ``Resource``, no conditions, no process beside a process to watch the time: the policy says who waits and until when,
and SimPy only delivers timeouts and events.
"""

from __future__ import annotations

import types
from asyncio import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy
from simpy.events import URGENT

from harness_lab import draws
from harness_lab.agents.loop import Harness
from harness_lab.agents.ports import withdraw
from harness_lab.policies.protocol import Granted, Wait
from harness_lab.simulate.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Sequence

    from harness_lab.policies import PolicySpec
    from harness_lab.policies.protocol import End
    from harness_lab.simulate.engine import World


@types.coroutine
def _wait(event: Any) -> Generator[Any, Any, Any]:
    return (yield event)


class SimpyRuntime:
    """The agent loop's runtime port on a SimPy environment."""

    def __init__(self) -> None:
        self.env: Any = simpy.Environment()
        self._waiting: dict[Any, Any] = {}

    def now(self) -> Any:
        """Return the current instant, nanoseconds."""
        return self.env.now

    async def sleep(self, ns: int) -> None:
        """Let time pass."""
        await _wait(self.env.timeout(ns))

    async def ask(self, policy: Any, question: Any, ask: Any) -> Any:
        """Ask a policy, and wait in its queue if it says so."""
        answer = question(ask, self.env.now)
        self.drain(policy)
        if type(answer) is not Wait:
            return answer
        event = self._waiting[answer.ticket] = self.env.event()
        late = self.env.timeout((answer.until or 0) - self.env.now)
        late.callbacks.append(lambda _event: self._tick(policy, event))
        try:
            return await _wait(event)
        except CancelledError:
            self._waiting.pop(answer.ticket, None)
            withdraw(policy, answer.ticket, self.env.now)
            self.drain(policy)
            raise

    def drain(self, policy: Any) -> None:
        """Hand out the policy's answers to those who wait."""
        for news in policy.outbox():
            event = self._waiting.pop(news.ticket, None)
            if event is not None:
                event.succeed(news.grant if type(news) is Granted else news.refusal)

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, End]]) -> list[Any]:
        """Run jobs side by side; cancelling it cancels them in order and waits for all."""
        started = [self.env.process(_quiet(job)) for job in jobs]
        done = self.env.event()
        left = len(started)

        def ended(_event: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done.succeed()

        for process in started:
            process.callbacks.append(ended)
        try:
            await _wait(done)
        except CancelledError:
            for process in started:
                if process.is_alive:
                    self._cancel(process)
            if left:
                await _wait(done)
            raise
        return [process.value for process in started]

    async def until(self, deadline: int, job: Coroutine[Any, Any, End]) -> End | None:
        """Run a job that must end before `deadline`; None when it was stopped there."""
        me, fired, ended = self.env.active_process, False, False

        def expire(_event: Any) -> None:
            nonlocal fired
            if not ended:
                fired = True
                self._cancel(me)

        self.env.timeout(deadline - self.env.now).callbacks.append(expire)
        try:
            return await job
        except CancelledError:
            if not fired:
                raise
            return None
        finally:
            ended = True

    def _cancel(self, process: Any) -> None:
        """Raise CancelledError where a process waits."""
        process.target.callbacks.remove(process._resume)
        stop = simpy.Event(self.env)
        stop._ok, stop._value, stop._defused = False, CancelledError(), True
        stop.callbacks.append(process._resume)
        self.env.schedule(stop, priority=URGENT)

    def _tick(self, policy: Any, event: Any) -> None:
        if not event.triggered:
            policy.tick(self.env.now)
            self.drain(policy)


async def _quiet(job: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await job
    except CancelledError:
        return None


def simulate(world: World, spec: PolicySpec, runs: Sequence[int]) -> Rows:
    """Simulate some runs with the loop on SimPy's events."""
    rows = Rows()
    for run in world.each(runs):
        rows.run = run
        runtime: Any = SimpyRuntime()
        harness = Harness(runtime, spec.start(str(run)), world.model.fresh(), rows)
        brain = partial(world.agent.brain, draws.run_key(world.seed, run))
        runtime.env.run(runtime.env.process(harness.run(world.agent.name, world.budget, brain)))
    return rows
