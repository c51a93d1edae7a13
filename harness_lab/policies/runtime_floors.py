"""Runtime floors as a module: an ask below what its path was seen to need is refused before it starts.

Source: the preflight of tangle-network/agent-runtime (:mod:`harness_lab.floors`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.errors import InputError, UnitMismatch
from harness_lab.floors import FloorTable, preflight
from harness_lab.outcome import CHANNELS, UNITS
from harness_lab.policies.protocol import SpawnAsk

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.floors import FloorKey
    from harness_lab.floors.preflight import Preflight, Stale
    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Ask, Ticket, Use
    from harness_lab.usage import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFloorsSpec:
    """Parameters of the runtime floors.

    Parameters
    ----------
    table : FloorTable
        The floors; a path without a row is not enforced.
    stale : {"warn", "enforce", "ignore"}
        Whether a floor that was measured under another starting context than the ask's still refuses: only with
        ``enforce``. With ``warn`` the ask starts whatever it is, and its grant carries a warning that names the floor
        and both contexts. A run's clock need not show the date, so evidence past its date is retired before a run.

    Raises
    ------
    InputError
        If `stale` is none of these.
    """

    table: FloorTable = field(default_factory=FloorTable)
    stale: Literal["warn", "enforce", "ignore"] = "warn"
    kind: str = "runtime_floors"

    def __post_init__(self) -> None:
        if self.stale not in ("warn", "enforce", "ignore"):
            raise InputError("stale", expected="warn, enforce or ignore", got=self.stale)

    def build(self, now: Time) -> RuntimeFloors:
        """Make a module; it keeps no state."""
        return RuntimeFloors(self.table, stale=self.stale)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what a row does not know is left out."""
        rows = [{k: v for k, v in row.items() if v is not None} for row in self.table.to_dicts()]
        return {"kind": self.kind, "table": rows} | ({} if self.stale == "warn" else {"stale": self.stale})


class RuntimeFloors:
    """Preflight for every child that names its path.

    Parameters
    ----------
    table : FloorTable
        The floors.
    stale : {"warn", "enforce", "ignore"}
        What evidence of another starting context does.

    Attributes
    ----------
    warns : bool
        Whether any evidence can be stale here: some row names its context, and stale evidence warns.
    """

    asks_spawn = True
    asks_step = False
    __slots__ = ("_stale", "_table", "index", "warns")

    def __init__(self, table: FloorTable, *, stale: Stale = "warn") -> None:
        self._table = table
        self._stale: Stale = stale
        self.warns = stale == "warn" and any(row.key.context is not None for row in table)
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the shortfall to the floor.

        Raises
        ------
        UnitMismatch
            If the path was measured and the ask declares tokens only in units in which it was not.
        """
        if type(ask) is not SpawnAsk or ask.parent is None or ask.floor_key is None:
            return ()
        answer = self.held_against(ask.budget, ask.floor_key)
        return () if answer is None or answer.admitted else (answer.as_shortfall(),)

    def warnings(self, ask: SpawnAsk, now: Time) -> tuple[str, ...]:
        """Say in one line that only stale evidence speaks for an ask that starts; nothing when that is not so."""
        if ask.parent is None or ask.floor_key is None:
            return ()
        answer = self.held_against(ask.budget, ask.floor_key)
        return () if answer is None or not answer.stale else (f"{answer} (the old floor is {answer.floor:,})",)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Hold nothing: a floor reserves nothing."""

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Settle nothing."""

    def held_against(self, budget: Amounts, key: FloorKey) -> Preflight | None:
        """Return the preflight of an ask on a path; None when it declares no tokens in the path's unit.

        Raises
        ------
        UnitMismatch
            If the path was measured and the ask declares tokens only in units in which it was not.
        """
        asked = budget[CHANNELS.index(UNITS[key.unit])]
        if asked is None:
            self._check_unit(budget, key)
            return None
        return preflight(self._table, key, asked, stale=self._stale)

    def _check_unit(self, budget: Amounts, key: FloorKey) -> None:
        declared = [unit for unit, channel in UNITS.items() if budget[CHANNELS.index(channel)] is not None]
        measured = self._table.units(key)
        if declared and measured:
            raise UnitMismatch(
                f"ask for {key}",
                expected=f"path and tokens in a unit in which it was measured ({', '.join(measured)})",
                got=f"a path in {key.unit}, tokens in {', '.join(declared)}",
            )
