"""Tree limits as a module: depth, starts, concurrency and time of children.

Source: subagent limits of TanStack AI (:mod:`harness_lab.limits.tree`); waiting and lending a slot are our own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.errors import InputError
from harness_lab.limits import SubagentBudget, SubagentLimits
from harness_lab.outcome import Code, Helps, Shortfall
from harness_lab.policies.protocol import OPEN, SpawnAsk

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use

Concurrency = Literal["tree", "parent"]
OnTimeout = Literal["cancel", "cooperative", "detach"]
TimeoutFrom = Literal["start", "arrival"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "concurrency": get_args(Concurrency),
    "on_timeout": get_args(OnTimeout),
    "timeout_from": get_args(TimeoutFrom),
}

_SLOTS = 4
"""The bit of the limit on children at once."""
_CODES: dict[str, tuple[Code, Helps]] = {
    "max_depth": (Code.MAX_DEPTH, "nothing"),
    "max_calls": (Code.MAX_CALLS, "nothing"),
    "max_concurrent": (Code.MAX_CONCURRENT, "wait"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLimitsSpec:
    """Parameters of the tree limits; None means no limit, 0 is a real one.

    Parameters
    ----------
    max_depth : int or None
        Deepest level that may run; the root is 0.
    max_concurrent : int or None
        Children at once.
    max_calls : int or None
        Starts in the life of the tree.
    timeout_s : float or None
        Longest life of one child, seconds.
    concurrency : {"tree", "parent"}
        Whether children at once are counted over the whole tree or for each parent.
    lend : bool
        Whether a parent that only waits for children lends them its slot: then children that *work* at once are
        counted, and waiting for a slot cannot stop a tree for ever.
    on_timeout : {"cancel", "cooperative", "detach"}
        At the time limit: stop the child where it stands; refuse its next step, so that a call in flight ends and is
        charged; or tell its parent, and keep the slot until the work has really ended.
    timeout_from : {"start", "arrival"}
        Whether time spent waiting for a slot counts.
    give_back : bool
        Whether a start that never ran (cancelled in the instant it was granted) is given back.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number, or a choice is none of those named.
    """

    max_depth: int | None = None
    max_concurrent: int | None = None
    max_calls: int | None = None
    timeout_s: float | None = None
    concurrency: Concurrency = "tree"
    lend: bool = False
    on_timeout: OnTimeout = "cancel"
    timeout_from: TimeoutFrom = "start"
    give_back: bool = True
    kind: str = "tree_limits"

    def __post_init__(self) -> None:
        limits = self.limits()
        for name in ("max_depth", "max_concurrent", "max_calls"):
            object.__setattr__(self, name, getattr(limits, name))
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(name, expected=f"one of {', '.join(choices)}", got=getattr(self, name))
        for name in ("lend", "give_back"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(name, expected="true or false", got=getattr(self, name))

        if self.lend and self.on_timeout == "detach":
            got = "lend=True, on_timeout='detach'"
            raise InputError("lend", expected="children that end before their parent goes on", got=got)

    def limits(self) -> SubagentLimits:
        """Return the limits themselves."""
        return SubagentLimits(
            max_depth=self.max_depth,
            max_concurrent=self.max_concurrent,
            max_calls=self.max_calls,
            timeout_s=self.timeout_s,
        )

    @property
    def may_deadlock_when_queued(self) -> bool:
        """Whether waiting for a slot can stop a tree for ever.

        A parent keeps its slot while it waits for its children. Counted over the tree, every slot may then be held by
        parents that wait; the root holds none, so one level of children is safe.
        """
        if self.max_concurrent is None or self.lend:
            return False
        return self.concurrency == "tree" and self.max_depth not in (0, 1)

    def build(self, now: Time) -> TreeLimits:
        """Make a module with nothing started."""
        return TreeLimits(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@lru_cache(maxsize=256)
def _limits(spec: TreeLimitsSpec) -> SubagentLimits:
    """Return the limits; made once for the many runs of a simulation."""
    return spec.limits()


class _Node:
    """What is remembered about a node: its view of the limits, its running children, those it only waits for."""

    __slots__ = ("active", "awaited", "deadline", "view")

    def __init__(self, view: SubagentBudget, deadline: Time | None) -> None:
        self.view = view
        self.deadline = deadline
        self.active = 0
        self.awaited = 0


class TreeLimits:
    """One start counter for the tree; has a say in steps only where time limits are cooperative.

    Attributes
    ----------
    running : int
        Slots taken now.
    peak : int
        Most slots that were taken at once.
    """

    asks_spawn = True
    __slots__ = ("_full", "_limits", "_per_parent", "_spec", "asks_step", "index", "peak", "running")

    def __init__(self, spec: TreeLimitsSpec) -> None:
        self._spec = spec
        self._limits = _limits(spec)
        self._per_parent = spec.concurrency == "parent"
        slots = spec.max_concurrent  # a slot that does not exist is never given back
        self._full = Shortfall(Code.MAX_CONCURRENT, slots, 1, 0, "nothing" if slots == 0 else "wait")
        self.asks_step = spec.on_timeout == "cooperative" and spec.timeout_s is not None
        self.running = 0
        self.peak = 0
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return each limit that one more child would break, or that a step is past its node's time."""
        if type(ask) is not SpawnAsk:
            return self._late(ask.node.memory[self.index], now)
        if ask.parent is None:
            return ()
        node: _Node = ask.parent.memory[self.index]
        late = self._late(node, now) if self.asks_step else ()
        active = node.active if self._per_parent else self._active(ask, node)
        broken = node.view.broken(active)
        if ask.resume is not None:  # it was counted when it started; now it only needs a slot
            broken &= _SLOTS
        if broken == 0:
            return late
        if broken == _SLOTS:
            return (self._full, *late)
        return (*(self._shortfall(name, limit, node) for name, limit in node.view.reached(active)), *late)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Count a start, take a slot, and tighten the child's deadline."""
        ask, parent = ticket.ask, ticket.parent
        if type(ask) is not SpawnAsk:
            return
        if parent is None:
            ticket.memory[self.index] = _Node(SubagentBudget.root(self._limits), None)
            return
        above: _Node = parent.memory[self.index]
        above.view.deadline = above.deadline if self.asks_step else ticket.deadline
        since = ticket.asked if self._spec.timeout_from == "arrival" else now
        deadline = above.view.child_deadline(since)
        if deadline is not None and deadline < since:
            deadline = since  # its parent's time is up: it is stopped at once, by a time limit of its own
        if not self.asks_step:
            ticket.deadline = deadline
            ticket.detach = self._spec.on_timeout == "detach"
        ticket.memory[self.index] = _Node(above.view.child(deadline), deadline)
        if ask.resume is None:
            above.view.counter.starts += 1
        above.active += 1
        if ask.awaited:
            self._lend(ticket.parent, above, 1)
        self.running += 1
        self.peak = max(self.peak, self.running)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Give a child's slot back."""
        ask, parent = ticket.ask, ticket.parent
        if type(ask) is not SpawnAsk or parent is None:
            return
        above: _Node = parent.memory[self.index]
        above.active -= 1
        self.running -= 1
        if ask.awaited:
            self._lend(parent, above, -1)
        if use.status == "unsent" and self._spec.give_back and ask.resume is None:
            above.view.release()

    def unsettled(self) -> str | None:
        """Say what is still taken; None once every child has ended."""
        return f"{self.running} slot(s) are still taken" if self.running else None

    def _active(self, ask: SpawnAsk, node: _Node) -> int:
        """Return the slots of the whole tree that are taken; a parent that would lend its own frees one."""
        lent = ask.awaited and ask.parent is not None and self._lends(ask.parent, node) and node.awaited == 0
        return self.running - lent

    def _lend(self, parent: Ticket | None, node: _Node, change: int) -> None:
        """Give a waiting parent's slot away with its first child, and back with its last."""
        before, node.awaited = node.awaited, node.awaited + change
        if parent is not None and self._lends(parent, node) and 0 in (before, node.awaited):
            self.running -= change

    def _lends(self, parent: Ticket, node: _Node) -> bool:
        """Whether a parent has a slot to lend: the root has none, nor has a node whose own work has ended."""
        return self._spec.lend and parent.parent is not None and parent.state == OPEN and node is not None

    def _late(self, node: _Node, now: Time) -> tuple[Shortfall, ...]:
        if node.deadline is None or now < node.deadline:
            return ()
        return (Shortfall(Code.DEADLINE, node.deadline, now, 0, "nothing", "time"),)

    def _shortfall(self, name: str, limit: int, node: _Node) -> Shortfall:
        code, helps = _CODES[name]
        if limit == 0:
            helps = "nothing"  # a slot that does not exist is never given back
        asked = node.view.depth + 1 if name == "max_depth" else 1
        return Shortfall(code, limit, asked, limit if name == "max_depth" else 0, helps)
