"""The reading side of a durable account: what it has spent, holds and has seen; no question changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from harness_lab.budget.durable_books import Balance, Event, HoldRecord
from harness_lab.budget.durable_rows import Rows
from harness_lab.budget.durable_store import Store, Synchronous
from harness_lab.clock import NS_PER_S
from harness_lab.errors import AccountUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.budget._pots import UnknownCharge
    from harness_lab.budget.period import PeriodLimits
    from harness_lab.usage import Amounts

OWN: Final = "account"
"""Name of the account's own budget, which every call counts against."""


class AccountView:
    """What can be read from an account.

    Parameters
    ----------
    path : str or Path
        The file.
    synchronous, busy_seconds
        As for :class:`~harness_lab.budget.durable.DurableAccount`.

    Attributes
    ----------
    unknown_usage : str
        The account's rule for calls whose use is not known.

    Raises
    ------
    AccountUnavailable
        If there is no account in the file, or it cannot be read.
    """

    def __init__(self, path: str | Path, *, synchronous: Synchronous = "full", busy_seconds: float = 5.0) -> None:
        self._store = Store(path, synchronous=synchronous, busy_seconds=busy_seconds)
        with self._store.snapshot() as db:
            self._hold_ns, rule = db.execute("SELECT hold_ns, unknown_usage FROM account").fetchone()
        self.unknown_usage = cast("UnknownCharge", rule)

    def balance(self) -> Balance:
        """Return the account's own budget as it is in the file."""
        return next(each for each in self.balances() if each.budget == OWN)

    def balances(self) -> tuple[Balance, ...]:
        """Return the account's own budget and the last window in use of every period budget and group."""
        with self._store.snapshot() as db:
            return tuple(row.balance() for row in Rows(db, 0).current())

    def open_holds(self) -> tuple[HoldRecord, ...]:
        """Return the calls that are held for, oldest first."""
        with self._store.snapshot() as db:
            return Rows(db, 0).holds("state = 'open'", ())

    def history(self, *, since_ns: int = 0) -> tuple[HoldRecord, ...]:
        """Return every call admitted at or after an instant, whatever became of it, oldest first."""
        with self._store.snapshot() as db:
            return Rows(db, 0).holds("at_ns >= ?", (since_ns,))

    def find(self, hold_id: str) -> HoldRecord | None:
        """Return one call by its name."""
        with self._store.snapshot() as db:
            found = Rows(db, 0).find(hold_id)
        return None if found is None else found.record

    def events(self) -> tuple[Event, ...]:
        """Return what people did to the account: limits that were changed, budgets that were reopened."""
        with self._store.snapshot() as db:
            return tuple(Event(*row) for row in db.execute("SELECT at_ns, what, detail FROM events ORDER BY id"))

    def close(self) -> None:
        """Close this process's connection; the account stays."""
        self._store.close()

    @property
    def limits(self) -> Amounts:
        """The account's own caps, as they are in force now."""
        with self._store.snapshot() as db:
            return self._limits(Rows(db, 0), OWN).limits

    @property
    def path(self) -> str:
        """The account's file."""
        return self._store.path

    @property
    def hold_seconds(self) -> float:
        """After how long a hold expires."""
        return float(self._hold_ns / NS_PER_S)

    def _limits(self, rows: Rows, budget: str) -> PeriodLimits:
        found = rows.limits(budget)
        if found is None:
            raise AccountUnavailable(self.path, f"it has no budget named {budget}")
        return found
