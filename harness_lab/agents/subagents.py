"""Subagent declarations: what a mode may start, with which authority and budget, and under which address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.agents.rules import OURS, AgentRules
from harness_lab.budget.run import DEFAULT_STEPS, RunBudget
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

SUBAGENT_KEYS = ("description", "mode", "max_steps", "max_cost_usd", "max_seconds", "scope")
"""What a declaration may name."""


@dataclass(frozen=True, slots=True)
class Subagent:
    """A nested agent that a mode may call like a tool. Its authority is its own mode's, never its parent's.

    Parameters
    ----------
    name : str
        The tool name that the parent sees.
    description : str
        What the parent's model is told about it.
    mode : str
        The mode that the child runs in.
    budget : RunBudget
        The declaration: counted on top of what the tree has used, bounded by the parent's.
    scope_suffix : str or None
        Last part of the child's address; the name if None or empty.
    steps_declared : bool
        False: the declaration names no steps, and `budget` has the default there.
    """

    name: str
    description: str
    mode: str
    budget: RunBudget
    scope_suffix: str | None = None
    steps_declared: bool = True

    @classmethod
    def from_config(cls, name: str, config: Mapping[str, Any]) -> Subagent:
        """Read a declaration; ``max_steps`` left out becomes the mode's limit when the child starts (or eight).

        Raises
        ------
        InputError
            If a value is of the wrong kind, negative or not finite.
        """
        for key in ("description", "mode", "scope"):
            if not isinstance(config.get(key), str | None):
                raise InputError(f"{key} of subagent [{name}]", expected="text or nothing", got=config[key])
        return cls(
            name=name,
            description=config.get("description") or f"Run the [{name}] subagent and return its result.",
            mode=config.get("mode") or name,
            budget=RunBudget.from_config(config, DEFAULT_STEPS),
            scope_suffix=config.get("scope") or None,
            steps_declared=config.get("max_steps") is not None,
        )

    def budget_in(self, mode_steps: int, *, rules: AgentRules = OURS) -> RunBudget:
        """Return the declaration for a child whose mode has `mode_steps` steps."""
        if self.steps_declared or rules.default_steps == "declaration":
            return self.budget
        return RunBudget(mode_steps, self.budget.max_cost_usd, self.budget.max_seconds)

    def scope_under(self, parent_scope: str) -> str:
        """Return the child's address under its parent's: the same each time, so that a second call goes on there.

        Examples
        --------
        >>> Subagent.from_config("researcher", {}).scope_under("support")
        'support::sub::researcher'
        """
        return f"{parent_scope}::sub::{self.scope_suffix or self.name}"
