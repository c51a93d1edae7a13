"""The same agents as a SimPy model, written the way SimPy is meant to be used.

Slots are a ``Resource``, a child is a process beside a timeout, and a cancellation is an interrupt. The workload, the
provider, the records and the policy objects for money and tokens are those of the simulator, so that both do the same
work and what is compared is how time passes. It is an oracle for tests as well: it knows nothing of the kernel.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from harness_lab import draws
from harness_lab.agents.loop import amounts_of
from harness_lab.agents.ports import Call, Rest
from harness_lab.agents.record import NodeRecord
from harness_lab.clock import ns
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal
from harness_lab.policies.protocol import End, SpawnAsk, StepAsk, Use
from harness_lab.simulate.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from harness_lab.agents.ports import Child
    from harness_lab.policies import PolicySpec
    from harness_lab.policies.protocol import Ticket
    from harness_lab.simulate.engine import World

    Steps = Generator[Any, Any, Any]

_UNKNOWN = (1,) + (None,) * (len(CHANNELS) - 1)
_CANCELLED = End(Outcome.CANCELLED, Code.PARENT_ENDED, Cause.LIMIT)
_LATE = End(Outcome.TIMED_OUT, Code.DEADLINE, Cause.LIMIT)


class SimpyTree:
    """One run.

    Parameters
    ----------
    world : World
        Agents and provider.
    policy : Policy
        Money and tokens; it never makes anyone wait.
    rows : Rows
        Where records go.
    slots : int
        Children of one parent that work at once.
    timeout_ns : int
        Longest life of a child.
    """

    def __init__(self, world: World, policy: Any, rows: Rows, *, slots: int, timeout_ns: int) -> None:
        self.env: Any = simpy.Environment()
        self.world, self.policy, self.rows = world, policy, rows
        self.model: Any = world.model.fresh()
        self.slots, self.timeout = slots, timeout_ns

    def run(self, run: int) -> None:
        """Simulate the tree of one run."""
        agent, budget = self.world.agent, self.world.budget
        brain = partial(agent.brain, draws.run_key(self.world.seed, run))
        record = NodeRecord(None, (), agent.name, budget, self.env.now)
        ticket = self.policy.spawn(SpawnAsk(None, (), budget), self.env.now).ticket
        self.env.run(self.env.process(self.node(ticket, record, brain())))

    def node(self, ticket: Ticket, record: NodeRecord, brain: Any) -> Steps:
        """Live until the agent is done, or is stopped."""
        end: End | None = _CANCELLED
        try:
            end = yield from self.think(ticket, record, brain)
        except simpy.Interrupt as stopped:
            end = stopped.cause
        end = end or _CANCELLED
        self.close(record, end)
        self.policy.close(ticket, Use(tuple(record.subtree)), end, self.env.now)

    def think(self, ticket: Ticket, record: NodeRecord, brain: Any) -> Steps:
        """Do what the brain wants until it has finished."""
        told = None
        slots = simpy.Resource(self.env, self.slots)
        while True:
            try:
                move = brain.send(told)
            except StopIteration as finished:
                return finished.value
            if type(move) is Call:
                told = yield from self.call(ticket, record, move)
                if type(told) is Refusal:
                    how = Outcome.TIMED_OUT if told.code is Code.TIME_EXHAUSTED else Outcome.EXHAUSTED
                    return End(how, told.code, Cause.LIMIT)
            elif type(move) is Rest:
                yield self.env.timeout(move.ns)
                told = None
            else:
                told = yield from self.children(ticket, record, slots, move.children)

    def children(self, ticket: Ticket, record: NodeRecord, slots: Any, asked: Iterable[Child]) -> Steps:
        """Start children and wait for all of them; whoever stops this node stops them."""
        started = [self.env.process(self.child(ticket, record, slots, child)) for child in asked]
        try:
            yield self.env.all_of(started)
        except simpy.Interrupt:
            alive = [process for process in started if process.is_alive]
            for process in alive:
                process.interrupt(_CANCELLED)
            yield self.env.all_of(alive)
            raise

    def child(self, parent: Ticket, above: NodeRecord, slots: Any, child: Child) -> Steps:
        """Wait for a slot, ask for money, and run for no longer than the time limit."""
        path = (*above.path, (child.call, child.slot, child.attempt))
        record = NodeRecord(above, path, child.agent, child.budget, self.env.now)
        with slots.request() as slot:
            try:
                yield slot
            except simpy.Interrupt:
                record.wait_ns = self.env.now - record.started
                self.close(record, End(Outcome.DENIED, Code.PARENT_ENDED, Cause.LIMIT))
                return
            record.wait_ns = self.env.now - record.started
            answer = self.policy.spawn(SpawnAsk(parent, path, child.budget), self.env.now)
            if type(answer) is Refusal:
                self.close(record, End(Outcome.DENIED, answer.code, Cause.LIMIT))
                return
            above.starts += 1
            record.granted = answer.ceiling
            process = self.env.process(self.node(answer.ticket, record, child.brain()))
            try:
                yield process | self.env.timeout(self.timeout)
                if process.is_alive:
                    process.interrupt(_LATE)
                    yield process
            except simpy.Interrupt as stopped:
                if process.is_alive:
                    process.interrupt(stopped.cause)
                    yield process

    def call(self, ticket: Ticket, record: NodeRecord, call: Call) -> Steps:
        """Ask for a call, make it, and settle it."""
        model = self.model
        answer = self.policy.admit(StepAsk(ticket, call.call, call.attempt, model.bound(call), call.kind), self.env.now)
        if type(answer) is Refusal:
            record.refusal = answer
            return answer
        record.model = call.model
        record.attempts += 1
        started = self.env.now
        try:
            duration, reply = model.timed(call)
            yield self.env.timeout(duration)
        except simpy.Interrupt:
            record.drop(model.abandoned(call, self.env.now - started))
            self.policy.settle(answer.ticket, Use(_UNKNOWN, "abandoned"), self.env.now)
            raise
        use = Use(amounts_of(reply), reply.status)
        record.add(reply, use.spent)
        self.policy.settle(answer.ticket, use, self.env.now)
        return reply

    def close(self, record: NodeRecord, end: End) -> None:
        """Write down how a node ended."""
        record.close(end, self.env.now)
        self.rows.node(record)


def simulate(world: World, money: PolicySpec, runs: Sequence[int], *, slots: int, timeout_s: float) -> Rows:
    """Simulate some runs with SimPy; the rows are those of the kernel, maybe in another order within a run."""
    rows = Rows()
    for run in world.each(runs):
        rows.run = run
        SimpyTree(world, money.start(str(run)), rows, slots=slots, timeout_ns=ns(timeout_s)).run(run)
    return rows
