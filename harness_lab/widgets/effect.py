"""What settings do: completion, spend and time of the runs, and the differences to a baseline, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab.outcome import Outcome
from harness_lab.plots.quantities import percent, write
from harness_lab.stats.means import AMOUNT, mean
from harness_lab.stats.paired import paired_difference, paired_shares
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from harness_lab.stats.estimates import Estimate

Floats = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Figures of the runs under some settings.

    Parameters
    ----------
    completed, spend, time : Estimate
        Share of the runs; dollars and seconds of a run.
    differences : dict of str to Estimate
        The same less the baseline, over the runs that both have; empty without a baseline.
    pairs : int
        Runs that both have.
    """

    completed: Estimate
    spend: Estimate
    time: Estimate
    differences: dict[str, Estimate]
    pairs: int


def effect(now: pd.DataFrame, pinned: pd.DataFrame | None) -> Effect:
    """Return the figures of two tables of runs on the same luck, in the same order.

    Parameters
    ----------
    now, pinned : DataFrame
        One row per run, as :func:`harness_lab.analyze.run_table` gives them.
    """
    pairs = 0 if pinned is None else min(len(now), len(pinned))
    differences = {}
    if pinned is not None and pairs:
        for name, unit, of in _FIGURES:
            both = np.stack([of(pinned.iloc[:pairs]), of(now.iloc[:pairs])])
            before, after = both[:, np.isfinite(both).all(axis=0)]
            shares = name == "completed"
            pair = paired_shares(before, after) if shares else paired_difference(before, after, unit=unit)
            differences[name] = pair.difference
    known = {name: of(now)[np.isfinite(of(now))] for name, _, of in _FIGURES}
    return Effect(
        completed=share(known["completed"].astype(bool)), spend=mean(known["spend"], unit="$", within=AMOUNT),
        time=mean(known["time"], unit="s", within=AMOUNT), differences=differences, pairs=pairs,
    )  # fmt: skip


def in_words(found: Effect) -> str:
    """Return the figures as HTML."""
    rows = (("runs completed", "completed", "%"), ("spend of a run", "spend", "$"), ("time of a run", "time", "s"))
    lines = []
    for words, name, unit in rows:
        now = _interval(getattr(found, name), unit)
        change = found.differences.get(name)
        lines.append(f"<tr><th scope='row'>{escape(words)}</th><td>{now}</td><td>{_change(change, unit)}</td></tr>")
    head = (
        f"change against the pinned baseline ({found.pairs:,} pairs)"
        if found.pairs
        else "these settings are the baseline"
    )
    return (
        "<table class='hl-figures'><thead><tr><th></th><th scope='col'>now, with 95 % interval</th>"
        f"<th scope='col'>{escape(head)}</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _interval(found: Estimate, unit: str) -> str:
    if found.value is None:
        return "unknown"
    ends = "" if found.low is None or found.high is None else f" [{_w(found.low, unit)}, {_w(found.high, unit)}]"
    return escape(f"{_w(found.value, unit)}{ends}, n = {found.n:,}")


def _change(found: Estimate | None, unit: str) -> str:
    if found is None or found.value is None:
        return "unknown" if found is not None else "-"
    if found.low is None or found.high is None:
        return escape(f"{_signed(found.value, unit)}, no interval: {found.interval}")
    return escape(f"{_signed(found.value, unit)} [{_signed(found.low, unit)}, {_signed(found.high, unit)}]")


def _w(value: float, unit: str) -> str:
    return percent(value) if unit == "%" else write(value, unit)


def _signed(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:+.1f} points"
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{write(abs(value), unit)}"


def _completed(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    known = runs["outcome"] != Outcome.UNKNOWN
    return np.where(known, runs["outcome"] == Outcome.COMPLETED, np.nan).astype(np.float64)


def _spend(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    return runs["cost_nusd"].to_numpy(dtype=np.float64, na_value=np.nan) / 1e9


def _time(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    return runs["duration_ns"].to_numpy(dtype=np.float64, na_value=np.nan) / 1e9


_FIGURES: Any = (("completed", "", _completed), ("spend", "$", _spend), ("time", "s", _time))
