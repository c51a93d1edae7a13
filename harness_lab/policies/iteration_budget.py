"""The iteration budget as a module: model calls or tool calls, counted when they start, given back within a bound."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.budget.iteration import IterationBudget
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk

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
    max_refunds : int or "unbounded" or None
        Programmatic turns that are given back; as many as `max_iterations` if None. Unbounded removes the last limit
        of an agent that only runs scripts.
    counts : {"calls", "tool-calls"}
        What takes a unit: a model call (compaction is one), whatever it asks for; or each tool call. A batch of tool
        calls starts whole or not at all.
    whose : {"node", "tree"}
        Whether each node has a counter of its own (a child's ask in calls narrows its), or the tree has one.
    """

    max_iterations: int
    max_refunds: int | Literal["unbounded"] | None = None
    counts: Counts = "calls"
    whose: Whose = "node"
    kind: str = "iteration_budget"

    def __post_init__(self) -> None:
        IterationBudget(self.max_iterations, max_refunds=self.max_refunds)
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
        helps: Literal["smaller", "nothing"] = "smaller" if budget.remaining else "nothing"
        return (Shortfall(self._code, budget.max_total, ask.count, budget.remaining, helps, "calls"),)

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
        if ticket.parent is not None and spec.whose == "tree":
            shared: IterationBudget = ticket.parent.memory[self.index]
            return shared
        asked = ask.budget[CALLS] if spec.counts == "calls" else None
        most = spec.max_iterations if asked is None else min(asked, spec.max_iterations)
        return IterationBudget(most, max_refunds=spec.max_refunds)
