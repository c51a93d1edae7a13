"""How things end: the words that transcripts use, and what an error message says about its cause.

A message's text is looked at here and goes no further.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from harness_lab.outcome import Cause, Code, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping


class End(NamedTuple):
    """What one word of a source means for the node that it ends."""

    outcome: Outcome
    cause: Cause | None = None
    code: Code | None = None


OPEN: Final = End(Outcome.UNKNOWN)
"""Nothing has ended: the record stops in the middle."""

COMPLETED: Final = End(Outcome.COMPLETED, Cause.NONE)
ABORTED: Final = End(Outcome.CANCELLED, Cause.USER, Code.CANCELLED)
USAGE_LIMIT: Final = End(Outcome.EXHAUSTED, Cause.LIMIT, Code.BUDGET_EXHAUSTED)
"""The provider's own limit of use (a plan's window, credits), not a budget that the user declared."""

LENGTH: Final = End(Outcome.EXHAUSTED, Cause.LIMIT)
"""The most tokens of an answer, or the context window: a limit that no reason code names."""

INFRASTRUCTURE: Final = End(Outcome.FAILED, Cause.INFRASTRUCTURE)
MODEL: Final = End(Outcome.FAILED, Cause.MODEL)
FAILED: Final = End(Outcome.FAILED)

ERRORS: Final[Mapping[str, End]] = {
    "usage-limit": USAGE_LIMIT,
    "context-limit": LENGTH,
    "interrupted": ABORTED,
    "infrastructure-error": INFRASTRUCTURE,
    "error": FAILED,
}
"""The words that :func:`error_word` gives."""

_KINDS: Final = (
    (
        "usage-limit",
        r"usage[ _]limit|session limit|weekly limit|hit your [\w ]*limit|limit reached|quota|insufficient_quota"
        r"|credit balance|out of credits|budget[ _](exceeded|limit)|spending limit",
    ),
    ("context-limit", r"context[ _](window|length)|prompt is too long|maximum context|too many tokens in"),
    ("interrupted", r"interrupted|aborted by|user abort|request was aborted|cancell?ed by"),
    (
        "infrastructure-error",
        r"\b(401|403|408|409|429|5\d\d)\b|overload|rate.?limit|time[d ]*.?out|connect|network|socket|econn|enotfound"
        r"|stream (error|disconnected|closed)|internal server|unavailable|authenti|api.?key|fetch failed|dns|tls|proxy"
        r"|terminated|login|server_error|bad gateway|buffer\.overflow",
    ),
)
_PATTERNS: Final = tuple((word, re.compile(pattern, re.IGNORECASE)) for word, pattern in _KINDS)

_LOOK_AT: Final = 2_000


def error_word(*texts: object) -> str:
    """Return the kind of error that some texts tell of: a key of ``ERRORS``; ``error`` where they do not say.

    Examples
    --------
    >>> error_word("Claude AI usage limit reached|1760000000")
    'usage-limit'
    >>> error_word(None, "API Error: 529 Overloaded")
    'infrastructure-error'
    """
    joined = " ".join(text[:_LOOK_AT] for text in texts if isinstance(text, str))
    return next((word for word, pattern in _PATTERNS if pattern.search(joined)), "error")
