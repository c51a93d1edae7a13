"""Real problems of other projects' users with trees of agents, as small scenarios through the public API.

Ids are those of the collection of cases. All of them also run through ``harness-lab conformance`` (public-cases), A-58
(which clock a limit on time is about while a person is asked) only there.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pytest

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.groups import Agents
from harness_lab.budget.iteration import IterationBudget
from harness_lab.clock import NS_PER_S, Time
from harness_lab.outcome import Code, Outcome, Refusal
from harness_lab.policies import (
    COMPLETED,
    Grant,
    Path,
    PolicySpec,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    compose,
    iteration_budget,
    locked,
    reservation_pool,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, SimRuntime, Spawn, Workload
from harness_lab.simulate.rows import Rows
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

ONE = Distribution.constant(1)
NOTHING = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)


def granted(policy: Any, ask: SpawnAsk | StepAsk, now: float = 0) -> Ticket:
    question = policy.spawn if isinstance(ask, SpawnAsk) else policy.admit
    answer = question(ask, Time(round(now * NS_PER_S)))
    assert isinstance(answer, Grant), answer
    return answer.ticket


def refused(policy: Any, ask: SpawnAsk | StepAsk) -> Refusal:
    question = policy.spawn if isinstance(ask, SpawnAsk) else policy.admit
    answer = question(ask, Time(0))
    assert isinstance(answer, Refusal), answer
    return answer


def child(parent: Ticket, slot: int, **asked: Any) -> SpawnAsk:
    return SpawnAsk(parent, (*parent.path, (0, slot, 0)), amounts(**asked))


def root(policy: Any) -> Ticket:
    return granted(policy, SpawnAsk(None, (), amounts()))


def step(policy: Any, node: Ticket, used: Any = NOTHING, **how: Any) -> bool:
    answer = policy.admit(StepAsk(node, 0, 0, amounts(), **how), Time(0))
    if isinstance(answer, Grant):
        policy.settle(answer.ticket, Use(used), Time(0))
    return isinstance(answer, Grant)


def world(policy: PolicySpec, *, runs: int = 1, latency: float = 1.0, **agents: AgentProfile) -> Experiment:
    model = ModelProfile(output_tokens=ONE, latency_s=Distribution.constant(latency))
    prices = PriceTable({"m": (Price.usd_per_million(input=100, output=0),)})
    provider = MockProvider(models={"m": model}, prices=prices)
    return Experiment(workload=Workload(agents=agents, root="root"), provider=provider, policies=(policy,), runs=runs)


def agent(calls: int, *spawns: Spawn, tokens: int = 10) -> AgentProfile:
    many = Distribution.constant(calls)
    return AgentProfile(model="m", calls=many, startup_tokens=Distribution.constant(tokens), spawns=spawns)


def test_a04_a_batch_of_tools_is_held_against_the_limit_before_it_starts() -> None:
    for limit, started in ((6, 0), (8, 8)):
        policy = iteration_budget(limit, counts="tool-calls").start()
        node = root(policy)
        assert step(policy, node, kind="tool", count=8) is bool(started)
        assert node.memory[0].used == started


def test_a05_a_shared_counter_is_exact_under_threads() -> None:
    with ThreadPoolExecutor(3) as pool:
        for limit, most in ((3, 3), (2, 2)):
            for _ in range(200):
                budget = IterationBudget(limit)
                assert sum(pool.map(lambda _, b=budget: b.consume(), range(3))) == most  # type: ignore[misc]
                assert budget.used == most


@pytest.mark.parametrize("most", [1, 3])
def test_a06_one_gate_for_two_threads_with_a_loop_each(most: int) -> None:
    policy = locked(tree_limits(max_depth=1, max_concurrent=most, max_wait_s=60).start())
    top = root(policy)
    running, peak, finished = 0, 0, 0
    lock = Lock()

    async def work(_below: Agents, _task: Any) -> None:
        nonlocal running, peak, finished
        with lock:
            running += 1
            peak = max(peak, running)
        for _ in range(3):
            await asyncio.sleep(0)
        with lock:
            running -= 1
            finished += 1

    async def four() -> None:
        agents = Agents(AsyncioRuntime(), policy, top, {"w": work})
        for operation in [agents.start("w") for _ in range(4)]:
            await operation.settled()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: asyncio.run(four()), range(2)))
    assert (finished, running) == (8, 0)
    assert peak <= most


@pytest.mark.parametrize(("wait_s", "ran"), [(None, 2), (100, 9)])
def test_a07_a_slot_is_taken_in_the_moment_it_is_asked_for(wait_s: float | None, ran: int) -> None:
    limits = tree_limits(max_depth=1, max_concurrent=2, max_wait_s=wait_s)
    many = Spawn(agent="child", count=9, after=(0,))
    nodes = world(limits, latency=10, root=agent(1, many), child=agent(1)).run().settlements.nodes
    children = nodes[nodes["parent"].notna()]
    done = children[children["outcome"] == "completed"]
    assert len(done) == ran
    assert len(children) == 9
    last = (done["start_ns"] + done["duration_ns"]).max() / NS_PER_S - 10
    assert last == (10 if wait_s is None else 50)


def test_a24_shared_race_even_split_and_isolated_are_choices_with_known_consequences() -> None:
    def outcomes(policy: Any, ask: Any) -> tuple[list[int], list[Any]]:
        top = root(policy)
        for _ in range(30):
            assert step(policy, top)
        kids = [policy.spawn(SpawnAsk(top, ((0, i, 0),), ask, together=3 - i), Time(0)) for i in range(3)]
        used = [0, 0, 0]
        for turn in range(105):
            i = turn % 3
            used[i] += used[i] < 35 and step(policy, kids[i].ticket)
        return used, [kid.ceiling and kid.ceiling[0] for kid in kids]

    fifty = amounts(calls=50)
    race, _ = outcomes(shared_ledger(90).start(), amounts())
    assert (sum(race), max(race) <= 35) == (60, True)
    split, told = outcomes(reservation_pool(calls=90, grants="even-split").start(), fifty)
    assert (split, told) == ([20, 20, 20], [20, 20, 20])
    alone, _ = outcomes(reservation_pool(calls=90, grants="isolated").start(), fifty)
    assert alone == [35, 35, 35]  # 135 in all: the tree's 90 is not enforced, and the preset's docs say so


def test_a29_limits_only_narrow_on_the_way_down() -> None:
    policy = compose(tree_limits(2), reservation_pool(tokens=100)).start()
    top = root(policy)
    first = granted(policy, child(top, 0, tokens=50))
    assert refused(policy, child(first, 0, tokens=80)).code is Code.BUDGET_EXHAUSTED
    second = granted(policy, child(first, 1, tokens=10))
    assert refused(policy, child(second, 0)).code is Code.MAX_DEPTH


@pytest.mark.parametrize("max_depth", [0, 1, 2])
def test_a30_depth_d_lets_children_at_depth_1_to_d_run(max_depth: int) -> None:
    policy = tree_limits(max_depth).start()
    node = root(policy)
    for _ in range(max_depth):
        node = granted(policy, child(node, 0))
    assert refused(policy, child(node, 0)).shortfalls[0].limit == max_depth


def test_a31_an_explosion_is_stopped_by_each_limit_and_the_report_names_it() -> None:
    five = Spawn(agent="root", count=5, after=(0,))
    wild = world(tree_limits(4), root=agent(1, five)).run().settlements.nodes
    assert (wild["outcome"] == "completed").sum() == 1 + 780
    limits = {
        Code.MAX_DEPTH: tree_limits(2),
        Code.MAX_CALLS: tree_limits(4, max_calls=12),
        Code.MAX_CONCURRENT: tree_limits(4, max_concurrent=3),
    }
    for code, policy in limits.items():
        nodes = world(policy, root=agent(1, five)).run().settlements.nodes
        assert set(nodes.loc[nodes["outcome"] == "denied", "stopped_by"]) >= {str(code)}
        assert (nodes["outcome"] == "completed").sum() < 200
    together = world(tree_limits(2, 3, 12), root=agent(1, five)).run().settlements.nodes
    ran = together[(together["outcome"] == "completed") & together["parent"].notna()]
    assert len(ran) <= 12
    assert ran["depth"].max() <= 2
    assert together.loc[together["outcome"] == "denied", "stopped_by"].notna().all()


def test_a32_a_stopped_root_stops_its_subtree_at_the_next_step_and_pays_for_calls_in_flight() -> None:
    spec = reservation_pool(cost_usd=100)
    grandchild, kid = Spawn(agent="leaf", count=1), Spawn(agent="kid", count=3)
    experiment = world(spec, latency=2, root=agent(9, kid), kid=agent(99, grandchild, tokens=1000), leaf=agent(99))
    runtime, rows, policy = SimRuntime(), Rows(), spec.start()
    harness = Harness(runtime, policy, experiment.world().model, rows)

    async def tree() -> None:
        top = root(policy)
        runtime.kernel.at(5 * NS_PER_S, 0, lambda: policy.cancel(top, "stopped by the user", Time(5 * NS_PER_S)))
        jobs = [runtime.start(_busy(runtime, policy, top, i)) for i in range(6)]
        for job in jobs:
            await job.ended()
        policy.close(top, Use(NOTHING), COMPLETED, runtime.now())

    runtime.kernel.spawn(tree(), "tree")
    runtime.kernel.run()
    pool: Any = policy.modules[0]
    assert pool.pool.spent()[4] == 1_800_000_000
    assert pool.pool.held() == (0, 0, 0, 0, 0)
    assert runtime.now() == 6 * NS_PER_S
    assert harness.keep_calls is False


async def _busy(runtime: SimRuntime, policy: Any, top: Ticket, slot: int) -> None:
    """Make calls of 2 s and $0.10 back to back until one is refused."""
    node = granted(policy, child(top, slot, cost_usd=10))
    end: Any = COMPLETED
    while True:
        answer = policy.admit(StepAsk(node, 0, 0, amounts()), runtime.now())
        if isinstance(answer, Refusal):
            assert answer.code is Code.CANCELLED
            break
        await runtime.sleep(2 * NS_PER_S)
        spent = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0.1)
        policy.settle(answer.ticket, Use(spent), runtime.now())
    policy.close(node, Use(NOTHING), end, runtime.now())


def test_a33_a_limit_of_n_calls_allows_exactly_n_and_an_answer_on_the_nth_is_a_normal_end() -> None:
    for limit in (0, 1, 3):
        nodes = world(shared_ledger(limit), root=agent(99)).run().settlements.nodes
        assert (nodes["calls"][0], nodes["stopped_by"][0]) == (limit, "steps-exhausted")
    nodes = world(shared_ledger(3), root=agent(3)).run().settlements.nodes
    assert (nodes["calls"][0], nodes["outcome"][0]) == (3, "completed")


def test_a35_a_limit_per_run_starts_anew_with_each_run() -> None:
    spec = shared_ledger(5)
    for _ in range(3):
        policy = spec.start()
        top = root(policy)
        assert all(step(policy, top) for _ in range(4))


def test_a37_the_outcome_names_the_limit_at_every_level() -> None:
    ask = amounts(calls=30)
    kids = (Spawn(agent="long", after=(0,), budget=ask), Spawn(agent="short", after=(0,), budget=ask))
    experiment = world(reservation_pool(calls=100), root=agent(1, *kids), long=agent(40), short=agent(2))
    nodes = experiment.run().settlements.nodes.set_index("agent")
    assert tuple(nodes.loc["long", ["outcome", "stopped_by", "calls"]]) == ("exhausted", "budget-exhausted", 30)
    assert tuple(nodes.loc["short", ["outcome", "calls"]]) == ("completed", 2)


def test_a38_a_compaction_call_is_metered_like_any_other() -> None:
    policy = reservation_pool(tokens=100_000).start()
    top = root(policy)
    turn, squeeze = (amounts(calls=1, input=0, tokens=n, fresh=n, cost_usd=0) for n in (150, 192_000))
    assert all(step(policy, top, turn) for _ in range(12))
    assert step(policy, top, squeeze, kind="compaction")
    assert policy.modules[0].pool.spent()[2] == 193_800
    assert not step(policy, top, turn)


@pytest.mark.parametrize(
    ("on_timeout", "ends_at", "calls"), [("cancel", 1, 0), ("cooperative", 37, 1), ("detach", 37, 1)]
)
def test_a56_a_time_limit_ends_the_wait_or_the_next_step(on_timeout: Any, ends_at: int, calls: int) -> None:
    limits = tree_limits(timeout_s=1, on_timeout=on_timeout)
    slow = Spawn(agent="slow", after=(0,))
    nodes = world(limits, latency=37, root=agent(1, slow), slow=agent(5)).run().settlements.nodes.set_index("agent")
    child_row = nodes.loc["slow"]
    wanted = calls if on_timeout != "detach" else 5
    assert child_row["outcome"] == Outcome.TIMED_OUT
    assert child_row["calls"] == wanted
    ended = ends_at if on_timeout != "detach" else 5 * 37
    assert child_row["duration_ns"] == ended * NS_PER_S
    waited = 1 if on_timeout in ("cancel", "detach") else 37
    assert nodes.loc["root", "duration_ns"] == (37 + waited) * NS_PER_S


@pytest.mark.parametrize(
    ("timeout_from", "story"),
    [
        ("arrival", [("completed", 8), ("timed_out", 10), ("denied", 10), ("timed_out", 11)]),
        ("start", [("completed", 8), ("completed", 16), ("completed", 24), ("completed", 32)]),
    ],
)
def test_a57_whether_time_in_the_queue_counts_is_declared(timeout_from: Any, story: list[tuple[str, int]]) -> None:
    limits = tree_limits(1, 1, timeout_s=10, timeout_from=timeout_from, max_wait_s=100)
    runtime, policy = SimRuntime(), limits.start()
    told: list[tuple[str, int]] = [("", 0)] * 4

    async def eight(_below: Agents, _task: Any) -> None:
        await runtime.sleep(8 * NS_PER_S)

    async def one(agents: Agents, i: int) -> None:
        operation = agents.start("w")
        await operation.settled()
        assert operation.end is not None
        told[i] = (str(operation.end.outcome), runtime.now() // NS_PER_S)

    async def tree() -> None:
        agents = Agents(runtime, policy, root(policy), {"w": eight})
        jobs = [runtime.start(one(agents, i)) for i in range(3)]
        await runtime.sleep(NS_PER_S)
        jobs.append(runtime.start(one(agents, 3)))
        for job in jobs:
            await job.ended()

    runtime.kernel.spawn(tree(), "tree")
    runtime.kernel.run()
    assert told == story


def test_a27_grants_come_out_of_what_is_left() -> None:
    policy = reservation_pool(tokens=5_000_000, grants="even-split").start()
    top = root(policy)

    def used(n: int) -> Any:
        return amounts(calls=1, input=0, tokens=n, fresh=n, cost_usd=0)

    step(policy, top, used(4_400_000))
    batch = [policy.spawn(SpawnAsk(top, ((0, i, 0),), amounts(), together=3 - i), Time(0)) for i in range(3)]
    assert [g.ceiling[2] for g in batch] == [200_000] * 3  # type: ignore[union-attr, index]
    for grant, n in zip(batch, (150_000, 200_000, 50_000), strict=True):
        step(policy, grant.ticket, used(n))
        policy.close(grant.ticket, Use(NOTHING), COMPLETED, Time(0))
    later = [policy.spawn(SpawnAsk(top, ((1, i, 0),), amounts(), together=2 - i), Time(0)) for i in range(2)]
    assert [g.ceiling[2] for g in later] == [100_000] * 2  # type: ignore[union-attr, index]


def test_paths_name_children_by_call_slot_and_attempt() -> None:
    policy = unlimited().start()
    path: Path = ((3, 1, 0),)
    assert granted(policy, SpawnAsk(root(policy), path, amounts())).path == path
