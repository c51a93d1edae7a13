"""Public cases of trees as simulated worlds: the rows of the settlement table answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import Harness
from harness_lab.agents.ports import Call, Child, Children, Reply
from harness_lab.clock import NS_PER_S
from harness_lab.outcome import TOKENS
from harness_lab.policies import COMPLETED, PolicySpec, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Spawn, Workload
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.agents.record import NodeRecord
    from harness_lab.conformance.shapes import Answer, Case

ONE: Final = Distribution.constant(1)


def explosion(case: Case) -> Answer:
    """Let every agent start several of its own kind, under limits and without."""
    given = case["given"]
    many = Spawn(agent="root", count=given["spawns"], after=(0,))
    agent = {"root": _agent(1, many)}
    limited = tree_limits(given["max_depth"], given["max_concurrent"], given["max_calls"])
    nodes = _rows(limited, agent)
    ran, denied = nodes[(nodes["outcome"] == "completed") & (nodes["depth"] > 0)], nodes[nodes["outcome"] == "denied"]
    edges = [(start, 1) for start in ran["start_ns"]] + [(end, -1) for end in ran["start_ns"] + ran["duration_ns"]]
    now = peak = 0
    for _, change in sorted(edges):
        now += change
        peak = max(peak, now)
    free = _rows(tree_limits(given["free_depth"]), agent)
    return {
        "within_starts": 0 < len(ran) <= given["max_calls"],
        "within_depth": int(ran["depth"].max()) <= given["max_depth"],
        "within_concurrent": peak <= given["max_concurrent"],
        "every_refusal_has_a_reason": len(denied) > 0 and bool(denied["stopped_by"].notna().all()),
        "children_without_limits": int((free["outcome"] == "completed").sum()) - 1,
    }


def calls(case: Case) -> Answer:
    """Run one agent under a limit on calls."""
    rows = [
        _rows(shared_ledger(limit), {"root": _agent(case["given"]["needs"])}).iloc[0]
        for limit in case["given"]["limits"]
    ]
    return {
        "calls": [int(row["calls"]) for row in rows],
        "outcomes": [str(row["outcome"]) for row in rows],
        "stopped_by": [_or_none(row["stopped_by"]) for row in rows],
    }


def family(case: Case) -> Answer:
    """Run two children with the same ask, one of which needs more."""
    given = case["given"]
    ask = amounts(calls=given["limit"])
    names = [f"kid{i}" for i in range(len(given["needs"]))]
    spawns = [Spawn(agent=name, after=(0,), budget=ask) for name in names]
    agents = {"root": _agent(1, *spawns)} | {name: _agent(n) for name, n in zip(names, given["needs"], strict=True)}
    nodes = _rows(reservation_pool(calls=1000), agents).set_index("agent").loc[names]
    return {
        "outcomes": [str(outcome) for outcome in nodes["outcome"]],
        "calls": [int(n) for n in nodes["calls"]],
        "stopped_by": [_or_none(code) for code in nodes["stopped_by"]],
        "failed": int((nodes["outcome"] == "failed").sum()),
    }


def late(case: Case) -> Answer:
    """Run a child whose one call takes longer than it may live."""
    given = case["given"]
    limits = tree_limits(timeout_s=given["limit_s"], on_timeout=given["on_timeout"])
    agents = {"root": _agent(1, Spawn(agent="slow", after=(0,))), "slow": _agent(5)}
    rows = _rows(limits, agents, latency=given["call_s"]).to_dict("records")
    slow, root = ({row["agent"]: row for row in rows}[name] for name in ("slow", "root"))
    ends = int(slow["duration_ns"]) // NS_PER_S
    return {
        "outcome": str(slow["outcome"]),
        "ends_s": ends,
        "parent_goes_on_s": int(root["duration_ns"]) // NS_PER_S - given["call_s"],
        "calls": int(slow["calls"]),
        "overshoot_s": max(0, ends - given["limit_s"]),
    }


class _Tokens:
    """A model whose calls use what their name says, and report it or not."""

    def __init__(self, reported: list[bool]) -> None:
        self.reported = reported

    def bound(self, _call: Call) -> Any:
        return amounts(calls=1)

    def abandoned(self, _call: Call, _elapsed_ns: int) -> None:
        return None

    async def complete(self, _runtime: Any, call: Call) -> Reply:
        return Reply("completed", int(call.model), 0, 0, 0, None, None, reported=self.reported[call.key])


class _Records:
    def __init__(self) -> None:
        self.nodes: list[NodeRecord] = []

    def node(self, record: NodeRecord) -> None:
        self.nodes.append(record)

    def call(self, *_: Any) -> None:
        return


def totals(case: Case) -> Answer:
    """Run a chain of agents and read what each used, and what it and all below it did."""
    chain, reported = case["given"]["chain"], case["given"]["reported"]

    def brain(level: int) -> Any:
        yield Call(str(chain[level]), level, 0, 0, 0)
        if level + 1 < len(chain):
            yield Children([Child(agent="kid", budget=amounts(), call=0, slot=0, brain=lambda: brain(level + 1))])
        return COMPLETED

    runtime, sink = SimRuntime(), _Records()
    harness = Harness(runtime, unlimited().start(), _Tokens(reported), sink)
    runtime.kernel.spawn(harness.run("root", amounts(), lambda: brain(0)))
    runtime.kernel.run()
    nodes = sorted(sink.nodes, key=lambda record: record.depth)
    subtree = [record.subtree[TOKENS] for record in nodes]
    return {
        "own": [mine - below for mine, below in zip(subtree, [*subtree[1:], 0], strict=True)],
        "subtree": subtree,
        "known": [record.usage_known for record in nodes],
    }


def _agent(n: int, *spawns: Spawn) -> AgentProfile:
    return AgentProfile(model="m", calls=Distribution.constant(n), startup_tokens=ONE, spawns=spawns)


def _rows(policy: PolicySpec, agents: dict[str, AgentProfile], *, latency: float = 1.0) -> pd.DataFrame:
    model = ModelProfile(output_tokens=ONE, latency_s=Distribution.constant(latency))
    workload = Workload(agents=agents, root="root")
    world = Experiment(workload=workload, provider=MockProvider(models={"m": model}), policies=(policy,), runs=1)
    return world.run(backend="serial").settlements.nodes


def _or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


OPERATIONS: Final = {
    "explosion": explosion,
    "calls under a limit": calls,
    "children under a limit": family,
    "a child past its time": late,
    "totals of a tree": totals,
}
"""How a case is carried out, by its operation."""
