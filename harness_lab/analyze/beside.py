"""What stands beside every figure of cost: how the runs ended and whether they delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import is_false, is_true, text
from harness_lab.stats.estimates import percent
from harness_lab.stats.shares import wilson

if TYPE_CHECKING:
    from harness_lab.analyze.sample import Sample

MIN_EACH: Final = 10
"""Rows that a fifth has to have."""


def beside(runs: pd.DataFrame, noun: str = "runs") -> str:
    """Say how runs ended and how many of them delivered; cheap runs that deliver nothing are not cheap.

    Examples
    --------
    >>> beside(pd.DataFrame({"outcome": ["completed", "completed", "failed"], "delivered": [True, False, False]}))
    'Of these runs 2 of 3 completed, 1 delivered.'
    """
    n = len(runs)
    completed = int((text(runs, "outcome") == "completed").sum())
    delivered, not_ = int(is_true(runs, "delivered").sum()), int(is_false(runs, "delivered").sum())
    known = delivered + not_
    if not known:
        told = "whether they delivered is not recorded"
    else:
        told = f"{delivered:,} delivered" + (f" (unknown: {n - known:,})" if known < n else "")
    return f"Of these {noun} {completed:,} of {n:,} completed, {told}."


def fifths(sample: Sample) -> pd.DataFrame:
    """Return outcome and delivery in fifths of the amount: what the cheap and the dear ones came to.

    Parameters
    ----------
    sample : Sample
        The rows.

    Returns
    -------
    DataFrame
        ``fifth`` (1: least), ``least, most`` (column's unit), ``n``, ``completed`` (share), ``known`` (rows whose
        delivery is known), ``delivered`` (share of those) with Wilson's ``delivered_low, delivered_high`` (95 %, rows
        taken as independent). Empty with fewer than ten rows a fifth.
    """
    names = ["fifth", "least", "most", "n", "completed", "known", "delivered", "delivered_low", "delivered_high"]
    if sample.n < 5 * MIN_EACH:
        return pd.DataFrame(columns=names)
    order = np.argsort(sample.amounts, kind="stable")
    rows = []
    for number, part in enumerate(np.array_split(order, 5), start=1):
        amounts, known = sample.amounts[part], int((sample.delivered | sample.undelivered)[part].sum())
        hits = int(sample.delivered[part].sum())
        low, high = wilson([hits], max(known, 1))
        ends = (hits / known, float(low[0]), float(high[0])) if known else (np.nan, np.nan, np.nan)
        completed = float(sample.completed[part].mean())
        rows.append((number, amounts.min(), amounts.max(), part.size, completed, known, *ends))
    return pd.DataFrame(rows, columns=names)


def fifths_text(table: pd.DataFrame) -> str:
    """Write the cheapest and the dearest fifth; empty where there are none, or no delivery is known."""
    if not len(table) or table["delivered"].isna().any():
        return ""
    least, most = (float(table["delivered"].iloc[place]) for place in (0, -1))
    return f"Delivered: {percent(least)} of the fifth that used least, {percent(most)} of the fifth that used most."
