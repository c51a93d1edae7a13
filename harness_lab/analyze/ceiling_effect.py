"""What one ceiling would have done to the recorded runs: as fields, and as a sentence, each share with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.analyze.curve import MIN_CUT
from harness_lab.stats.estimates import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARES: Final = ("cut_share", "avoided_share", "sunk_share", "completed_share")
FIELDS: Final = (
    "runs_cut", "delivered_cut", "delivered_unknown_cut", "avoided_nusd", "sunk_nusd",
    *(f"{name}{end}" for name in _SHARES for end in ("", "_low", "_high")),
)  # fmt: skip
"""Of a ceiling curve, what is told of the ceiling that was chosen; shares with their interval at 95 %."""
_CAUGHT: Final = ("runaways", "runaways_caught", "caught_share", "caught_share_low", "caught_share_high")


def effect_fields(row: Mapping[Any, Any] | None) -> dict[str, float | None]:
    """Return what a row of a ceiling curve says of its ceiling; all None without one."""
    if row is None:
        return dict.fromkeys(FIELDS)
    names = FIELDS if "runaways" not in row else (*FIELDS, *_CAUGHT)
    return {name: None if pd.isna(row[name]) else row[name] for name in names}


def effect_text(row: Mapping[Any, Any]) -> str:
    """Write it: runs cut, spend avoided, spend sunk."""
    few = ""
    if row["runs_cut"] and not pd.isna(row["avoided_share"]) and pd.isna(row["avoided_share_low"]):
        few = f" (no interval of a share of the spend: fewer than {MIN_CUT} runs are cut, or too few clusters)"
    return (
        f"At it, {_share(row, 'cut_share')} of these runs would be cut ({row['runs_cut']:.0f}; delivered: "
        f"{row['delivered_cut']:.0f}, unknown: {row['delivered_unknown_cut']:.0f}), "
        f"{_share(row, 'avoided_share')} of the spend avoided, {_share(row, 'sunk_share')} sunk in the runs that are "
        f"cut{few}."
    )


def curve_text(curve: pd.DataFrame, name: Any, *, most: int = 10) -> str:
    """Write a curve as a table of about ten ceilings, evenly among those in it.

    Parameters
    ----------
    curve : DataFrame
        As :func:`harness_lab.analyze.ceilings.ceiling_curve` returns it, of one group.
    name : callable
        Writes a ceiling with its unit.
    most : int, default 10
        Rows at most.
    """
    places = sorted({round(k * (len(curve) - 1) / max(most - 1, 1)) for k in range(min(most, len(curve)))})
    head = "every ceiling, with 95 % intervals: runs cut (delivered among them); spend avoided; spend sunk; completed"
    rows = [
        f"- {name(row['ceiling'])}: {_share(row, 'cut_share')} ({row['delivered_cut']:.0f}); "
        f"{_share(row, 'avoided_share')}; {_share(row, 'sunk_share')}; {_share(row, 'completed_share')}"
        for row in curve.iloc[places].to_dict("records")
    ]
    return "\n".join([head, *rows])


def _share(row: Mapping[Any, Any], name: str) -> str:
    if pd.isna(row[name]):
        return "an unknown share"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return percent(row[name]) + ("" if pd.isna(low) or pd.isna(high) else f" [{percent(low)}, {percent(high)}]")
