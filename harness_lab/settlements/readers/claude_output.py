"""Output counts of Claude Code that are placeholders: told apart, kept and flagged, dropped, or estimated.

Some versions write a line while its message is still streaming and never correct its ``output_tokens``. A call's count
is in doubt if no line of it says why the message ended, and

- its version is one of those that were measured to do so (2.1.12 up to, not including, 2.1.97), or
- its answer has more than six characters a token, where answers have 3.4 to 5.7.

Input counts are right throughout. An estimate is the answer's characters over 3.6, the measured ratio.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.settlements.readers.ledger import CHARS, FINAL, NONE, OUTPUT, PLACEHOLDER, VERSION

if TYPE_CHECKING:
    import numpy.typing as npt

    from harness_lab.settlements.readers.base import Placeholders
    from harness_lab.settlements.readers.ledger import Ledger

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


def doubtful_version(version: str) -> bool:
    """Return whether a client version is one of those that write placeholders.

    Examples
    --------
    >>> [doubtful_version(version) for version in ("2.1.7", "2.1.29", "2.1.97")]
    [False, True, False]
    """
    match = _VERSION.match(version)
    return match is not None and FIRST <= tuple(map(int, match.groups())) < FIXED


def settle_outputs(ledger: Ledger, placeholders: Placeholders) -> list[str]:
    """Deal with placeholder outputs as was asked, and say so.

    Parameters
    ----------
    ledger : Ledger
        All that was read; its outputs may change.
    placeholders : {"recorded", "unknown", "estimated"}
        Keep the recorded count; make it unknown; or estimate it from the answer's length, never below what was
        recorded. The calls are flagged in any case.

    Returns
    -------
    list of str
        Notes for the report; empty if no count is in doubt.
    """
    if not len(ledger):
        return []
    doubt = _doubt(ledger)
    ledger.column(PLACEHOLDER)[:] = doubt
    if not doubt.any():
        return []
    output = ledger.column(OUTPUT)
    recorded = int(output[doubt].sum())
    said = f"claude-code: the output of {int(doubt.sum()):,} of {len(doubt):,} call(s) is a placeholder or partial"
    if placeholders == "recorded":
        said += f" ({recorded:,} tokens recorded); kept as recorded and flagged: sums of output are too low"
    elif placeholders == "unknown":
        said += "; taken as unknown, input counts are whole"
        output[doubt] = NONE
    else:
        guess = np.maximum(output, np.ceil(ledger.column(CHARS) / CHARS_PER_TOKEN).astype(np.int64))
        output[doubt] = guess[doubt]
        said += f"; estimated from the length of the answers: {int(guess[doubt].sum()):,} tokens, not {recorded:,}"
    return [said]


def _doubt(ledger: Ledger) -> npt.NDArray[np.bool_]:
    """Return which calls' outputs are in doubt."""
    output, chars = ledger.column(OUTPUT), ledger.column(CHARS)
    by_version = np.array([*map(doubtful_version, ledger.names.texts), False], dtype=np.bool_)
    version = by_version[ledger.column(VERSION)]  # NONE is the last one, False
    thin = (chars > _FEW) & (chars > MOST_CHARS * output)
    found: npt.NDArray[np.bool_] = (ledger.column(FINAL) == 0) & (version | thin) & (output != NONE)
    return found
