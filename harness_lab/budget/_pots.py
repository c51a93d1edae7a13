"""The arithmetic of a pot: what one budget holds and has spent in one window. In memory and on disk it is the same.

Amounts are by channel; in a pot's limits ``-1`` is "no limit". For every limited channel and while every bound holds,
``spent + held <= limit``.

Source: our own; the hard cap's rule (reaching it exactly is allowed, a bill above its bound ends admission) is that of
prism-harness's hard cost cap, as its documents describe it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from harness_lab.budget import _rules as rules
from harness_lab.outcome import CALLS, CHANNELS, Code, Helps, Shortfall, amounts_text
from harness_lab.usage import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness_lab.usage import Amounts

Cap = Literal["hard", "soft"]
UnknownCharge = Literal["charge-hold", "charge-prompt", "release"]

SIZE = len(CHANNELS)


class Pot:
    """One budget in one window.

    Attributes
    ----------
    limits : list of int
        By channel, what was carried over included; ``-1``: no limit.
    spent, held : list of int
        Charged, and set aside for calls in flight.
    unknown : list of int
        Charges of unknown size; `spent` is then a lower bound.
    open : int
        Calls in flight.
    ended : bool
        A bill came in above its bound: nothing more is admitted.
    """

    __slots__ = ("ended", "held", "limits", "open", "spent", "unknown")

    def __init__(self, limits: Iterable[int]) -> None:
        self.limits = list(limits)
        self.spent = [0] * SIZE
        self.held = [0] * SIZE
        self.unknown = [0] * SIZE
        self.open = 0
        self.ended = False

    def __repr__(self) -> str:
        limits = tuple(None if limit < 0 else limit for limit in self.limits)
        known = (("limits", limits), ("spent", self.spent), ("held", self.held))
        said = [f"{what} {amounts_text(values) or 'none'}" for what, values in known]
        said += [f"unknown charges {sum(self.unknown)}"] if any(self.unknown) else []
        return f"<{'; '.join(said)}; {self.open} open{'; ended by a bill above its bound' if self.ended else ''}>"

    def hold(self, bound: Amounts, sign: int = 1) -> None:
        """Set a bound aside; with ``sign=-1`` give it back."""
        self.open += sign
        for i, amount in enumerate(bound):
            if amount:
                self.held[i] += sign * amount

    def add(self, charge: Charge, sign: int = 1) -> None:
        """Book a charge; with ``sign=-1`` take it back."""
        for i in range(SIZE):
            self.spent[i] += sign * charge.spent[i]
            if charge.open >> i & 1:
                self.unknown[i] += sign


class Charge:
    """What a call's end is booked as.

    Attributes
    ----------
    spent : tuple of int
        By channel.
    assumed : int
        Bit set of channels whose use was not reported.
    open : int
        Those of them that no rule could put a figure to: spend is a lower bound there.
    """

    __slots__ = ("assumed", "open", "spent")

    def __init__(self, spent: tuple[int, ...], assumed: int = 0, open: int = 0) -> None:
        self.spent = spent
        self.assumed = assumed
        self.open = open

    def __repr__(self) -> str:
        unknown = [channel for i, channel in enumerate(CHANNELS) if self.open >> i & 1]
        said = [amounts_text(self.spent) or "nothing", *([f"{', '.join(unknown)} unknown"] if unknown else [])]
        return f"<charge of {'; '.join(said)}>"


NOTHING = Charge((0,) * SIZE)


def charge(bound: Amounts, spent: Amounts, rule: UnknownCharge, prompt: Amounts | None = None) -> Charge:
    """Return the charge for a use of which parts may be unknown."""
    booked = [0] * SIZE
    assumed = unknown = 0
    for i, amount in enumerate(spent):
        if amount is not None:
            booked[i] = amount
            continue
        assumed |= 1 << i
        worst, sure = bound[i], None if prompt is None else prompt[i]
        if (rule == "charge-hold" or i == CALLS) and worst is not None:
            booked[i] = worst
            continue
        unknown |= 1 << i
        if rule == "charge-prompt" and sure is not None:
            booked[i] = sure
    return Charge(tuple(booked), assumed, unknown)


def violated(bound: Amounts, spent: Amounts) -> int:
    """Return the bit set of channels in which a bill lies above its bound."""
    over = 0
    for i, amount in enumerate(spent):
        worst = bound[i]
        if amount is not None and worst is not None and amount > worst:
            over |= 1 << i
    return over


def names(bits: int) -> tuple[str, ...]:
    """Return the channels of a bit set."""
    return tuple(channel for i, channel in enumerate(CHANNELS) if bits >> i & 1)


def shortfalls(pot: Pot, bound: Amounts, *, cap: Cap, fresh: Sequence[int] | None, detail: str) -> list[Shortfall]:
    """Return every channel in which a call of this worst case does not fit.

    Parameters
    ----------
    pot : Pot
        The pot.
    bound : Amounts
        Worst case; None: it cannot be bounded.
    cap : {"hard", "soft"}
        Whether a call without a bound is refused, or admitted as long as anything is left and charged afterwards.
    fresh : sequence of int or None
        Limits of the window after this one, for which it may help to wait; None: there is none.
    detail : str
        Words for a person: which budget, and when it is reset.
    """
    if pot.ended:
        return [Shortfall(Code.BOUND_VIOLATED, None, None, None, "nothing", detail=detail)]
    found = []
    for i, limit in enumerate(pot.limits):
        asked = bound[i]
        if limit < 0 or asked == 0:  # what costs nothing for sure fits every cap
            continue
        short = _short(pot, i, asked, cap)
        if short is not None:
            code, helps = short
            if helps != "other-path" and fresh is not None and 0 < (asked or 1) <= fresh[i]:
                helps = "wait"
            left = None if code is Code.SPEND_UNKNOWN else rules.free(limit, pot.spent[i], pot.held[i])
            found.append(Shortfall(code, limit, asked, left, helps, CHANNELS[i], detail))
    return found


def _short(pot: Pot, i: int, asked: int | None, cap: Cap) -> tuple[Code, Helps] | None:
    limit, spent, held = pot.limits[i], pot.spent[i], pot.held[i]
    if pot.unknown[i]:
        return Code.SPEND_UNKNOWN, "nothing"
    if asked is None and cap == "hard":
        return Code.UNBOUNDED, "other-path"
    if rules.fits(limit, spent, held, asked or 1):  # without a bound: as long as anything is left
        return None
    if rules.could_fit(limit, spent, asked or 1):
        return Code.BUDGET_EXHAUSTED, "wait"
    return Code.BUDGET_EXHAUSTED, "smaller" if asked is not None and spent + held < limit else "nothing"


def carried(pot: Pot | None, carry_in: Sequence[int], limits: Sequence[int], skipped: int, most: int) -> list[int]:
    """Return what the next window in use gets on top of its limit, by channel.

    Parameters
    ----------
    pot : Pot or None
        The last window in use before it, whose limits include its own `carry_in`; None: there was none.
    carry_in : sequence of int
        What that one had been given on top.
    limits : sequence of int
        Limits of one window; ``-1``: none.
    skipped : int
        Windows in between that nobody used.
    most : int
        At most so many windows' worth; ``-1``: no bound; 0: nothing is carried.

    Notes
    -----
    What is held when a window ends counts as used there until it is settled. A debt is not carried, and nothing is
    carried from a channel whose spend is unknown.
    """
    out = [0] * SIZE
    if most == 0 or pot is None:
        return out
    for i, limit in enumerate(limits):
        if limit < 0:
            continue
        unused = 0 if pot.unknown[i] else max(0, limit + carry_in[i] - pot.spent[i] - pot.held[i])
        total = unused + skipped * limit
        out[i] = min(total, MAX_COUNT - limit if most < 0 else most * limit)
    return out
