"""What replay and simulation say of the same ceilings, and which of them to trust where."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from harness_lab.analyze.frames import amount
from harness_lab.stats.estimates import percent
from harness_lab.stats.notes import notes_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from harness_lab.analyze.ceilings import CeilingChannel, CeilingChoice
    from harness_lab.stats.arrays import Bools

PARTS: Final = ("enforcement", "world")
"""What the difference of the two answers is made of."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CeilingBothWays:
    """Ceilings by replay beside ceilings by simulation.

    Parameters
    ----------
    channel : str
        What is limited.
    target, confidence : float
        Share of runs that shall complete; confidence of each interval, and of all differences together.
    frame : DataFrame
        One row a ceiling; see :meth:`to_frame`.
    replayed : CeilingChoice
        The choice by replay.
    simulated_ceiling : int or None
        The smallest of the compared ceilings whose simulated completion is surely at the target, in the column's unit;
        None: none of them is. Its confidence is that of the draws, not of the records.
    runs : int
        Simulated runs.
    world : str
        What was simulated.
    fitted : bool
        Whether the world was fitted to these records.
    stopped : int
        Recorded runs that a limit had stopped.
    unknown : int
        Simulated runs left out because their use is unknown: calls without a recorded cost were drawn again.
    """

    channel: CeilingChannel
    target: float
    confidence: float
    frame: pd.DataFrame
    replayed: CeilingChoice
    simulated_ceiling: int | None
    runs: int
    world: str
    fitted: bool
    stopped: int
    unknown: int = 0

    def differs(self, part: str) -> Bools:
        """Return at which ceilings a part of the difference (``enforcement``, ``world``) is surely not zero."""
        low, high = (self.frame[f"{part}_{end}"].to_numpy(dtype=np.float64) for end in ("low", "high"))
        return np.asarray((low > 0) | (high < 0))

    @property
    def silent(self) -> Bools:
        """Ceilings of which the records say nothing: beyond where a limit had stopped them."""
        return np.asarray(self.frame["replayed"].isna())

    def to_frame(self) -> pd.DataFrame:
        """Return one row a ceiling.

        Returns
        -------
        DataFrame
            ``ceiling`` (column's unit), ``n_recorded, n_simulated``; ``replayed`` and ``simulated`` (share of all runs
            that complete under it); ``enforcement`` and ``world`` (the parts of simulated less replayed);
            ``replayed_avoided_share, simulated_avoided_share`` (of the spend), each of these with ``_low`` and
            ``_high``; ``overshoot`` (mean amount by which stopped simulated runs are beyond the ceiling).
        """
        return self.frame.copy()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw completion under each ceiling, both ways; see :func:`harness_lab.plots.plot_both_ways`."""
        from harness_lab.plots import plot_both_ways

        differs = self.differs("enforcement") | self.differs("world")
        return plot_both_ways(self.frame.assign(differs=differs), ax=ax, channel=self.channel, target=self.target)

    def summary(self) -> str:
        """Return both choices, where the answers differ, by what, and which to trust."""
        mine = "none of those compared" if self.simulated_ceiling is None else self._amount(self.simulated_ceiling)
        lines = [
            f"By replay of {self.replayed.sample.n:,} recorded runs: {self.replayed._line()}",
            f"By simulation of {self.runs:,} runs ({self.world}): {self.channel} ceiling for "
            f"{percent(self.target)} of runs: {mine} (confidence {percent(self.confidence)} of the draws alone)"
            + (f"; {self.unknown:,} run(s) of unknown use left out" if self.unknown else ""),
            *(self._part(part) for part in PARTS),
            *self.trust(),
        ]
        return notes_below("\n".join(lines))

    def trust(self) -> tuple[str, ...]:
        """Say which answer to trust where, and why."""
        found = []
        if self.silent.any():
            first = self._amount(float(self.frame.loc[self.silent, "ceiling"].iloc[0]))
            found.append(
                f"From {first} on only the simulation speaks: a limit had stopped the longest recorded runs. It goes "
                "on by assumption; record runs under a higher limit before you rely on it."
            )
        if self.differs("world").any():
            found.append(
                "Trust the replay for what runs need: the simulated world does not give back these records"
                + self._why_the_world()
            )
        if self.differs("enforcement").any():
            found.append(
                "Trust the simulation for what the limit does: it is asked before a call and charged after it, so runs "
                f"complete in their last call{self._overshoot()}; replay cuts in the middle of a call."
            )
        if self.frame["world_low"].isna().all():
            found.append(
                "Whether the simulated world gives back what the records stand for cannot be told: too few clusters."
            )
        if not found:
            found.append("The two cannot be told apart wherever both speak: either may be used.")
        size = self.replayed.sample.size
        found.append(
            f"Quote the interval of the replay ({size}): simulated runs are as many as you like and independent, so "
            "their interval says nothing of how few records there are."
        )
        return tuple(found)

    def explain(self) -> str:
        """Return what the two ways assume and what to do next."""
        return (
            "Replay cuts recorded runs at the ceiling; it needs no model, knows no more than was recorded, and takes a "
            "run's use as if it could be cut anywhere. Simulation lets the real limit decide at every call; it shows "
            "overshoot, refusals and what other limits do, and rests on its world. The difference at a ceiling is what "
            "enforcement does (the same simulated runs, with the limit and read without it) plus what the world has "
            "otherwise than the records. Both take it that agents do not react to a limit. Differences hold together "
            f"at {percent(self.confidence)}.\n"
            "Next: put the replayed ceiling into a config (TunedConfig.from_ceiling), simulate it beside a looser one "
            "(compare), and hold both against later records (check_config)."
        )

    def _part(self, part: str) -> str:
        words = {"enforcement": "because the limit is asked between calls", "world": "because the world is another"}
        value, sure = self.frame[part].to_numpy(dtype=np.float64), self.differs(part)
        known = ~np.isnan(value)
        if not known.any():
            return f"- {words[part]}: cannot be told"
        most = int(np.nanargmax(np.where(known, np.abs(value), np.nan)))
        low, high = (100 * float(self.frame[f"{part}_{end}"].iloc[most]) for end in ("low", "high"))
        ends = "no interval" if np.isnan(low) else f"[{low:+.1f}, {high:+.1f}]"
        at = self._amount(float(self.frame["ceiling"].iloc[most]))
        where = f"surely at {int(sure.sum())} of {int(known.sum())} ceilings" if sure.any() else "nowhere surely"
        return f"- {words[part]}: {where}; at most {100 * value[most]:+.1f} points {ends} of completion, at {at}"

    def _why_the_world(self) -> str:
        if not self.fitted:
            return ": another world was simulated."
        left = "; the runs of unknown use that are left out are the longer ones" if self.unknown else ""
        return f" (check_fit says in which quantity{left})."

    def _overshoot(self) -> str:
        known = self.frame.loc[self.frame["overshoot"].notna(), "overshoot"]
        return f" and those stopped are over by {self._amount(float(known.mean()))} in the mean" if len(known) else ""

    def _amount(self, value: float) -> str:
        return amount(self.replayed.column, value)

    def __repr__(self) -> str:
        return f"CeilingBothWays({self.channel}, {len(self.frame)} ceilings, {self.runs:,} simulated runs)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"
