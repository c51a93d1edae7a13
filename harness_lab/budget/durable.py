"""The durable account: one budget for many processes, in one file that survives ``kill -9`` at any moment.

Before a call its worst case is *held*, after it the hold is *settled*, once, with what was used. Each is one SQLite
transaction: it happened or it did not. A worker that dies leaves a hold; when its time is over it *expires* and is
charged by the account's rule. So no charge is lost, none is booked twice, no hold stays for ever, and ``spent + held``
never exceeds the cap while every bound holds. A bill above its bound is charged in full, recorded, and ends admission.

Time comes from the caller as epoch nanoseconds and never goes back: the file keeps the latest instant that it has seen.
Whatever is wrong with the file (locked, read-only, full, corrupt, missing, of another version) is one error,
:class:`~harness_lab.errors.AccountUnavailable`, and nothing is admitted.

Source: our own; the states of a call (held, then settled once as completed, failed or abandoned) are those of
prism-harness's hard cost cap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from harness_lab.budget import _pots as pots
from harness_lab.budget._pots import SIZE, UnknownCharge
from harness_lab.budget.durable_rows import HoldRow, PotRow, Rows, to_text
from harness_lab.budget.durable_store import Store, Synchronous
from harness_lab.budget.durable_view import OWN, AccountView
from harness_lab.budget.period import PeriodLimits
from harness_lab.clock import ns
from harness_lab.errors import AccountUnavailable, AlreadySettled, InputError, UnknownTicket, check_kind, check_text
from harness_lab.outcome import CALLS, CHANNELS, Refusal, Shortfall
from harness_lab.usage import checked_amounts, count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from sqlite3 import Connection

    from harness_lab.budget.durable_books import HoldRecord, Status
    from harness_lab.usage import Amounts

RULES: Final[tuple[UnknownCharge, ...]] = ("charge-hold", "charge-prompt", "release")
STATUSES: Final[tuple[Status, ...]] = ("completed", "failed", "abandoned", "unsent")
_NO_PROMPT: Final[Amounts] = (None,) * SIZE
_MAX_NS: Final = 2**62


class DurableAccount(AccountView):
    """An account that exists already; :meth:`create` makes one.

    Opening never makes a file: an account that has gone missing has not spent nothing.

    Parameters
    ----------
    path : str or Path
        The file, on a local disk.
    synchronous : {"full", "normal"}
        ``full``: a commit survives a loss of power; ``normal``: it survives the death of any process and is faster.
    busy_seconds : float
        How long to wait for the transactions of others before the account counts as unavailable.

    Raises
    ------
    AccountUnavailable
        If there is no account in the file, or it cannot be read.

    Notes
    -----
    Safe for threads and processes; after a fork the child opens a connection of its own.

    Examples
    --------
    >>> import tempfile
    >>> from harness_lab.usage import amounts
    >>> path = f"{tempfile.mkdtemp()}/account.db"
    >>> account = DurableAccount.create(path, amounts(cost_usd=1.00), now_ns=0)
    >>> hold = account.hold("call-1", amounts(cost_usd=0.30), now_ns=1)
    >>> account.settle("call-1", amounts(cost_usd=0.12), now_ns=2).charged[-1]
    120000000
    >>> print(account.balance())
    account
      calls: limit none, spent 1, held 0, left none
      cost: limit $1.00, spent $0.12, held $0.00, left $0.88
    >>> account.close()
    """

    @classmethod
    def create(
        cls,
        path: str | Path,
        limits: Amounts,
        *,
        now_ns: int,
        hold_seconds: float = 900.0,
        unknown_usage: UnknownCharge = "charge-hold",
        synchronous: Synchronous = "full",
        busy_seconds: float = 5.0,
        if_exists: Literal["refuse", "open"] = "refuse",
    ) -> DurableAccount:
        """Make an account that has spent nothing, and open it.

        Parameters
        ----------
        path : str or Path
            The file, on a local disk.
        limits : Amounts
            Caps by channel (:func:`harness_lab.usage.amounts`); None: no limit, 0: nothing may be used.
        now_ns : int
            Epoch nanoseconds.
        hold_seconds : float
            After how long a hold that nobody settled expires; longer than a call can last.
        unknown_usage : {"charge-hold", "charge-prompt", "release"}
            What is charged for a call that expired, or ended without reported usage: its worst case; what was sent in
            any case; or nothing. After the last two spend is a lower bound, and admission in limited channels ends.
        synchronous, busy_seconds
            As for opening.
        if_exists : {"refuse", "open"}
            What to do when there is an account already. ``open`` also serves many workers that start at once.

        Raises
        ------
        InputError
            If a value is not allowed, or the account that exists has other limits or another rule.
        AccountUnavailable
            If the file cannot be written or holds something else.
        """
        own = PeriodLimits(name=OWN, limits=limits, window=None, cap="hard")
        if unknown_usage not in RULES:
            raise InputError("unknown_usage", expected=f"one of {', '.join(RULES)}", got=unknown_usage)
        if ns(hold_seconds, what="hold_seconds") <= 0:
            raise InputError("hold_seconds", expected="a number above 0", got=hold_seconds)
        store = Store(path, synchronous=synchronous, busy_seconds=busy_seconds)
        made = store.create((_instant(now_ns), ns(hold_seconds), unknown_usage), (OWN, to_text(own)))
        if not made and if_exists != "open":
            raise InputError("path", expected="no account there yet, or if_exists='open'", got=str(path))
        account = cls(path, synchronous=synchronous, busy_seconds=busy_seconds)
        theirs, ours = (account.limits, account.unknown_usage), (own.limits, unknown_usage)
        if theirs != ours:
            account.close()
            raise InputError("limits and unknown_usage", expected=f"those of the account, {theirs}", got=ours)
        return account

    def hold(
        self,
        hold_id: str,
        bound: Amounts,
        now_ns: int,
        *,
        periods: Sequence[tuple[PeriodLimits, str]] = (),
        prompt: Amounts | None = None,
        note: str = "",
    ) -> HoldRecord | Refusal:
        """Set a call's worst case aside in the account and in every period budget, or in none.

        Parameters
        ----------
        hold_id : str
            The caller's name for the call; asking again with the same name and bound gives the same hold.
        bound : Amounts
            Worst case by channel; None: it has none there, and is refused where there is a cap. ``calls``: 1 if None.
        now_ns : int
            Epoch nanoseconds.
        periods : sequence of (PeriodLimits, str)
            Period budgets that the call counts against too, each with its group's name.
        prompt : Amounts, optional
            What is used in any case once the call is sent, for ``unknown_usage="charge-prompt"``; at most the bound.
        note : str
            Words to be kept with it.

        Raises
        ------
        AccountUnavailable
            If the file cannot be used; nothing was admitted.
        AlreadySettled
            If the name was used for a call that has ended.
        InputError
            If an amount is not allowed, or the name is open with another bound.
        """
        bound = _one_call(checked_amounts("bound", bound))
        sure = _NO_PROMPT if prompt is None else checked_amounts("prompt", prompt)
        for used, most, channel in zip(sure, bound, CHANNELS, strict=True):
            if used is not None and most is not None and used > most:  # else what expires could pass the cap
                raise InputError(f"prompt ({channel})", expected=f"at most the bound of {most:,}", got=used)
        check_text("hold_id", hold_id, empty=False)
        check_text("note", note)
        periods = _periods(periods)
        with self._store.transaction(_instant(now_ns)) as (db, now):
            rows = self._current(db, now)
            known = rows.find(hold_id)
            if known is not None:
                return _same(known.record, bound)
            drawn = self._pots(rows, periods)
            short = [s for pot in drawn for s in rows.short(pot, bound)]
            if short:
                return Refusal(tuple(short))
            rows.hold(hold_id, drawn, bound, sure, now + self._hold_ns, note)
            made = rows.find(hold_id)
        if made is None:
            raise AccountUnavailable(self.path, "the hold was not written")
        return made.record

    def would(
        self, bound: Amounts, now_ns: int, *, periods: Sequence[tuple[PeriodLimits, str]] = ()
    ) -> tuple[Shortfall, ...]:
        """Return what would fall short if a call were held now; empty when it fits. Changes nothing."""
        bound, periods = _one_call(checked_amounts("bound", bound)), _periods(periods)
        with self._store.transaction(_instant(now_ns), keep=False) as (db, now):
            rows = self._current(db, now)
            return tuple(s for pot in self._pots(rows, periods) for s in rows.short(pot, bound))

    def settle(self, hold_id: str, spent: Amounts, now_ns: int, *, status: Status = "completed") -> HoldRecord:
        """End a call: release its hold and charge what it used, in full, once.

        Parameters
        ----------
        hold_id : str
            The call's name.
        spent : Amounts
            By channel; None: not reported, and charged by the account's rule. ``calls``: those held if None.
        now_ns : int
            Epoch nanoseconds. At or after the hold's expiry this is late: it replaces the charge of the expiry, once.
        status : {"completed", "failed", "abandoned", "unsent"}
            ``unsent`` charges nothing.

        Raises
        ------
        AlreadySettled
            The second time; it carries the first record, and nothing moves.
        UnknownTicket
            If there is no such hold.
        AccountUnavailable
            If the file cannot be used; try again, the hold is still there.
        InputError
            If an amount, the instant or the status is none; nothing moves.
        """
        used = checked_amounts("spent", spent)
        if status not in STATUSES:
            raise InputError("status", expected=f"one of {', '.join(STATUSES)}", got=status)
        with self._store.transaction(_instant(now_ns)) as (db, now):
            rows = self._current(db, now)
            hold = rows.find(hold_id)
            if hold is None:
                raise UnknownTicket(f"no hold is named {hold_id}")
            if hold.record.state == "settled":
                raise AlreadySettled(f"hold {hold_id}", hold.record)
            over = 0
            if status == "unsent":
                booked = pots.NOTHING
            else:
                used = (hold.bound[CALLS] if used[CALLS] is None else used[CALLS], *used[CALLS + 1 :])
                booked = pots.charge(hold.bound, used, self.unknown_usage, hold.prompt)
                over = pots.violated(hold.bound, used)
            rows.close(hold, booked, state="settled", closed=now, status=status, over=over)
            found = rows.find(hold_id)
        return cast("HoldRow", found).record

    def expire(self, now_ns: int) -> tuple[HoldRecord, ...]:
        """Charge and release every hold whose time is over; each question does this first anyway."""
        with self._store.transaction(_instant(now_ns)) as (db, now):
            return self._expire(Rows(db, now))

    def ensure(self, period: PeriodLimits, *, now_ns: int) -> None:
        """Put a period budget in force unless it is.

        Raises
        ------
        InputError
            If the account knows one of that name that says something else; :meth:`define` would change it.
        """
        check_kind("period", period, PeriodLimits, expected="PeriodLimits")
        with self._store.transaction(_instant(now_ns)) as (db, now):
            rows = Rows(db, now)
            known = rows.limits(period.name)
            if known is None:
                rows.define(period)
            elif known != period:
                hint = "DurableAccount.define puts other limits in force for everybody"
                raise InputError(f"period budget {period.name}", expected=f"{known}", got=period, hint=hint)

    def define(self, period: PeriodLimits, *, now_ns: int) -> None:
        """Put other limits of a period budget in force for everybody, in its current window too.

        Raises
        ------
        InputError
            If its windows are others than those of the budget of that name.
        """
        check_kind("period", period, PeriodLimits, expected="PeriodLimits")
        self._change(now_ns, "define", period)

    def set_limits(self, limits: Amounts, *, now_ns: int) -> None:
        """Put other caps in force for everybody; what is spent and held stays."""
        self._change(now_ns, "set-limits", PeriodLimits(name=OWN, limits=limits, window=None, cap="hard"))

    def reopen(self, reason: str, *, now_ns: int) -> None:
        """Admit again after a bill above its bound, or after spend of unknown size: somebody has looked at the books.

        The reason is kept. What was charged stays charged.

        Raises
        ------
        InputError
            If the reason is no text.
        """
        check_text("reason", reason)
        with self._store.transaction(_instant(now_ns)) as (db, now):
            rows = self._current(db, now)
            rows.reopen()
            rows.note("reopen", reason)

    def begin(self, now_ns: int) -> int:
        """Count one more start of a run and return its number, for names of calls that no restart can repeat."""
        with self._store.transaction(_instant(now_ns)) as (db, _):
            db.execute("UPDATE account SET starts = starts + 1")
            (number,) = db.execute("SELECT starts FROM account").fetchone()
        return int(number)

    def _current(self, db: Connection, now: int) -> Rows:
        rows = Rows(db, now)
        self._expire(rows)
        return rows

    def _expire(self, rows: Rows) -> tuple[HoldRecord, ...]:
        due = tuple(rows.due())
        for hold in due:
            unknown = (hold.bound[CALLS], *_NO_PROMPT[CALLS + 1 :])
            booked = pots.charge(hold.bound, unknown, self.unknown_usage, hold.prompt)
            rows.close(hold, booked, state="expired", closed=hold.record.expires_ns, status=None)
        return tuple(cast("HoldRow", rows.find(hold.record.id)).record for hold in due)

    def _pots(self, rows: Rows, periods: Sequence[tuple[PeriodLimits, str]]) -> list[PotRow]:
        named = [(period.name, group) for period, group in periods]
        if len(set(named)) < len(named) or any(name == OWN for name, _ in named):
            raise InputError("periods", expected=f"each budget and group once, none named {OWN}", got=named)
        drawn = [rows.pot(OWN, "", self._limits(rows, OWN))]
        for period, group in periods:
            limits = rows.limits(period.name)
            if limits is None:
                rows.define(period)
                limits = period
            drawn.append(rows.pot(period.name, group, limits))
        return drawn

    def _change(self, now_ns: int, what: str, limits: PeriodLimits) -> None:
        with self._store.transaction(_instant(now_ns)) as (db, now):
            rows = self._current(db, now)
            rows.define(limits)
            rows.note(what, f"{limits.name}: {to_text(limits)}")


def _instant(now_ns: int) -> int:
    return count("now_ns", now_ns, maximum=_MAX_NS)


def _periods(periods: Any) -> Sequence[tuple[PeriodLimits, str]]:
    pairs: list[Any] = list(periods) if isinstance(periods, (list, tuple)) else [periods]
    for pair in pairs:
        sound = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not sound or not isinstance(pair[0], PeriodLimits) or not isinstance(pair[1], str):
            raise InputError("periods", expected="pairs of PeriodLimits and a group's name", got=pair)
        check_text("periods", pair[1])
    return pairs


def _one_call(bound: Amounts) -> Amounts:
    return (1 if bound[CALLS] is None else bound[CALLS], *bound[CALLS + 1 :])


def _same(record: HoldRecord, bound: Amounts) -> HoldRecord:
    if record.state != "open":
        raise AlreadySettled(f"hold {record.id}", record)
    if record.bound != bound:
        raise InputError(f"bound of hold {record.id}", expected=f"the one it was given, {record.bound}", got=bound)
    return record
