"""What to say of one account that falls short: which code, how much is left, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.budget import _rules
from harness_lab.outcome import CHANNELS, Code, Helps, Shortfall, amount_text

if TYPE_CHECKING:
    from harness_lab.budget.allocation import Account

_TAKES_UNKNOWN = frozenset(CHANNELS) - {"cost"}
"""Channels that a spend of unknown size does not close: tokens of the next call are bounded all the same."""


def short(channel: str, account: Account, asked: int | None, keep: int = 0) -> Shortfall | None:
    """Return why an ask cannot be held beside what its parent keeps, None when it can."""
    if asked is None or (account.unknown and channel not in _TAKES_UNKNOWN):
        return closed(channel, account)
    if _rules.fits(account.limit, account.spent, account.held, asked + keep):
        return None
    left = max(0, _left(account) - keep)
    helps: Helps = "smaller" if left > 0 else "nothing"
    if _rules.could_fit(account.limit, account.spent, asked + keep):
        helps = "wait"
    detail = f"beside {amount_text(channel, keep)} that its parent keeps" if keep else ""
    return Shortfall(Code.BUDGET_EXHAUSTED, account.limit, asked, left, helps, channel, detail)


def exhausted(channel: str, account: Account) -> Shortfall | None:
    """Return why nothing more can be used, None when something can."""
    if account.limit >= 0 and account.spent + account.held >= account.limit:
        helps: Helps = "wait" if account.spent < account.limit else "nothing"
        return Shortfall(Code.BUDGET_EXHAUSTED, account.limit, None, _left(account), helps, channel)
    return closed(channel, account)


def closed(channel: str, account: Account) -> Shortfall | None:
    """Money, or a named resource, under a limit is closed by a charge of unknown size: the limit is no bound then."""
    if channel in _TAKES_UNKNOWN or account.limit < 0 or not account.unknown:
        return None
    return Shortfall(Code.SPEND_UNKNOWN, account.limit, None, None, "nothing", channel)


def unbudgeted(channel: str, asked: int | None) -> Shortfall | None:
    """Return that an ask names a channel in which the pool has no limit, None when it does not ask there."""
    if asked is None:
        return None
    return Shortfall(Code.UNBUDGETED, None, asked, None, "nothing", channel)


def _left(account: Account) -> int:
    return _rules.free(account.limit, account.spent, account.held)
