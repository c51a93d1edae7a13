"""Whether a fitted world gives back what it was fitted on, tested on runs that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.policies import unlimited
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.fit import fit_world
from harness_lab.stats import holm
from harness_lab.stats.two_sample import energy_distance, ks_distance, new_records_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from harness_lab.pricing import PriceTable
    from harness_lab.settlements import Settlements
    from harness_lab.simulate.fit import Method

QUANTITIES = ("calls", "input_total", "input_fresh", "cache_read", "output", "cost_nusd", "duration_ns")
"""Totals of a run that are compared, as far as they are recorded."""
MIN_EACH = 30
MIN_KNOWN = 0.95
"""A quantity is compared if it is recorded in at least this share of the runs."""
JOINT = "all together"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FitCheck:
    """How a fitted world's runs compare with recorded runs that it has not seen.

    Parameters
    ----------
    tests : DataFrame
        One row a quantity and one for all together: quantity, n_held_out, n_simulated, clusters, distance, p_value,
        p_adjusted (Holm, over all rows), median_held_out, median_simulated.
    method : str
        How the world was fitted.
    n_train : int
        Runs it was fitted to.
    left_out : tuple of str
        Quantities that are recorded in some runs only, or are the same in all.
    level : float
        Below this adjusted p-value a quantity counts as not given back.
    """

    tests: pd.DataFrame
    method: str
    n_train: int
    left_out: tuple[str, ...] = ()
    level: float = 0.05

    @property
    def failing(self) -> list[str]:
        """Quantities that are not given back."""
        return [str(name) for name in self.tests.loc[self.tests["p_adjusted"] < self.level, "quantity"]]

    @property
    def given_back(self) -> bool:
        """Whether no quantity, alone or jointly, tells the simulated from the recorded."""
        return not self.failing

    def summary(self) -> str:
        """Return the verdict and the tests, one line each."""
        first = self.tests.iloc[0]
        verdict = "given back" if self.given_back else f"not given back: {', '.join(self.failing)}"
        lines = [
            f"{verdict} (fitted to {self.n_train:,} runs by {self.method}, held against {first['n_held_out']:,} others "
            f"in {first['clusters']:,} clusters with theirs)"
        ]
        lines += [
            f"  {row['quantity']}: distance {row['distance']:.3f}, adjusted p = {row['p_adjusted']:.2g}"
            for row in self.tests.to_dict("records")
        ]
        if self.left_out:
            lines.append(f"  not compared, recorded in some runs only or the same in all: {', '.join(self.left_out)}")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far the simulated runs are from the held-out ones, by quantity; return the axes."""
        from harness_lab.plots.bars import plot_bars
        from harness_lab.plots.quantities import Quantity

        alone = self.tests[self.tests["quantity"] != JOINT]
        frame = alone.assign(name=alone["quantity"], value=alone["distance"], marked=alone["p_adjusted"] < self.level)
        shown = Quantity(name="largest distance between the distribution functions", unit="%")
        title = "Does the fitted world give back runs that it has not seen?"
        return plot_bars(frame, ax=ax, shown=shown, marked="not given back", title=title)

    def to_frame(self) -> pd.DataFrame:
        """Return the tests."""
        return self.tests

    def explain(self) -> str:
        """Return what the tests mean and what they do not."""
        return (
            "Totals of a run are compared: each alone by the largest distance between distribution functions, and all "
            "together by the energy distance of their standardised logarithms. The distance of draws to unseen records "
            "is held against distances among the records themselves, split anew by whole clusters. A quantity that is "
            "given back may still be wrong in ways that so many runs do not show. Next: look at the tails."
        )

    def __repr__(self) -> str:
        return f"FitCheck({self.method}, {'given back' if self.given_back else 'not given back'})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def check_fit(
    settlements: Settlements,
    *,
    clusters: str | None = None,
    method: Method = "auto",
    prices: PriceTable | None = None,
    simulated: int = 1000,
    resamples: int = 199,
    seed: int = 0,
) -> FitCheck:
    """Fit half of the runs, simulate without limits, and hold the result against the other half.

    Parameters
    ----------
    settlements : Settlements
        Records.
    clusters : str, optional
        Column of the nodes by which runs resemble each other (user, repo, session ...), read at each run's root; runs
        are independent if None.
    method : {"auto", "empirical", "family"}
        See :func:`fit_world`.
    prices : PriceTable, optional
        What the models cost.
    simulated : int
        Runs to simulate.
    resamples : int
        New splits of the records for each p-value.
    seed : int
        Of the halves, the simulation and the splits.

    Raises
    ------
    InputError
        If there are fewer than 30 runs on a side, no column `clusters`, or nothing that varies between runs.
    """
    runs = _totals(settlements.nodes)
    labels = _labels(settlements.nodes, clusters, runs.index)
    if not len(runs):
        raise InputError("runs", expected=f"at least {MIN_EACH} on each side", got=[0, 0])
    first = _half(labels, seed)
    if min(first.sum(), (~first).sum()) < MIN_EACH:
        raise InputError(
            "runs", expected=f"at least {MIN_EACH} on each side", got=[int(first.sum()), int((~first).sum())]
        )
    world = fit_world(settlements.where(run=list(runs.index[first])), method=method, prices=prices)
    experiment = Experiment(
        workload=world.workload, provider=world.provider, policies=(unlimited(),), runs=simulated, seed=seed
    )
    drawn = _totals(experiment.run(backend="serial").settlements.nodes)
    known = [name for name in QUANTITIES if _varies(runs[name]) and drawn[name].notna().sum() >= MIN_EACH]
    if not known:
        known_of = f"known in {MIN_KNOWN:.0%} of the runs and not the same in all"
        raise InputError("runs", expected=f"a quantity that is {known_of}", got="none")
    tests = _tests(runs[known], drawn[known], first, labels, resamples=resamples, seed=seed)
    left_out = tuple(name for name in QUANTITIES if name not in known and runs[name].notna().any())
    return FitCheck(tests=tests, method=world.method, n_train=int(first.sum()), left_out=left_out)


def _tests(
    runs: pd.DataFrame,
    drawn: pd.DataFrame,
    first: NDArray[np.bool_],
    labels: NDArray[np.int64],
    *,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    known = list(runs.columns)
    parts = [([name], ks_distance, name) for name in known]
    if len(known) > 1:
        parts.append((known, energy_distance, JOINT))
    rows = []
    for names, distance, title in parts:
        kept = runs[names].notna().all(axis=1).to_numpy()
        there, here = _points(runs[names][kept]), _points(drawn[names].dropna(), like=runs[names][kept])
        train = first[kept]
        order = np.concatenate([labels[kept][train], labels[kept][~train]])
        found, p = new_records_p(
            there[train], there[~train], here, clusters=order, distance=distance, resamples=resamples, seed=seed
        )
        middle = [float(part[names[0]].median()) for part in (runs[~first], drawn)] if len(names) == 1 else [None] * 2
        rows.append((title, int((~train).sum()), len(here), np.unique(order).size, found, p, *middle))
    columns = ["quantity", "n_held_out", "n_simulated", "clusters", "distance", "p_value"]
    table = pd.DataFrame(rows, columns=[*columns, "median_held_out", "median_simulated"])
    return table.assign(p_adjusted=holm(table["p_value"].to_numpy()))


def _points(values: pd.DataFrame, like: pd.DataFrame | None = None) -> NDArray[np.float64]:
    """Return logarithms, standardised as those of `like`."""
    scale = values if like is None else like
    logs, base = (np.log1p(part.to_numpy(dtype=np.float64)) for part in (values, scale))
    return np.asarray((logs - base.mean(axis=0)) / np.maximum(base.std(axis=0), 1e-9))


def _totals(nodes: pd.DataFrame) -> pd.DataFrame:
    """Return the totals of each run; NA where a node's part is unknown. Its duration is the root's."""
    started = nodes[nodes["outcome"] != "denied"]
    sums = started.groupby("run", sort=False)[[name for name in QUANTITIES if name != "duration_ns"]].sum(skipna=False)
    took = started[started["parent"].isna()].groupby("run", sort=False)["duration_ns"].max()
    return sums.assign(duration_ns=took)


def _labels(nodes: pd.DataFrame, clusters: str | None, runs: pd.Index[str]) -> NDArray[np.int64]:
    if clusters is None:
        return np.arange(len(runs))
    if clusters not in nodes.columns:
        raise InputError("clusters", expected="a column of the nodes", got=clusters)
    named = nodes.drop_duplicates("run").set_index("run")[clusters].reindex(runs)
    codes = pd.factorize(named)[0]
    alone = codes < 0
    codes[alone] = codes.max(initial=0) + 1 + np.arange(alone.sum())
    return np.asarray(codes, dtype=np.int64)


def _half(labels: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Return which runs are fitted: whole clusters, about half of the runs."""
    names, sizes = np.unique(labels, return_counts=True)
    order = np.random.default_rng(seed).permutation(names.size)
    taken = np.cumsum(sizes[order]) <= (len(labels) + 1) // 2
    taken[0] = True
    return np.isin(labels, names[order[taken]])


def _varies(values: pd.Series[float]) -> bool:
    known = values.dropna()
    return len(known) >= max(2 * MIN_EACH, MIN_KNOWN * len(values)) and bool((known != known.iloc[0]).any())
