"""Tangle's floor table as a module of a policy: one floor a backend, whatever the model, agent or context."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import CHANNELS
from harness_lab.policies.protocol import SpawnAsk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.clock import Time
    from harness_lab.outcome import Shortfall
    from harness_lab.policies import ModuleSpec
    from harness_lab.policies.protocol import Ask, Ticket, Use

_PROMPT = CHANNELS.index("input")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFloorsSpec:
    """Parameters of floors by backend.

    Parameters
    ----------
    floors : tuple of (str, int)
        Backends and the prompt tokens that a child on each must be given at least.
    """

    floors: tuple[tuple[str, int], ...]
    kind: str = "backend_floors"

    def build(self, now: Time) -> BackendFloors:
        """Make a module; it keeps no state but the tables that it made."""
        return BackendFloors(dict(self.floors))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"floors": [list(one) for one in self.floors], "kind": self.kind}


class BackendFloors:
    """Preflight for every child that names its backend and asks for prompt tokens."""

    asks_spawn = True
    asks_step = False
    __slots__ = ("_floors", "_tables", "index")

    def __init__(self, floors: Mapping[str, int]) -> None:
        self._floors = floors
        self._tables: dict[FloorKey, FloorTable] = {}
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the shortfall to the floor of the child's backend."""
        if type(ask) is not SpawnAsk or ask.parent is None or ask.floor_key is None:
            return ()
        key, asked = replace(ask.floor_key, unit="input-total"), ask.budget[_PROMPT]
        if asked is None or key.backend not in self._floors:
            return ()
        if key not in self._tables:
            self._tables[key] = FloorTable((FloorRow(key=key, floor=self._floors[key.backend]),))
        answer = preflight(self._tables[key], key, asked)
        return () if answer.admitted else (answer.as_shortfall(),)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Hold nothing."""

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Settle nothing."""


def backend_floors(told: Mapping[str, int | None]) -> tuple[ModuleSpec, ...]:
    """Return the floors, if any is measured: null is not enforced."""
    floors = tuple((backend, int(floor)) for backend, floor in told.items() if floor is not None)
    return (BackendFloorsSpec(floors=floors),) if floors else ()
