"""One run of agents that wind down, beside results of agents that take no notice of their budget.

Results on common draws, and replays, assume that agents do not react. This shows what one run would look like if they
did: the same luck, the same policy, and agents that are told its limits and stop at a share of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.outcome import CHANNELS, Outcome
from harness_lab.simulate.profile import Reaction
from harness_lab.usage import optional_nusd, usd
from harness_lab.writing import dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.experiment import Experiment
    from harness_lab.simulate.workload import Workload
    from harness_lab.usage import Amounts

OBLIVIOUS = "assumes oblivious agents: they do not change what they do because of a budget"
LOOKED_AT = 25
"""Runs among which one that a limit stopped is looked for."""
AT = 0.8
_LEDGERS = {"shared_ledger": ("max_steps", "max_cost_usd"), "iteration_budget": ("max_iterations", None)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """One run twice: oblivious agents, and agents that wind down.

    Parameters
    ----------
    policy, run : str
        Under which policy, and which run.
    at : float
        The share of what they are told at which they wind down.
    oblivious, winding_down : mapping
        outcome, stopped_by, calls and cost_nusd (None: unknown) of the whole run.
    """

    policy: str
    run: str
    at: float
    oblivious: dict[str, Any]
    winding_down: dict[str, Any]

    def __str__(self) -> str:
        one, other = _said(self.oblivious), _said(self.winding_down)
        return (
            f"beside it run {self.run} under {self.policy}: {one}; with agents that wind down at {self.at:.0%}: {other}"
        )


def told_by(policy: PolicySpec) -> Amounts | None:
    """Return what agents are told of a policy: its smallest limit on the whole tree by channel; None if it has none."""
    limits: list[tuple[int | None, ...]] = []
    for module in policy.modules:
        if module.kind in _LEDGERS:
            steps, cost = _LEDGERS[module.kind]
            money = None if cost is None else optional_nusd(getattr(module, cost, None))
            limits.append((getattr(module, steps, None), None, None, None, money))
        elif module.kind in ("reservation_pool", "call_holds"):
            limits.append(tuple(module.limits())[: len(CHANNELS)])  # type: ignore[attr-defined]
    told = tuple(min((one for one in each if isinstance(one, int)), default=None) for each in zip(*limits, strict=True))
    return told if any(amount is not None for amount in told) else None


def winding_down(workload: Workload, told: Amounts | None, at: float = AT) -> Workload:
    """Return a workload whose agents wind down: the root at a share of `told`, every other at one of its own ask."""
    agents = {
        name: replace(profile, reaction=Reaction(kind="wind-down", at=at, told=told if name == workload.root else None))
        for name, profile in workload.agents.items()
    }
    changed: dict[str, Any] = {"agents": agents}
    if hasattr(workload, "reaction"):
        changed["reaction"] = Reaction(kind="wind-down", at=at, told=told)
    return replace(workload, **changed)


def aside(experiment: Experiment, *, at: float = AT) -> Aside | None:
    """Simulate one run twice: the first of twenty-five that a limit stopped, else the first.

    None where no policy has a limit that agents could be told, runs are periods, or agents react as it is.
    """
    workload = experiment.workload
    policy = next((one for one in experiment.policies if told_by(one) is not None), None)
    reacts = any(profile.reaction is not None for profile in workload.agents.values())
    if policy is None or reacts or workload.arrivals is not None or experiment.scenarios:
        return None
    first = replace(experiment, policies=(policy,), scenarios=())
    runs = range(min(experiment.runs, LOOKED_AT))
    nodes = _nodes(first, runs)
    roots = nodes[nodes["parent"].isna()]
    stopped = roots.loc[roots["outcome"].isin([Outcome.EXHAUSTED, Outcome.TIMED_OUT]), "run"]
    run = str(stopped.iloc[0]) if len(stopped) else str(roots["run"].iloc[0])
    reacting = replace(first, workload=winding_down(workload, told_by(policy), at))
    return Aside(
        policy=policy.name,
        run=run,
        at=at,
        oblivious=run_of(nodes[nodes["run"] == run]),
        winding_down=run_of(_nodes(reacting, [int(run)])),
    )


def _nodes(experiment: Experiment, runs: Sequence[int]) -> pd.DataFrame:
    result = experiment.run(only=runs, engine="kernel", backend="serial", progress=False)
    return result.settlements.nodes


def run_of(nodes: pd.DataFrame) -> dict[str, Any]:
    """Return how a run ended and what it used."""
    root = nodes[nodes["parent"].isna()].iloc[0]
    known = bool(nodes["cost_nusd"].notna().all())
    return {
        "outcome": str(root["outcome"]),
        "stopped_by": None if pd.isna(root["stopped_by"]) else str(root["stopped_by"]),
        "calls": int(nodes["calls"].sum()),
        "cost_nusd": int(nodes["cost_nusd"].sum()) if known else None,
    }


def _said(run: dict[str, Any]) -> str:
    by = f" ({run['stopped_by']})" if run["stopped_by"] else ""
    cost = "unknown cost" if run["cost_nusd"] is None else dollars(usd(run["cost_nusd"]))
    return f"{run['outcome']}{by} after {run['calls']:,} calls, {cost}"
