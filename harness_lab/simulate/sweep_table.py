"""The runs of a sweep: what is known of each, what is simulated when it is asked for, and sums over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.stats.shares import wilson
from harness_lab.stats.skewed import skewed_ends
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.cuts import Outcomes
    from harness_lab.simulate.experiment import Experiment
    from harness_lab.stats.arrays import Floats, Ints

UNITS: Final = {"cost": ("$", NUSD_PER_USD), "time": ("s", NS_PER_S)}
"""Ceiling → unit and factor; the others are counts."""
COLUMNS: Final = ["completed", "stopped", "calls", "tokens", "cost_nusd", "time_ns"]


class Run(NamedTuple):
    """One run of a sweep.

    Parameters
    ----------
    number : int
        Its number.
    outcomes : Outcomes or None
        Its outcomes; None: it is simulated under every value.
    """

    number: int
    outcomes: Outcomes | None


class Table:
    """The runs of a sweep, and how those are simulated that cannot be read off."""

    def __init__(self, experiment: Experiment, spec: PolicySpec, ceiling: str, runs: list[Run]) -> None:
        self._experiment = experiment
        self._spec = spec
        self._ceiling = ceiling
        self._known = [(run.number, run.outcomes) for run in runs if run.outcomes is not None]
        self._rest = [run.number for run in runs if run.outcomes is None]
        self._world = experiment.world()

    def manifest(self) -> dict[str, Any]:
        """Return what is needed to get it again."""
        from harness_lab.simulate.manifest import config_digest

        one = self._experiment.with_policies(self._spec)
        return {"config_sha256": config_digest(one), "seed": one.seed, "runs": one.runs, "ceiling": self._ceiling}

    def at(self, value: int) -> pd.DataFrame:
        """Return every run under a value in whole units."""
        rows = []
        for number, one in self._known:
            (place,) = self._places(number, one, np.asarray([value]))
            rows.append((number, *(getattr(one, name)[place] for name in COLUMNS)))
        frame = pd.DataFrame(rows, columns=["run", *COLUMNS])
        if self._rest:
            more = self._simulated(value)
            frame = pd.concat([frame, more]) if len(frame) else more
        return frame.sort_values("run", ignore_index=True)

    def curve(self, values: Ints, confidence: float) -> pd.DataFrame:
        """Return sums over the runs at each value, as means with intervals."""
        sums = _Sums(values.size)
        for number, one in self._known:
            sums.add(one, self._places(number, one, values))
        for i, value in enumerate(values.tolist() if self._rest else []):
            sums.add_rows(self._simulated(value), i)
        return sums.frame(values / UNITS.get(self._ceiling, ("", 1))[1], confidence)

    def _places(self, number: int, one: Outcomes, values: Ints) -> Ints:
        """Return the places of a run's outcomes under some values; those that are not known yet are simulated first."""
        from harness_lab.simulate.sweep import Asking, with_ceiling

        places = one.at(values)
        for place in np.unique(places[~one.sure[places]]).tolist():
            value = int(values[np.flatnonzero(places == place)[0]])
            spec = with_ceiling(self._spec, self._ceiling, value)  # type: ignore[arg-type]
            asking: Any = Asking(spec, self._ceiling)  # type: ignore[arg-type]
            self._world.block(asking, [number], engine="kernel", keep_calls=False, keep_decisions=False)
            one.put(place, asking.started[0].final())
        return places

    def _simulated(self, value: int) -> pd.DataFrame:
        """Simulate the runs of which no outcome is known, under one value."""
        from harness_lab.simulate.sweep import with_ceiling

        spec = with_ceiling(self._spec, self._ceiling, value)  # type: ignore[arg-type]
        nodes = self._experiment.with_policies(spec).run(only=self._rest, progress=False).settlements.nodes
        return run_outcomes(nodes, self._ceiling)


class _Sums:
    """Sums of powers of each quantity over runs, for each value."""

    def __init__(self, size: int) -> None:
        self.n = 0
        self.counts = {name: np.zeros(size, dtype=np.int64) for name in ("completed", "stopped")}
        self.unknown = {name: np.zeros(size, dtype=np.int64) for name in ("tokens", "cost_nusd")}
        self.powers = {name: np.zeros((3, size)) for name in ("calls", "tokens", "cost_nusd", "time_ns")}

    def add(self, one: Outcomes, places: Ints) -> None:
        """Add one run at all values."""
        self.n += 1
        self.counts["completed"] += one.completed[places]
        self.counts["stopped"] += one.stopped[places]
        for name, powers in self.powers.items():
            self._add(name, powers, getattr(one, name)[places], slice(None))

    def add_rows(self, rows: pd.DataFrame, value: int) -> None:
        """Add some runs at one value."""
        if value == 0:
            self.n += len(rows)
        self.counts["completed"][value] += int(rows["completed"].sum())
        self.counts["stopped"][value] += int(rows["stopped"].sum())
        for name, powers in self.powers.items():
            for amount in rows[name].to_numpy(dtype=np.float64):
                self._add(name, powers, np.asarray([amount]), slice(value, value + 1))

    def _add(self, name: str, powers: Floats, x: Floats, where: slice) -> None:
        if name in self.unknown:
            unknown = np.isnan(x)
            self.unknown[name][where] += unknown
            x = np.where(unknown, 0.0, x)
        powers[0, where] += x
        powers[1, where] += x * x
        powers[2, where] += x * x * x

    def frame(self, ceilings: Floats, confidence: float) -> pd.DataFrame:
        """Return means and intervals."""
        frame = pd.DataFrame({"ceiling": ceilings, "n": self.n, "stopped": self.counts["stopped"]})
        frame["completed"] = self.counts["completed"] / max(self.n, 1)
        low, high = wilson(self.counts["completed"], self.n, confidence=confidence)
        frame["completed_low"], frame["completed_high"] = low, high
        shown = {"calls": ("calls", 1.0), "tokens": ("tokens", 1.0), "cost_nusd": ("cost_usd", NUSD_PER_USD),
                 "time_ns": ("time_s", NS_PER_S)}  # fmt: skip
        for name, (column, factor) in shown.items():
            made_of = self._mean(name, self.unknown.get(name, 0), confidence)
            for suffix, made in zip(("", "_low", "_high"), made_of, strict=True):
                frame[column + suffix] = made / factor
        frame["unknown_tokens"], frame["unknown_cost"] = self.unknown["tokens"], self.unknown["cost_nusd"]
        return frame

    def _mean(self, name: str, missing: Any, confidence: float) -> tuple[Floats, Floats, Floats]:
        n = np.maximum(self.n - np.asarray(missing), 0).astype(np.float64)
        first, second, third = self.powers[name]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(n > 0, first / n, np.nan)
            spread = np.maximum(second / n - mean**2, 0.0)
            moment = third / n - 3 * mean * second / n + 2 * mean**3
            skew = np.where(spread > 0, moment / np.maximum(spread, 1e-300) ** 1.5, 0.0)
            error = np.where(n > 1, np.sqrt(spread / np.maximum(n - 1, 1)), np.nan)
        if self.n < 2:
            return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        below, above = skewed_ends(error, skew, units=float(self.n), df=float(self.n - 1), confidence=confidence)
        return mean, mean - below, mean + above


def run_outcomes(nodes: pd.DataFrame, ceiling: str) -> pd.DataFrame:
    """Return the runs of simulated nodes as :meth:`Sweep.at` has them."""
    codes = CODES[ceiling]
    started = nodes.assign(tokens=nodes["input_total"] + nodes["output"])
    parts = started.groupby("run", sort=False)[["calls", "tokens", "cost_nusd"]].sum(skipna=False)
    roots = nodes[nodes["parent"].isna()].drop_duplicates("run").set_index("run")
    found = pd.DataFrame(
        {
            "run": roots.index.astype("int64"),
            "completed": (roots["outcome"] == "completed").to_numpy(dtype=bool),
            "stopped": roots["stopped_by"].isin(codes).to_numpy(dtype=bool),
        }
    )
    for name in ("calls", "tokens", "cost_nusd"):
        found[name] = parts[name].reindex(roots.index).to_numpy(dtype=np.float64, na_value=np.nan)
    found["time_ns"] = roots["duration_ns"].to_numpy(dtype=np.float64)
    return found


CODES: Final = {
    "calls": ("steps-exhausted", "budget-exhausted"),
    "cost": ("cost-exhausted", "spend-unknown", "budget-exhausted"),
    "time": ("time-exhausted",),
    **dict.fromkeys(("tokens", "input", "fresh"), ("budget-exhausted", "spend-unknown")),
}
"""Codes with which each ceiling stops a run."""
