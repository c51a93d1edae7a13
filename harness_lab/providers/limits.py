"""Rate limits of a provider, kept as buckets that fill evenly.

A bucket is one instant: when it would be full. Taking an amount moves the instant on; what would move it further ahead
than the bucket is deep does not pass (the generic cell rate algorithm).

References
----------
.. [1] ITU-T Recommendation I.371 (2004). Traffic control and congestion control in B-ISDN. Annex A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.clock import NS_PER_S, ns

if TYPE_CHECKING:
    from harness_lab.providers.profile import RateLimits

_MINUTE_NS = 60 * NS_PER_S


class Bucket:
    """One rate.

    Parameters
    ----------
    per_minute : int or None
        Its rate; None: everything passes.
    depth_ns : int
        Its depth as time at that rate.
    """

    __slots__ = ("_depth", "_full", "_rate")

    def __init__(self, per_minute: int | None, depth_ns: int) -> None:
        self._rate = per_minute
        self._depth = depth_ns
        self._full = 0

    def wait(self, now: int, amount: int) -> int:
        """Return how long until an amount passes, nanoseconds; 0: it does now."""
        if self._rate is None or self._full <= now:
            return 0
        ahead = self._full + amount * _MINUTE_NS // self._rate - now
        return max(0, min(ahead - self._depth, self._full - now))

    def take(self, now: int, amount: int) -> None:
        """Take an amount, whether it passes or not."""
        if self._rate is not None:
            self._full = max(self._full, now) + amount * _MINUTE_NS // self._rate


class Meter:
    """The limits of one model, as they stand.

    Parameters
    ----------
    limits : RateLimits
        What is let through.
    """

    __slots__ = ("_concurrent", "_input", "_requests", "_retry_after", "_tokens", "in_flight")

    def __init__(self, limits: RateLimits) -> None:
        depth = ns(limits.burst_s)
        self._requests = Bucket(limits.requests_per_minute, depth)
        self._tokens = Bucket(limits.tokens_per_minute, depth)
        self._input = Bucket(limits.input_tokens_per_minute, depth)
        self._concurrent = limits.concurrent
        self._retry_after = None if limits.retry_after_s is None else ns(limits.retry_after_s)
        self.in_flight = 0

    def enter(self, now: int, prompt: int, uncached: int) -> int | None:
        """Let a call through and return None, or return the time after which to try again, nanoseconds.

        Parameters
        ----------
        now : int
            The instant.
        prompt, uncached : int
            Prompt tokens, and those of them that are not read from a cache.
        """
        wait = max(self._requests.wait(now, 1), self._tokens.wait(now, prompt), self._input.wait(now, uncached))
        if self._concurrent is not None and self.in_flight >= self._concurrent:
            wait = max(wait, NS_PER_S)
        if wait:
            return wait if self._retry_after is None else self._retry_after
        self._requests.take(now, 1)
        self._tokens.take(now, prompt)
        self._input.take(now, uncached)
        self.in_flight += 1
        return None

    def leave(self, now: int, output: int) -> None:
        """Take note that a call has ended, with an answer of so many tokens."""
        self.in_flight -= 1
        self._tokens.take(now, output)
