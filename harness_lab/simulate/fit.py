"""From recorded settlements to a world: a workload and a provider that behave like the records.

Every quantity is fitted for itself, per agent and per model; what is not modelled is said in the report: the
correlation between quantities, the effects of user and repository, and tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey
from harness_lab.outcome import CHANNELS
from harness_lab.pricing import PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.fits import fit
from harness_lab.stats.incidence import CENSORED, cumulative_incidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from harness_lab.settlements import Settlements
    from harness_lab.usage import Amounts

MAX_SAMPLE = 4_000
"""Values used for a fit; of more, evenly spaced order statistics are taken."""
_LIMIT_STOPS = ("exhausted", "timed_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWorld:
    """A workload and a provider fitted to records, and how.

    Parameters
    ----------
    workload : Workload
        What the agents did.
    provider : MockProvider
        What answered them.
    fits : DataFrame
        One row a quantity: of, quantity, model, n, censored, mean, reason.
    """

    workload: Workload
    provider: MockProvider
    fits: pd.DataFrame

    def summary(self) -> str:
        """Return the fits, one line each."""
        lines = [
            f"  {row.of} {row.quantity}: {row.model} (n = {row.n:,}, {row.censored:,} cut short)"
            for row in self.fits.itertuples()
        ]
        return "\n".join(["fitted from the records:", *lines])

    def explain(self) -> str:
        """Return what the world leaves out."""
        return (
            "Quantities are drawn independently of one another and of user, repository and task, so the tails of "
            "totals may be thinner than in the records; compare the simulated with the recorded before use."
        )


def fit_world(
    settlements: Settlements,
    *,
    root: str | None = None,
    prices: PriceTable | None = None,
    asks: Mapping[str, Amounts] | None = None,
) -> FittedWorld:
    """Fit a workload and a provider.

    Parameters
    ----------
    settlements : Settlements
        Records with call rows.
    root : str, optional
        The agent at the root; the one of the most root nodes if None.
    prices : PriceTable, optional
        What the models cost; without it the simulated cost is unknown.
    asks : mapping of str to Amounts, optional
        What a parent declares for a child of each agent; nothing where it is missing.

    Returns
    -------
    FittedWorld
        Numbers of calls are fitted with nodes that a limit stopped as right-censored; failures are a rate of their own.

    Raises
    ------
    InputError
        If there are no call rows, or an agent has none with known usage.

    Notes
    -----
    A child is named by the call after which it was started; where the record has no such name its rule cannot be
    fitted and it is left out.
    """
    if settlements.calls is None or settlements.calls.empty:
        raise InputError("records to fit", expected="call rows beside the nodes", got="none")
    nodes = settlements.nodes[settlements.nodes["outcome"] != "denied"]
    calls = _calls_with_agent(settlements.calls, nodes)
    notes = _Notes()
    roots = nodes.loc[nodes["parent"].isna(), "agent"].dropna()
    name = root if root is not None else str(roots.mode().iloc[0])
    names = [str(agent) for agent in nodes["agent"].dropna().unique()]
    agents = {agent: _profile(agent, nodes, calls, asks or {}, notes) for agent in names}
    models = {str(model): _model(str(model), part, notes) for model, part in calls.groupby("model")}
    provider = MockProvider(models=models, prices=prices if prices is not None else PriceTable())
    return FittedWorld(workload=Workload(agents=agents, root=name), provider=provider, fits=notes.frame())


class _Notes:
    """Collects what was fitted and how."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, int, int, float, str]] = []

    def fitted(
        self, of: str, quantity: str, values: NDArray[np.float64], censored: NDArray[np.bool_] | None = None
    ) -> Distribution:
        """Fit one quantity and note it."""
        if len(values) == 0:
            raise InputError(f"{quantity} of {of}", expected="at least one call with known usage", got="none")
        x, stopped = _thinned(values, censored)
        found = fit(x, censored=stopped, resamples=0)
        chosen = found.distribution
        count = 0 if censored is None else int(censored.sum())
        self._rows.append((of, quantity, str(chosen), len(values), count, chosen.mean(), found.reason))
        return chosen

    def frame(self) -> pd.DataFrame:
        """Return the notes."""
        return pd.DataFrame(self._rows, columns=["of", "quantity", "model", "n", "censored", "mean", "reason"])


def _thinned(
    values: NDArray[np.float64], censored: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    order = np.argsort(values, kind="stable")
    step = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_SAMPLE)).astype(int))
    kept = order[step]
    if censored is None or not censored.any():
        return values[kept], None
    return values[kept], censored[kept]


def _calls_with_agent(calls: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """Return completed calls, in order, with their agent and what the call before sent and answered."""
    named = calls.merge(nodes[["run", "node", "agent"]], on=["run", "node"], how="inner")
    named = named.sort_values(["run", "node", "call", "attempt"], kind="stable").reset_index(drop=True)
    before = named.groupby(["run", "node"], sort=False)
    done = named["start_ns"] + named["duration_ns"]
    return named.assign(
        sent_before=before["input_total"].shift(),
        answered_before=before["output"].shift(),
        pause_ns=named["start_ns"] - done.groupby([named["run"], named["node"]], sort=False).shift(),
    )


def _profile(
    agent: str, nodes: pd.DataFrame, calls: pd.DataFrame, asks: Mapping[str, Amounts], notes: _Notes
) -> AgentProfile:
    mine = nodes[nodes["agent"] == agent]
    made = calls[calls["agent"] == agent]
    first = made[made["call"] == made["call"].min()]
    counted = mine[(mine["calls"] > 0) & mine["calls"].notna()]
    cut_short = counted["outcome"] != "completed"
    growth = (made["input_total"] - made["sent_before"] - made["answered_before"]).dropna()
    spawns = _spawns(mine, nodes, asks)
    pauses = _numbers(made["pause_ns"]) / NS_PER_S
    pauses = pauses[pauses >= 0]
    return AgentProfile(
        model=str(mine["model"].mode().iloc[0]),
        calls=notes.fitted(agent, "calls", _numbers(counted["calls"]), cut_short.to_numpy(dtype=bool)),
        startup_tokens=notes.fitted(agent, "startup tokens", _numbers(first["input_total"])),
        growth_tokens=notes.fitted(agent, "growth tokens", np.maximum(_numbers(growth), 0.0))
        if len(growth)
        else _zero(),
        tool_s=Distribution.constant(float(np.median(pauses))) if len(pauses) else _zero(),
        shared_tokens=int(first["cache_read"].median()) if first["cache_read"].notna().any() else 0,
        failure_rate=_failure_rate(counted),
        spawns=spawns,
        floor_key=_key(agent, mine),
    )


def _failure_rate(nodes: pd.DataFrame) -> float:
    """Return the share of nodes that would fail if no limit stopped any: cumulative incidence, not a raw share."""
    outcome = nodes["outcome"]
    cause = np.select([outcome == "completed", outcome.isin(_LIMIT_STOPS)], [1, CENSORED], default=2)
    curve = cumulative_incidence(_numbers(nodes["calls"]), cause, of=2)
    return float(curve.incidence[-1]) if len(curve.incidence) else 0.0


def _key(agent: str, mine: pd.DataFrame) -> FloorKey | None:
    backend, context = mine["backend"].dropna(), mine["context"].dropna()
    if backend.empty:
        return None
    return FloorKey(
        agent=agent,
        backend=str(backend.mode().iloc[0]),
        model=str(mine["model"].mode().iloc[0]),
        context=None if context.empty else str(context.mode().iloc[0]),
    )


def _spawns(mine: pd.DataFrame, nodes: pd.DataFrame, asks: Mapping[str, Amounts]) -> tuple[Spawn, ...]:
    """Return one rule per kind of child and call: how many were started there, over the nodes that came so far."""
    keys = pd.MultiIndex.from_frame(mine[["run", "node"]])
    children = nodes[nodes["parent"].notna() & nodes["path"].notna()]
    children = children[pd.MultiIndex.from_frame(children[["run", "parent"]]).isin(keys)]
    after = children["path"].str.split("/").str[-1].str.split(".").str[0].astype("Int64")
    rules = []
    for (agent, number), part in children.groupby(["agent", after.rename("after")]):
        call = int(str(number))
        reached = int((mine["calls"] > call).sum())
        per_parent = part.groupby(["run", "parent"]).size().to_numpy()
        counts = np.concatenate([per_parent, np.zeros(max(0, reached - len(per_parent)), dtype=int)])
        budget = asks.get(str(agent), (None,) * len(CHANNELS))
        count = Distribution.empirical(_shares(counts))
        rules.append(Spawn(agent=str(agent), count=count, after=(call,), budget=budget))
    return tuple(rules)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a short sample with the same shares, to half a percent."""
    kept = np.linspace(0, len(counts) - 1, min(len(counts), 200)).astype(int)
    return np.asarray(np.sort(counts)[kept], dtype=np.int64)


def _model(model: str, calls: pd.DataFrame, notes: _Notes) -> ModelProfile:
    done = calls[calls["status"] == "completed"]
    known = done[done["input_total"].notna() & done["output"].notna()]
    later = known[known["sent_before"].notna()]
    resent, read = float(later["sent_before"].sum()), float(later["cache_read"].sum())
    rest = float((known["input_fresh"] + known["cache_write"]).sum())
    seconds = np.asarray(_numbers(done["duration_ns"]) / NS_PER_S, dtype=np.float64)
    return ModelProfile(
        output_tokens=notes.fitted(model, "output tokens", _numbers(known["output"])),
        latency_s=notes.fitted(model, "latency, s", seconds),
        error_rate=float((calls["status"] == "failed").mean()),
        unreported_rate=float(done["input_total"].isna().mean()),
        cache_share=min(1.0, read / resent) if resent else 0.0,
        cache_write_share=min(1.0, float(known["cache_write"].sum()) / rest) if rest else 0.0,
        max_output_tokens=int(known["output"].max()),
    )


def _zero() -> Distribution:
    return Distribution.constant(0)


def _numbers(values: pd.Series[float]) -> NDArray[np.float64]:
    return np.asarray(values.dropna(), dtype=np.float64)
