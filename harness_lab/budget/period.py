"""Period budgets: what a user, team, key or any other group may use in a rolling or calendar window.

A call belongs to the window in which it was *admitted*, also when it ends later: no spend is counted in two windows or
in none, and a long call cannot be used to move spend. State is kept by group and window, in memory here; the same
definition is kept on disk by :class:`~harness_lab.budget.durable.DurableAccount`.

Source: our own. None of the systems beside us has budgets by period; windows and their ends are told as providers'
bills have them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal

from harness_lab.budget import _pots as pots
from harness_lab.budget._pots import SIZE, Cap, Charge, Pot, UnknownCharge
from harness_lab.budget.windows import Calendar, Rolling, Window, instant_text
from harness_lab.clock import instant
from harness_lab.errors import AlreadySettled, InputError, UnknownTicket, check_kind
from harness_lab.outcome import Refusal, Shortfall, amount_text, amounts_text
from harness_lab.usage import MAX_COUNT, checked_amounts, count

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

Carry = Literal["none", "capped", "full"]
_MOST: Final = {"none": 0, "full": -1}
_FOREVER: Final = Window(0, 0, 2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodLimits:
    """What may be used in one window; a value.

    Parameters
    ----------
    name : str
        Name of the budget, such as ``"day per user"``; unique among those that apply together.
    limits : Amounts
        By channel (:func:`harness_lab.usage.amounts`); None: no limit, 0: nothing may be used.
    window : Calendar, Rolling or None
        None: one window without an end, a budget for the life of a group (of a session, say).
    carry : {"none", "capped", "full"}
        Whether what a window leaves unused is added to the next one. Only calendar windows carry.
    carry_windows : int, default 1
        With ``carry="capped"``: at most so many windows' worth is carried.
    cap : {"soft", "hard"}
        What happens to a call without a known worst case in a limited channel. ``soft``: admitted as long as anything
        is left, charged afterwards; each such call in flight may overshoot. ``hard``: refused, and a bill above its
        bound ends admission.

    Raises
    ------
    InputError
        If a value is not allowed, or the carry-over does not fit the window.
    """

    name: str
    limits: Amounts
    window: Calendar | Rolling | None
    carry: Carry = "none"
    carry_windows: int = 1
    cap: Cap = "soft"
    by_channel: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name of the period budget", expected="some text", got=self.name)
        checked = checked_amounts("limits", self.limits)
        object.__setattr__(self, "limits", checked)
        object.__setattr__(self, "by_channel", tuple(-1 if limit is None else limit for limit in checked))
        for what, got, allowed in (
            ("carry", self.carry, ("none", "capped", "full")),
            ("cap", self.cap, ("soft", "hard")),
        ):
            if got not in allowed:
                raise InputError(what, expected=f"one of {', '.join(allowed)}", got=got)
        if self.window is not None:
            check_kind("window", self.window, (Calendar, Rolling), expected="a Calendar, a Rolling or None")
        if type(self.carry_windows) is not int or not 1 <= self.carry_windows <= MAX_COUNT:
            raise InputError("carry_windows", expected="a whole number of windows, at least 1", got=self.carry_windows)
        if self.carry != "none" and not isinstance(self.window, Calendar):
            raise InputError("carry", expected="none, unless windows are days, weeks or months", got=self.carry)

    @property
    def most(self) -> int:
        """Windows' worth that may be carried over; ``-1``: any number."""
        return _MOST.get(self.carry, self.carry_windows)

    def at(self, now_ns: int) -> Window:
        """Return the window that an instant lies in; a rolling budget has one for ever, as one without an end has."""
        return self.window.window(now_ns) if isinstance(self.window, Calendar) else _FOREVER

    def detail(self, group: str, window: Window) -> str:
        """Say in words which budget this is and when it is reset."""
        whose = f"{self.name}{f' ({group})' if group else ''}"
        if isinstance(self.window, Calendar):
            return f"{whose}, reset at {instant_text(window.end_ns, self.window.zone)}"
        return whose if self.window is None else f"{whose}, over the last {amount_text('time', self.window.length_ns)}"


class PeriodHold:
    """What is set aside for one call, and the single-use handle to it.

    Attributes
    ----------
    budget : PeriodBudget
        Who gave it, and alone settles it.
    group : str
        Whose budget.
    window : Window
        In which window it was admitted.
    bound : Amounts
        Its worst case.
    at_ns : int
        When it was admitted, epoch nanoseconds.
    charge : Charge or None
        What it was settled with.
    inside : bool
        False once a rolling window has moved past it.
    """

    __slots__ = ("at_ns", "bound", "budget", "charge", "group", "inside", "window")

    def __init__(self, budget: PeriodBudget, group: str, window: Window, bound: Amounts, at_ns: int) -> None:
        self.budget = budget
        self.group = group
        self.window = window
        self.bound = bound
        self.at_ns = at_ns
        self.charge: Charge | None = None
        self.inside = True

    def __repr__(self) -> str:
        whose = f" of {self.group}" if self.group else ""
        ended = "open" if self.charge is None else f"settled with {self.charge}"
        return f"<hold under {self.budget.limits.name}{whose}: {amounts_text(self.bound) or 'no bound'}, {ended}>"


class _Group:
    """The windows of one group, and the calls that a rolling window still holds, oldest first."""

    __slots__ = ("calls", "carry", "windows")

    def __init__(self) -> None:
        self.windows: dict[int, Pot] = {}
        self.carry: dict[int, list[int]] = {}
        self.calls: deque[PeriodHold] = deque()


class PeriodBudget:
    """A period budget in memory, for any number of groups.

    Parameters
    ----------
    limits : PeriodLimits
        What may be used in one window.
    unknown_usage : {"release", "charge-hold"}
        What a call without reported usage is charged: nothing, so that spend is a lower bound and its limited channels
        refuse until the window is over, or its worst case.

    Raises
    ------
    InputError
        If `unknown_usage` is none of these.

    Notes
    -----
    Time comes from the caller as epoch nanoseconds; an instant before one that was seen is taken for that one. Without
    locks: one thread, or a lock around it.

    Examples
    --------
    >>> from harness_lab.usage import amounts
    >>> daily = PeriodLimits(name="day", limits=amounts(cost_usd=100), window=Calendar("day", "Asia/Shanghai"))
    >>> budget = PeriodBudget(daily)
    >>> hold = budget.reserve("ann", amounts(cost_usd=100), now_ns=0)
    >>> print(budget.reserve("ann", amounts(cost_usd=1), now_ns=1))
    budget-exhausted (cost): asked $1.00, free $0.00 of $100.00; helps: wait. day (ann), reset at \
1970-01-02T00:00:00+08:00
    """

    __slots__ = ("_clock", "_groups", "_unknown_usage", "limits")

    def __init__(self, limits: PeriodLimits, *, unknown_usage: UnknownCharge = "release") -> None:
        if unknown_usage not in ("release", "charge-hold"):
            raise InputError("unknown_usage", expected="release or charge-hold", got=unknown_usage)
        self.limits = limits
        self._unknown_usage = unknown_usage
        self._groups: dict[str, _Group] = {}
        self._clock: int | None = None

    def shortfalls(self, group: str, bound: Amounts, now_ns: int) -> tuple[Shortfall, ...]:
        """Return every channel in which a call does not fit now; empty when it does. Changes nothing.

        Raises
        ------
        InputError
            If an amount or the instant is negative or not a whole number, or the group is no text.
        """
        bound, now_ns = checked_amounts("bound", bound), self._not_before(now_ns)
        window = self.limits.at(now_ns)
        pot = self.pot(group, now_ns)
        fresh = None if self.limits.window is None else self.limits.by_channel
        detail = self.limits.detail(group, window)
        return tuple(pots.shortfalls(pot, bound, cap=self.limits.cap, fresh=fresh, detail=detail))

    def pot(self, group: str, now_ns: int) -> Pot:
        """Return a copy of a group's pot at an instant: its limits, spend and holds.

        Raises
        ------
        InputError
            If the instant is negative or not a whole number, or the group is no text.
        """
        now_ns = self._not_before(now_ns)
        if not isinstance(group, str):
            raise InputError("group", expected="text", got=group)
        found = self._groups.get(group)
        if found is None:
            return Pot(self.limits.by_channel)
        window = self.limits.at(now_ns)
        pot = found.windows.get(window.index)
        shown = self._fresh(found, window.index)[0] if pot is None else _copy(pot)
        for hold in takewhile(lambda hold: self._left(hold, now_ns), found.calls):
            _take_out(shown, hold)
        return shown

    def reserve(self, group: str, bound: Amounts, now_ns: int) -> PeriodHold | Refusal:
        """Set a call's worst case aside in all channels, or in none.

        Raises
        ------
        InputError
            If an amount or the instant is negative or not a whole number, or the group is no text.
        """
        bound = checked_amounts("bound", bound)
        short = self.shortfalls(group, bound, now_ns)
        return Refusal(short) if short else self.hold(group, bound, now_ns)

    def hold(self, group: str, bound: Amounts, now_ns: int) -> PeriodHold:
        """Set a worst case aside; the caller has seen that :meth:`shortfalls` is empty."""
        self._clock = now_ns = self._not_before(now_ns)
        found = self._groups.setdefault(group, _Group())
        window = self.limits.at(now_ns)
        hold = PeriodHold(self, group, window, bound, now_ns)
        while found.calls and self._left(found.calls[0], now_ns):
            gone = found.calls.popleft()
            _take_out(found.windows[gone.window.index], gone)
            gone.inside = False
        if window.index not in found.windows:
            _forget(found)
            pot, carry = self._fresh(found, window.index)
            found.windows[window.index], found.carry[window.index] = pot, carry
        if isinstance(self.limits.window, Rolling):
            found.calls.append(hold)
        found.windows[window.index].hold(bound)
        return hold

    def settle(self, hold: PeriodHold, spent: Amounts | None, now_ns: int) -> Charge:
        """End a call: release its hold and charge what it used, in full; None: it was never sent.

        Raises
        ------
        AlreadySettled
            If it was settled before; nothing moves then.
        UnknownTicket
            If another budget gave the hold; nothing moves then.
        InputError
            If an amount or the instant is negative or not a whole number, or the hold is none; nothing moves then.
        """
        check_kind("hold", hold, PeriodHold, expected="a hold, as reserve returned it")
        if hold.budget is not self:
            raise UnknownTicket(f"{hold!r} was not given by this budget")
        if hold.charge is not None:
            raise AlreadySettled("call under a period budget", hold.charge.spent)
        used = None if spent is None else checked_amounts("spent", spent)
        booked = pots.NOTHING if used is None else pots.charge(hold.bound, used, self._unknown_usage)
        self._clock = self._not_before(now_ns)
        hold.charge = booked
        if not hold.inside:
            return booked
        found = self._groups[hold.group]
        pot = found.windows[hold.window.index]
        pot.hold(hold.bound, -1)
        pot.add(booked)
        if used is not None and self.limits.cap == "hard":
            over = pots.violated(hold.bound, used)
            pot.ended |= any(over >> i & 1 and limit >= 0 for i, limit in enumerate(pot.limits))
        self._carry_on(found, hold.window.index)
        return booked

    def reopen(self, group: str) -> None:
        """Admit again after a bill above its bound: somebody has looked at it."""
        for pot in self._groups[group].windows.values() if group in self._groups else ():
            pot.ended = False

    def _not_before(self, now_ns: int) -> int:
        if type(now_ns) is not int or not 0 <= now_ns <= MAX_COUNT:
            now_ns = count("now_ns", instant("now_ns", now_ns))
        return now_ns if self._clock is None else max(now_ns, self._clock)

    def _left(self, hold: PeriodHold, now_ns: int) -> bool:
        window = self.limits.window
        return isinstance(window, Rolling) and hold.at_ns + window.length_ns <= now_ns

    def _fresh(self, found: _Group, index: int) -> tuple[Pot, list[int]]:
        """Return an unused window's pot, with what the last one in use leaves to it."""
        last = max((i for i in found.windows if i < index), default=None)
        before = None if last is None else found.windows[last]
        given = [0] * SIZE if last is None else found.carry[last]
        skipped = 0 if last is None else index - last - 1
        carry = pots.carried(before, given, self.limits.by_channel, skipped, self.limits.most)
        pot = Pot(_with(self.limits.by_channel, carry))
        pot.ended = before is not None and before.ended
        return pot, carry

    def _carry_on(self, found: _Group, index: int) -> None:
        """Bring the windows after one that has changed up to date."""
        for later in sorted(i for i in found.windows if i > index):
            fresh, carry = self._fresh(found, later)
            found.carry[later] = carry
            found.windows[later].limits = fresh.limits
            found.windows[later].ended |= fresh.ended


def _with(limits: tuple[int, ...], carry: list[int]) -> list[int]:
    return [limit if limit < 0 else limit + more for limit, more in zip(limits, carry, strict=True)]


def _copy(pot: Pot) -> Pot:
    copy = Pot(pot.limits)
    copy.spent, copy.held, copy.unknown = pot.spent[:], pot.held[:], pot.unknown[:]
    copy.open, copy.ended = pot.open, pot.ended
    return copy


def _take_out(pot: Pot, hold: PeriodHold) -> None:
    if hold.charge is None:
        pot.hold(hold.bound, -1)
    else:
        pot.add(hold.charge, -1)


def _forget(found: _Group) -> None:
    """Drop the oldest windows in which nothing is open, but the last one: the next inherits from it."""
    for index in sorted(found.windows)[:-1]:
        if found.windows[index].open:
            return
        del found.windows[index], found.carry[index]
