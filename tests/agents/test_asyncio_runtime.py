"""The runtime of production on a real asyncio loop: the same loop, the same answers, every ticket closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from harness_lab.agents import AsyncioRuntime, Call, Child, Children, Harness, NodeRecord, Reply, Rest
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Outcome
from harness_lab.policies import (
    COMPLETED,
    End,
    PolicySpec,
    compose,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

Brain = Generator[Any, Any, End]


class Model:
    """Answers after a few turns of the loop, or never, or with an error."""

    def __init__(self, **odd: Any) -> None:
        self.odd = odd

    def bound(self, call: Call) -> Any:
        return amounts(calls=1, input=call.input_total, tokens=call.input_total + 5, cost_usd=0.5)

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        return None

    async def complete(self, runtime: Any, call: Call) -> Reply:
        for _ in range(3):
            await asyncio.sleep(0)
        odd = self.odd.get(call.model)
        if odd == "hangs":
            await asyncio.Event().wait()
        if odd == "breaks":
            raise ConnectionError(call.model)
        cost = None if odd == "unreported" else 10
        return Reply("completed", call.input_total, 0, 0, 5, cost, cost, cost is not None)


class Sink:
    """Keeps nodes and the statuses of calls."""

    def __init__(self) -> None:
        self.nodes: list[NodeRecord] = []
        self.calls: list[str] = []

    def node(self, record: NodeRecord) -> None:
        self.nodes.append(record)

    def call(self, record: Any, call: Call, reply: Reply | None, started: Any, now: Any) -> None:
        self.calls.append(f"{call.model} {'dropped' if reply is None else reply.status}")


def agent(*models: str, children: int = 0, ask: Any = None, below: Callable[[], Brain] | None = None) -> Any:
    """Return a brain that calls each model, and after its first call starts children."""

    def brain() -> Brain:
        for i, model in enumerate(models):
            yield Call(model, 0, i, 0, 20)
            if i == 0 and children:
                kids = [
                    Child(agent="kid", budget=ask or amounts(), call=0, slot=slot, brain=below or agent("m"))
                    for slot in range(children)
                ]
                yield Children(kids)
            yield Rest(0)
        return COMPLETED

    return brain


class Run:
    """One run of a tree on a real loop; afterwards nothing may be held."""

    def __init__(self, spec: PolicySpec, brain: Any, *, cancel: bool = False, **odd: Any) -> None:
        self.policy, self.sink = spec.start(), Sink()
        self.error: BaseException | None = None
        try:
            asyncio.run(self._main(Model(**odd), brain, cancel))
        except (Exception, asyncio.CancelledError) as error:
            self.error = error
        for module in self.policy.modules:
            assert getattr(module, "running", 0) == 0
            if hasattr(module, "pool"):
                assert module.pool.held() == (0,) * len(CHANNELS)

    async def _main(self, model: Model, brain: Any, cancel: bool) -> None:
        harness = Harness(AsyncioRuntime(), self.policy, model, self.sink, keep_calls=True)
        task = asyncio.create_task(harness.run("root", amounts(), brain))
        if cancel:
            for _ in range(9):
                await asyncio.sleep(0)
            task.cancel()
        await task

    def outcomes(self) -> list[str]:
        return [f"{'/'.join(str(s) for _, s, _ in r.path) or 'root'} {r.end.outcome}" for r in self.sink.nodes if r.end]


POOL = reservation_pool(tokens=1_000, cost_usd=1.0)
BOTH = compose(shared_ledger(99), POOL, tree_limits(2, 3, 12))


def test_a_tree_runs_under_the_real_limits() -> None:
    run = Run(BOTH, agent("m", "m", children=4, ask=amounts(tokens=100)))
    assert run.error is None
    assert sorted(run.outcomes()) == ["0 completed", "1 completed", "2 completed", "3 denied", "root completed"]
    assert run.policy.modules[0].ledger.steps == 5  # type: ignore[attr-defined]
    assert run.policy.modules[1].pool.spent()[2] == 5 * 25  # type: ignore[attr-defined]


def test_children_wait_in_line_for_a_slot() -> None:
    run = Run(tree_limits(max_depth=1, max_concurrent=1, max_wait_s=60), agent("m", children=4))
    assert run.outcomes() == ["0 completed", "1 completed", "2 completed", "3 completed", "root completed"]


def test_a_refused_call_ends_its_node_as_exhausted_and_the_parent_goes_on() -> None:
    run = Run(
        compose(shared_ledger(99), POOL), agent("m", "m", children=1, ask=amounts(calls=1), below=agent("m", "m"))
    )
    assert run.outcomes() == ["0 exhausted", "root completed"]
    assert run.sink.nodes[0].end == End(Outcome.EXHAUSTED, "steps-exhausted", Cause.LIMIT)


def test_a_child_that_hangs_is_stopped_at_its_deadline_and_its_spend_is_unknown() -> None:
    spec = compose(POOL, tree_limits(timeout_s=0.001))
    run = Run(spec, agent("m", "m", children=1, below=agent("slow")), slow="hangs")
    assert run.outcomes() == ["0 timed_out", "root exhausted"]
    assert run.sink.nodes[1].end == End(Outcome.EXHAUSTED, "spend-unknown", Cause.LIMIT)
    assert run.sink.calls == ["m completed", "slow dropped"]
    assert (run.sink.nodes[0].usage_known, run.sink.nodes[0].billed_known) == (False, False)


def test_cancelling_the_task_closes_every_ticket() -> None:
    run = Run(BOTH, agent("m", children=2, below=agent("slow")), cancel=True, slow="hangs")
    assert isinstance(run.error, asyncio.CancelledError)
    assert run.outcomes() == ["0 cancelled", "1 cancelled", "root cancelled"]
    assert run.policy.modules[1].pool.root.accounts[4].unknown == 2  # type: ignore[attr-defined]


def test_a_child_that_is_cancelled_while_it_waits_was_never_started() -> None:
    spec = tree_limits(max_depth=1, max_concurrent=1, max_calls=9, max_wait_s=60)
    run = Run(spec, agent("m", children=3, below=agent("slow")), cancel=True, slow="hangs")
    assert run.outcomes() == ["0 cancelled", "1 denied", "2 denied", "root cancelled"]
    assert run.policy.tick(run.sink.nodes[-1].ended) is None  # nobody waits any more


def test_a_model_that_breaks_closes_its_ticket_as_unknown_and_its_node_as_failed() -> None:
    run = Run(BOTH, agent("m", children=2, below=agent("bad")), bad="breaks")
    assert run.error is None
    assert run.outcomes() == ["0 failed", "1 failed", "root completed"]
    assert run.sink.nodes[0].end == End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
    assert isinstance(run.sink.nodes[0].error, ConnectionError)
    assert run.sink.calls == ["m completed", "bad dropped", "bad dropped"]
    assert run.policy.modules[1].pool.root.accounts[4].unknown == 2  # type: ignore[attr-defined]


def test_a_cost_that_is_not_reported_stops_the_tree_under_a_cap() -> None:
    run = Run(shared_ledger(99, 5.0), agent("m", children=1, below=agent("dark", "dark")), dark="unreported")
    assert run.outcomes() == ["0 exhausted", "root completed"]
    assert run.sink.nodes[0].end == End(Outcome.EXHAUSTED, "spend-unknown", Cause.LIMIT)


def test_a_root_that_may_not_make_its_first_call_says_so() -> None:
    run = Run(shared_ledger(0), agent("m"))
    assert run.outcomes() == ["root exhausted"]


def test_a_brain_that_asks_for_nothing_known_is_told_so() -> None:
    def brain() -> Brain:
        yield "sleep"
        return COMPLETED

    run = Run(BOTH, brain)
    assert isinstance(run.error, InputError)
    assert str(run.error).startswith("move of a brain: expected Call, Children")
    assert run.outcomes() == ["root failed"]


@pytest.mark.parametrize("bad", [-20, 0.5])
def test_a_reply_that_would_give_money_back_is_an_error_and_its_spend_unknown(bad: float) -> None:
    class Odd(Model):
        async def complete(self, runtime: Any, call: Call) -> Reply:
            return Reply("completed", bad, 0, 0, 0, 10, 10)  # type: ignore[arg-type]

    sink, policy = Sink(), POOL.start()

    async def main() -> End:
        return await Harness(AsyncioRuntime(), policy, Odd(), sink).run("root", amounts(), agent("m"))

    with pytest.raises(InputError, match=r"^use \(input\): expected a whole number"):
        asyncio.run(main())
    pool = policy.modules[0].pool  # type: ignore[attr-defined]
    assert pool.spent() == (1, 0, 0, 0, 0)
    assert pool.root.accounts[4].unknown == 1
    assert [record.end for record in sink.nodes] == [End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)]


def test_a_runtime_needs_a_loop_only_when_it_is_made() -> None:
    async def main() -> bool:
        runtime = AsyncioRuntime()
        before = runtime.now()
        await runtime.sleep(0)
        return runtime.now() >= before

    assert asyncio.run(main())
