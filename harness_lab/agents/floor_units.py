"""Whether the asks of subagents can be held against the floors in force, found before a run has cost anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.agents.errors import AgentError
from harness_lab.errors import UnitMismatch
from harness_lab.policies.runtime_floors import RuntimeFloors

if TYPE_CHECKING:
    from harness_lab.agents.modes import AgentMode, ModeRegistry
    from harness_lab.policies.runtime_floors import RuntimeFloorsSpec


def check_units(
    spec: RuntimeFloorsSpec | None, modes: ModeRegistry, mode: AgentMode, provider: str, model: str
) -> None:
    """Refuse a run in which some subagent, on any level, asks in another unit than its path was measured in.

    Raises
    ------
    UnitMismatch
        If one does; two units are never compared, so its start would end the run in its midst.
    """
    if spec is None:
        return
    floors = RuntimeFloors(spec.table, stale=spec.stale)
    seen: set[tuple[str, str]] = set()
    todo = [(mode, model)]
    while todo:
        above, used = todo.pop()
        for subagent in above.subagents.values():
            try:
                below = modes.resolve(subagent.mode)
            except AgentError:
                continue  # its start fails with just that
            named = below.model if below.model is not None else used
            path = subagent.floor_key(backend=provider, model=named, context=below.context)
            try:
                floors.held_against(subagent.ask, path)
            except UnitMismatch as error:
                what = f"ask of subagent [{subagent.name}] in mode [{above.name}]"
                raise UnitMismatch(what, expected=error.expected, got=error.got) from None
            if (below.name, named) not in seen:
                seen.add((below.name, named))
                todo.append((below, named))
