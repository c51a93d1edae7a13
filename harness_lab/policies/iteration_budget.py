"""The iteration budget as a module: model calls or tool calls, counted when they start, given back within a bound.

Source: `IterationBudget` of hermes-agent and of the cost-integrity skill (:mod:`harness_lab.budget.iteration`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.budget.iteration import IterationBudget
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk
from harness_lab.usage import optional_count

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use

Counts = Literal["calls", "tool-calls"]
Whose = Literal["node", "tree"]

_KINDS = {"calls": ("model", "compaction"), "tool-calls": ("tool",)}
_CODES = {"calls": Code.ITERATIONS_EXHAUSTED, "tool-calls": Code.TOOL_CALLS_EXHAUSTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationBudgetSpec:
    """Parameters of the iteration budget.

    Parameters
    ----------
    max_iterations : int
        Units of one counter; 0 allows none.
    max_child_iterations : int or None
        Units of each child, inside the tree's where the tree has one counter; no other bound than `max_iterations` if
        None.
    max_refunds : int or "unbounded" or None
        Programmatic turns that are given back; as many as `max_iterations` if None. Unbounded removes the last limit
        of an agent that only runs scripts.
    counts : {"calls", "tool-calls"}
        What takes a unit: a model call (compaction is one), whatever it asks for; or each tool call. A batch of tool
        calls starts whole or not at all.
    whose : {"node", "tree"}
        Whether each node has a counter of its own (a child's ask in calls narrows its), or the tree has one.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number, or a choice is none of those named.
    """

    max_iterations: int
    max_child_iterations: int | None = None
    max_refunds: int | Literal["unbounded"] | None = None
    counts: Counts = "calls"
    whose: Whose = "node"
    kind: str = "iteration_budget"

    def __post_init__(self) -> None:
        IterationBudget(self.max_iterations, max_refunds=self.max_refunds)
        optional_count("max_child_iterations", self.max_child_iterations)
        for name, choices in (("counts", get_args(Counts)), ("whose", get_args(Whose))):
            if getattr(self, name) not in choices:
                raise InputError(name, expected=f"one of {', '.join(choices)}", got=getattr(self, name))

    def build(self, now: Time) -> IterationModule:
        """Make a module with nothing used."""
        return IterationModule(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class IterationModule:
    """One :class:`~harness_lab.budget.iteration.IterationBudget` a node, or one for the tree."""

    asks_spawn = True
    asks_step = True
    takes_at_admission = True
    __slots__ = ("_code", "_kinds", "_spec", "index")

    def __init__(self, spec: IterationBudgetSpec) -> None:
        self._spec = spec
        self._kinds = _KINDS[spec.counts]
        self._code = _CODES[spec.counts]
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return what a step would go beyond."""
        if type(ask) is not StepAsk or ask.kind not in self._kinds:
            return ()
        budget: IterationBudget = ask.node.memory[self.index]
        if ask.count <= budget.remaining:
            return ()
        left = budget.remaining
        helps: Literal["smaller", "nothing"] = "smaller" if left else "nothing"
        if isinstance(budget, InsideTree) and left == budget.tree.remaining:
            budget = budget.tree
        return (Shortfall(self._code, budget.max_total, ask.count, left, helps, "calls"),)

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full a node's counter of model calls is: channel, used, and the limit; none where tools count."""
        budget: IterationBudget = node.memory[self.index]
        most = budget.max_total
        return [("calls", most - budget.remaining, most)] if self._spec.counts == "calls" else []

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Make a node's counter, or take a step's units."""
        ask = ticket.ask
        if type(ask) is SpawnAsk:
            ticket.memory[self.index] = self._counter(ticket, ask)
        elif type(ask) is StepAsk and ask.kind in self._kinds:
            ticket.memory[self.index].consume(ask.count)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Give units back: all of a step that was never sent, one of a programmatic turn."""
        ask = ticket.ask
        if type(ask) is not StepAsk or ask.kind not in self._kinds:
            return
        budget: IterationBudget = ticket.memory[self.index]
        if use.status == "unsent":
            budget.withdraw(ask.count)
        elif use.turn == "programmatic":
            budget.refund()

    def _counter(self, ticket: Ticket, ask: SpawnAsk) -> IterationBudget:
        spec = self._spec
        child = None if ticket.parent is None else spec.max_child_iterations
        if ticket.parent is not None and spec.whose == "tree":
            above: IterationBudget = ticket.parent.memory[self.index]
            tree = above.tree if isinstance(above, InsideTree) else above
            return tree if child is None else InsideTree(child, tree)
        asked = ask.budget[CALLS] if spec.counts == "calls" else None
        bounds = [bound for bound in (asked, child) if bound is not None]
        return IterationBudget(min([spec.max_iterations, *bounds]), max_refunds=spec.max_refunds)


class InsideTree(IterationBudget):
    """A child's own counter inside the tree's: each unit is taken from both, and given back to both.

    Parameters
    ----------
    max_total : int
        The child's own units.
    tree : IterationBudget
        The tree's counter; whether it takes a refund is its rule.
    """

    __slots__ = ("tree",)

    def __init__(self, max_total: int, tree: IterationBudget) -> None:
        super().__init__(max_total, max_refunds="unbounded")
        self.tree = tree

    @property
    def remaining(self) -> int:
        """Calls left, never negative."""
        return min(super().remaining, self.tree.remaining)

    def consume(self, units: int = 1) -> bool:
        """Take units from both counters, or from none."""
        if units > super().remaining or not self.tree.consume(units):
            return False
        return super().consume(units)

    def withdraw(self, units: int = 1) -> None:
        """Give units back that were never used."""
        self.tree.withdraw(units)
        super().withdraw(units)

    def refund(self) -> None:
        """Give one unit back, if the tree takes it."""
        before = self.tree.refunds
        self.tree.refund()
        if self.tree.refunds > before:
            super().refund()
