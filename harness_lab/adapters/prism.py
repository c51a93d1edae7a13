"""prism-ai-harness: one ledger for a tree of runs, looked at before each step and charged after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note, noted, tried

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Child, Used

NEEDS = "from prism_harness.subagents import RunBudget, RunContext, Subagent"
DEFAULT_STEPS = 8
"""Steps of a budget whose config names none; those of every child that declares nothing, too."""
MOST_STEPS = 2**31
_PLAIN = str.maketrans("/.", "__")
_LIMITS = {"step": "calls", "cost": "cost_usd", "time": "seconds"}


class Prism(Adapter):
    """A run's context: the tree's ledger, and the budget of this run in it.

    Its ledger reads the machine's clock, so it is told before each question when it began; only under a limit of time.
    """

    name = "prism-ai-harness"
    package = "prism-ai-harness"
    requires = "prism-ai-harness>=0.2.1,<0.3"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "max_steps: model calls that returned, of the whole tree (8 where a config names none)",
        "cost_usd": "max_cost_usd: dollars of the whole tree, a sum of floats",
        "seconds": "max_seconds: whole seconds since the run began",
    }
    areas: ClassVar[tuple[str, ...]] = ("prism-budgets",)

    def __init__(self, *, calls: int | None = None, cost_usd: float | None = None, seconds: int | None = None) -> None:
        from prism_harness.subagents import RunBudget, RunContext

        steps = MOST_STEPS if calls is None else calls
        if seconds is not None:
            note("import time")
        note(NEEDS)
        made = f'run = RunContext.root("run", RunBudget({steps!r}, {cost_usd!r}, {seconds!r}))'
        self.run: Any = noted(made, RunContext.root("run", RunBudget(steps, cost_usd, seconds)))
        self.called, self.timed = "run", seconds is not None

    @classmethod
    def answer(cls, case: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out a case of budgets, ledgers, configs and declarations on the package's own objects."""
        from harness_lab.adapters.prism_cases import answer

        return answer(case)

    def before_call(self, call: Call) -> No | None:
        """Look whether the tree may spend again."""
        return self._short(call.at_s)

    def after_call(self, call: Call, used: Used) -> None:
        """Charge a step and its cost; a call that raised is neither, for the loop ends there."""
        if used.status == "completed":
            ledger = self.run.ledger
            tried(f"{self.called}.ledger.record_steps(1)", lambda: ledger.record_steps(1))
            tried(f"{self.called}.ledger.record_cost({used.cost_usd})", lambda: ledger.record_cost(used.cost_usd))

    def child(self, child: Child) -> Prism | No:
        """Nest a child's budget in this one, on the same ledger; too deep a child is denied."""
        from prism_harness.subagents import MAX_DEPTH, RunBudget, Subagent

        refused = self._short(child.at_s)
        if refused is not None:
            return refused
        steps = DEFAULT_STEPS if child.calls is None else child.calls
        budget = RunBudget(steps, child.asked.cost_usd)
        below = object.__new__(Prism)
        below.called, below.timed = f"run{child.node.translate(_PLAIN)}", self.timed
        declared = f'Subagent("child", "", "child", RunBudget({steps}, {child.asked.cost_usd}))'
        context = self.run.for_child(Subagent("child", "", "child", budget), "run")
        below.run = noted(f'{below.called} = {self.called}.for_child({declared}, "run")', context)
        if tried(f"{below.called}.too_deep()", context.too_deep):
            return No(f"subagent nesting reached the maximum depth of {MAX_DEPTH}", "max_depth")
        return below

    def _short(self, at_s: float) -> No | None:
        ledger, budget = self.run.ledger, self.run.budget
        if self.timed:
            note(f"{self.called}.ledger._started_at = time.monotonic() - {at_s}")
            ledger._started_at = time.monotonic() - at_s
        line = f"{self.called}.ledger.exhaustion({self.called}.budget)"
        said: str | None = tried(line, lambda: ledger.exhaustion(budget), shown=True)
        return None if said is None else No(said, _LIMITS.get(said.partition(" ")[0], ""))


ADAPTER = Prism
