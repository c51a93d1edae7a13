"""The agent loop, written once: ask, call, settle, act, and nothing else.

What to do next comes from the brain; whether it may be done, from the policy; how long it takes, from the runtime.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harness_lab.agents.late import give_up, settle_late
from harness_lab.agents.ports import Call, Child, Children, LateReply, PartialReply, Rest, Work
from harness_lab.agents.record import NodeRecord
from harness_lab.errors import InputError, SimulationError, TreeTooLarge
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal
from harness_lab.policies.protocol import End, SpawnAsk, StepAsk, Use, Wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sized

    from harness_lab.agents.ports import Brain, Model, Reply, Runtime
    from harness_lab.agents.record import Sink
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Grant, Policy, Ticket
    from harness_lab.usage import Amounts

_UNKNOWN = (1,) + (None,) * (len(CHANNELS) - 1)
_NOTHING = (0,) * len(CHANNELS)
_CANCELLED = End(Outcome.CANCELLED, Code.PARENT_ENDED, Cause.LIMIT)
_LATE = End(Outcome.TIMED_OUT, Code.DEADLINE, Cause.LIMIT)
_BROKE = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
_OUTCOMES = {
    Code.TIME_EXHAUSTED: Outcome.TIMED_OUT,
    Code.DEADLINE: Outcome.TIMED_OUT,
    Code.CANCELLED: Outcome.CANCELLED,
    Code.ACCOUNT_UNAVAILABLE: Outcome.FAILED,  # no verdict on the run: asking again may succeed
}
_CAUSES = {Code.ACCOUNT_UNAVAILABLE: Cause.INFRASTRUCTURE, Code.CANCELLED: Cause.USER}
"""Refusals that no limit made: nobody could be asked, or somebody stopped the tree."""


class Harness:
    """One run tree: a runtime, a policy, a model, and where records go.

    Parameters
    ----------
    runtime : Runtime
        Time, waiting and children.
    policy : Policy
        Answers the four questions.
    model : Model
        Answers calls.
    sink : Sink
        Takes records.
    keep_calls : bool
        Whether a record of every call is wanted.
    largest : (int, int) or None
        Nodes and levels beyond which the tree is given up as endless; None: it may grow as its policy lets it.
    """

    __slots__ = (
        "_does_io",
        "_news",
        "_nodes",
        "_now",
        "_sleep",
        "_timed",
        "keep_calls",
        "largest",
        "model",
        "policy",
        "runtime",
        "sink",
    )

    def __init__(
        self,
        runtime: Runtime,
        policy: Policy,
        model: Model,
        sink: Sink,
        *,
        keep_calls: bool = False,
        largest: tuple[int, int] | None = None,
    ) -> None:
        self.runtime = runtime
        self.policy = policy
        self.model = model
        self.sink = sink
        self.keep_calls = keep_calls
        self.largest = largest
        self._nodes = 0
        self._now, self._sleep = runtime.now, runtime.sleep
        self._timed: Callable[[Call], tuple[int, Reply]] | None = None
        if getattr(model, "knows_times", False):  # one that draws its answers need not be waited for in its own words
            self._timed = model.timed  # type: ignore[attr-defined]
        self._does_io = bool(getattr(policy, "blocking", False))
        self._news: Sized | None = getattr(policy, "news", None)  # a policy may show at a glance that it has none

    async def run(self, agent: str, budget: Amounts, brain: Callable[[], Brain]) -> End:
        """Run a tree from its root."""
        record = NodeRecord(None, (), agent, budget, self.runtime.now())
        return await self._start(SpawnAsk(None, (), budget), record, brain)

    async def run_within(self, node: Ticket, agent: str, brain: Brain) -> End:
        """Run a brain as a node that was granted elsewhere: its calls and children stand under that node.

        Whoever was granted the node closes it.
        """
        ask = node.ask
        budget = ask.budget if isinstance(ask, SpawnAsk) else _NOTHING
        record = NodeRecord(None, node.path, agent, budget, self.runtime.now())
        end = _CANCELLED
        try:
            end = await self._think(node, record, brain)
        except Exception as error:
            end, record.error = _BROKE, error
            raise
        finally:
            self._close(record, end)
        return end

    async def _start(self, ask: SpawnAsk, record: NodeRecord, brain: Callable[[], Brain]) -> End:
        """Ask for a node, run it until its deadline, and settle its end whatever happens.

        A child that raises has failed, and its parent is told so; a root's error is raised, and so is one that ends
        the world they live in.
        """
        runtime, policy = self.runtime, self.policy
        try:
            answer = await runtime.ask(policy, policy.spawn, ask)
        except CancelledError:
            record.wait_ns = runtime.now() - record.started
            self._close(record, End(Outcome.DENIED, Code.PARENT_ENDED, Cause.LIMIT))
            raise
        record.wait_ns = runtime.now() - record.started
        if isinstance(answer, Refusal):
            record.refusal = answer
            return self._close(record, End(Outcome.DENIED, answer.code, _cause_of(answer.code)))
        if record.parent is not None:
            record.parent.starts += 1
        node = answer.ticket
        record.granted, record.start_warnings = answer.ceiling, answer.warnings
        end = _CANCELLED
        try:
            deadline = node.deadline
            if deadline is None or (node.parent is not None and deadline == node.parent.deadline):
                end = await self._think(node, record, brain())
            else:
                end = await self._until_deadline(node, deadline, record, brain()) or _LATE
        except BaseException as error:
            end = _end_by(error, record)
            if record.parent is None or isinstance(error, SimulationError) or not isinstance(error, Exception):
                raise
        finally:
            if record.late is not None:
                await give_up(self, record)
            self._close(record, end)
            if self._does_io:
                await runtime.tell(policy, node, Use(tuple(record.subtree)), end)
            else:
                policy.close(node, Use(tuple(record.subtree)), end, runtime.now())
                if self._news is None or self._news:
                    runtime.drain(policy)
        return end

    def _until_deadline(
        self, node: Ticket, deadline: Time, record: NodeRecord, brain: Brain
    ) -> Coroutine[Any, Any, End | None]:
        """Return what runs a node until its deadline, None when that came first; not a step in every wait itself."""
        if deadline <= self._now():  # a call that starts now could only end too late
            return _too_late()
        thinking = self._think(node, record, brain)
        if node.detach:
            return self._left_at(deadline, thinking)
        return self.runtime.until(deadline, thinking)

    async def _left_at(self, deadline: Time, thinking: Coroutine[Any, Any, End]) -> End | None:
        end = await self.runtime.leave_at(deadline, _LATE, thinking)
        return None if self._now() >= deadline else end

    async def _think(self, node: Ticket, record: NodeRecord, brain: Brain) -> End:
        """Do what the brain wants until it has finished."""
        told: Any = None
        try:
            while True:
                move = brain.send(told)
                if type(move) is Call:
                    told = await self._call(node, record, move)
                    if type(told) is Refusal:
                        return await self._at_limit(node, record, brain, move, told)
                elif type(move) is Rest:
                    await self._sleep(move.ns)
                    told = None
                elif type(move) is Children:
                    together = len(move.children)
                    self._grow(record, together)
                    jobs = [self._child(node, record, child, together - i) for i, child in enumerate(move.children)]
                    told = await self.runtime.gather(jobs)
                elif type(move) is Work:
                    told = await move.job()
                else:
                    raise InputError("move of a brain", expected="Call, Children, Work or Rest", got=move)
        except StopIteration as finished:
            end: End = finished.value
            return end
        finally:
            brain.close()

    def _grow(self, record: NodeRecord, more: int) -> None:
        """Count nodes that are asked for, and give an endless tree up."""
        self._nodes += more
        if self.largest is None:
            return
        nodes, levels = self.largest
        if self._nodes > nodes or record.depth >= levels:
            raise TreeTooLarge(self._nodes, record.depth + 1, self.runtime.now())

    def _child(self, parent: Ticket, above: NodeRecord, child: Child, together: int) -> Coroutine[Any, Any, End]:
        path = (*above.path, (child.call, child.slot, child.attempt))
        record = NodeRecord(above, path, child.agent, child.budget, self.runtime.now())
        ask = SpawnAsk(parent, path, child.budget, child.floor_key, together=together)
        return self._start(ask, record, child.brain)

    async def _call(  # noqa: C901 - once for every call: kept flat for speed
        self, node: Ticket, record: NodeRecord, call: Call
    ) -> Reply | Refusal:
        """Ask for one call, make it, and settle it exactly once."""
        policy, model, timed = self.policy, self.model, self._timed
        ask = StepAsk(node, call.call, call.attempt, model.bound(call), call.kind)
        started = self._now()
        if self._does_io:
            answer: Any = await self._waited(record, started, self.runtime.ask(policy, policy.admit, ask))
        else:
            answer = policy.admit(ask, started)
            if self._news is None or self._news:
                self.runtime.drain(policy)
            if type(answer) is Wait:
                answer = await self._waited(record, started, self.runtime.answered(policy, answer))
        if type(answer) is Refusal:
            return answer
        step: Ticket = answer.ticket
        if answer.model is not None:
            call = call.but(model=answer.model)
        record.warnings = answer.warnings
        if record.wait_ns:
            started = self._now()
        record.model = call.model
        record.attempts += 1
        stopped = None
        try:
            if timed is not None:
                duration, reply = timed(call)
                await self._sleep(duration)
            else:
                reply = await model.complete(self.runtime, call)
            use = Use(amounts_of(reply), reply.status)
            if type(reply) is LateReply:
                await settle_late(self, step, use, reply, record)
                self._keep(record, call, reply, started)
                return reply
            record.add(reply, use.spent)
        except BaseException as error:  # a ticket closes on cancel and on error too, and what it used is unknown
            stopped = error
            record.drop(model.abandoned(call, self._now() - started))
            use = Use(_UNKNOWN, "abandoned" if isinstance(error, CancelledError) else "failed")
        if self._does_io:
            await self.runtime.tell(policy, step, use)
        else:
            policy.settle(step, use, self._now())
            if self._news is None or self._news:
                self.runtime.drain(policy)
        if self.keep_calls:
            self._keep(record, call, None if stopped is not None else reply, started)
        if stopped is not None:
            raise stopped
        return reply

    async def _waited(self, record: NodeRecord, asked: Time, answer: Awaitable[Grant | Refusal]) -> Grant | Refusal:
        """Wait for an answer, and write down for how long, however that ends."""
        try:
            return await answer
        finally:
            record.wait_ns += self.runtime.now() - asked

    async def _at_limit(self, node: Ticket, record: NodeRecord, brain: Brain, call: Call, refusal: Refusal) -> End:
        """End a node that a limit refused, after one last call where that is admitted; what it wants then is moot."""
        record.refusal = refusal
        if refusal.then == "pause":
            return End(Outcome.AWAITING_APPROVAL, refusal.code, Cause.LIMIT)
        if refusal.then == "wrap-up":
            told = await self._call(node, record, call.but(kind="wrap-up"))
            if type(told) is not Refusal:
                record.wrap_ups += 1
                if told.status == "completed":  # type: ignore[union-attr]
                    with suppress(StopIteration):
                        brain.send(told)
        outcome = _OUTCOMES.get(refusal.code, Outcome.EXHAUSTED)
        return End(outcome, refusal.code, _cause_of(refusal.code))

    def _keep(self, record: NodeRecord, call: Call, reply: Reply | None, started: Any) -> None:
        if self.keep_calls:
            self.sink.call(record, call, reply, started, self.runtime.now())

    def _close(self, record: NodeRecord, end: End) -> End:
        record.close(end, self.runtime.now())
        self.sink.node(record)
        return end


def _end_by(error: BaseException, record: NodeRecord) -> End:
    """Return how a node ends that raised, and write the error down; being cancelled is none."""
    if isinstance(error, CancelledError | GeneratorExit):
        return _CANCELLED
    record.error = error
    return _BROKE


def _cause_of(code: Code) -> Cause:
    return _CAUSES.get(code, Cause.LIMIT)


async def _too_late() -> None:
    return None


def amounts_of(reply: Reply) -> Amounts:
    """Return what a reply reports by channel; a failed call that used nothing counts as none."""
    if not reply.reported:
        return reply.spent if isinstance(reply, PartialReply) else _UNKNOWN
    prompt = reply.input_fresh + reply.cache_read + reply.cache_write
    if reply.status != "completed" and not (prompt or reply.output or reply.cost_nusd):
        return _NOTHING
    fresh = reply.input_fresh + reply.cache_write + reply.output
    return (1, prompt, prompt + reply.output, fresh, reply.cost_nusd)
