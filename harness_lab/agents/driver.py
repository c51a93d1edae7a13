"""A driver: turns of a manager's own, between which it hands parts of its pool to children, until it has delivered.

Before each turn its scope is asked whether one more child's share would be left: a turn that could start nobody is not
bought. What ended it is one word, and the books say the rest.

Source: the manager's loop of tangle-network/agent-runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.budget import UNREPORTED, Leak, Scope, Settlement, Spend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness_lab.outcome import Shortfall

Stopped = Literal["delivered", "budget", "turns", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn of a driver came to.

    Parameters
    ----------
    spend : Spend
        What the turn itself used, its children's work not counted; unreported if nothing is said.
    delivered : bool
        Whether the run now has its result.
    output : object
        The result.
    """

    spend: Spend = UNREPORTED
    delivered: bool = False
    output: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """How a driver's run ended.

    Parameters
    ----------
    stopped : {"delivered", "budget", "turns", "failed"}
        It has its result; not even one more child's share was left; it had its turns; a turn went wrong.
    turns : int
        Turns that were bought.
    output : object
        The result.
    best : Settlement or None
        The completed child with the best score.
    shortfalls : tuple of Shortfall
        What was short, of a run that its budget stopped.
    error : Exception or None
        What went wrong, of one that failed.
    leaks : tuple of Leak
        Reservations that nobody closed.
    """

    stopped: Stopped
    turns: int
    output: Any = None
    best: Settlement | None = None
    shortfalls: tuple[Shortfall, ...] = ()
    error: Exception | None = None
    leaks: tuple[Leak, ...] = ()


async def drive(scope: Scope, turn: Callable[[Scope, int], Awaitable[Turn]], *, max_turns: int | None = None) -> Driven:
    """Take turns until the run has its result, or must not go on.

    Parameters
    ----------
    scope : Scope
        The books; turns are charged to it, children are started and settled by `turn` on it.
    turn : callable
        Takes one turn: gets the scope and the turn's number, from 1.
    max_turns : int or None
        Most turns; None: as many as the budget allows.

    Raises
    ------
    ReservationsOpen
        If the run has a result and a child still holds a part of the pool.
    """
    taken = 0
    while max_turns is None or taken < max_turns:
        short = scope.before_turn()
        if short:
            return _ended(scope, "budget", taken, shortfalls=short)
        taken += 1
        try:
            came = await turn(scope, taken)
            scope.turn(came.spend)
        except Exception as error:
            return _ended(scope, "failed", taken, error=error)
        if came.delivered:
            return _ended(scope, "delivered", taken, output=came.output)
    return _ended(scope, "turns", taken)


def _ended(scope: Scope, stopped: Stopped, turns: int, **more: Any) -> Driven:
    leaks = scope.finish(delivered=stopped == "delivered")
    return Driven(stopped=stopped, turns=turns, best=scope.best(), leaks=leaks, **more)
