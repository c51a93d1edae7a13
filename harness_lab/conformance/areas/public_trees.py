"""Public cases of trees: children under limits, in virtual time and with real threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.groups import Agents
from harness_lab.agents.ports import Call, Child, Children, Reply
from harness_lab.budget.iteration import IterationBudget
from harness_lab.clock import NS_PER_S, Time
from harness_lab.outcome import CALLS, COST, TOKENS, Cause, Outcome, Refusal
from harness_lab.policies import (
    COMPLETED,
    End,
    Grant,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    locked,
    period_budget,
    reservation_pool,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Spawn, Workload
from harness_lab.stats import Distribution
from harness_lab.usage import NUSD_PER_USD, amounts

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.agents.record import NodeRecord
    from harness_lab.conformance.shapes import Answer, Case

ONE: Final = Distribution.constant(1)
ONE_CALL: Final = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)
NOW: Final = Time(0)
_AWAITING: Final = End(Outcome.AWAITING_APPROVAL, None, Cause.USER)


def counted(case: Case) -> Answer:
    """Count tools that run in parallel, in threads and in coroutines; return the totals that were seen."""
    given = case["given"]
    limits, tools, repeats = given["limits"], given["tools"], given["repeats"]
    with ThreadPoolExecutor(tools) as pool:
        threads = [sorted({_in_threads(pool, limit, tools) for _ in range(repeats)}) for limit in limits]
    coroutines = [sorted({_in_coroutines(limit, tools) for _ in range(repeats // 10)}) for limit in limits]
    return {"threads": threads, "coroutines": coroutines}


def _in_threads(pool: ThreadPoolExecutor, limit: int, tools: int) -> int:
    budget = IterationBudget(limit)
    started = sum(pool.map(lambda _: budget.consume(), range(tools)))
    return started if started == budget.used else -1


def _in_coroutines(limit: int, tools: int) -> int:
    budget = IterationBudget(limit)

    async def tool() -> bool:
        await asyncio.sleep(0)
        return budget.consume()

    async def batch() -> int:
        return sum(await asyncio.gather(*(tool() for _ in range(tools))))

    return asyncio.run(batch())


def gated(case: Case) -> Answer:
    """Start children from several threads, each with an event loop of its own, on one policy."""
    given = case["given"]
    told: dict[str, list[Any]] = {"finished": [], "peak_within_limit": []}
    for limit in given["limits"]:
        ends, peaks = zip(*(_gate(limit, given) for _ in range(given["repeats"])), strict=True)
        told["finished"].append(sum(ends))
        told["peak_within_limit"].append(max(peaks) <= limit)
    return told


def _gate(limit: int, given: Any) -> tuple[int, int]:
    inner = tree_limits(1, limit, max_wait_s=60).start()
    policy, done = locked(inner), []
    top = _root(policy)

    async def work(_below: Agents, _task: Any) -> None:
        await asyncio.sleep(0)
        done.append(1)

    async def several() -> None:
        agents = Agents(AsyncioRuntime(), policy, top, {"w": work})
        for operation in [agents.start("w") for _ in range(given["children_each"])]:
            await operation.settled()

    with ThreadPoolExecutor(given["threads"]) as pool:
        list(pool.map(lambda _: asyncio.run(several()), range(given["threads"])))
    return len(done), inner.modules[0].peak  # type: ignore[attr-defined]


def at_once(case: Case) -> Answer:
    """Start more children at once than may run."""
    given = case["given"]
    limits = tree_limits(1, given["max_concurrent"], max_wait_s=given["wait_s"])
    runtime, policy, ends = SimRuntime(), limits.start(), []

    async def work(_below: Agents, _task: Any) -> None:
        await runtime.sleep(given["seconds"] * NS_PER_S)
        ends.append(runtime.now() // NS_PER_S)

    async def one(agents: Agents) -> None:
        answer = await runtime.ask(policy, policy.spawn, SpawnAsk(agents.node, ((0, len(asked), 0),), amounts()))
        asked.append(answer)
        if isinstance(answer, Grant):
            await work(agents, None)
            policy.close(answer.ticket, Use(ONE_CALL), COMPLETED, runtime.now())
            runtime.drain(policy)

    asked: list[Any] = []
    agents = Agents(runtime, policy, _root(policy), {})
    for _ in range(given["starters"]):
        runtime.kernel.spawn(one(agents))
    runtime.kernel.run()
    refused = sum(isinstance(answer, Refusal) for answer in asked)
    peak = policy.modules[0].peak  # type: ignore[attr-defined]
    return {"ran": len(ends), "refused": refused, "peak": peak, "last_ends_s": max(ends)}


def race(case: Case) -> Answer:
    """Let children use what they were granted, turn by turn, under three ways of granting."""
    given = case["given"]
    tree = given["tree"]
    policies = {
        "shared": shared_ledger(tree),
        "even-split": reservation_pool(calls=tree, grants="even-split"),
        "isolated": reservation_pool(calls=tree, grants="isolated"),
    }
    return {name: _raced(spec, given, ask=name != "shared") for name, spec in policies.items()}


def _raced(spec: PolicySpec, given: Any, *, ask: bool) -> dict[str, Any]:
    policy, many = spec.start(), given["children"]
    top = _root(policy)
    for _ in range(given["root_used"]):
        _step(policy, top)
    asked = amounts(calls=given["asked"]) if ask else amounts()
    kids: list[Any] = [policy.spawn(SpawnAsk(top, ((0, i, 0),), asked, together=many - i), NOW) for i in range(many)]
    used = [0] * many
    for turn in range(many * given["need"]):
        i = turn % many
        used[i] += used[i] < given["need"] and _step(policy, kids[i].ticket)
    granted = [kid.ceiling and kid.ceiling[CALLS] for kid in kids]
    finished = sum(one == given["need"] for one in used)
    return {"used": sum(used), "most": max(used), "finished": finished, "granted": granted}


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


def stopped(case: Case) -> Answer:
    """Stop a root whose subtree makes calls back to back."""
    given = case["given"]
    runtime, policy = SimRuntime(), reservation_pool(cost_usd=100).start()
    starts: list[int] = []
    ends: list[str] = []

    async def busy(node: Ticket) -> None:
        while True:
            answer: Any = policy.admit(StepAsk(node, 0, 0, amounts()), runtime.now())
            if isinstance(answer, Refusal):
                break
            starts.append(runtime.now() // NS_PER_S)
            await runtime.sleep(given["call_s"] * NS_PER_S)
            used = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=given["call_usd"])
            policy.settle(answer.ticket, Use(used), runtime.now())
        ends.append(str(answer.code))

    top = _root(policy)
    kids = [_child(policy, top, i, amounts(cost_usd=20)) for i in range(given["children"])]
    below = [_child(policy, kid, i, amounts(cost_usd=5)) for kid in kids for i in range(given["below_each"])]
    for node in (*kids, *below):
        runtime.kernel.spawn(busy(node))
    stop_ns = given["stop_at_s"] * NS_PER_S
    runtime.kernel.at(stop_ns, 0, lambda: policy.cancel(top, "stopped by the user", Time(stop_ns)))
    runtime.kernel.run()
    for node in (*below, *kids, top):
        policy.close(node, Use((0,) * 5), COMPLETED, runtime.now())
    pool = policy.modules[0].pool  # type: ignore[attr-defined]
    return {
        "spent": pool.spent()[COST] / NUSD_PER_USD,
        "held": pool.held()[COST] / NUSD_PER_USD,
        "last_call_starts_s": max(starts),
        "ends_s": runtime.now() // NS_PER_S,
        "outcomes": sorted(set(ends)),
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


def runs(case: Case) -> Answer:
    """Run several runs of one session, under a limit of the run, and under one of the session too."""
    given = case["given"]
    session = period_budget(calls=given["per_session"], by="session")
    return {
        "without_session_limit": _session([shared_ledger(given["per_run"])], given),
        "with_session_limit": _session([shared_ledger(given["per_run"]), session], given),
    }


def _session(policies: list[PolicySpec], given: Any) -> list[int]:
    spec, made = compose(*policies), []
    opened = None if spec.scope == "run" else spec.open()
    for number in range(given["runs"]):
        policy: Any = (
            spec.start() if opened is None else opened.start(f"{number}", {"session": "s"}, NOW, wall_ns=10**18)
        )
        top = _root(policy)
        made.append(sum(_step(policy, top) for _ in range(given["steps"])))
    return made


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


def queued(case: Case) -> Answer:
    """Let children arrive at a gate with a time limit that counts from their arrival, or from their start."""
    given = case["given"]
    limits = tree_limits(
        1, given["max_concurrent"], timeout_s=given["timeout_s"], timeout_from=given["timeout_from"], max_wait_s=100
    )
    runtime, policy = SimRuntime(), limits.start()
    told: list[Any] = [None] * len(given["arrive_s"])

    async def works(_below: Agents, _task: Any) -> None:
        await runtime.sleep(given["works_s"] * NS_PER_S)

    async def one(agents: Agents, i: int, arrives: int) -> None:
        if arrives:
            await runtime.sleep(arrives * NS_PER_S)
        operation = agents.start("w")
        await operation.settled()
        how = None if operation.end is None else str(operation.end.outcome)
        told[i] = [how, runtime.now() // NS_PER_S]

    agents = Agents(runtime, policy, _root(policy), {"w": works})
    for i, arrives in enumerate(given["arrive_s"]):
        runtime.kernel.spawn(one(agents, i, arrives))
    runtime.kernel.run()
    return {"ends": told}


def paused(case: Case) -> Answer:
    """Work in parts, wait for a person after the second, and see whether a limit on time is reached."""
    given = case["given"]
    elapsed = given["clock"] == "elapsed"
    spec = shared_ledger(999, None, given["limit_s"]) if elapsed else tree_limits(timeout_s=given["limit_s"])
    policy: Any = spec.start()
    top = _root(policy)
    path = ((0, 0, 0),)
    node = policy.spawn(SpawnAsk(top, path, amounts()), NOW)
    # the person is asked before the work; elapsed time goes on, a node's own clock begins again when it goes on
    policy.close(node.ticket, Use(ONE_CALL), _AWAITING, NOW)
    now = given["waits_s"] * NS_PER_S
    node = policy.spawn(SpawnAsk(top, path, amounts(), resume=node.ticket), Time(now))
    done = 0
    while done < given["parts"] and isinstance(node, Grant):
        late = node.deadline is not None and now >= node.deadline
        answer = policy.admit(StepAsk(node.ticket, done, 0, amounts()), Time(now))
        if late or isinstance(answer, Refusal):
            break
        now += given["part_s"] * NS_PER_S
        policy.settle(answer.ticket, Use(ONE_CALL), Time(now))
        done += 1
    return {"parts": done, "stopped": done < given["parts"]}


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


def _root(policy: Any) -> Ticket:
    ticket: Ticket = policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    return ticket


def _child(policy: Any, above: Ticket, slot: int, ask: Any) -> Ticket:
    ticket: Ticket = policy.spawn(SpawnAsk(above, (*above.path, (0, slot, 0)), ask), NOW).ticket
    return ticket


def _step(policy: Any, node: Ticket) -> bool:
    answer = policy.admit(StepAsk(node, 0, 0, amounts()), NOW)
    if isinstance(answer, Grant):
        policy.settle(answer.ticket, Use(ONE_CALL), NOW)
    return isinstance(answer, Grant)


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
    "count with threads and with coroutines": counted,
    "start children from several threads": gated,
    "start children at once": at_once,
    "race of children": race,
    "explosion": explosion,
    "stop the root": stopped,
    "calls under a limit": calls,
    "runs of one session": runs,
    "children under a limit": family,
    "a child past its time": late,
    "children in a queue": queued,
    "wait for a person": paused,
    "totals of a tree": totals,
}
"""How a case is carried out, by its operation."""
