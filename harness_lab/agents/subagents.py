"""Subagent declarations: what a mode may start, with which authority and budget, and under which address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.agents.rules import OURS, AgentRules
from harness_lab.budget.run import DEFAULT_STEPS, RunBudget
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey
from harness_lab.outcome import CHANNELS, UNITS
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

_NOTHING_ASKED = amounts()

SUBAGENT_KEYS = ("description", "mode", "max_steps", "max_cost_usd", "max_seconds", "scope", "ask")
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
    ask : Amounts
        Tokens that it asks for, by channel: what floors are held against and a reservation pool sets aside. None: no
        ask there. The run's ledger counts no tokens.
    """

    name: str
    description: str
    mode: str
    budget: RunBudget
    scope_suffix: str | None = None
    steps_declared: bool = True
    ask: Amounts = _NOTHING_ASKED

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
            ask=_ask_of(name, config.get("ask")),
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

    def floor_key(self, *, backend: str, model: str, context: str | None) -> FloorKey:
        """Return the path that would run it, in the first unit of its ask; its own name is the agent."""
        asked = [unit for unit, channel in UNITS.items() if self.ask[CHANNELS.index(channel)] is not None]
        unit = asked[0] if asked else "input-total"
        return FloorKey(backend=backend, model=model, agent=self.name, context=context, unit=unit)


def _ask_of(name: str, asked: object) -> Amounts:
    """Read an ask in tokens."""
    if asked is None:
        return _NOTHING_ASKED
    known = tuple(UNITS.values())
    if not isinstance(asked, Mapping) or not set(asked) <= set(known):
        raise InputError(f"ask of subagent [{name}]", expected=f"tokens by some of {', '.join(known)}", got=asked)
    return amounts(**asked)
