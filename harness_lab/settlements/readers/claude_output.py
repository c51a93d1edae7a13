"""Output counts of Claude Code that are placeholders: told apart, kept and flagged, dropped, or estimated.

Some versions write a line while its message is still streaming and never correct its ``output_tokens``. A call's count
is in doubt if no line of it says why the message ended, and

- its version is one of those that were measured to do so (2.1.12 up to, not including, 2.1.97), or
- its answer has more than six characters a token, where answers have 3.4 to 5.7.

Input counts are right throughout. An estimate is the answer's characters over 3.6, the measured ratio.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from harness_lab.settlements.readers.ledger import NONE

if TYPE_CHECKING:
    from harness_lab.settlements.readers.base import Placeholders
    from harness_lab.settlements.readers.claude_lines import Transcripts

FIRST: Final = (2, 1, 12)
"""The first version of which placeholders were measured."""

FIXED: Final = (2, 1, 97)
"""The first version that writes final counts again."""

MOST_CHARS: Final = 6
"""Characters a token above which a count is in doubt."""

CHARS_PER_TOKEN: Final = 3.6
"""Characters a token of answers whose counts are right, for estimates."""

_FEW: Final = 36
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def length(block: dict[str, Any]) -> int:
    """Return the characters of a content block that are output: text, thinking, a tool's input."""
    kind = block.get("type")
    if kind == "tool_use":
        given = block.get("input")
        try:
            return len(orjson.dumps(given)) if given else 0
        except TypeError:  # half a surrogate pair, or a number beyond 64 bits
            return len(str(given))
    text = block.get("text") if kind == "text" else block.get("thinking")
    return len(text) if isinstance(text, str) else 0


def doubtful_version(version: str) -> bool:
    """Return whether a client version is one of those that write placeholders.

    Examples
    --------
    >>> [doubtful_version(version) for version in ("2.1.7", "2.1.29", "2.1.97")]
    [False, True, False]
    """
    match = _VERSION.match(version)
    return match is not None and FIRST <= tuple(map(int, match.groups())) < FIXED


def settle_outputs(transcripts: Transcripts, placeholders: Placeholders) -> list[str]:
    """Deal with placeholder outputs as was asked, and say so.

    Parameters
    ----------
    transcripts : Transcripts
        All that was read; its ledger's outputs may change.
    placeholders : {"recorded", "unknown", "estimated"}
        Keep the recorded count; make it unknown; or estimate it from the answer's length, never below what was
        recorded. The calls are flagged in any case.

    Returns
    -------
    list of str
        Notes for the report; empty if no count is in doubt.
    """
    ledger = transcripts.ledger
    if not len(ledger):
        return []
    doubt = _doubt(transcripts)
    _store(ledger.placeholder, doubt)
    if not doubt.any():
        return []
    output = np.array(ledger.output, dtype=np.int64)
    recorded = int(output[doubt].sum())
    said = f"claude-code: the output of {int(doubt.sum()):,} of {len(doubt):,} call(s) is a placeholder or partial"
    if placeholders == "recorded":
        said += f" ({recorded:,} tokens recorded); kept as recorded and flagged: sums of output are too low"
    elif placeholders == "unknown":
        said += "; taken as unknown, input counts are whole"
        _store(ledger.output, np.where(doubt, NONE, output))
    else:
        chars = np.array(ledger.chars, dtype=np.int64)
        guess = np.maximum(output, np.ceil(chars / CHARS_PER_TOKEN).astype(np.int64))
        _store(ledger.output, np.where(doubt, guess, output))
        said += f"; estimated from the length of the answers: {int(guess[doubt].sum()):,} tokens, not {recorded:,}"
    return [said]


def _doubt(transcripts: Transcripts) -> Any:
    """Return which calls' outputs are in doubt."""
    ledger = transcripts.ledger
    output, chars = np.array(ledger.output, dtype=np.int64), np.array(ledger.chars, dtype=np.int64)
    by_version = np.array([*map(doubtful_version, ledger.names.texts), False], dtype=np.bool_)
    version = by_version[np.array(transcripts.version, dtype=np.int64)]  # NONE is the last one, False
    thin = (chars > _FEW) & (chars > MOST_CHARS * output)
    open_end = np.array(transcripts.final, dtype=np.int8) == 0
    return open_end & (version | thin) & (output != NONE)


def _store(column: Any, values: Any) -> None:
    column[:] = type(column)("q", np.asarray(values, dtype=np.int64).tobytes())
