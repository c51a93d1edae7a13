"""The vocabulary of results: outcomes, causes, reason codes, channels, units, draw purposes.

Everything that is stored, hashed or exported by number or by name is listed here once and append-only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Channel = Literal["calls", "input", "tokens", "fresh", "cost"]

CHANNELS: Final[tuple[Channel, ...]] = ("calls", "input", "tokens", "fresh", "cost")
"""What a budget can be counted in.

===========  ====================================================================
calls        model calls ("steps" in some harnesses)
input        prompt tokens, all of them (fresh, cache read, cache write)
tokens       prompt and completion tokens
fresh        newly presented tokens: prompt and completion less what a cache gave
cost         nano-dollars
===========  ====================================================================
"""

CALLS, INPUT, TOKENS, FRESH, COST = range(5)
"""Positions of the channels in an amounts tuple."""

Unit = Literal["input-total", "total", "newly-presented"]

UNITS: Final[dict[Unit, Channel]] = {"input-total": "input", "total": "tokens", "newly-presented": "fresh"}
"""The units a floor can be measured in, and the channel whose budget each may be held against."""


class Outcome(StrEnum):
    """How a node ended.

    ``completed`` is not a judgement of the result (see the column ``delivered``) and an overspender that finished is
    completed. ``denied`` never started.
    """

    COMPLETED = "completed"
    EXHAUSTED = "exhausted"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DENIED = "denied"
    AWAITING_APPROVAL = "awaiting_approval"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """What brought a node's end about."""

    LIMIT = "limit"
    USER = "user"
    INFRASTRUCTURE = "infrastructure"
    MODEL = "model"
    NONE = "none"


class Code(StrEnum):
    """Reason codes of refusals and stops; append-only.

    Presets translate them to their system's spelling.
    """

    STEPS_EXHAUSTED = "steps-exhausted"
    COST_EXHAUSTED = "cost-exhausted"
    TIME_EXHAUSTED = "time-exhausted"
    SPEND_UNKNOWN = "spend-unknown"
    CANCELLED = "cancelled"
    BUDGET_EXHAUSTED = "budget-exhausted"
    UNBUDGETED = "unbudgeted"
    BELOW_RUNTIME_FLOOR = "below-runtime-floor"
    MAX_DEPTH = "max-depth"
    MAX_CALLS = "max-calls"
    MAX_CONCURRENT = "max-concurrent"
    DEADLINE = "deadline"
    WAITED_TOO_LONG = "waited-too-long"
    PARENT_ENDED = "parent-ended"
    BOUND_VIOLATED = "bound-violated"
    UNBOUNDED = "unbounded"
    ACCOUNT_UNAVAILABLE = "account-unavailable"
    ITERATIONS_EXHAUSTED = "iterations-exhausted"
    TOOL_CALLS_EXHAUSTED = "tool-calls-exhausted"
    COST_CAP_WOULD_EXCEED = "cost-cap-would-exceed"
    COST_CAP_PRICE_MISSING = "cost-cap-price-missing"
    COST_CAP_PRICE_INVALID = "cost-cap-price-invalid"
    COST_CAP_PRICE_UNTRUSTED = "cost-cap-price-untrusted"
    COST_CAP_OUTPUT_CEILING_MISSING = "cost-cap-output-ceiling-missing"
    COST_CAP_TOOL_OVERHEAD_MISSING = "cost-cap-tool-overhead-missing"
    COST_CAP_IMAGE_BOUND_MISSING = "cost-cap-image-bound-missing"
    COST_CAP_DOCUMENT_UNBOUNDED = "cost-cap-document-unbounded"
    COST_CAP_AUDIO_UNBOUNDED = "cost-cap-audio-unbounded"
    COST_CAP_VIDEO_UNBOUNDED = "cost-cap-video-unbounded"
    COST_CAP_MEDIA_UNKNOWN = "cost-cap-media-unknown"
    COST_CAP_COMPACTION_CONFLICT = "cost-cap-compaction-conflict"
    CALL_REFUSED = "call-refused"
    WRAP_UP_USED = "wrap-up-used"
    KEY_CONFLICT = "key-conflict"
    KEY_IN_USE = "key-in-use"
    KEY_IN_DOUBT = "key-in-doubt"


Helps = Literal["smaller", "larger", "wait", "other-path", "nothing"]
"""What would help after a refusal: a smaller or larger ask, waiting, another path, or nothing."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One channel or limit that fell short.

    Parameters
    ----------
    code : Code
        Reason code.
    limit : int or None
        The limit that was in force, in the channel's unit.
    asked : int or None
        What was asked for.
    free : int or None
        What was left, never negative; None when it cannot be known.
    helps : str
        What would help.
    channel : str, default ""
        The channel, empty for limits that are none (depth, starts, concurrency).
    detail : str, default ""
        More for a person: names of paths, the evidence behind a floor.
    """

    code: Code
    limit: int | None
    asked: int | None
    free: int | None
    helps: Helps
    channel: str = ""
    detail: str = ""

    def __str__(self) -> str:
        where = f" ({self.channel})" if self.channel else ""
        said = ", ".join(filter(None, (self._asked(), self._left()))) or self.detail
        detail = f". {self.detail}" if self.detail and said != self.detail else ""
        return f"{self.code}{where}: {said + '; ' if said else ''}helps: {self.helps}{detail}"

    def _asked(self) -> str:
        if self.asked is None:  # nothing was asked for in this channel: a limit that is looked at between steps
            return ""
        return f"asked {'at ' if self._unit == 'time' else ''}{amount_text(self._unit, self.asked)}"

    def _left(self) -> str:
        if self.limit is None:
            return "" if self.free is None else f"free {amount_text(self._unit, self.free)}"
        limit = amount_text(self._unit, self.limit)
        if self.code in _NOT_LEFT:
            return f"{_NOT_LEFT[self.code]} {limit}"
        return f"free {'unknown' if self.free is None else amount_text(self._unit, self.free)} of {limit}"

    @property
    def _unit(self) -> str:
        return "time" if self.code in _INSTANTS else self.channel


_INSTANTS = frozenset({Code.DEADLINE, Code.WAITED_TOO_LONG})
"""Codes whose figures are instants on the run's clock."""
_NOT_LEFT = dict.fromkeys((*_INSTANTS, Code.MAX_DEPTH), "the limit is") | {Code.BELOW_RUNTIME_FLOOR: "the floor is"}
"""Codes of limits from which nothing is taken, so nothing is left of them either."""


def amounts_text(amounts: Sequence[int | None]) -> str:
    """Write amounts by channel for a person; those that are 0 or None are left out.

    Examples
    --------
    >>> amounts_text((3, None, 8000, None, 50_000_000))
    '3 calls, 8,000 tokens, $0.05'
    """
    named = [(name, amount) for name, amount in zip(CHANNELS, amounts, strict=False) if amount]
    return ", ".join(amount_text(name, n) + ("" if name == "cost" else f" {name}") for name, n in named)


def amount_text(channel: str, amount: int) -> str:
    """Write an amount in its channel's unit for a person: dollars, seconds, or a count.

    Parameters
    ----------
    channel : str
        ``cost`` (`amount` in nano-dollars), ``time`` (nanoseconds), or a channel that is counted.
    amount : int
        Exact; no digit is lost.

    Examples
    --------
    >>> amount_text("cost", 50_000_000), amount_text("time", 1_500_000_000), amount_text("tokens", 8000)
    ('$0.05', '1.5 s', '8,000')
    """
    if channel not in ("cost", "time"):
        return f"{amount:,}"
    whole, part = divmod(abs(amount), 1_000_000_000)
    digits = f"{part:09d}".rstrip("0")
    sign = "-" if amount < 0 else ""
    if channel == "cost":
        return f"{sign}${whole:,}.{digits.ljust(2, '0')}"
    return f"{sign}{whole:,}{'.' + digits if digits else ''} s"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer "no": every limit that fell short, and what may follow.

    Parameters
    ----------
    shortfalls : sequence of Shortfall
        All of them, not only the first. The first is the binding one.
    then : {"stop", "wrap-up", "pause"}
        What the asker may do next.
    """

    shortfalls: Sequence[Shortfall]
    then: Literal["stop", "wrap-up", "pause"] = "stop"

    @property
    def code(self) -> Code:
        """The code of the first shortfall: the binding limit."""
        return self.shortfalls[0].code

    @property
    def no_size_fits(self) -> tuple[str, ...]:
        """Channels in which one limit wants less and another more: no ask passes, and only another path can help."""
        less = [short.channel for short in self.shortfalls if short.helps == "smaller"]
        more = {short.channel for short in self.shortfalls if short.helps == "larger"}
        return tuple(channel for channel in less if channel and channel in more)

    def __str__(self) -> str:
        none = [f"no ask of {channel} fits, neither less nor more" for channel in self.no_size_fits]
        return "; ".join([*map(str, self.shortfalls), *none])


class Purpose:
    """What a draw is for (draws v1); append-only, at most 32."""

    CALLS: Final = 0
    STARTUP: Final = 1
    GROWTH: Final = 2
    OUTPUT: Final = 3
    LATENCY: Final = 4
    ERROR: Final = 5
    USAGE_REPORTED: Final = 6
    SPAWN: Final = 7
    TOOL_TIME: Final = 8
    BACKOFF: Final = 9
    CACHE: Final = 10
    SUCCESS: Final = 11
    DONOR: Final = 12
    COUNT: Final = 13
    PER_TOKEN: Final = 14
    THINK: Final = 15
    ARRIVAL: Final = 16
    FAULT: Final = 17
    FAULT_TIME: Final = 18
    DELIVERED: Final = 19
