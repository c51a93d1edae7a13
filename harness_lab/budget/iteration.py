"""Iteration budgets: one unit per model call, and programmatic turns given back within a bound.

Two APIs on one counter: ``consume``/``refund`` as in hermes-agent, and ``charge(source)`` of the cost-integrity skill.
A turn whose only tools were run by a script costs a model call but no interaction, so it is given back. Giving back
without a bound removes the last limit (an agent that only runs scripts never ends), so there is one, and it is on.
"""

from __future__ import annotations

from threading import Lock
from typing import Literal, get_args

from harness_lab.errors import BudgetExhausted, InputError
from harness_lab.usage import count

Source = Literal["interactive", "programmatic"]
Unbounded = Literal["unbounded"]


class IterationBudget:
    """A counter of model calls with refunds; safe for threads.

    Parameters
    ----------
    max_total : int
        Calls that may be outstanding or spent; 0 allows none. May be changed while it is in use.
    max_refunds : int or "unbounded", optional
        Refunds in the life of the budget; as many as `max_total` if None.

    Attributes
    ----------
    used : int
        Calls that were not given back.
    refunds : int
        Calls that were.

    Raises
    ------
    InputError
        If a number is negative or no whole number.

    Examples
    --------
    >>> budget = IterationBudget(2)
    >>> budget.consume(), budget.consume(), budget.consume()
    (True, True, False)
    >>> budget.refund()
    >>> budget.remaining
    1
    """

    __slots__ = ("_lock", "_max_refunds", "_max_total", "refunds", "used")

    def __init__(self, max_total: int, *, max_refunds: int | Unbounded | None = None) -> None:
        self._lock = Lock()
        self._max_total = count("max_total", max_total)
        bounded = max_refunds not in (None, "unbounded")
        self._max_refunds = count("max_refunds", max_refunds) if bounded else max_refunds
        self.used = 0
        self.refunds = 0

    @property
    def max_total(self) -> int:
        """Calls that may be outstanding or spent."""
        return self._max_total

    @max_total.setter
    def max_total(self, value: int) -> None:
        self._max_total = count("max_total", value)

    @property
    def remaining(self) -> int:
        """Calls left, never negative."""
        return max(0, self._max_total - self.used)

    def consume(self, units: int = 1) -> bool:
        """Take units, all or none; False, and nothing changes, when fewer are left.

        Raises
        ------
        InputError
            If `units` is negative or no whole number.
        """
        units = count("units", units)
        with self._lock:
            if self.used + units > self._max_total:
                return False
            self.used += units
            return True

    def withdraw(self, units: int = 1) -> None:
        """Give units back that were never used: no refund, since nothing was sent; raises what `consume` raises."""
        units = count("units", units)
        with self._lock:
            self.used = max(0, self.used - units)

    def refund(self) -> None:
        """Give one unit back, unless none is out or the refunds are used up; nothing is banked."""
        with self._lock:
            if self.used > 0 and self._may_refund():
                self.used -= 1
                self.refunds += 1

    def charge(self, source: Source = "interactive") -> None:
        """Take one unit for a turn, and give it back at once if the turn was programmatic.

        Raises
        ------
        BudgetExhausted
            If no unit is left: a budget of N allows N interactive turns.
        InputError
            If the source is not one of the two.
        """
        if source not in get_args(Source):
            raise InputError("source", expected=" or ".join(get_args(Source)), got=source)
        if not self.consume():
            raise BudgetExhausted(f"iteration budget exhausted ({self.used} of {self._max_total} used)")
        if source == "programmatic":
            self.refund()

    def _may_refund(self) -> bool:
        if self._max_refunds == "unbounded":
            return True
        bound = self._max_total if self._max_refunds is None else self._max_refunds
        return self.refunds < int(bound)
