"""Where harness systems disagree and a user would choose: named switches, and a preset for each system.

Everything else in which we differ from a system is a row of the deviations table in the documentation, not a switch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from harness_lab.budget import Ceiling, RunBudget
from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.budget import RunContext, RunLedger

Siblings = Literal["own", "shared"]
Seconds = Literal["exact", "truncated", "rounded-up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRules:
    """Switches of the run rules.

    Parameters
    ----------
    siblings : {"own", "shared"}
        Whether a declaration counts the child's own subtree only, or is a ceiling on the tree's total that was fixed at
        spawn, so that a sibling which runs at the same time spends from it too.
    seconds : {"exact", "truncated", "rounded-up"}
        What happens to a fraction of a second when a declared time is counted on top of what has passed, and in what
        is left: nothing; the elapsed part is cut; the sum is rounded up.
    cancel_inside : {"cancelled", "exhausted"}
        What a child reports that was stopped by a cancellation while it ran.
    approval : {"awaiting_approval", "completed"}
        What a child reports that paused for a person.
    default_steps : {"mode", "declaration"}
        Whether a declaration that names no steps takes its mode's, or eight.

    Raises
    ------
    InputError
        If a choice is none of those named.
    """

    siblings: Siblings = "own"
    seconds: Seconds = "exact"
    cancel_inside: Literal["cancelled", "exhausted"] = "cancelled"
    approval: Literal["awaiting_approval", "completed"] = "awaiting_approval"
    default_steps: Literal["mode", "declaration"] = "mode"

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise InputError(name, expected=f"one of {', '.join(allowed)}", got=getattr(self, name))

    def nested(self, declared: Ceiling, parent: Ceiling, ledger: RunLedger) -> Ceiling:
        """Return a declaration as a ceiling on the tree's totals, bounded by the parent's (``-1``: no limit)."""
        ceiling = declared.nested_within(parent, ledger)
        if declared.elapsed_ns < 0 or self.seconds == "exact":
            return ceiling
        elapsed = ledger.elapsed_ns()
        if self.seconds == "truncated":
            own = (elapsed // NS_PER_S) * NS_PER_S + declared.elapsed_ns
        else:
            own = -(-(elapsed + declared.elapsed_ns) // NS_PER_S) * NS_PER_S
        bounded = own if parent.elapsed_ns < 0 else min(parent.elapsed_ns, own)
        return Ceiling(ceiling.steps, ceiling.cost_nusd, bounded)

    def nested_budget(self, declared: RunBudget, parent: RunBudget, ledger: RunLedger) -> RunBudget:
        """Return :meth:`nested` for budgets."""
        return budget_of(self.nested(Ceiling.of(declared), Ceiling.of(parent), ledger))

    def child_context(self, context: RunContext, declared: RunBudget, parent_run_id: str) -> RunContext:
        """Return a child's context: same ledger, its declaration bounded by the parent's budget, one level deeper."""
        budget = self.nested_budget(declared, context.budget, context.ledger)
        return replace(context, budget=budget, parent_run_id=parent_run_id, depth=context.depth + 1)

    def seconds_left(self, ceiling: Ceiling, ledger: RunLedger) -> float | None:
        """Return seconds left, never negative; None without a limit."""
        if ceiling.elapsed_ns < 0:
            return None
        elapsed = ledger.elapsed_ns()
        if self.seconds == "rounded-up":
            elapsed = (elapsed // NS_PER_S) * NS_PER_S
        left = max(0, ceiling.elapsed_ns - elapsed)
        return left // NS_PER_S if self.seconds == "truncated" else left / NS_PER_S


def budget_of(ceiling: Ceiling) -> RunBudget:
    """Return a ceiling as a budget: dollars and seconds, None for "no limit"."""
    cost = None if ceiling.cost_nusd < 0 else ceiling.cost_nusd / NS_PER_S
    seconds = None if ceiling.elapsed_ns < 0 else ceiling.elapsed_ns / NS_PER_S
    return RunBudget(max(0, ceiling.steps), cost, seconds)


_ALLOWED = {
    "siblings": ("own", "shared"),
    "seconds": ("exact", "truncated", "rounded-up"),
    "cancel_inside": ("cancelled", "exhausted"),
    "approval": ("awaiting_approval", "completed"),
    "default_steps": ("mode", "declaration"),
}

OURS = AgentRules()
"""Our defaults."""
PRISM_PY = AgentRules(
    siblings="shared",
    seconds="truncated",
    cancel_inside="exhausted",
    approval="completed",
    default_steps="declaration",
)
"""prism-harness for Python."""
PRISM_TS = PRISM_PY
"""prism-harness for TypeScript: the same in these switches."""
PRISM_PHP = AgentRules(siblings="shared", seconds="rounded-up", default_steps="declaration")
"""prism-harness for PHP."""
RULES = {"default": OURS, "prism-py": PRISM_PY, "prism-ts": PRISM_TS, "prism-php": PRISM_PHP}
"""The presets by name."""


def rules_named(rules: AgentRules | str) -> AgentRules:
    """Return rules, by the name of a preset too.

    Raises
    ------
    InputError
        If there is no preset of that name.
    """
    if isinstance(rules, AgentRules):
        return rules
    if rules not in RULES:
        raise InputError("rules", expected=f"AgentRules or one of {', '.join(RULES)}", got=rules)
    return RULES[rules]
