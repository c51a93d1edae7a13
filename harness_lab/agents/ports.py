"""The ports of the agent loop: what it needs from a runtime, a model and a brain.

The loop is written once. In production the runtime is asyncio, the model a real client and the brain the conversation
with it; in the simulator they are a virtual-time kernel, a stochastic mock and a workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness_lab.outcome import CHANNELS, COST, Cause, Code, Outcome
from harness_lab.policies.protocol import SETTLED, End, SpawnAsk, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence

    from harness_lab.clock import Time
    from harness_lab.floors import FloorKey
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import Grant, Policy, Status, StepKind, Ticket, Wait
    from harness_lab.usage import Amounts


DEADLINE, COMPLETION, HANDOVER, START = range(4)
"""Ranks of things that happen at one instant: deadlines first, so that work which ends at its deadline is late."""


class Call:
    """A move: make one model call.

    Parameters
    ----------
    model : str
        The model asked for.
    key : int
        The node's draw key; names its luck in the simulator, free to use in production.
    call, attempt : int
        The logical call and one more for each retry of it.
    input_total : int
        Prompt tokens that will be sent.
    resent : int
        The part of them that the call before had sent too, and that a cache may hold.
    kind : {"model", "compaction", "wrap-up"}
        What kind of step it is; a wrap-up offers no tools.
    answer : object
        What a record says came back; None where a model has to be asked. A call of another kind has none.
    """

    __slots__ = ("answer", "attempt", "call", "input_total", "key", "kind", "model", "resent")

    def __init__(
        self,
        model: str,
        key: int,
        call: int,
        attempt: int,
        input_total: int,
        resent: int = 0,
        kind: StepKind = "model",
        answer: Any = None,
    ) -> None:
        self.model = model
        self.answer = answer
        self.key = key
        self.call = call
        self.attempt = attempt
        self.input_total = input_total
        self.resent = resent
        self.kind: StepKind = kind

    def but(self, *, model: str | None = None, kind: StepKind | None = None) -> Call:
        """Return the same call on another model, or of another kind."""
        return Call(
            self.model if model is None else model,
            self.key,
            self.call,
            self.attempt,
            self.input_total,
            self.resent,
            self.kind if kind is None else kind,
            self.answer if kind is None else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A child to be started.

    Parameters
    ----------
    agent : str
        Role or profile.
    budget : Amounts
        The ask.
    call, slot, attempt : int
        Its name under its parent.
    brain : callable
        Makes the child's brain once it may start.
    floor_key : FloorKey or None
        The path that would run it.
    """

    agent: str
    budget: Amounts
    call: int
    slot: int
    brain: Callable[[], Brain]
    attempt: int = 0
    floor_key: FloorKey | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """A move: start children and wait for all of them.

    Parameters
    ----------
    children : sequence of Child
        Started in this order.
    """

    children: Sequence[Child]


@dataclass(frozen=True, slots=True)
class Work:
    """A move: do what is neither a model call nor a child (tools run here); the brain is told what it returns.

    An error that the job raises ends the node as failed; a job whose failure the brain should hear of returns it.

    Parameters
    ----------
    job : callable
        Makes the coroutine that does it.
    """

    job: Callable[[], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Rest:
    """A move: let time pass (a tool runs, a person thinks, a retry backs off), nanoseconds.

    Parameters
    ----------
    ns : int
        How long, nanoseconds.
    """

    ns: int


class Reply:
    """What came back from a call.

    Parameters
    ----------
    status : {"completed", "failed", "unsent"}
        How the call ended; ``unsent`` was not let through and charges nothing.
    input_fresh, cache_read, cache_write, output : int
        Token counts, disjoint.
    cost_nusd : int or None
        The cost as reported; None: not reported, or no price.
    billed_nusd : int or None
        The truth that the provider bills; None where nobody can know.
    reported : bool
        Whether usage was reported. If not, the enforcement sees None in every channel but calls.
    """

    __slots__ = (
        "billed_nusd",
        "cache_read",
        "cache_write",
        "cost_nusd",
        "input_fresh",
        "output",
        "reported",
        "status",
    )

    def __init__(
        self,
        status: Status,
        input_fresh: int,
        cache_read: int,
        cache_write: int,
        output: int,
        cost_nusd: int | None,
        billed_nusd: int | None,
        reported: bool = True,
    ) -> None:
        self.status = status
        self.input_fresh = input_fresh
        self.cache_read = cache_read
        self.cache_write = cache_write
        self.output = output
        self.cost_nusd = cost_nusd
        self.billed_nusd = billed_nusd
        self.reported = reported


class Throttled(Reply):
    """An answer 429: the attempt was not let through, was not billed, and may be made again later.

    Parameters
    ----------
    retry_after_ns : int
        Time after which the provider says to try again.
    """

    __slots__ = ("retry_after_ns",)

    def __init__(self, retry_after_ns: int) -> None:
        super().__init__("unsent", 0, 0, 0, 0, 0, 0)
        self.retry_after_ns = retry_after_ns


class LateReply(Reply):
    """A reply whose usage comes later than its answer, or more than once.

    Parameters
    ----------
    late_ns : int
        How much later its usage comes; until then its step stays open, and when its node ends first, it is unknown.
    copies : int
        How often its usage is reported; a settlement counts once.
    """

    __slots__ = ("copies", "late_ns")

    def __init__(
        self,
        status: Status,
        input_fresh: int,
        cache_read: int,
        cache_write: int,
        output: int,
        cost_nusd: int | None,
        billed_nusd: int | None,
        *,
        late_ns: int = 0,
        copies: int = 1,
    ) -> None:
        super().__init__(status, input_fresh, cache_read, cache_write, output, cost_nusd, billed_nusd)
        self.late_ns = late_ns
        self.copies = copies


class PartialReply(Reply):
    """A reply whose client reported some channels only; ``reported`` is False, and `spent` has what is known.

    Parameters
    ----------
    status : {"completed", "failed"}
        How the call ended.
    spent : Amounts
        By channel; None: unknown.
    billed_nusd : int or None
        The truth that the provider bills; None where nobody can know.
    """

    __slots__ = ("spent",)

    def __init__(self, status: Status, spent: Amounts, billed_nusd: int | None = None) -> None:
        super().__init__(status, 0, 0, 0, 0, spent[COST], billed_nusd, reported=False)
        self.spent = spent


Move = Call | Children | Work | Rest
Answer = Any
"""What a brain is told: a Reply after a Call, a list of End after Children, a Work's result, None after a Rest."""

if TYPE_CHECKING:
    Brain = Generator[Move, Any, End]


class Model(Protocol):
    """What answers calls.

    Notes
    -----
    One that draws its answers, and so knows beforehand how long each takes, may say so with ``knows_times = True`` and
    a method ``timed(call)`` that returns nanoseconds and the reply; the loop then sleeps so long itself, which is
    quicker than to await ``complete``, and the same.
    """

    def bound(self, call: Call) -> Amounts:
        """Return the worst case of a call by channel; None: cannot be bounded."""

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return what is billed for a call that was dropped after `elapsed_ns`; None: nobody can know."""

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Make the call."""


class WorldModel(Model, Protocol):
    """What answers the calls of many worlds, one after another."""

    def fresh(self) -> Model:
        """Return a model for a world of its own, which remembers nothing; one without state returns itself."""


class Job(Protocol):
    """A job that was started and may be waited for."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    def cancel(self) -> None:
        """Raise CancelledError where it stands."""

    async def ended(self) -> None:
        """Wait until it has ended, however that was."""


class Runtime(Protocol):
    """Time, waiting and children, on asyncio or in virtual time."""

    def now(self) -> Time:
        """Return the current instant, nanoseconds."""

    async def sleep(self, ns: int) -> None:
        """Let time pass."""

    async def ask(
        self, policy: Policy, question: Callable[[Any, Time], Grant | Wait | Refusal], ask: Any
    ) -> Grant | Refusal:
        """Ask a policy, and wait in its queue if it says so."""

    async def answered(self, policy: Policy, answer: Wait) -> Grant | Refusal:
        """Wait in a policy's queue for the final answer."""

    async def tell(self, policy: Policy, ticket: Ticket, use: Use, end: End | None = None) -> None:
        """Settle a step, or with `end` close a node, of a policy that does I/O.

        It is done whatever happens meanwhile; a cancellation is raised afterwards.
        """

    def start(self, job: Coroutine[Any, Any, Any]) -> Job:
        """Start a job that nobody waits for yet."""

    def drain(self, policy: Policy) -> None:
        """Hand out the policy's answers to those who wait."""

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, End]]) -> list[End]:
        """Run jobs side by side, started in order; cancelling it cancels them in that order and waits for all."""

    async def leave_at(self, deadline: Time, told: End, job: Coroutine[Any, Any, End]) -> End:
        """Run a job; at `deadline` whoever gathers it is told `told`, and the job goes on until it ends by itself."""

    async def until(self, deadline: Time, job: Coroutine[Any, Any, End]) -> End | None:
        """Run a job that must end before `deadline`; None when it was stopped there. Ending at the deadline is late."""


def withdraw(policy: Policy, ticket: Ticket, now: Time) -> None:
    """Give a ticket back whose asker was cancelled while it waited, or in the instant in which it was granted."""
    if ticket.state == SETTLED:
        return
    nothing = Use((0,) * len(CHANNELS), "unsent")
    if isinstance(ticket.ask, SpawnAsk):
        policy.close(ticket, nothing, End(Outcome.DENIED, Code.PARENT_ENDED, Cause.LIMIT), now)
    else:
        policy.settle(ticket, nothing, now)
