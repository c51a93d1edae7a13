"""Rows of a durable account: pots, holds and what leaves a rolling window, inside one transaction of the store."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import _pots as pots
from harness_lab.budget._pots import SIZE, Charge, Pot
from harness_lab.budget.durable_books import Balance, HoldRecord
from harness_lab.budget.durable_store import columns
from harness_lab.budget.period import PeriodLimits
from harness_lab.budget.windows import Calendar, Rolling
from harness_lab.errors import InputError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from harness_lab.outcome import Shortfall
    from harness_lab.usage import Amounts

_POT: Final = ("carry", "spent", "held", "unknown")
_POT_COLUMNS: Final = tuple(name for kind in _POT for name in columns(kind))
_HOLD_COLUMNS: Final = tuple(name for kind in ("bound", "prompt", "charged") for name in columns(kind))
_HOLD_FIELDS: Final = (
    "id, state, at_ns, expires_ns, closed_ns, status, late, violated, assumed, open, pots, note, "
    + ", ".join(_HOLD_COLUMNS)
)
_SELECT_POT: Final = f"SELECT id, budget, whose, idx, ended, {', '.join(_POT_COLUMNS)} FROM pots"  # noqa: S608 - names of ours
_CURRENT: Final = (
    f"{_SELECT_POT} p WHERE idx = (SELECT max(idx) FROM pots q "  # noqa: S608 - names of ours
    "WHERE q.budget = p.budget AND q.whose = p.whose) ORDER BY id"
)
_SELECT_HOLD: Final = f"SELECT {_HOLD_FIELDS} FROM holds"  # noqa: S608 - names of ours
_UPDATE_POT: Final = f"UPDATE pots SET ended = ?, {', '.join(f'{c} = ?' for c in _POT_COLUMNS)} WHERE id = ?"  # noqa: S608
_INSERT_HOLD: Final = (
    "INSERT INTO holds (id, state, at_ns, expires_ns, pots, note, "  # noqa: S608 - names of ours
    f"{', '.join(columns('bound'))}, {', '.join(columns('prompt'))}) "
    f"VALUES (?, 'open', ?, ?, ?, ?, {', '.join('?' * 2 * SIZE)})"
)
_CLOSE_HOLD: Final = (
    "UPDATE holds SET state = ?, closed_ns = ?, status = ?, late = ?, violated = ?, assumed = ?, open = ?, "  # noqa: S608
    f"{', '.join(f'{c} = ?' for c in columns('charged'))} WHERE id = ?"
)


class PotRow:
    """A pot and where it is kept."""

    __slots__ = ("budget", "carry", "group", "id", "index", "limits", "pot")

    def __init__(self, row: Sequence[Any], limits: PeriodLimits) -> None:
        self.id, self.budget, self.group, self.index = row[0], row[1], row[2], row[3]
        self.limits = limits
        cells = list(row[5:])
        self.carry = cells[:SIZE]
        self.pot = Pot(_plus(limits, self.carry))
        self.pot.spent, self.pot.held, self.pot.unknown = (cells[i : i + SIZE] for i in range(SIZE, 4 * SIZE, SIZE))
        self.pot.ended = bool(row[4])

    @property
    def rolling(self) -> bool:
        """Whether calls leave it while time goes by."""
        return isinstance(self.limits.window, Rolling)

    def balance(self) -> Balance:
        """Return it as a value."""
        pot = self.pot
        return Balance(
            budget=self.budget,
            group=self.group,
            window=self.index,
            limits=tuple(None if limit < 0 else limit for limit in pot.limits),
            spent=tuple(pot.spent),
            held=tuple(pot.held),
            unknown=tuple(pot.unknown),
            ended=pot.ended,
        )


class HoldRow:
    """A hold as it is kept: a state, a bound, and what was booked for it."""

    __slots__ = ("bound", "charge", "prompt", "record", "whose_pots")

    def __init__(self, row: Sequence[Any]) -> None:
        cells = row[12:]
        self.bound: Amounts = tuple(cells[:SIZE])
        self.prompt: Amounts = tuple(cells[SIZE : 2 * SIZE])
        state, charged = row[1], None if row[1] == "open" else tuple(cells[2 * SIZE :])
        self.charge = None if charged is None else Charge(charged, row[8], row[9])
        self.whose_pots: tuple[int, ...] = tuple(json.loads(row[10]))
        self.record = HoldRecord(
            id=row[0],
            state=state,
            at_ns=row[2],
            expires_ns=row[3],
            closed_ns=row[4],
            status=row[5],
            late=bool(row[6]),
            violated=pots.names(row[7]),
            assumed=pots.names(row[8]),
            unknown=pots.names(row[9]),
            note=row[11],
            bound=self.bound,
            charged=charged,
        )


class Rows:
    """What one transaction does to the tables.

    Parameters
    ----------
    db : sqlite3.Connection
        Inside a transaction.
    now_ns : int
        The account's time.
    """

    __slots__ = ("_db", "_now")

    def __init__(self, db: sqlite3.Connection, now_ns: int) -> None:
        self._db = db
        self._now = now_ns

    def limits(self, budget: str) -> PeriodLimits | None:
        """Return a budget as it is defined in the file, None if it is not."""
        row = self._db.execute("SELECT definition FROM budgets WHERE name = ?", (budget,)).fetchone()
        return None if row is None else from_text(budget, row[0])

    def define(self, limits: PeriodLimits) -> None:
        """Put a definition in force; in its current window too.

        Raises
        ------
        InputError
            If the budget exists and its windows are others.
        """
        known = self.limits(limits.name)
        if known is not None and known.window != limits.window:
            hint = "Give a budget with other windows another name"
            raise InputError(f"window of {limits.name}", expected=f"{known.window}", got=limits.window, hint=hint)
        text = "INSERT OR REPLACE INTO budgets (name, definition) VALUES (?, ?)"
        self._db.execute(text, (limits.name, to_text(limits)))
        groups = self._db.execute("SELECT whose, min(idx) FROM pots WHERE budget = ? GROUP BY whose", (limits.name,))
        for group, first in groups.fetchall():
            self._carry_on(limits, group, first)

    def pot(self, budget: str, group: str, limits: PeriodLimits) -> PotRow:
        """Return the pot of the window that is open now, without what has left it; one that nobody used is not kept."""
        index = limits.at(self._now).index
        where = (budget, group, index)
        found = self._db.execute(f"{_SELECT_POT} WHERE budget = ? AND whose = ? AND idx = ?", where).fetchone()
        pot = PotRow(found or (None, *where, 0, *[0] * len(_POT_COLUMNS)), limits)
        if found is None:
            self._inherit(pot, self._before(pot))
        if pot.rolling:
            self._sweep(pot)
        return pot

    def save(self, row: PotRow) -> None:
        """Write a pot back, or for the first time."""
        pot = row.pot
        if row.id is None:
            text = "INSERT INTO pots (budget, whose, idx) VALUES (?, ?, ?)"
            row.id = self._db.execute(text, (row.budget, row.group, row.index)).lastrowid
        self._db.execute(_UPDATE_POT, (pot.ended, *row.carry, *pot.spent, *pot.held, *pot.unknown, row.id))

    def short(self, row: PotRow, bound: Amounts) -> list[Shortfall]:
        """Return every channel in which a call does not fit."""
        limits = row.limits
        detail = limits.detail(row.group, limits.at(self._now))
        fresh = None if limits.window is None else limits.by_channel
        return pots.shortfalls(row.pot, bound, cap=limits.cap, fresh=fresh, detail=detail)

    def hold(
        self, hold_id: str, rows: Sequence[PotRow], bound: Amounts, prompt: Amounts, expires: int, note: str
    ) -> None:
        """Set a call's worst case aside in every pot."""
        for row in rows:
            row.pot.hold(bound)
            self.save(row)
            if isinstance(row.limits.window, Rolling):
                leave = self._now + row.limits.window.length_ns
                self._db.execute("INSERT INTO leaving (pot, leave_ns, hold) VALUES (?, ?, ?)", (row.id, leave, hold_id))
        values = (hold_id, self._now, expires, json.dumps([row.id for row in rows]), note, *bound, *prompt)
        self._db.execute(_INSERT_HOLD, values)

    def find(self, hold_id: str) -> HoldRow | None:
        """Return a hold."""
        row = self._db.execute(f"{_SELECT_HOLD} WHERE id = ?", (hold_id,)).fetchone()
        return None if row is None else HoldRow(row)

    def due(self) -> Iterator[HoldRow]:
        """Yield the open holds whose time is over."""
        text = f"{_SELECT_HOLD} WHERE state = 'open' AND expires_ns <= ? ORDER BY expires_ns, id"
        yield from map(HoldRow, self._db.execute(text, (self._now,)).fetchall())

    def holds(self, where: str, values: Sequence[Any]) -> tuple[HoldRecord, ...]:
        """Return holds as values, in order of admission."""
        rows = self._db.execute(f"{_SELECT_HOLD} WHERE {where} ORDER BY at_ns, id", values)
        return tuple(HoldRow(row).record for row in rows)

    def close(
        self, hold: HoldRow, booked: Charge, *, state: str, closed: int, status: str | None, over: int = 0
    ) -> None:
        """Book a hold's end in every pot that it is in, in place of what was booked for it before."""
        late = hold.charge is not None
        for row in self._pots_of(hold):
            if row.rolling and not self._inside(row, hold):
                continue
            if hold.charge is None:
                row.pot.hold(hold.bound, -1)
            else:
                row.pot.add(hold.charge, -1)
            row.pot.add(booked)
            if row.limits.cap == "hard":
                row.pot.ended |= any(over >> i & 1 and limit >= 0 for i, limit in enumerate(row.pot.limits))
            self.save(row)
            if row.limits.most or row.pot.ended:
                self._carry_on(row.limits, row.group, row.index)
        values = (state, closed, status, late, over, booked.assumed, booked.open, *booked.spent, hold.record.id)
        self._db.execute(_CLOSE_HOLD, values)

    def reopen(self) -> None:
        """Forget in every pot that a bill came in above its bound, and that charges were of unknown size."""
        self._db.execute(f"UPDATE pots SET ended = 0, {', '.join(f'{c} = 0' for c in columns('unknown'))}")  # noqa: S608
        self._db.execute("UPDATE holds SET open = 0 WHERE open <> 0")

    def note(self, what: str, detail: str) -> None:
        """Keep a word on what a person did."""
        self._db.execute("INSERT INTO events (at_ns, what, detail) VALUES (?, ?, ?)", (self._now, what, detail))

    def current(self) -> Iterator[PotRow]:
        """Yield the last pot in use of every budget and group."""
        for row in self._db.execute(_CURRENT).fetchall():
            limits = self.limits(row[1])
            if limits is not None:
                yield PotRow(row, limits)

    def _pots_of(self, hold: HoldRow) -> Iterator[PotRow]:
        for pot_id in hold.whose_pots:
            row = self._db.execute(f"{_SELECT_POT} WHERE id = ?", (pot_id,)).fetchone()
            limits = self.limits(row[1])
            if limits is not None:
                yield PotRow(row, limits)

    def _inside(self, row: PotRow, hold: HoldRow) -> bool:
        text = "SELECT 1 FROM leaving WHERE pot = ? AND hold = ?"
        return self._db.execute(text, (row.id, hold.record.id)).fetchone() is not None

    def _sweep(self, row: PotRow) -> None:
        """Take out of a rolling pot what was admitted too long ago to count."""
        text = "SELECT hold FROM leaving WHERE pot = ? AND leave_ns <= ?"
        gone = self._db.execute(text, (row.id, self._now)).fetchall()
        for (hold_id,) in gone:
            hold = self.find(hold_id)
            if hold is None:
                continue
            if hold.charge is None:
                row.pot.hold(hold.bound, -1)
            else:
                row.pot.add(hold.charge, -1)
        if gone:
            self._db.execute("DELETE FROM leaving WHERE pot = ? AND leave_ns <= ?", (row.id, self._now))
            self.save(row)

    def _before(self, row: PotRow) -> PotRow | None:
        text = f"{_SELECT_POT} WHERE budget = ? AND whose = ? AND idx < ? ORDER BY idx DESC LIMIT 1"
        found = self._db.execute(text, (row.budget, row.group, row.index)).fetchone()
        return None if found is None else PotRow(found, row.limits)

    def _inherit(self, row: PotRow, last: PotRow | None) -> None:
        """Give a pot what the last one in use leaves to it."""
        if last is None:
            return
        skipped = row.index - last.index - 1
        row.carry = pots.carried(last.pot, last.carry, row.limits.by_channel, skipped, row.limits.most)
        row.pot.limits = _plus(row.limits, row.carry)
        row.pot.ended |= last.pot.ended

    def _carry_on(self, limits: PeriodLimits, group: str, index: int) -> None:
        """Bring the windows after one that has changed up to date."""
        text = f"{_SELECT_POT} WHERE budget = ? AND whose = ? AND idx >= ? ORDER BY idx"
        last: PotRow | None = None
        for found in self._db.execute(text, (limits.name, group, index)).fetchall():
            row = PotRow(found, limits)
            if last is not None:
                self._inherit(row, last)
                self.save(row)
            last = row


def to_text(limits: PeriodLimits) -> str:
    """Write a definition as it is kept in the file."""
    window = limits.window
    kept: dict[str, Any] = {"limits": limits.limits, "carry": limits.carry, "carry_windows": limits.carry_windows}
    kept["cap"] = limits.cap
    if isinstance(window, Calendar):
        kept["calendar"] = {"every": window.every, "zone": window.zone, "day": window.day}
    elif window is not None:
        kept["rolling"] = window.seconds
    return json.dumps(kept, sort_keys=True)


@lru_cache(maxsize=256)
def from_text(name: str, text: str) -> PeriodLimits:
    """Read what :func:`to_text` wrote."""
    kept = json.loads(text)
    calendar, rolling = kept.pop("calendar", None), kept.pop("rolling", None)
    window = Calendar(**calendar) if calendar is not None else None if rolling is None else Rolling(rolling)
    return PeriodLimits(name=name, limits=tuple(kept.pop("limits")), window=window, **kept)


def _plus(limits: PeriodLimits, carry: Sequence[int]) -> list[int]:
    return [limit if limit < 0 else limit + more for limit, more in zip(limits.by_channel, carry, strict=True)]
