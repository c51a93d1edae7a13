"""What a sweep of one ceiling found: a curve, the runs under any value, and how it was got."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.stats.shares import wilson
from harness_lab.stats.skewed import skewed_ends
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.cuts import Outcomes
    from harness_lab.simulate.experiment import Experiment
    from harness_lab.stats.arrays import Floats, Ints

UNITS: Final = {"cost": ("$", NUSD_PER_USD), "time": ("s", NS_PER_S)}
_FACTORS: Final = {"calls": 1.0, "tokens": 1.0, "cost": 1 / NUSD_PER_USD, "time": 1 / NS_PER_S}
_COLUMNS: Final = ["completed", "stopped", "calls", "tokens", "cost_nusd", "time_ns"]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sweep:
    """What every value of one ceiling does.

    Parameters
    ----------
    ceiling : str
        Which: calls, tokens, input, fresh, cost, time.
    policy : str
        The policy whose ceiling it is.
    frame : DataFrame
        One row a value; see :meth:`to_frame`.
    runs : int
        Runs.
    exact : int
        Runs whose outcomes were read off one simulation without the ceiling; the others were simulated under each value
        (once for all values between two questions). Both are exact.
    reasons : tuple of str
        Why no run could be read off; empty where only runs that other limits touched were simulated again.
    confidence : float
        Of the intervals.
    manifest : mapping
        Configuration's digest, seed, versions.
    """

    ceiling: str
    policy: str
    frame: pd.DataFrame
    runs: int
    exact: int
    reasons: tuple[str, ...]
    confidence: float
    manifest: Mapping[str, Any]
    _table: _Table = field()

    @classmethod
    def of(
        cls, *, experiment: Experiment, spec: PolicySpec, ceiling: str, runs: list[Run], reasons: tuple[str, ...],
        confidence: float, values: Ints,
    ) -> Sweep:  # fmt: skip
        """Make the curve over `values` (whole units)."""
        exact = sum(run.outcomes is not None and bool(run.outcomes.sure[-1]) for run in runs)
        table = _Table(experiment, spec, ceiling, runs)
        return cls(
            ceiling=ceiling, policy=spec.name, frame=table.curve(values, confidence), runs=len(runs), exact=exact,
            reasons=reasons, confidence=confidence, manifest=table.manifest(), _table=table,
        )  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return the curve.

        Returns
        -------
        DataFrame
            ``ceiling`` (calls, tokens, dollars or seconds), ``n``, ``stopped`` (runs that this ceiling stopped),
            ``completed`` (share), and the means of a run ``calls, tokens, cost_usd, time_s``, each with ``_low`` and
            ``_high``; ``unknown_tokens, unknown_cost`` (runs that are in no such mean).
        """
        return self.frame.copy()

    def at(self, value: float) -> pd.DataFrame:
        """Return every run under one value, exactly as it would be simulated under it.

        Parameters
        ----------
        value : float
            Calls, tokens, dollars or seconds; any value, not only those of the curve.

        Returns
        -------
        DataFrame
            ``run, completed, stopped`` (by this ceiling), ``calls, tokens, cost_nusd, time_ns`` (NaN: unknown).
        """
        from harness_lab.simulate.sweep import _units

        return self._table.at(int(_units(self.ceiling, [value])[0]))  # type: ignore[arg-type]

    def summary(self) -> str:
        """Return the curve in a few lines, and how it was got."""
        unit = UNITS.get(self.ceiling, (self.ceiling, 1))[0]
        lines = [
            f"{len(self.frame):,} ceilings on {self.ceiling} of {self.policy}, {self.runs:,} runs each; {self._how()}. "
            "Assumes oblivious agents."
        ]
        places = np.unique(np.linspace(0, len(self.frame) - 1, min(9, len(self.frame))).astype(int))
        lines += [self._line(row, unit) for row in self.frame.iloc[places].to_dict("records")]
        return "\n".join(lines)

    def _line(self, row: Mapping[Any, Any], unit: str) -> str:
        value = f"${row['ceiling']:,.4g}" if unit == "$" else f"{row['ceiling']:,.6g} {unit}"
        cost = "unknown cost" if pd.isna(row["cost_usd"]) else f"${row['cost_usd']:,.4f} a run"
        return (
            f"  {value}: {row['completed']:.1%} [{row['completed_low']:.1%}, {row['completed_high']:.1%}] completed, "
            f"{row['stopped']:,} stopped by it, {cost}, {row['time_s']:,.1f} s"
        )

    def _how(self) -> str:
        if self.reasons:
            return f"every value was simulated: {'; '.join(self.reasons)}"
        if self.exact == self.runs:
            return "all read off one simulation without it, exactly"
        rest = self.runs - self.exact
        return (
            f"{self.exact:,} runs read off one simulation without it, {rest:,} that other limits touch simulated again"
        )

    def explain(self) -> str:
        """Return what the curve means, and the next step."""
        return (
            "Each row is what the runs would have been under that ceiling, on the same luck, so the rows are not "
            "independent of one another: do not read a difference between two rows off their intervals; simulate the "
            "two values and compare them. A ceiling that is tree-wide, checked before a question and charged after a "
            "call, leaves a run as it is up to the first question that it refuses, so all values follow from one run. "
            "Holds, ceilings of single nodes, queues and concurrency change what comes after: here, "
            f"{self._how()}. Assumes oblivious agents.\n"
            "Next: at(value) has every run under any value; confirm the chosen one on another seed."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the share of runs that complete, with its interval, for each ceiling; return the axes."""
        from harness_lab.plots.style import new_axes, tidy

        ax = new_axes(ax, width=7.0, height=4.0)
        (line,) = ax.step(self.frame["ceiling"], self.frame["completed"], where="post")
        ends = (self.frame["completed_low"], self.frame["completed_high"])
        ax.fill_between(self.frame["ceiling"], *ends, step="post", alpha=0.2, color=line.get_color())
        unit = UNITS.get(self.ceiling, (self.ceiling, 1))[0]
        ax.set(xlabel=f"ceiling on {self.ceiling}, {unit}", ylabel="share of runs that complete", ylim=(0, 1))
        tidy(ax, grid="y")
        return ax

    def __repr__(self) -> str:
        return f"Sweep({self.ceiling} of {self.policy}, {len(self.frame)} values, {self.runs:,} runs)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


class _Table:
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
            rows.append((number, *(getattr(one, name)[place] for name in _COLUMNS)))
        frame = pd.DataFrame(rows, columns=["run", *_COLUMNS])
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
