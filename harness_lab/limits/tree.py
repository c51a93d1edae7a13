"""Tree limits: how deep, how many, how many at once, how long.

Semantics follow the subagent limits of TanStack AI: one counter is shared by the whole tree, so a child cannot reset
it; a refusal is a value and consumes nothing; the checks run in the order depth, calls, concurrency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.clock import NS_PER_S, Time, instant, ns
from harness_lab.errors import InputError
from harness_lab.limits import _rules
from harness_lab.usage import count, optional_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.outcome import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentLimits:
    """Limits of one tree; None means no limit and 0 is a real one.

    Parameters
    ----------
    max_depth : int or None
        Deepest level that may run; the root is 0, so d lets depths 1 to d run.
    max_concurrent : int or None
        Children that may run at once.
    max_calls : int or None
        Children that may be started in the life of the tree (*starts*; the name is the peers').
    timeout_s : float or None
        Longest life of one child, seconds, never past its parent's deadline.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number.
    """

    max_depth: int | None = None
    max_concurrent: int | None = None
    max_calls: int | None = None
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_depth", "max_concurrent", "max_calls"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name)))
        if self.timeout_s is not None and not ns(self.timeout_s, what="timeout_s") >= 0:
            raise InputError("timeout_s", expected="seconds >= 0 or None", got=self.timeout_s)


HARNESS_DEFAULTS = SubagentLimits(max_depth=2, max_concurrent=3, max_calls=12)
"""What a harness uses when nobody says otherwise: depth 2, 3 at once, 12 starts per tree."""


class StartCounter:
    """Starts of one tree; the only mutable part, shared by every view of it."""

    __slots__ = ("starts",)

    def __init__(self) -> None:
        self.starts = 0


class SubagentBudget:
    """One node's view of its tree's limits: its depth, its deadline, and the counter that all nodes share.

    Parameters
    ----------
    limits : SubagentLimits
        Limits of the tree.
    depth : int
        Depth of this node.
    counter : StartCounter
        The tree's counter.
    deadline : Time or None
        When this node must have ended, nanoseconds; None: no deadline.
    """

    __slots__ = ("_calls", "_concurrent", "_depth_limit", "_timeout", "counter", "deadline", "depth", "limits")

    def __init__(
        self,
        limits: SubagentLimits,
        *,
        depth: int = 0,
        counter: StartCounter | None = None,
        deadline: Time | None = None,
    ) -> None:
        self.limits = limits
        self.depth = count("depth", depth)
        self.counter = counter if counter is not None else StartCounter()
        self.deadline = None if deadline is None else instant("deadline", deadline)
        self._depth_limit = _or_none(limits.max_depth)
        self._calls = _or_none(limits.max_calls)
        self._concurrent = _or_none(limits.max_concurrent)
        self._timeout = -1 if limits.timeout_s is None else ns(limits.timeout_s)

    @classmethod
    def root(cls, limits: SubagentLimits | None = None) -> SubagentBudget:
        """Start a tree: depth 0, nothing started, no deadline."""
        return cls(limits if limits is not None else SubagentLimits())

    @property
    def calls(self) -> int:
        """Children started so far in the whole tree."""
        return self.counter.starts

    def reached(self, active: int) -> Iterator[tuple[str, int]]:
        """Yield each limit that a start would break now, as (name, limit), in the order of checking."""
        bits = self.broken(active)
        if bits & 1:
            yield "max_depth", self._depth_limit
        if bits & 2:
            yield "max_calls", self._calls
        if bits & 4:
            yield "max_concurrent", self._concurrent

    def broken(self, active: int) -> int:
        """Return which limits a start would break now, as bits: 1 depth, 2 starts, 4 children at once; 0: none.

        Raises
        ------
        InputError
            If `active` is negative or no whole number.
        """
        if type(active) is not int or active < 0:
            active = count("active", active)
        return _rules.broken(
            self.depth + 1, self._depth_limit, self.counter.starts, self._calls, active, self._concurrent
        )

    def reserve(self, active: int) -> str | None:
        """Count one start, or say which limit refuses it.

        Parameters
        ----------
        active : int
            Children that run now.

        Returns
        -------
        str or None
            None when allowed (the start is counted); otherwise ``subagent limit reached (maxCalls 12)``, and nothing
            has changed.
        """
        for name, limit in self.reached(active):
            return f"subagent limit reached ({_SPELLING[name]} {limit})"
        self.counter.starts += 1
        return None

    def release(self) -> None:
        """Give one start back: the child never ran.

        Raises
        ------
        InputError
            If no start is counted.
        """
        if self.counter.starts == 0:
            raise InputError("release", expected="a start that was reserved", got="none")
        self.counter.starts -= 1

    def child_deadline(self, now: Time) -> Time | None:
        """Return when a child started now must have ended: its own time limit, never past this node's deadline."""
        now = instant("now", now)
        own = now + self._timeout if self._timeout >= 0 else -1
        inherited = -1 if self.deadline is None else self.deadline
        when = _rules.earlier(own, inherited)
        return None if when < 0 else Time(when)

    def child_timeout(self, now: Time) -> float | None:
        """Return how long a child started now may live, seconds; 0 when this node's deadline is past."""
        deadline = self.child_deadline(now)
        return None if deadline is None else max(0, deadline - now) / NS_PER_S

    def child(self, deadline: Time | None = None) -> SubagentBudget:
        """Return the view of a child: same limits, same counter, one level deeper, deadline inherited if not given."""
        view = SubagentBudget.__new__(SubagentBudget)  # its ints are those of this view
        view.limits, view.counter = self.limits, self.counter
        view._depth_limit, view._calls = self._depth_limit, self._calls
        view._concurrent, view._timeout = self._concurrent, self._timeout
        view.depth = self.depth + 1
        view.deadline = instant("deadline", deadline) if deadline is not None else self.deadline
        return view


def tool_error(refusal: Refusal) -> str:
    """Return a refusal as TanStack AI's tool error: ``subagent limit reached (maxCalls 12)``.

    Raises
    ------
    InputError
        If no tree limit refused.
    """
    for short in refusal.shortfalls:
        name = str(short.code).replace("-", "_")
        if name in _SPELLING:
            return f"subagent limit reached ({_SPELLING[name]} {short.limit})"
    raise InputError("refusal", expected=f"one of {', '.join(_SPELLING)}", got=str(refusal))


_SPELLING = {"max_depth": "maxDepth", "max_calls": "maxCalls", "max_concurrent": "maxConcurrent"}


def _or_none(limit: int | None) -> int:
    return -1 if limit is None else limit
