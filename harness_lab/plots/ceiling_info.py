"""What every ceiling would have done, prepared for pictures: shares with their bands, and one ceiling in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError
from harness_lab.plots.quantities import DOLLARS, Quantity, percent

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
NEEDED: Final = ("ceiling", "n", "runs_cut", "avoided_nusd", "avoided_share", "sunk_share")
MIN_CUT: Final = 10
"""Runs cut from which an interval of their share is drawn; the table has it for fewer too."""


class Band(NamedTuple):
    """Shares with the ends of their interval, each of shape (g,); NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats


class CeilingInfo(NamedTuple):
    """What each ceiling would have done, one entry a candidate, ascending.

    Attributes
    ----------
    ceiling : ndarray of float64
        Candidates, in the channel's own unit.
    n : int
        Runs.
    runs_cut, delivered_cut : ndarray of float64
        Runs that used more, and those among them that delivered (NaN: the table does not say).
    unknown_cut : ndarray of float64
        Runs that used more and of which it is unknown whether they delivered.
    avoided_nusd : ndarray of float64
        Spend avoided, nano-dollars.
    cut, avoided, sunk, completed : Band
        Shares: runs cut of all runs; spend avoided, and spend sunk in runs that are cut, of all spend; completed runs.
    """

    ceiling: Floats
    n: int
    runs_cut: Floats
    delivered_cut: Floats
    unknown_cut: Floats
    avoided_nusd: Floats
    cut: Band
    avoided: Band
    sunk: Band
    completed: Band

    @property
    def delivery_known(self) -> bool:
        """Whether of any run it is known that it delivered."""
        return bool((self.delivered_cut > 0).any())

    @property
    def lost(self) -> Floats:
        """The share that the trade-off is drawn against: delivered runs cut of all runs, else all runs cut."""
        return self.delivered_cut / self.n if self.delivery_known else self.cut.value

    def cut_band(self) -> Band:
        """Return the share of runs cut, with its interval where at least ten are cut."""
        few = self.runs_cut < MIN_CUT
        low, high = (np.where(few, np.nan, end) for end in (self.cut.low, self.cut.high))
        return Band(self.cut.value, low, high)

    def nearest(self, ceiling: float) -> int:
        """Position of the candidate nearest to `ceiling` (in the channel's own unit)."""
        return int(np.argmin(np.abs(self.ceiling - ceiling)))

    def finding(self, at: int, shown: Quantity) -> str:
        """Say in a sentence what one ceiling does."""
        cut = f"cuts {self.runs_cut[at]:,.0f} of {self.n:,} runs"
        if self.delivery_known:
            unknown = f", {self.unknown_cut[at]:,.0f} perhaps" if self.unknown_cut[at] else ""
            cut += f" ({self.delivered_cut[at]:,.0f} of them had delivered{unknown})"
        avoided = f"avoids {DOLLARS.write(self.avoided_nusd[at])}, {percent(self.avoided.value[at])} of the spend"
        sunk = f"{percent(self.sunk.value[at])} is sunk in the runs that it cuts"
        return f"A limit of {shown.write(self.ceiling[at])} {cut} and {avoided}; {sunk}"


def ceiling_info(curve: pd.DataFrame) -> CeilingInfo:
    """Prepare the curve of ceilings of one group.

    Parameters
    ----------
    curve : DataFrame
        One row per candidate: ``ceiling`` (channel's unit), ``n``, ``runs_cut``, ``avoided_nusd``, ``avoided_share``,
        ``sunk_share``; maybe ``delivered_cut``, ``delivered_unknown_cut``, ``cut_share``, ``completed_share``, and for
        each share ``x`` its ends ``x_low`` and ``x_high``.

    Raises
    ------
    InputError
        If a needed column is missing, or a candidate comes twice (the groups of ``by=`` are drawn one by one).
    """
    missing = [name for name in NEEDED if name not in curve.columns]
    if missing:
        raise InputError("curve", expected=f"the columns {', '.join(NEEDED)}", got=f"no {', '.join(missing)}")
    if curve["ceiling"].duplicated().any():
        raise InputError("curve", expected="one row per ceiling: one group at a time", got=f"{len(curve)} rows")
    frame = curve.sort_values("ceiling")
    n = int(frame["n"].iloc[0])
    runs_cut = _numbers(frame, "runs_cut")
    cut = _band(frame, "cut_share")
    if np.isnan(cut.value).all():
        cut = cut._replace(value=runs_cut / n)
    return CeilingInfo(
        ceiling=_numbers(frame, "ceiling"), n=n, runs_cut=runs_cut, delivered_cut=_numbers(frame, "delivered_cut"),
        unknown_cut=np.nan_to_num(_numbers(frame, "delivered_unknown_cut")),
        avoided_nusd=_numbers(frame, "avoided_nusd"), cut=cut, avoided=_band(frame, "avoided_share"),
        sunk=_band(frame, "sunk_share"), completed=_band(frame, "completed_share"),
    )  # fmt: skip


def _numbers(frame: pd.DataFrame, name: str) -> Floats:
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _band(frame: pd.DataFrame, name: str) -> Band:
    return Band(*(_numbers(frame, f"{name}{end}") for end in ("", "_low", "_high")))
