"""Agents started by code: run one, start one in the background, or a group whose children all end before it does.

Whatever starts an agent, a tool, a router or code, it is a child of a node and stands under that node's limits: it is
counted, timed and refused like any other, and its own children are below it. A child never outlives its parent.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.agents.ports import withdraw
from harness_lab.errors import HarnessLabError, InputError
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal
from harness_lab.policies.protocol import COMPLETED, End, SpawnAsk, Use, Wait

if TYPE_CHECKING:
    from harness_lab.agents.ports import Job, Runtime
    from harness_lab.policies.protocol import Grant, Policy, Ticket
    from harness_lab.usage import Amounts

OnFailure = Literal["cancel-siblings", "collect"]
AgentCode = Callable[["Agents", Any], Awaitable[Any]]
"""An agent as code: it gets its own view for children of its own, and its task; what it returns is its value."""

_NOT_ASKED: Amounts = (None,) * len(CHANNELS)
_FAILED = End(Outcome.FAILED, None, Cause.MODEL)
_LATE = End(Outcome.TIMED_OUT, Code.DEADLINE, Cause.LIMIT)
_STOPPED = End(Outcome.CANCELLED, Code.PARENT_ENDED, Cause.USER)


class StartRefused(HarnessLabError):
    """An agent was not started: a limit said no, and nothing was created.

    Attributes
    ----------
    agent : str
        Its name.
    refusal : Refusal
        Why.
    """

    def __init__(self, agent: str, refusal: Refusal) -> None:
        self.agent, self.refusal = agent, refusal
        super().__init__(agent, refusal)

    def __str__(self) -> str:
        return f"agent {self.agent} was not started: {self.refusal}"


class Cancelled(HarnessLabError):
    """An agent was stopped before it ended by itself, or its time was up."""

    def __str__(self) -> str:
        return "Cancelled."


@dataclass(frozen=True, slots=True)
class Settled:
    """How one child of a group ended: with a value, or with an error."""

    ok: bool
    value: Any = None
    error: BaseException | None = None


class Operation:
    """An agent that was started.

    Attributes
    ----------
    agent : str
        Its name.
    wake : bool
        Whether its end shall open a new turn of whoever started it; whoever runs the turns reads it.
    end : End or None
        How it ended; None while it runs.
    """

    __slots__ = ("_begun", "_below", "_job", "_stopped", "agent", "end", "error", "value", "wake")

    def __init__(self, agent: str, *, wake: bool) -> None:
        self.agent = agent
        self.wake = wake
        self.end: End | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self._job: Job | None = None
        self._below: Agents | None = None
        self._begun = False
        self._stopped = False

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._job is not None and self._job.done

    def begin(self) -> bool:
        """Take note that it runs; False when it was stopped before its turn came, and must not."""
        self._begun = True
        return not self._stopped

    def cancel(self) -> None:
        """Stop it, its children first; if it then ends normally all the same, it was still stopped."""
        self._stopped = True
        if self._below is not None:
            self._below.cancel()
        if self._begun and self._job is not None and not self._job.done:
            self._job.cancel()

    async def settled(self) -> Settled:
        """Wait until it has ended, and say how."""
        if self._job is not None:
            await self._job.ended()
        error = self.error if self.error is not None or self.end is COMPLETED else Cancelled()
        return Settled(error is None, self.value, error)

    async def result(self) -> Any:
        """Wait for its value.

        Raises
        ------
        Cancelled
            If it was stopped.
        Exception
            What it raised.
        """
        how = await self.settled()
        if how.error is not None:
            raise how.error
        return how.value


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

    __slots__ = ("_agents", "_asked", "_budgets", "_node", "_policy", "_runtime", "_started")

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
            result.
        """
        if agent not in self._agents:
            raise InputError("agent", expected=f"one of {', '.join(self._agents)}", got=agent)
        path = (*self._node.path, (self._asked, 0, 0))
        self._asked += 1
        ask = SpawnAsk(self._node, path, self._budgets.get(agent, _NOT_ASKED), awaited=False)
        answer = self._policy.spawn(ask, self._runtime.now())
        self._runtime.drain(self._policy)
        if isinstance(answer, Refusal):
            raise StartRefused(agent, answer)
        operation = Operation(agent, wake=wake)
        self._started.append(operation)
        operation._job = self._runtime.start(self._operate(operation, answer, task))
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

    async def _operate(self, operation: Operation, answer: Grant | Wait, task: Any) -> None:
        """Run one agent from its grant to its close, whatever happens in between."""
        runtime, policy = self._runtime, self._policy
        if not operation.begin():
            withdraw(policy, answer.ticket, runtime.now())
            runtime.drain(policy)
            operation.end = _STOPPED
            return
        if isinstance(answer, Wait):
            final = await runtime.answered(policy, answer)
            if isinstance(final, Refusal):
                operation.error = StartRefused(operation.agent, final)
                operation.end = End(Outcome.DENIED, final.code, Cause.LIMIT)
                return
            answer = final
        node = answer.ticket
        below = Agents(runtime, policy, node, self._agents, budgets=self._budgets)
        operation._below = below
        end = _STOPPED
        try:
            end = await self._in_time(operation, node, below, task)
            if operation._stopped:
                end = _STOPPED
        finally:
            await below.close()
            operation.end = end
            policy.close(node, Use(_NOT_ASKED, "completed" if end is COMPLETED else "failed"), end, runtime.now())
            runtime.drain(policy)

    async def _in_time(self, operation: Operation, node: Ticket, below: Agents, task: Any) -> End:
        """Run the code until its node's deadline and keep what came of it."""

        async def work() -> End:
            try:
                operation.value = await self._agents[operation.agent](below, task)
            except Exception as error:
                operation.error = error
                return _FAILED
            return COMPLETED

        if node.deadline is None or node.deadline == self._node.deadline:
            return await work()
        if node.deadline <= self._runtime.now():
            return _LATE
        end = await self._runtime.until(node.deadline, work())
        return _LATE if end is None else end

    def cancel(self) -> None:
        """Stop what still runs below this node, in the order in which it was started."""
        for operation in self._started:
            operation.cancel()

    async def close(self) -> None:
        """Stop what still runs below this node and wait for it."""
        self.cancel()
        for operation in self._started:
            await _surely(operation)


class Group:
    """Children that end together; see :meth:`Agents.group`."""

    __slots__ = ("_agents", "_closed", "_on_failure", "_operations")

    def __init__(self, agents: Agents, on_failure: OnFailure) -> None:
        self._agents = agents
        self._on_failure = on_failure
        self._operations: list[Operation] = []
        self._closed = False

    def start(self, agent: str, task: Any = None) -> Operation:
        """Start a child of the group in the background; the group waits for it."""
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
        for operation in self._operations:
            await _surely(operation)


async def _surely(operation: Operation) -> None:
    """Wait for an end even if whoever waits is cancelled meanwhile: a child never outlives its parent."""
    stopped: CancelledError | None = None
    while not operation.done:
        try:
            await operation.settled()
        except CancelledError as error:
            operation.cancel()
            stopped = error
    if stopped is not None:
        raise stopped
