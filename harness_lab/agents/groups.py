"""Agents started by code: run one, start one in the background, or a group whose children all end before it does.

Whatever starts an agent, a tool, a router or code, it is a child of a node and stands under that node's limits: it is
counted, timed and refused like any other, and its own children are below it. A child never outlives its parent.

Source: ``ctx.agents`` of TanStack AI's harness: `start`, `run`, `group`, `run_settled`.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.agents.operation import Cancelled, Operation, Settled, StartRefused
from harness_lab.agents.ports import withdraw
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal
from harness_lab.policies.protocol import COMPLETED, End, SpawnAsk, Use, Wait

if TYPE_CHECKING:
    from harness_lab.agents.ports import Runtime
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Grant, Policy, Ticket
    from harness_lab.usage import Amounts

__all__ = ["AgentCode", "Agents", "Cancelled", "Group", "OnFailure", "Operation", "Settled", "StartRefused"]

OnFailure = Literal["cancel-siblings", "collect"]
AgentCode = Callable[["Agents", Any], Awaitable[Any]]
"""An agent as code: it gets its own view for children of its own, and its task; what it returns is its value."""

_NOT_ASKED: Amounts = (None,) * len(CHANNELS)
_FAILED = End(Outcome.FAILED, None, Cause.MODEL)
_LATE = End(Outcome.TIMED_OUT, Code.DEADLINE, Cause.LIMIT)
_STOPPED = End(Outcome.CANCELLED, Code.PARENT_ENDED, Cause.USER)
_NEVER_BEGAN = End(Outcome.DENIED, Code.PARENT_ENDED, Cause.LIMIT)
_NOTHING_USED = Use((0,) * len(CHANNELS), "unsent")


class Agents:
    """Starts agents below one node.

    Parameters
    ----------
    runtime : Runtime
        Time, waiting and children.
    policy : Policy
        Answers whether a child may start.
    node : Ticket
        The node that starts them.
    agents : mapping of str to AgentCode
        What can be started, by name.
    budgets : mapping of str to Amounts, optional
        The ask of each agent; nothing where it is missing.
    """

    __slots__ = ("_agents", "_asked", "_budgets", "_does_io", "_node", "_policy", "_runtime", "_started")

    def __init__(
        self,
        runtime: Runtime,
        policy: Policy,
        node: Ticket,
        agents: Mapping[str, AgentCode],
        *,
        budgets: Mapping[str, Amounts] | None = None,
    ) -> None:
        self._runtime = runtime
        self._policy = policy
        self._node = node
        self._agents = agents
        self._budgets = budgets or {}
        self._does_io = bool(getattr(policy, "blocking", False))
        self._asked = 0
        self._started: list[Operation] = []

    @property
    def runtime(self) -> Runtime:
        """Time, waiting and children."""
        return self._runtime

    @property
    def policy(self) -> Policy:
        """What answers for everything below this node."""
        return self._policy

    @property
    def node(self) -> Ticket:
        """The node that starts agents here."""
        return self._node

    def start(self, agent: str, task: Any = None, *, wake: bool = False) -> Operation:
        """Start an agent in the background.

        Raises
        ------
        InputError
            If there is no agent of that name.
        StartRefused
            If a limit refuses it at once; nothing was created then. One that waits for a slot is refused later, in its
            result; so is every one under a policy that does I/O, which is asked in its thread and answers when it can.
        """
        if agent not in self._agents:
            raise InputError("agent", expected=f"one of {', '.join(self._agents)}", got=agent)
        path = (*self._node.path, (self._asked, 0, 0))
        self._asked += 1
        ask = SpawnAsk(self._node, path, self._budgets.get(agent, _NOT_ASKED), awaited=False)
        asked: SpawnAsk | Grant | Wait = ask
        if not self._does_io:
            answer = self._policy.spawn(ask, self._runtime.now())
            self._runtime.drain(self._policy)
            if isinstance(answer, Refusal):
                raise StartRefused(agent, answer)
            asked = answer
        operation = Operation(agent, wake=wake)
        self._started.append(operation)
        operation.job = self._runtime.start(self._operate(operation, asked, task))
        return operation

    async def run(self, agent: str, task: Any = None) -> Any:
        """Start an agent and wait for its value; whoever is cancelled here cancels it.

        Raises
        ------
        InputError, StartRefused, Cancelled, Exception
            As :meth:`start` and :meth:`Operation.result`.
        """
        operation = self.start(agent, task)
        try:
            return await operation.result()
        except CancelledError:
            operation.cancel()
            await operation.settled()
            raise

    async def group(self, body: Callable[[Group], Awaitable[Any]], *, on_failure: OnFailure = "cancel-siblings") -> Any:
        """Run a body that starts children; return its value once every child has ended.

        Parameters
        ----------
        body : callable
            Gets the group; awaited.
        on_failure : {"cancel-siblings", "collect"}
            What a child that fails under :meth:`Group.run` does to those that run: stop them, or let them end.

        Raises
        ------
        InputError
            If `on_failure` is none of these.

        Notes
        -----
        A body that raises stops nobody: its children end, then it is raised again. The first failure is the one that
        is raised. A child that is started after a failure runs; one that is started after the end is refused.
        """
        if on_failure not in get_args(OnFailure):
            raise InputError("on_failure", expected=" or ".join(get_args(OnFailure)), got=on_failure)
        group = Group(self, on_failure)
        try:
            return await body(group)
        except CancelledError:
            group.cancel()
            raise
        finally:
            await group.close()

    async def _operate(self, operation: Operation, asked: SpawnAsk | Grant | Wait, task: Any) -> None:
        """Run one agent from its question or its grant to its close, whatever happens in between."""
        if not operation.begin():
            await self._never(operation, None if isinstance(asked, SpawnAsk) else asked.ticket)
            return
        answer = await self._answer(asked)
        if isinstance(answer, Refusal):
            operation.error = StartRefused(operation.agent, answer)
            operation.end = End(Outcome.DENIED, answer.code, Cause.LIMIT)
            return
        node, operation.warnings = answer.ticket, tuple(answer.warnings)
        if node.detach and node.deadline is not None:
            await self._left_alone(operation, node, node.deadline, task)
        else:
            await self._whole(operation, node, task)

    async def _answer(self, asked: SpawnAsk | Grant | Wait) -> Grant | Refusal:
        """Return the final answer; a policy that does I/O is asked only here, where the loop does not wait for it."""
        if isinstance(asked, SpawnAsk):
            return await self._runtime.ask(self._policy, self._policy.spawn, asked)
        return asked if not isinstance(asked, Wait) else await self._runtime.answered(self._policy, asked)

    async def _left_alone(self, operation: Operation, node: Ticket, deadline: Time, task: Any) -> None:
        """Run one agent, and at its deadline say that its time is up while it goes on and keeps its slot."""
        operation.begun = False
        work = operation.work = self._runtime.start(self._whole_once(operation, node, task))

        async def waited() -> End:
            await work.ended()
            return COMPLETED

        if await self._runtime.until(deadline, waited()) is None:
            operation.end = _LATE

    async def _whole_once(self, operation: Operation, node: Ticket, task: Any) -> None:
        """Run one agent unless it was stopped before its turn came."""
        if operation.begin():
            await self._whole(operation, node, task)
        else:
            await self._never(operation, node)

    async def _never(self, operation: Operation, node: Ticket | None) -> None:
        """Give the start of an agent back that was stopped before its turn came; None: it was not asked for yet."""
        operation.end = _STOPPED
        if node is None:
            return
        if self._does_io:
            await self._runtime.tell(self._policy, node, _NOTHING_USED, _NEVER_BEGAN)
            return
        withdraw(self._policy, node, self._runtime.now())
        self._runtime.drain(self._policy)

    async def _whole(self, operation: Operation, node: Ticket, task: Any) -> None:
        """Run one agent and close its node, whatever happens in between."""
        runtime, policy = self._runtime, self._policy
        below = Agents(runtime, policy, node, self._agents, budgets=self._budgets)
        operation.below = below
        end = _STOPPED
        try:
            end = await self._in_time(operation, node, below, task)
            if operation.stopped:
                end = _STOPPED
        finally:
            try:
                await below.close()
            finally:  # stopped once more while its children end, it is closed all the same
                operation.end = end = _LATE if _left(node, runtime.now()) else end
                use = Use(_NOT_ASKED, "completed" if end is COMPLETED else "failed")
                if self._does_io:
                    await runtime.tell(policy, node, use, end)
                else:
                    policy.close(node, use, end, runtime.now())
                    runtime.drain(policy)

    async def _in_time(self, operation: Operation, node: Ticket, below: Agents, task: Any) -> End:
        """Run the code until its node's deadline and keep what came of it."""
        runtime = self._runtime

        async def work() -> End:
            try:
                value = await self._agents[operation.agent](below, task)
            except Exception as error:
                operation.error = None if _left(node, runtime.now()) else error
                return _FAILED
            operation.value = None if _left(node, runtime.now()) else value
            return COMPLETED

        if node.deadline is None or (node.deadline == self._node.deadline and not node.detach):
            return await work()
        if node.deadline <= runtime.now():
            return _LATE
        if node.detach:
            return await work()
        end = await runtime.until(node.deadline, work())
        return _LATE if end is None else end

    def cancel(self) -> None:
        """Stop what still runs below this node, in the order in which it was started."""
        for operation in self._started:
            operation.cancel()

    async def close(self) -> None:
        """Stop what still runs below this node and wait for it."""
        self.cancel()
        await _surely(self._started)


class Group:
    """Children that end together; see :meth:`Agents.group`."""

    __slots__ = ("_agents", "_closed", "_on_failure", "_operations")

    def __init__(self, agents: Agents, on_failure: OnFailure) -> None:
        self._agents = agents
        self._on_failure = on_failure
        self._operations: list[Operation] = []
        self._closed = False

    def start(self, agent: str, task: Any = None) -> Operation:
        """Start a child of the group in the background; the group waits for it.

        Raises
        ------
        InputError
            If the group's body has ended.
        """
        if self._closed:
            raise InputError("group", expected="a group whose body still runs", got=f"a start of {agent} after its end")
        operation = self._agents.start(agent, task)
        self._operations.append(operation)
        return operation

    async def run(self, agent: str, task: Any = None) -> Any:
        """Start a child and wait for its value; its failure stops the others, unless they are collected."""
        operation = self.start(agent, task)
        how = await operation.settled()
        if how.error is None:
            return how.value
        if self._on_failure == "cancel-siblings":
            self.cancel()
        raise how.error

    async def run_settled(self, agent: str, task: Any = None) -> Settled:
        """Start a child and wait until it has ended; its failure stops nobody."""
        return await self.start(agent, task).settled()

    def cancel(self) -> None:
        """Stop every child that still runs."""
        for operation in self._operations:
            operation.cancel()

    async def close(self) -> None:
        """Wait until every child has ended; nothing is started from here on."""
        self._closed = True
        await _surely(self._operations)


def _left(node: Ticket, now: Time) -> bool:
    """Whether a node's time was up while it may go on: what comes of it then is nobody's."""
    return node.detach and node.deadline is not None and now >= node.deadline


async def _surely(operations: Sequence[Operation]) -> None:
    """Wait for every end even if whoever waits is cancelled meanwhile: a child never outlives its parent."""
    stopped: CancelledError | None = None
    for operation in operations:
        while not operation.done:
            try:
                await operation.over()
            except CancelledError as error:
                operation.cancel()
                stopped = error
    if stopped is not None:
        raise stopped
