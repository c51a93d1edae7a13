"""What a durable account says of itself: balances, holds, charges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness_lab.outcome import CHANNELS, amount_text

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

State = Literal["open", "settled", "expired"]
Status = Literal["completed", "failed", "abandoned", "unsent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """One budget of an account: what may be used, is used and is set aside, by channel.

    Parameters
    ----------
    budget : str
        Name of the budget.
    group : str
        Whose; empty for the account's own.
    window : int
        Number of the window; 0 where there is only one.
    limits : Amounts
        What was carried over included; None: no limit.
    spent, held : tuple of int
        Charged; set aside for calls in flight. Money in nano-dollars.
    unknown : tuple of int
        Charges of unknown size; where it is above 0, `spent` is a lower bound.
    ended : bool
        A bill came in above its bound, and nobody has reopened the budget yet.
    """

    budget: str
    group: str
    window: int
    limits: Amounts
    spent: tuple[int, ...]
    held: tuple[int, ...]
    unknown: tuple[int, ...]
    ended: bool

    @property
    def free(self) -> Amounts:
        """What is left by channel, never negative; None without a limit, or where spend is unknown."""
        rows = zip(self.limits, self.spent, self.held, self.unknown, strict=True)
        return tuple(None if cap is None or unknown else max(0, cap - s - h) for cap, s, h, unknown in rows)

    @property
    def overshoot(self) -> tuple[int, ...]:
        """What was spent above the limit by channel: only bills above their bounds can do that under a hard cap."""
        rows = zip(self.limits, self.spent, strict=True)
        return tuple(0 if cap is None else max(0, spent - cap) for cap, spent in rows)

    def summary(self) -> str:
        """Return a line a channel: limit, spent, held and left."""
        title = f"{self.budget}{f' ({self.group})' if self.group else ''}"
        lines = [f"{title}{': ended, a bill came in above its bound' if self.ended else ''}"]
        for i, channel in enumerate(CHANNELS):
            if self.limits[i] is None and not self.spent[i] and not self.held[i]:
                continue
            least = f" at least ({self.unknown[i]} of unknown size)" if self.unknown[i] else ""
            left = "unknown" if self.unknown[i] else _figure(i, self.free[i])
            lines.append(
                f"  {channel}: limit {_figure(i, self.limits[i])}, spent{least} {_figure(i, self.spent[i])}, "
                f"held {_figure(i, self.held[i])}, left {left}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRecord:
    """One call as the account knows it.

    Parameters
    ----------
    id : str
        The caller's name for it.
    state : {"open", "settled", "expired"}
        Expired: nobody settled it in time, and it was charged by the account's rule.
    at_ns, expires_ns : int
        When it was admitted, and when it expires; epoch nanoseconds.
    closed_ns : int or None
        When it was settled, or the instant at which it expired.
    bound : Amounts
        Its worst case by channel; None: it had none there.
    charged : tuple of int or None
        What it was charged; None while it is open.
    status : {"completed", "failed", "abandoned", "unsent"} or None
        How the call ended; None while that is not known.
    late : bool
        It was settled after it had expired; the charge replaced that of the expiry.
    violated : tuple of str
        Channels in which the bill came in above the bound; it was charged in full.
    assumed : tuple of str
        Channels whose use was not reported.
    unknown : tuple of str
        Those of them in which no rule could put a figure to it: what is charged there is a lower bound.
    note : str
        The caller's words.
    """

    id: str
    state: State
    at_ns: int
    expires_ns: int
    closed_ns: int | None
    bound: Amounts
    charged: tuple[int, ...] | None
    status: Status | None
    late: bool
    violated: tuple[str, ...]
    assumed: tuple[str, ...]
    unknown: tuple[str, ...]
    note: str

    @property
    def usage_known(self) -> bool:
        """Whether every channel of a call that has ended was reported."""
        return self.state == "settled" and not self.assumed


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a person did to an account.

    Parameters
    ----------
    at_ns : int
        When, epoch nanoseconds.
    what, detail : str
        What was done, and with what.
    """

    at_ns: int
    what: str
    detail: str


def _figure(channel: int, value: int | None) -> str:
    return "none" if value is None else amount_text(CHANNELS[channel], value)
