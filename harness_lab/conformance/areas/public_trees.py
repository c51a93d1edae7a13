"""Public cases of trees, asked by hand: children under limits, in virtual time and with real threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import AsyncioRuntime
from harness_lab.agents.groups import Agents
from harness_lab.budget.iteration import IterationBudget
from harness_lab.clock import NS_PER_S, Time
from harness_lab.outcome import CALLS, COST, Cause, Outcome, Refusal
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
)
from harness_lab.simulate import SimRuntime
from harness_lab.usage import NUSD_PER_USD, amounts

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case

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


OPERATIONS: Final = {
    "count with threads and with coroutines": counted,
    "start children from several threads": gated,
    "start children at once": at_once,
    "race of children": race,
    "stop the root": stopped,
    "runs of one session": runs,
    "children in a queue": queued,
    "wait for a person": paused,
}
"""How a case is carried out, by its operation."""
