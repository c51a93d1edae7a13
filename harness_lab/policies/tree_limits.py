"""Tree limits as a module: depth, starts, concurrency and time of children."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.errors import InputError
from harness_lab.limits import SubagentBudget, SubagentLimits
from harness_lab.outcome import Code, Helps, Shortfall
from harness_lab.policies.protocol import SpawnAsk

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use

Concurrency = Literal["tree", "parent"]

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
    """

    max_depth: int | None = None
    max_concurrent: int | None = None
    max_calls: int | None = None
    timeout_s: float | None = None
    concurrency: Concurrency = "tree"
    kind: str = "tree_limits"

    def __post_init__(self) -> None:
        limits = self.limits()
        for name in ("max_depth", "max_concurrent", "max_calls"):
            object.__setattr__(self, name, getattr(limits, name))
        if self.concurrency not in ("tree", "parent"):
            raise InputError("concurrency", expected="tree or parent", got=self.concurrency)

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
        return self.max_concurrent is not None and self.concurrency == "tree" and self.max_depth not in (0, 1)

    def build(self, now: Time) -> TreeLimits:
        """Make a module with nothing started."""
        return TreeLimits(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class _Node:
    """What is remembered about a node: its view of the limits and its running children."""

    __slots__ = ("active", "view")

    def __init__(self, view: SubagentBudget) -> None:
        self.view = view
        self.active = 0


class TreeLimits:
    """One start counter for the tree; has no say in steps."""

    asks_spawn = True
    asks_step = False
    __slots__ = ("_limits", "_per_tree", "index", "running")

    def __init__(self, spec: TreeLimitsSpec) -> None:
        self._limits = spec.limits()
        self._per_tree = spec.concurrency == "tree"
        self.running = 0
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return each limit that one more child would break."""
        if type(ask) is not SpawnAsk or ask.parent is None:
            return ()
        node: _Node = ask.parent.memory[self.index]
        active = self.running if self._per_tree else node.active
        return tuple(self._shortfall(name, limit, node) for name, limit in node.view.reached(active))

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Count a start, take a slot, and tighten the child's deadline."""
        parent = ticket.parent
        if parent is None:
            ticket.memory[self.index] = _Node(SubagentBudget.root(self._limits))
            return
        above: _Node = parent.memory[self.index]
        above.view.deadline = ticket.deadline
        deadline = above.view.child_deadline(now)
        ticket.deadline = deadline
        ticket.memory[self.index] = _Node(above.view.child(deadline))
        above.view.counter.starts += 1
        above.active += 1
        self.running += 1

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Give a child's slot back, and its start too if it was granted and never ran."""
        if type(ticket.ask) is SpawnAsk and ticket.parent is not None:
            above: _Node = ticket.parent.memory[self.index]
            above.active -= 1
            self.running -= 1
            if use.status == "unsent":
                above.view.release()

    def _shortfall(self, name: str, limit: int, node: _Node) -> Shortfall:
        code, helps = _CODES[name]
        if limit == 0:  # no slot will ever be given back
            helps = "nothing"
        asked = node.view.depth + 1 if name == "max_depth" else 1
        return Shortfall(code, limit, asked, limit if name == "max_depth" else 0, helps)
