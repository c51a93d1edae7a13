"""One ceiling asked twice: of the recorded runs by replay, and of simulated ones; and why the answers differ.

References
----------
.. [1] Newcombe, R. G. (1998). Interval estimation for the difference between independent proportions. Statistics in
   Medicine 17, 873-890. https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.ceilings import COLUMNS, ceiling
from harness_lab.analyze.curve import curve_rows
from harness_lab.analyze.frames import nodes_of, numbers
from harness_lab.analyze.grouping import AUTO
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.sample import take
from harness_lab.errors import InputError
from harness_lab.policies import unlimited
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.explain import named_policy
from harness_lab.simulate.fit import fit_world
from harness_lab.simulate.sweep import sweep, with_ceiling
from harness_lab.stats.estimates import check_confidence
from harness_lab.stats.means import ratio
from harness_lab.stats.paired import paired_shares
from harness_lab.stats.shares import wilson
from harness_lab.tune.both_ways_result import PARTS, CeilingBothWays

if TYPE_CHECKING:
    import numpy.typing as npt

    from harness_lab.analyze.ceilings import CeilingChannel
    from harness_lab.policies import PolicySpec
    from harness_lab.pricing import PriceTable
    from harness_lab.settlements import Settlements
    from harness_lab.simulate.progress import Progress
    from harness_lab.stats.arrays import Floats, Ints

Record = Mapping[Any, Any]
MOST: Final = 30
"""Ceilings that are compared where none are named."""
_SCALE: Final = {"cost": 1e9, "time": 1e9}
_SIMULATED: Final = {"cost": "cost_nusd", "calls": "calls", "tokens": "tokens", "time": "time_ns"}


def ceiling_both_ways(
    settlements: Settlements, channel: CeilingChannel = "cost", *, target: float = 0.95, confidence: float = 0.95,
    experiment: Experiment | None = None, policy: str | None = None, values: npt.ArrayLike | None = None,
    prices: PriceTable | None = None, runs: int = 2000, seed: int = 0, cluster: str | None = AUTO,
    progress: Progress = None,
) -> CeilingBothWays:  # fmt: skip
    """Say what each ceiling does by replay of the records and by simulation, where the two differ, and why.

    Parameters
    ----------
    settlements : Settlements
        The records.
    channel : {"cost", "calls", "tokens", "input", "time"}
        What is limited, for the whole run.
    target, confidence : float
        Share of runs that shall complete, and the confidence of each statement.
    experiment : Experiment, optional
        The simulated world and its other limits; a world fitted to the records, without other limits, if None.
    policy : str, optional
        The experiment's policy that gets the ceiling; may be left out where there is one.
    values : array_like, optional
        Ceilings in the column's unit (nano-dollars, calls, tokens, nanoseconds). Default: up to 30 of the recorded
        amounts, and the one that replay chooses.
    prices : PriceTable, optional
        What the models cost, for the fit; without it only a world that draws whole recorded runs knows money.
    runs, seed : int
        Of the simulation where the world is fitted; an experiment has its own.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.
    progress : bool, None or callable
        As for :meth:`Experiment.run`.

    Returns
    -------
    CeilingBothWays

    Raises
    ------
    InputError
        If a choice does not exist, or the records cannot be fitted.

    Notes
    -----
    The difference at a ceiling is taken apart exactly. The simulated runs are once stopped by the limit (*enforced*),
    and once, without it, read as the records are read (*replayed*). Enforced less replayed, paired run by run, is what
    enforcement does: it asks before a call and charges after it. Replayed-simulated less replayed-recorded is what the
    simulated world has otherwise than the records. A world that was fitted to these records is held against them as
    they are, so its interval is that of the draws; another world against what the records stand for, so the intervals
    of both sides are joined [1]_. All intervals of a difference hold together (Bonferroni over the ceilings).
    """
    check_confidence(confidence)
    replayed = ceiling(settlements, channel, target=target, confidence=confidence, cluster=cluster)
    made, how = (experiment, "as given") if experiment is not None else _fitted(settlements, prices, runs, seed)
    spec = named_policy(made.policies, policy)
    at = _values(replayed.sample.amounts, replayed.ceiling, values)
    each = 1 - (1 - confidence) / at.size
    records = curve_rows(replayed.sample, replayed.column, at, confidence=confidence)
    strict = curve_rows(replayed.sample, replayed.column, at, confidence=each)
    simulated = _Simulated(made, spec, channel, at, progress)
    pairs = zip(records.to_dict("records"), strict.to_dict("records"), strict=True)
    fitted = experiment is None
    rows = [
        simulated.row(place, *pair, confidence=confidence, each=each, fitted=fitted) for place, pair in enumerate(pairs)
    ]
    frame = pd.DataFrame(rows)
    return CeilingBothWays(
        channel=channel, target=target, confidence=confidence, frame=frame, replayed=replayed,
        simulated_ceiling=_smallest(frame, target, confidence), runs=made.runs, world=how, unknown=simulated.unknown,
        fitted=fitted, stopped=int(replayed.sample.stopped.sum()),
    )  # fmt: skip


def _fitted(settlements: Settlements, prices: PriceTable | None, runs: int, seed: int) -> tuple[Experiment, str]:
    world = fit_world(settlements, prices=prices)
    words = {"empirical": "whole recorded runs drawn again", "family": "each quantity fitted for itself"}[world.method]
    coarse = "; no call rows, so calls are spread evenly" if world.coarse else ""
    made = Experiment(
        workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=runs, seed=seed, name="fitted"
    )
    return made, f"fitted to the records: {words}{coarse}"


def _values(amounts: Floats, chosen: int | None, values: npt.ArrayLike | None) -> Ints:
    if values is None:
        if not amounts.size:
            raise InputError("settlements", expected="runs of known use and ending", got="none")
        spread = np.quantile(amounts, np.linspace(0, 1, MOST), method="inverted_cdf")
        return np.unique(np.append(spread, [] if chosen is None else [chosen]).astype(np.int64))
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or given.min() < 0:
        raise InputError("values", expected="finite amounts >= 0 in the column's unit", got=values)
    return np.unique(given.astype(np.int64))


class _Simulated:
    """The simulated runs: without the ceiling, and under each value of it, on the same luck."""

    def __init__(
        self, experiment: Experiment, spec: PolicySpec, channel: CeilingChannel, at: Ints, progress: Progress
    ) -> None:
        self._at, self._channel = at, channel
        self._swept = sweep(
            experiment, channel, [at[-1] / _SCALE.get(channel, 1)], policy=spec.name, progress=progress
        )  # fmt: skip
        free = experiment.with_policies(with_ceiling(spec, channel, None)).run(progress=False)
        table = run_table(nodes_of(free.settlements)).reset_index(drop=True)
        table = table.iloc[np.argsort(table["run"].astype("int64").to_numpy(), kind="stable")]
        whole = take(table.assign(outcome="completed", cause="none"), COLUMNS[channel], cluster=None)
        self._kept, self._amount = whole.kept, whole.amounts
        if not self._kept.any():
            hint = "give prices=, or an experiment whose provider has them" if channel == "cost" else ""
            expected = f"a simulated world that tells {channel}"
            raise InputError("experiment", expected=expected, got="unknown use", hint=hint)
        self._done = (table["outcome"] == "completed").to_numpy(dtype=bool)[self._kept]
        self._spend = numbers(table, "cost_nusd")[self._kept]
        self.unknown = int((~self._kept).sum())

    def row(
        self, place: int, records: Record, strict: Record, *, confidence: float, each: float, fitted: bool
    ) -> dict[str, Any]:
        """Return everything at one ceiling."""
        at = int(self._at[place])
        under = self._swept.at(at / _SCALE.get(self._channel, 1))[self._kept]
        done, within = under["completed"].to_numpy(dtype=bool), self._done & (self._amount <= at)
        low, high = wilson(np.asarray([done.sum()]), done.size, confidence=confidence)
        found: dict[str, Any] = {
            "ceiling": at, "n_recorded": int(records["n"]), "n_simulated": done.size,
            "replayed": records["completed_share"], "replayed_low": records["completed_share_low"],
            "replayed_high": records["completed_share_high"], "simulated": float(done.mean()),
            "simulated_low": float(low[0]), "simulated_high": float(high[0]),
        }  # fmt: skip
        found |= _difference(within, done, strict, each, fitted=fitted)
        found |= self._money(under, records, at, confidence)
        return found

    def _money(self, under: pd.DataFrame, records: Record, at: int, confidence: float) -> dict[str, Any]:
        spent = under["cost_nusd"].to_numpy(dtype=np.float64)
        known = ~(np.isnan(spent) | np.isnan(self._spend))
        saved = ratio(self._spend[known] - spent[known], self._spend[known], confidence=confidence)
        found: dict[str, Any] = {}
        for name in ("avoided_share", "avoided_share_low", "avoided_share_high"):
            found[f"replayed_{name}"] = records[name]
        ends = (saved.value, saved.low, saved.high)
        found |= {f"simulated_avoided_share{end}": one for end, one in zip(("", "_low", "_high"), ends, strict=True)}
        column = _SIMULATED.get(self._channel)
        over = np.asarray([]) if column is None else under.loc[under["stopped"], column].to_numpy(dtype=np.float64) - at
        found["overshoot"] = float(np.nanmean(over)) if over.size and not np.isnan(over).all() else np.nan
        return found


def _difference(within: Any, done: Any, strict: Record, each: float, *, fitted: bool) -> dict[str, Any]:
    """Take the difference of completion apart: enforcement (paired), and the world (two samples)."""
    rule = paired_shares(within, done, confidence=each).difference
    share = float(within.mean())
    low, high = (float(end[0]) for end in wilson(np.asarray([within.sum()]), within.size, confidence=each))
    p, bottom, top = (float(strict[f"completed_share{end}"]) for end in ("", "_low", "_high"))
    world = share - p
    if fitted:  # these very records are what it shall give back
        bottom = top = p
    ends = (world - np.hypot(share - low, top - p), world + np.hypot(high - share, p - bottom))
    lot = {
        "enforcement": (float(rule.value or 0.0), *_ends(rule.low, rule.high)),
        "world": (world, *ends),
    }
    return {f"{part}{end}": one for part in PARTS for end, one in zip(("", "_low", "_high"), lot[part], strict=True)}


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return np.nan if low is None else low, np.nan if high is None else high


def _smallest(frame: pd.DataFrame, target: float, confidence: float) -> int | None:
    """Return the smallest ceiling whose one-sided lower end of simulated completion reaches the target.

    The smallest of many keeps the confidence: completion grows with the ceiling, so all below the true one have to fail
    together.
    """
    n, done = (frame[name].to_numpy(dtype=np.float64) for name in ("n_simulated", "simulated"))
    low, _ = wilson(np.round(done * n), n, confidence=max(2 * confidence - 1, 0.01))
    enough = np.flatnonzero(low >= target)
    return int(frame["ceiling"].iloc[enough[0]]) if enough.size else None
