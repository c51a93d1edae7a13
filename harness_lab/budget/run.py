"""Run budgets: one ledger for a whole run tree, checked before each step and charged after it.

The names and the order of the checks are those of prism-harness. A child's budget is a *ceiling on the tree's totals*,
never a share that is set aside: what a child spends is gone for its parent. Because a step is charged after it ended,
cost may overshoot by up to one step per node that runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from harness_lab.budget import _rules
from harness_lab.clock import NS_PER_S, Clock, MonotonicClock, Time, ns
from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import Code
from harness_lab.usage import MAX_NUSD, count, nusd, optional_nusd, usd

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_STEPS = 8
"""Steps of a declaration that names none (prism-harness's default)."""
_REACHED = (None, Code.STEPS_EXHAUSTED, Code.SPEND_UNKNOWN, Code.COST_EXHAUSTED, Code.TIME_EXHAUSTED)
"""Codes by the number that the rule returns."""
MAX_LEVELS = 4
"""Levels of agents in one tree, the root counted."""


@dataclass(frozen=True, slots=True)
class RunBudget:
    """What a run tree may use; positional in this order.

    Parameters
    ----------
    max_steps : int
        Model calls of the whole tree. 0 allows none.
    max_cost_usd : float or None
        Spend of the whole tree, dollars; None: no limit, 0: nothing may be spent.
    max_seconds : float or None
        Wall clock from the ledger's start, seconds.

    Raises
    ------
    InputError
        If a value is negative, not finite or not a number.

    Examples
    --------
    >>> RunBudget(20, 1.0, 300)
    RunBudget(max_steps=20, max_cost_usd=1.0, max_seconds=300)
    """

    max_steps: int
    max_cost_usd: float | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_steps", count("max_steps", self.max_steps))
        optional_nusd(self.max_cost_usd, what="max_cost_usd")
        if self.max_seconds is not None and ns(self.max_seconds, what="max_seconds") < 0:
            raise InputError("max_seconds", expected="seconds >= 0 or None", got=self.max_seconds)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], default_steps: int = DEFAULT_STEPS) -> RunBudget:
        """Read `max_steps`, `max_cost_usd` and `max_seconds` from a mapping; a missing or null key is the default."""
        steps = config.get("max_steps")
        return cls(default_steps if steps is None else steps, config.get("max_cost_usd"), config.get("max_seconds"))

    def nested_within(self, parent: RunBudget, ledger: RunLedger) -> RunBudget:
        """Return this declaration as a ceiling on the tree's totals.

        Parameters
        ----------
        parent : RunBudget
            The budget in force for the parent.
        ledger : RunLedger
            The tree's ledger: the declaration is counted on top of what it holds, then bounded by the parent.
        """
        ceiling = Ceiling.of(self).nested_within(Ceiling.of(parent), ledger)
        cost = None if ceiling.cost_nusd < 0 else usd(ceiling.cost_nusd)
        elapsed = None if ceiling.elapsed_ns < 0 else ceiling.elapsed_ns / NS_PER_S
        return RunBudget(ceiling.steps, cost, elapsed)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A run budget as ints; ``-1`` is "no limit". What decisions are made of.

    Parameters
    ----------
    steps : int
        Model calls.
    cost_nusd : int
        Nano-dollars.
    elapsed_ns : int
        Nanoseconds from the ledger's start.
    """

    steps: int
    cost_nusd: int
    elapsed_ns: int

    @classmethod
    def of(cls, budget: RunBudget) -> Ceiling:
        """Convert a budget.

        Raises
        ------
        InputError
            If it is none.
        """
        check_kind("budget", budget, RunBudget, expected="a RunBudget")
        cost = -1 if budget.max_cost_usd is None else nusd(budget.max_cost_usd)
        return cls(budget.max_steps, cost, -1 if budget.max_seconds is None else ns(budget.max_seconds))

    def nested_within(self, parent: Ceiling, ledger: RunLedger) -> Ceiling:
        """Return a child's ceiling on the tree's totals."""
        return Ceiling(
            _rules.nested(parent.steps, ledger.steps, self.steps),
            _rules.nested(parent.cost_nusd, ledger.cost_nusd, self.cost_nusd),
            _rules.nested(parent.elapsed_ns, ledger.elapsed_ns(), self.elapsed_ns),
        )


class RunLedger:
    """What a run tree has used; the only mutable part, shared by every node.

    Parameters
    ----------
    root_run_id : str
        Identity of the root run.
    clock : Clock, optional
        Where time comes from; the machine's monotonic clock if None.

    Attributes
    ----------
    steps : int
        Model calls charged so far.
    cost_nusd : int
        Known cost so far, nano-dollars.
    unmetered_runs : int
        Charges whose cost was not reported. One of them closes every cost cap: spend is then unknown.

    Notes
    -----
    Threads may share a ledger: no charge is lost. That a limit is checked, and charged later, by each for itself is the
    rule of a ledger (it may overshoot by one step a thread); where it must not, hold before the call. For several
    processes there is the durable account.
    """

    __slots__ = (
        "_clock",
        "_lock",
        "cancel_reason",
        "cancelled",
        "cost_nusd",
        "root_run_id",
        "started",
        "steps",
        "unmetered_runs",
    )

    def __init__(self, root_run_id: str, *, clock: Clock | None = None) -> None:
        self.root_run_id = root_run_id
        self._clock = clock if clock is not None else MonotonicClock()
        self.started: Time = self._clock.now()
        self.steps = 0
        self.cost_nusd = 0
        self.unmetered_runs = 0
        self.cancelled = False
        self.cancel_reason = ""
        self._lock = Lock()

    @classmethod
    def start(cls, root_run_id: str, *, clock: Clock | None = None) -> RunLedger:
        """Start a ledger now."""
        return cls(root_run_id, clock=clock)

    @property
    def cost_usd(self) -> float:
        """Known cost so far, dollars; a lower bound when anything was unmetered."""
        return usd(self.cost_nusd)

    def elapsed_ns(self) -> int:
        """Return nanoseconds since the start."""
        return max(0, self._clock.now() - self.started)

    def elapsed_seconds(self) -> float:
        """Return seconds since the start."""
        return self.elapsed_ns() / NS_PER_S

    def record_steps(self, steps: int) -> None:
        """Charge model calls."""
        more = count("steps", steps)
        with self._lock:
            self.steps += more

    def record_cost(self, cost_usd: float | None) -> None:
        """Charge a cost in dollars; None says that the provider reported none, which is not zero."""
        self.charge(optional_nusd(cost_usd))

    def charge(self, cost_nusd: int | None) -> None:
        """Charge a cost in nano-dollars; None is unknown.

        Raises
        ------
        InputError
            If it is no whole number from 0 on; nothing has changed then.
        """
        if cost_nusd is not None and not (type(cost_nusd) is int and 0 <= cost_nusd <= MAX_NUSD):
            cost_nusd = count("cost_nusd", cost_nusd, maximum=MAX_NUSD)
        with self._lock:
            if cost_nusd is None:
                self.unmetered_runs += 1
            else:
                self.cost_nusd += cost_nusd

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop the tree before its next step; a step in flight finishes and is charged. The last reason stands."""
        self.cancelled = True
        self.cancel_reason = reason or "cancelled"

    def remaining_cost(self, budget: RunBudget) -> float | None:
        """Return dollars left, never negative; None without a cap."""
        left = _rules.free(Ceiling.of(budget).cost_nusd, self.cost_nusd, 0)
        return None if left < 0 else usd(left)

    def remaining_seconds(self, budget: RunBudget) -> float | None:
        """Return seconds left, never negative; None without a limit."""
        left = _rules.free(Ceiling.of(budget).elapsed_ns, self.elapsed_ns(), 0)
        return None if left < 0 else left / NS_PER_S

    def exhaustion(self, budget: RunBudget) -> str | None:
        """Say why no further step is allowed, or None when one is.

        The order is fixed: cancelled, steps, unknown spend under a cost cap, cost, time. Every comparison is ``>=``.
        """
        ceiling = Ceiling.of(budget)
        code = self.binding(ceiling)
        return None if code is None else self._text(code, ceiling)

    def binding(self, ceiling: Ceiling) -> Code | None:
        """Return the first limit that is reached, None when another step is allowed."""
        if self.cancelled:
            return Code.CANCELLED
        limit = ceiling.elapsed_ns
        elapsed = 0 if limit < 0 else self.elapsed_ns()
        return _REACHED[
            _rules.first_reached(
                ceiling.steps, self.steps, ceiling.cost_nusd, self.cost_nusd, self.unmetered_runs, limit, elapsed
            )
        ]

    def _text(self, code: Code, ceiling: Ceiling) -> str:
        cap = usd(max(0, ceiling.cost_nusd))
        texts = {
            Code.CANCELLED: self.cancel_reason,
            Code.STEPS_EXHAUSTED: f"step budget exhausted ({self.steps} of {ceiling.steps} used)",
            Code.SPEND_UNKNOWN: (
                f"cost budget cannot be enforced: {self.unmetered_runs} run(s) reported no cost, "
                f"so spend against the {cap:.4f} USD cap is unknown"
            ),
            Code.COST_EXHAUSTED: f"cost budget exhausted ({self.cost_usd:.4f} of {cap:.4f} USD used)",
            Code.TIME_EXHAUSTED: (
                f"time budget exhausted ({self.elapsed_ns() // NS_PER_S}s of {_seconds(ceiling.elapsed_ns)}s used)"
            ),
        }
        return texts[code]


def _seconds(elapsed_ns: int) -> str:
    """Write seconds exactly, without exponent and without zeros behind the point."""
    whole, part = divmod(max(0, elapsed_ns), NS_PER_S)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class RunContext:
    """One node's place in its tree: the shared ledger, the budget in force, its parent and its depth.

    Parameters
    ----------
    ledger : RunLedger
        The tree's ledger.
    budget : RunBudget
        Ceiling on the tree's totals for this node.
    parent_run_id : str or None
        None for the root.
    depth : int
        0 for the root.
    """

    ledger: RunLedger
    budget: RunBudget
    parent_run_id: str | None = None
    depth: int = 0

    @classmethod
    def root(cls, run_id: str, budget: RunBudget, *, clock: Clock | None = None) -> RunContext:
        """Start a tree with a ledger of its own."""
        return cls(RunLedger.start(run_id, clock=clock), budget)

    @property
    def root_run_id(self) -> str:
        """Identity of the root run."""
        return self.ledger.root_run_id

    def is_child(self) -> bool:
        """Whether this node has a parent."""
        return self.parent_run_id is not None

    def too_deep(self) -> bool:
        """Whether this node lies below the fourth level."""
        return self.depth >= MAX_LEVELS

    def for_child(self, declared: RunBudget, parent_run_id: str) -> RunContext:
        """Return a child's context: same ledger, declared budget bounded by this one, one level deeper."""
        check_kind("declared", declared, RunBudget, expected="a RunBudget")
        nested = declared.nested_within(self.budget, self.ledger)
        return replace(self, budget=nested, parent_run_id=parent_run_id, depth=self.depth + 1)
