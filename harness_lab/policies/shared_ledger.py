"""The shared ledger as a module: checked before each step, charged after it.

Source: `RunLedger` of prism-harness (:mod:`harness_lab.budget.run`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.budget import Ceiling, RunBudget, RunLedger
from harness_lab.budget import _rules as rules
from harness_lab.clock import ManualClock, Time
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, COST, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk

if TYPE_CHECKING:
    from harness_lab.policies.protocol import Ask, Ticket, Use

UnknownUsage = Literal["release", "charge-hold"]
UNKNOWN_USAGE: tuple[UnknownUsage, ...] = ("release", "charge-hold")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLedgerSpec:
    """Parameters of the shared ledger.

    Parameters
    ----------
    max_steps : int
        Model calls of the tree.
    max_cost_usd : float or None
        Dollars of the tree; None: no cap.
    max_seconds : float or None
        Seconds from the start of the tree, checked between steps.
    unknown_usage : {"release", "charge-hold"}
        What a call without reported cost does: ``release`` charges nothing, so that spend is a lower bound and a cost
        cap refuses from then on; ``charge-hold`` charges the call's worst case where it has one.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number, or a choice is none of those named.
    """

    max_steps: int
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    unknown_usage: UnknownUsage = "release"
    kind: str = "shared_ledger"

    def __post_init__(self) -> None:
        budget = RunBudget(self.max_steps, self.max_cost_usd, self.max_seconds)
        object.__setattr__(self, "max_steps", budget.max_steps)
        if self.unknown_usage not in UNKNOWN_USAGE:
            raise InputError("unknown_usage", expected=f"one of {', '.join(UNKNOWN_USAGE)}", got=self.unknown_usage)

    def build(self, now: Time) -> SharedLedger:
        """Make a module with a fresh ledger that starts now."""
        return SharedLedger(self, now)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@lru_cache(maxsize=256)
def _ceiling(max_steps: int, max_cost_usd: float | None, max_seconds: float | None) -> Ceiling:
    """Return the root's ceiling; made once for the many runs of a simulation."""
    return Ceiling.of(RunBudget(max_steps, max_cost_usd, max_seconds))


class SharedLedger:
    """One :class:`~harness_lab.budget.RunLedger` for the tree; a node's memory is its ceiling on the tree's totals."""

    asks_spawn = True
    asks_step = True
    holds_steps = False
    __slots__ = ("_charge_hold", "_clock", "_root", "index", "ledger")

    def __init__(self, spec: SharedLedgerSpec, now: Time) -> None:
        self._clock = ManualClock(now)
        self.ledger = RunLedger("", clock=self._clock)
        self._root = _ceiling(spec.max_steps, spec.max_cost_usd, spec.max_seconds)
        self._charge_hold = spec.unknown_usage == "charge-hold"
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the first limit that the asking node's ceiling has reached."""
        node = ask.node if type(ask) is StepAsk else ask.parent
        if node is None:
            return ()
        ceiling: Ceiling = node.memory[self.index]
        if ceiling.elapsed_ns >= 0:
            self._clock.set(now)
        code = self.ledger.binding(ceiling)
        return () if code is None else (self._shortfall(code, ceiling),)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Fix a child's ceiling; a step holds nothing."""
        ask = ticket.ask
        if type(ask) is not SpawnAsk:
            return
        self._clock.set(now)
        if ticket.parent is None:
            ticket.memory[self.index] = self._root
            return
        calls, cost = ask.budget[CALLS], ask.budget[COST]
        declared = Ceiling(-1 if calls is None else calls, -1 if cost is None else cost, -1)
        ticket.memory[self.index] = declared.nested_within(ticket.parent.memory[self.index], self.ledger)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Charge a step."""
        ask = ticket.ask
        if type(ask) is not StepAsk or use.status == "unsent":
            return
        calls, cost = use.spent[CALLS], use.spent[COST]
        self.ledger.steps += ask.count if calls is None else calls
        if cost is None and self._charge_hold:
            cost = ask.bound[COST]
        self.ledger.charge(cost)

    def booked_nusd(self) -> tuple[int, bool]:
        """Return the money booked, and whether it is just what was reported."""
        return self.ledger.cost_nusd, not self._charge_hold

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full each limit over a node is: its channel, what is used, and the limit."""
        self._clock.set(now)
        return self._full(node.memory[self.index])

    def _full(self, ceiling: Ceiling) -> list[tuple[str, int, int]]:
        ledger = self.ledger
        gauges = [
            ("calls", ledger.steps, ceiling.steps),
            ("cost", ledger.cost_nusd, ceiling.cost_nusd),
            ("time", ledger.elapsed_ns(), ceiling.elapsed_ns),
        ]
        return [gauge for gauge in gauges if gauge[2] >= 0]

    def _shortfall(self, code: Code, ceiling: Ceiling) -> Shortfall:
        ledger = self.ledger
        figures = {
            Code.STEPS_EXHAUSTED: (ceiling.steps, ledger.steps, "calls"),
            Code.COST_EXHAUSTED: (ceiling.cost_nusd, ledger.cost_nusd, "cost"),
            Code.TIME_EXHAUSTED: (ceiling.elapsed_ns, ledger.elapsed_ns(), "time"),
        }
        if code is Code.CANCELLED:
            return Shortfall(code, None, None, None, "nothing", detail=ledger.cancel_reason)
        if code is Code.SPEND_UNKNOWN:
            return Shortfall(code, ceiling.cost_nusd, None, None, "nothing", "cost")
        bound, used, channel = figures[code]
        return Shortfall(code, bound, None, rules.free(bound, used, 0), "nothing", channel)
