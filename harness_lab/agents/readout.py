"""What is left, in words that may be told to a model; made of the ceiling that decides, so the two cannot disagree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness_lab.agents.rules import OURS, AgentRules, budget_of
from harness_lab.budget import Ceiling, RunBudget, RunLedger
from harness_lab.clock import NS_PER_S
from harness_lab.outcome import Code
from harness_lab.usage import NUSD_PER_USD, usd

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLeft:
    """What a node may still use, under the budget in force for it.

    Parameters
    ----------
    steps : int
        Model calls left.
    cost_usd : float or None
        Dollars left; None: no cap.
    seconds : float or None
        Seconds left; None: no limit.
    tokens : int or None
        Tokens left, prompt and completion; None: no limit.
    cost_known : bool
        False: something in the tree reported no cost, so `cost_usd` is an upper bound, and a cap refuses.
    stopped_by : Code or None
        Why no further step is allowed; None: one is.
    """

    steps: int
    cost_usd: float | None
    seconds: float | None
    cost_known: bool
    stopped_by: Code | None
    tokens: int | None = None

    @classmethod
    def of(cls, ledger: RunLedger, budget: Ceiling | RunBudget, *, rules: AgentRules = OURS) -> BudgetLeft:
        """Read a ledger against a budget.

        Parameters
        ----------
        ledger : RunLedger
            What the tree has used.
        budget : Ceiling or RunBudget
            The ceiling on the tree's totals in force.
        rules : AgentRules
            How seconds are rounded.
        """
        ceiling = budget if isinstance(budget, Ceiling) else Ceiling.of(budget)
        cost = None if ceiling.cost_nusd < 0 else usd(max(0, ceiling.cost_nusd - ledger.cost_nusd))
        return cls(
            steps=max(0, ceiling.steps - ledger.steps),
            cost_usd=cost,
            seconds=rules.seconds_left(ceiling, ledger),
            cost_known=ledger.unmetered_runs == 0,
            stopped_by=ledger.binding(ceiling),
        )

    def within(self, gauges: Iterable[tuple[str, int, int]]) -> BudgetLeft:
        """Return the least of this and of what other limits leave.

        Parameters
        ----------
        gauges : iterable of (str, int, int)
            Channel, what is used or held, and the limit; ``time`` in nanoseconds, ``cost`` in nano-dollars.
        """
        left: dict[str, Any] = {name: getattr(self, name) for name, _ in _FIELDS.values()}
        stopped = self.stopped_by
        for channel, used, limit in gauges:
            free = max(0, limit - used)
            if free == 0 and stopped is None:
                stopped = Code.BUDGET_EXHAUSTED
            if channel in _FIELDS:
                name, unit = _FIELDS[channel]
                found = free if unit == 1 else free / unit
                left[name] = found if left[name] is None else min(found, left[name])
        return replace(self, **left, stopped_by=stopped)

    @property
    def may_go_on(self) -> bool:
        """Whether one more step is allowed."""
        return self.stopped_by is None

    def text(self) -> str:
        """Return one line for a model.

        Examples
        --------
        >>> ledger = RunLedger("run-1")
        >>> ledger.record_steps(5)
        >>> BudgetLeft.of(ledger, RunBudget(8, 1.0)).text()
        'Budget left for you and all you start: 3 model calls, 1.0000 USD.'
        """
        parts = [f"{self.steps} model call{'' if self.steps == 1 else 's'}"]
        if self.cost_usd is not None:
            parts.append(f"{self.cost_usd:.4f} USD" if self.cost_known else "unknown USD")
        if self.tokens is not None:
            parts.append(f"{self.tokens:,} tokens")
        if self.seconds is not None:
            parts.append(f"{self.seconds:.0f} s")
        stop = "" if self.may_go_on else f" No further step is allowed ({self.stopped_by})."
        return f"Budget left for you and all you start: {', '.join(parts)}.{stop}"


_FIELDS = {
    "calls": ("steps", 1),
    "cost": ("cost_usd", NUSD_PER_USD),
    "time": ("seconds", NS_PER_S),
    "tokens": ("tokens", 1),
}
"""What a channel's figure is told as, and its unit."""


def reason(ledger: RunLedger, ceiling: Ceiling) -> str | None:
    """Say why no further step is allowed under a ceiling, None when one is; the text of :class:`RunLedger`."""
    return ledger.exhaustion(budget_of(ceiling))
