"""What the loop writes down about a node, and where it puts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness_lab.outcome import COST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.agents.ports import Call, Reply
    from harness_lab.clock import Time
    from harness_lab.outcome import Refusal
    from harness_lab.policies.protocol import End, Path, Ticket
    from harness_lab.usage import Amounts


class NodeRecord:
    """One node's own use (not its children's) and fate.

    Attributes
    ----------
    calls, attempts, starts : int
        Calls that completed, calls that were sent, children that started.
    input_fresh, cache_read, cache_write, output : int
        Tokens of its own calls, as far as known.
    cost_nusd, billed_nusd : int
        Reported and true cost of its own calls, nano-dollars, as far as known.
    usage_known, cost_known, billed_known : bool
        False once a call's usage was not reported, once its cost was not (or has no price), once nobody can know its
        bill: the sums are lower bounds then.
    subtree : list of int
        Reported use by channel of the node and all that was below it.
    granted : Amounts or None
        What the policy granted by channel, maybe less than asked; None: nothing of its own.
    wrap_ups : int
        Calls of its own that were admitted outside a limit, to wrap up; they are among `calls`.
    start_warnings : sequence of str
        Of the grant with which it started: a floor, say, whose evidence is stale.
    warnings : sequence of str
        Of its last call's grant.
    refusal : Refusal or None
        The answer that kept it from starting, or that stopped it.
    late : list of Ticket or None
        Steps whose usage has not come yet; None where none ever was late.
    error : BaseException or None
        What it raised, for the operator; a child's error ends the child and not its tree.
    """

    __slots__ = (
        "agent",
        "attempts",
        "billed_known",
        "billed_nusd",
        "budget",
        "cache_read",
        "cache_write",
        "calls",
        "cost_known",
        "cost_nusd",
        "depth",
        "end",
        "ended",
        "error",
        "granted",
        "input_fresh",
        "late",
        "model",
        "output",
        "parent",
        "path",
        "refusal",
        "start_warnings",
        "started",
        "starts",
        "subtree",
        "usage_known",
        "wait_ns",
        "warnings",
        "wrap_ups",
    )

    def __init__(self, parent: NodeRecord | None, path: Path, agent: str, budget: Amounts, now: Time) -> None:
        self.parent = parent
        self.path = path
        self.depth = len(path)
        self.agent = agent
        self.model: str | None = None
        self.budget = budget
        self.started = now
        self.ended = now
        self.end: End | None = None
        self.granted: Amounts | None = None
        self.refusal: Refusal | None = None
        self.error: BaseException | None = None
        self.late: list[Ticket] | None = None
        self.calls = self.attempts = self.starts = 0
        self.input_fresh = self.cache_read = self.cache_write = self.output = 0
        self.cost_nusd = self.billed_nusd = 0
        self.usage_known = self.cost_known = self.billed_known = True
        self.wait_ns = 0
        self.wrap_ups = 0
        self.start_warnings: Sequence[str] = ()
        self.warnings: Sequence[str] = ()
        self.subtree = [0, 0, 0, 0, 0]

    def add(self, reply: Reply, spent: Amounts) -> None:
        """Count one call that came back."""
        if reply.status == "completed":
            self.calls += 1
        billed = reply.billed_nusd
        if billed is None:
            self.billed_known = False
        else:
            self.billed_nusd += billed
        self.arrived(reply, spent)

    def expect(self, reply: Reply) -> None:
        """Count one call that came back and whose usage is still to come."""
        if reply.status == "completed":
            self.calls += 1
        self._bill(reply.billed_nusd)

    def arrived(self, reply: Reply, spent: Amounts) -> None:
        """Count the usage of a call."""
        cost = reply.cost_nusd
        if cost is None:
            self.cost_known = False
        if reply.reported:
            self.input_fresh += reply.input_fresh
            self.output += reply.output
            self.cost_nusd += cost or 0
            if reply.cache_read or reply.cache_write:
                self.cache_read += reply.cache_read
                self.cache_write += reply.cache_write
        else:
            self.usage_known = False
            self.cost_known = self.cost_known and spent[COST] is not None
            self.cost_nusd += spent[COST] or 0
        calls, prompt, tokens, fresh, cost = spent
        subtree = self.subtree
        subtree[0] += calls or 0
        subtree[1] += prompt or 0
        subtree[2] += tokens or 0
        subtree[3] += fresh or 0
        subtree[4] += cost or 0

    def drop(self, billed_nusd: int | None) -> None:
        """Count one call that never came back."""
        self._bill(billed_nusd)
        self.usage_known = self.cost_known = False

    def _bill(self, billed_nusd: int | None) -> None:
        if billed_nusd is None:
            self.billed_known = False
        else:
            self.billed_nusd += billed_nusd

    def close(self, end: End, now: Time) -> None:
        """Write down how the node ended, and count it in its parent's subtree."""
        self.end = end
        self.ended = now
        if self.parent is not None:
            above = self.parent.subtree
            calls, prompt, tokens, fresh, cost = self.subtree
            above[0] += calls
            above[1] += prompt
            above[2] += tokens
            above[3] += fresh
            above[4] += cost

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Warnings of its start and of its last call."""
        return (*self.start_warnings, *self.warnings)

    @property
    def overspent(self) -> bool:
        """Whether the node and all below it used more than the node's ask, in any channel."""
        for ask, used in zip(self.budget, self.subtree, strict=True):  # noqa: SIM110 - once for every node
            if ask is not None and used > ask:
                return True
        return False


class Sink(Protocol):
    """Where records go."""

    def node(self, record: NodeRecord) -> None:
        """Take a node that has ended, or that never started."""

    def call(self, record: NodeRecord, call: Call, reply: Reply | None, started: Time, now: Time) -> None:
        """Take a call that has ended; `reply` is None when it was dropped."""
