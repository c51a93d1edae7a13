"""From recorded settlements to a world: a workload and a provider that behave like the records.

Either whole recorded runs are drawn and played (what was long together stays long together), or every quantity is
fitted for itself, per agent and per path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey
from harness_lab.outcome import CHANNELS
from harness_lab.providers.fitted import FitNotes, Provider, fit_lines, with_paths
from harness_lab.providers.fitted import Method as FitMethod
from harness_lab.simulate.config_errors import did_you_mean
from harness_lab.simulate.recorded_workload import CUT_SHORT, RecordedWorkload
from harness_lab.simulate.recording import even_calls, recorded_runs
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.incidence import CENSORED, cumulative_incidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from harness_lab.pricing import PriceTable
    from harness_lab.settlements import Settlements
    from harness_lab.usage import Amounts

Method = Literal["auto", "empirical", "family"]
METHODS: tuple[Method, ...] = ("auto", "empirical", "family")
MIN_RUNS = 30
"""With fewer runs that no limit cut short, ``auto`` does not draw whole runs."""
MAX_BEYOND = 0.05
"""Share of runs cut short where none went on longer, above which ``auto`` does not draw whole runs."""
_NEXT = "\nNext: check_fit(...) holds a fit to half of the runs against the others."
_LIMIT_STOPS = ("exhausted", "timed_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWorld:
    """A workload and a provider fitted to records, and how.

    Parameters
    ----------
    workload : Workload
        What the agents did.
    provider : Provider
        What answered them.
    fits : DataFrame
        One row a quantity: of, quantity, model, n, censored, mean, reason, fell_back.
    method : {"empirical", "family"}
        How it was fitted.
    coarse : bool
        There were no call rows: what a node used is spread over its calls.
    """

    workload: Workload
    provider: Provider
    fits: pd.DataFrame
    method: FitMethod = "family"
    coarse: bool = False

    def summary(self) -> str:
        """Return the fits, one line each."""
        return "\n".join(["fitted from the records:", *fit_lines(self.fits)])

    def to_frame(self) -> pd.DataFrame:
        """Return the fits."""
        return self.fits.copy()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def explain(self) -> str:
        """Return what the world leaves out, and the next step."""
        spread = (
            " There were no call rows: what a node used is spread over its calls, so where within a node a limit falls "
            "is approximate."
            if self.coarse
            else ""
        )
        if self.method == "empirical":
            return (
                "Whole recorded runs are drawn, so their quantities hang together as recorded; nothing beyond the "
                "recorded extremes is ever drawn, and runs are drawn independently of user, repository and task."
                + spread
                + _NEXT
            )
        return (
            "Quantities are drawn independently of one another and of user, repository and task, so the tails of "
            "totals may be thinner than in the records; compare the simulated with the recorded before use."
            + spread
            + _NEXT
        )


def fit_world(
    settlements: Settlements,
    *,
    root: str | None = None,
    prices: PriceTable | None = None,
    asks: Mapping[str, Amounts] | None = None,
    method: Method = "auto",
) -> FittedWorld:
    """Fit a workload and a provider.

    Parameters
    ----------
    settlements : Settlements
        Records; with call rows the fit knows each call, without them what a node used is spread over its calls.
    root : str, optional
        The agent at the root; the one of the most root nodes if None.
    prices : PriceTable, optional
        What the models cost; a model without a price costs what was recorded where whole runs are drawn, else its cost
        is unknown.
    asks : mapping of str to Amounts, optional
        What a parent declares for a child of each agent; where it is missing, what was recorded if whole runs are
        drawn, else nothing.
    method : {"auto", "empirical", "family"}
        ``empirical``: whole recorded runs are drawn. ``family``: each quantity from the family of the best held-out
        likelihood, or its recorded values where no family can be chosen. ``auto``: ``empirical`` from 30 runs on that
        no limit had cut short.

    Returns
    -------
    FittedWorld
        Runs that a limit stopped count as lower bounds, by either method.

    Raises
    ------
    InputError
        If an agent has no call with known usage, an ask is for an agent that the records do not have, no run is of
        `root`, or the method does not exist.

    Notes
    -----
    By ``family`` a child is named by the call after which it was started; where the record has no such name its rule
    cannot be fitted and it is left out.
    """
    if method not in METHODS:
        raise InputError("method", expected=f"one of {', '.join(METHODS)}", got=method)
    asks = asks or {}
    nodes = settlements.nodes[settlements.nodes["outcome"] != "denied"]
    if nodes.empty:
        raise InputError("records to fit", expected="nodes that started", got="none")
    nodes = nodes.assign(agent=nodes["agent"].fillna("agent"))
    _check_asks(asks, nodes)
    coarse = settlements.calls is None or settlements.calls.empty
    calls = with_paths(even_calls(nodes) if coarse else settlements.calls, nodes)  # type: ignore[arg-type]
    name = _root(nodes, root)
    chosen = _which(nodes[nodes["parent"].isna() & (nodes["agent"] == name)]) if method == "auto" else method
    notes = FitNotes(chosen)
    names = [str(agent) for agent in nodes["agent"].unique()]
    agents = {agent: _profile(agent, nodes, calls, notes) for agent in names}
    if chosen == "family":
        agents = {agent: replace(one, spawns=_spawns(agent, nodes, asks)) for agent, one in agents.items()}
    provider = Provider.of_calls(calls, method=chosen, prices=prices)
    fits = pd.concat([notes.frame(), provider.fits], ignore_index=True)
    workload = Workload(agents=agents, root=name)
    if chosen == "empirical":
        workload, fits = _whole_runs(settlements, workload, asks, fits)
    return FittedWorld(workload=workload, provider=provider, fits=fits, method=chosen, coarse=coarse)


def _which(roots: pd.DataFrame) -> FitMethod:
    """Return whether whole runs can be drawn: enough are whole, and few were cut short where none went on longer."""
    whole = ~roots["outcome"].isin(CUT_SHORT)
    longest = roots.loc[whole, "calls"].max()
    beyond = (~whole & ~(roots["calls"] < longest).fillna(value=False)).mean()
    return "empirical" if whole.sum() >= MIN_RUNS and beyond <= MAX_BEYOND else "family"


def _whole_runs(
    settlements: Settlements, plain: Workload, asks: Mapping[str, Amounts], fits: pd.DataFrame
) -> tuple[Workload, pd.DataFrame]:
    """Return the workload that draws whole runs, and the notes with what that means."""
    runs = tuple(run for run in recorded_runs(settlements).values() if run.agent == plain.root)
    if not runs:
        raise InputError("records to fit", expected=f"a run of {plain.root}", got="none")
    cut = [len(run.steps) for run in runs if run.end.outcome in CUT_SHORT]
    longest = max((len(run.steps) for run in runs if run.end.outcome not in CUT_SHORT), default=0)
    beyond = sum(steps >= longest for steps in cut)
    why = f"{beyond:,} were cut short where no recorded one went on longer: they end there" if beyond else ""
    workload = RecordedWorkload(agents=plain.agents, root=plain.root, runs=runs, asks=asks)
    steps = Distribution.empirical([len(run.steps) for run in runs])
    notes = FitNotes()
    told = why or "recorded runs, each as likely"
    notes.note(plain.root, "calls of whole runs", steps, len(runs), told, len(cut), fell_back=bool(why))
    return workload, pd.concat([notes.frame(), fits], ignore_index=True)


def _root(nodes: pd.DataFrame, wanted: str | None) -> str:
    roots = nodes.loc[nodes["parent"].isna(), "agent"]
    if wanted is None:
        return str(roots.mode().iloc[0])
    if wanted not in set(roots):
        raise InputError("root", expected=f"an agent at the root of a run: {sorted(set(roots))}", got=wanted)
    return wanted


def _check_asks(asks: Mapping[str, Amounts], nodes: pd.DataFrame) -> None:
    known = sorted({str(agent) for agent in nodes.loc[nodes["parent"].notna(), "agent"]})
    unknown = sorted(set(asks) - set(known))
    if unknown:
        near = did_you_mean(unknown[0], known)
        raise InputError("asks", expected=f"agents that are children in the records: {known}", got=unknown, hint=near)


def _profile(agent: str, nodes: pd.DataFrame, calls: pd.DataFrame, notes: FitNotes) -> AgentProfile:
    mine = nodes[nodes["agent"] == agent]
    made = calls[calls["agent"] == agent]
    first = made[made["call"] == made["call"].min()]
    counted = mine[(mine["calls"] > 0) & mine["calls"].notna()]
    cut_short = counted["outcome"] != "completed"
    growth = (made["input_total"] - made["sent_before"] - made["answered_before"]).dropna()
    pauses = _numbers(made["pause_ns"]) / NS_PER_S
    pauses = pauses[pauses >= 0]
    return AgentProfile(
        model=str(made["path_model"].mode().iloc[0]) if len(made) else "unknown",
        calls=notes.fitted(agent, "calls", _numbers(counted["calls"]), cut_short.to_numpy(dtype=bool)),
        startup_tokens=notes.fitted(agent, "startup tokens", _numbers(first["input_total"])),
        growth_tokens=notes.fitted(agent, "growth tokens", np.maximum(_numbers(growth), 0.0))
        if len(growth)
        else _zero(),
        tool_s=notes.fitted(agent, "tool time, s", pauses) if len(pauses) else _zero(),
        shared_tokens=int(first["cache_read"].median()) if first["cache_read"].notna().any() else 0,
        failure_rate=_failure_rate(counted),
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


def _spawns(parent: str, nodes: pd.DataFrame, asks: Mapping[str, Amounts]) -> tuple[Spawn, ...]:
    """Return one rule per kind of child and call: how many were started there, over the nodes that came so far."""
    mine = nodes[nodes["agent"] == parent]
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


def _zero() -> Distribution:
    return Distribution.constant(0)


def _numbers(values: pd.Series[float]) -> NDArray[np.float64]:
    return np.asarray(values.dropna(), dtype=np.float64)
