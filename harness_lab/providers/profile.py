"""How one model answers: sizes, times, what goes wrong, what it reports, and how much it lets through."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from harness_lab.clock import ns
from harness_lab.errors import InputError
from harness_lab.usage import count

if TYPE_CHECKING:
    from harness_lab.stats.distributions import Distribution

FailedAttempts = Literal["free", "billed"]
MAX_PER_MINUTE = 10**12
_RATES = (
    "error_rate",
    "unreported_rate",
    "cache_share",
    "cache_write_share",
    "timeout_rate",
    "cutoff_rate",
    "late_rate",
    "partial_rate",
    "twice_rate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What a provider lets through; the rest is answered 429 with the time after which to try again.

    Each rate is a bucket that fills evenly and holds `burst_s` seconds' worth. A call that is larger than a whole
    bucket passes when the bucket is full.

    Parameters
    ----------
    requests_per_minute : int or None
        Attempts; None: no limit.
    tokens_per_minute : int or None
        Prompt and answer: the prompt has to fit, the answer is counted when it ends and may leave the bucket in debt.
    input_tokens_per_minute : int or None
        Prompt tokens, without those read from a cache.
    concurrent : int or None
        Calls in flight.
    burst_s : float
        Size of the buckets in seconds of their rate, above 0.
    retry_after_s : float or None
        The retry time that is told; None: when the bucket will hold enough (one second for `concurrent`).
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    concurrent: int | None = None
    burst_s: float = 60.0
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "input_tokens_per_minute", "concurrent"):
            value = getattr(self, name)
            if value is not None and count(name, value, maximum=MAX_PER_MINUTE) == 0:
                raise InputError(name, expected="at least 1, or None for no limit", got=0)
        if ns(self.burst_s, what="burst_s") <= 0:
            raise InputError("burst_s", expected="seconds above 0", got=self.burst_s)
        if self.retry_after_s is not None and ns(self.retry_after_s, what="retry_after_s") < 0:
            raise InputError("retry_after_s", expected="seconds >= 0", got=self.retry_after_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """How one model answers.

    Parameters
    ----------
    output_tokens : Distribution
        Completion tokens of a call.
    latency_s : Distribution
        Seconds to the first token, for a call that completes; a failing call takes a tenth of it.
    seconds_per_output_token : float
        Added to the latency for each completion token.
    error_rate : float
        Chance that an attempt fails, 0 to 1.
    unreported_rate : float
        Chance that a call's usage is never reported, though it is billed.
    cache_share : float
        Share of the prompt tokens that were sent before (by the call before, or as a prefix that many agents share)
        that are read from a cache.
    cache_write_share : float
        Share of the other prompt tokens that are written to the cache, at its price.
    max_output_tokens : int
        The output ceiling: longer answers are cut there. Part of the worst case of a call.
    cache_ttl_s : float or None
        A prefix is read from the cache only if it was sent within this time; the first to send it finds nothing.
        None: the cache is always warm.
    timeout_rate, timeout_s : float
        Chance that an attempt hangs, and the seconds after which it is given up.
    cutoff_rate : float
        Chance that the stream breaks off, evenly anywhere in the answer. The prompt and what had come are billed;
        only the prompt is reported.
    failed_attempts : {"free", "billed"}
        Who pays for errors and timeouts: nobody, or the caller (the prompt, as reported).
    late_rate, late_s : float
        Chance that a call's usage comes that many seconds after its answer; what has not come when its node ends is
        never known there.
    partial_rate : float
        Chance that the prompt is reported and the answer's tokens and the cost never are.
    twice_rate : float
        Chance that a call's usage is reported a second time; a settlement counts once.
    limits : RateLimits or None
        What is let through; None: everything.
    output_token_s : Distribution or None
        Seconds for each completion token, drawn once a call, in place of `seconds_per_output_token`.
    recorded : tuple of (int, int)
        Recorded answers as pairs of output tokens and nanoseconds, drawn together in place of `output_tokens` and
        `latency_s`; empty: the two are drawn apart.
    """

    output_tokens: Distribution
    latency_s: Distribution
    seconds_per_output_token: float = 0.0
    error_rate: float = 0.0
    unreported_rate: float = 0.0
    cache_share: float = 0.0
    cache_write_share: float = 0.0
    max_output_tokens: int = 32_000
    cache_ttl_s: float | None = None
    timeout_rate: float = 0.0
    timeout_s: float = 600.0
    cutoff_rate: float = 0.0
    failed_attempts: FailedAttempts = "free"
    late_rate: float = 0.0
    late_s: float = 30.0
    partial_rate: float = 0.0
    twice_rate: float = 0.0
    limits: RateLimits | None = None
    output_token_s: Distribution | None = None
    recorded: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for name in _RATES:
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(name, expected="a share from 0 to 1", got=value)
        for names in (("error_rate", "timeout_rate", "cutoff_rate"), ("late_rate", "partial_rate", "unreported_rate")):
            if (total := sum(getattr(self, name) for name in names)) > 1 + 1e-9:
                raise InputError(" + ".join(names), expected="at most 1 together", got=total)
        if not 0 <= self.seconds_per_output_token <= 60:
            raise InputError("seconds_per_output_token", expected="0 to 60", got=self.seconds_per_output_token)
        count("max_output_tokens", self.max_output_tokens, maximum=10_000_000)
        if self.failed_attempts not in ("free", "billed"):
            raise InputError("failed_attempts", expected="free or billed", got=self.failed_attempts)
        for name in ("cache_ttl_s", "timeout_s", "late_s"):
            value = getattr(self, name)
            if value is not None and ns(value, what=name) < 0:
                raise InputError(name, expected="seconds >= 0", got=value)

    @property
    def plain(self) -> bool:
        """Whether it only draws sizes, times, errors and silence: what every engine can do without state."""
        return all(getattr(self, f.name) == f.default for f in fields(self) if f.name not in _PLAIN)


_PLAIN = frozenset(
    {
        "output_tokens",
        "latency_s",
        "seconds_per_output_token",
        "error_rate",
        "unreported_rate",
        "cache_share",
        "cache_write_share",
        "max_output_tokens",
        "timeout_s",
        "late_s",
    }
)
