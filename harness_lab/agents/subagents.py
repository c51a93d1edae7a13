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
from harness_lab.usage import amounts, optional_count

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            If a value is of the wrong kind, negative or not finite: the first such, :func:`mistakes_in` finds all.
        """
        for key, mistake in mistakes_in(config):
            raise InputError(f"{key} of subagent [{name}]", expected=mistake.expected, got=mistake.got)
        return cls(
            name=name,
            description=config.get("description") or f"Run the [{name}] subagent and return its result.",
            mode=config.get("mode") or name,
            budget=RunBudget.from_config(config, DEFAULT_STEPS),
            scope_suffix=config.get("scope") or None,
            steps_declared=config.get("max_steps") is not None,
            ask=amounts(**(config.get("ask") or {})),
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


def mistakes_in(config: Mapping[str, Any]) -> Iterator[tuple[str, InputError]]:
    """Yield what is wrong with each value of a declaration, with its key; unknown keys are not looked at."""
    for key in ("description", "mode", "scope"):
        if not isinstance(config.get(key), str | None):
            yield key, InputError(key, expected="text or nothing", got=config[key])
    for key in ("max_steps", "max_cost_usd", "max_seconds"):
        try:
            RunBudget.from_config({key: config.get(key)}, DEFAULT_STEPS)
        except InputError as error:
            yield key, error
    asked, known = config.get("ask"), tuple(UNITS.values())
    if asked is not None and not isinstance(asked, Mapping):
        yield "ask", InputError("ask", expected=f"tokens by some of {', '.join(known)}", got=asked)
        return
    for unit, tokens in (asked or {}).items():
        if unit not in known:
            yield "ask", InputError("ask", expected=f"tokens by some of {', '.join(known)}", got=unit)
            continue
        try:
            optional_count(unit, tokens)
        except InputError as error:
            yield f"ask.{unit}", error


def is_name(found: object, *, blanks: bool = True) -> bool:
    """Whether something can be told to a model as a name, and stands in one line of a report.

    Parameters
    ----------
    found : object
        What came.
    blanks : bool
        Whether it may have blanks inside; what a model calls may not.
    """
    if not isinstance(found, str) or not found or found != found.strip() or not found.isprintable():
        return False
    return blanks or not any(letter.isspace() for letter in found)
