"""How rows ended, as statistics sees it: completed, ended otherwise, stopped by a limit, or not to be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from harness_lab.analyze.frames import text_codes

if TYPE_CHECKING:
    import pandas as pd

STOPPED: Final = 0
"""Stopped by a limit: right-censored, it would have used more."""
COMPLETED: Final = 1
"""The event of interest."""
COMPETING: Final = 2
"""Failed, cancelled by a user and the like: it will never complete, so it is no censoring."""
APART: Final = -1
"""Outcome unknown, waiting for approval, or never started: counted beside, in no estimate."""


def endings(frame: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Classify rows by `outcome` and `cause`.

    Parameters
    ----------
    frame : DataFrame
        Nodes or runs.

    Returns
    -------
    ndarray of int64, shape (n,)
        `COMPLETED`, `COMPETING`, `STOPPED` or `APART`.

    Notes
    -----
    Stopped: outcome ``exhausted``; ``timed_out`` unless its cause is known to be another than a limit; ``cancelled``
    with cause ``limit`` (a limit further up). Competing: ``failed``, other cancellations and time-outs. Apart:
    ``unknown``, ``awaiting_approval``, ``denied``.

    Examples
    --------
    >>> import pandas as pd
    >>> endings(pd.DataFrame({"outcome": ["completed", "failed", "exhausted", "denied"]})).tolist()
    [1, 2, 0, -1]
    """
    (outcome, outcomes), (cause, causes) = text_codes(frame, "outcome"), text_codes(frame, "cause")
    kinds = np.array([[_ending(word, why) for why in causes] for word in outcomes], dtype=np.int64)
    return np.asarray(kinds.reshape(len(outcomes), len(causes))[outcome, cause])


def _ending(outcome: str, cause: str) -> int:
    if outcome == "completed":
        return COMPLETED
    if outcome == "exhausted" or (outcome == "timed_out" and cause in ("", "limit")):
        return STOPPED
    if outcome == "cancelled" and cause == "limit":
        return STOPPED
    return COMPETING if outcome in ("failed", "cancelled", "timed_out") else APART


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many rows went where.

    Parameters
    ----------
    rows : int
        All rows.
    completed, stopped, competing : int
        Rows in the estimates, by ending.
    unknown_outcome, awaiting, denied : int
        Rows kept apart because of their outcome.
    unknown_value : int
        Rows kept apart because the quantity is unknown (their outcome would have counted).
    """

    rows: int
    completed: int
    stopped: int
    competing: int
    unknown_outcome: int
    awaiting: int
    denied: int
    unknown_value: int

    @property
    def n(self) -> int:
        """Rows in the estimates."""
        return self.completed + self.stopped + self.competing

    def __str__(self) -> str:
        inner = [
            f"{count:,} {words}"
            for count, words in (
                (self.completed, "completed"),
                (self.stopped, "stopped by a limit"),
                (self.competing, "failed or were cancelled"),
            )
            if count
        ]
        apart = [
            f"{count:,} {words}"
            for count, words in (
                (self.unknown_value, "of unknown usage"),
                (self.unknown_outcome, "of unknown outcome"),
                (self.awaiting, "awaiting approval"),
                (self.denied, "denied before they started"),
            )
            if count
        ]
        return ", ".join(inner or ["none"]) + (f"; kept apart: {', '.join(apart)}" if apart else "")


def tally(frame: pd.DataFrame, kinds: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> Tally:
    """Count rows by ending and by why they are kept apart."""
    outcome, outcomes = text_codes(frame, "outcome")
    count = dict(zip(outcomes, np.bincount(outcome, minlength=len(outcomes)).tolist(), strict=True))
    used = (kinds != APART) & known
    return Tally(
        rows=len(frame),
        completed=int((used & (kinds == COMPLETED)).sum()),
        stopped=int((used & (kinds == STOPPED)).sum()),
        competing=int((used & (kinds == COMPETING)).sum()),
        unknown_outcome=count.get("unknown", 0),
        awaiting=count.get("awaiting_approval", 0),
        denied=count.get("denied", 0),
        unknown_value=int(((kinds != APART) & ~known).sum()),
    )
