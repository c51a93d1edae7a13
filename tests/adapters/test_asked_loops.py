"""A limiter that owns its loop is asked by letting it run until it wants the model; one made by hand shows how."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab import Distribution, MockProvider, ModelProfile
from harness_lab.adapters import LoopAdapter, NotApplicable, loop_agent, policy
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import COMPLETED, Grant, SpawnAsk, StepAsk, Use, iteration_budget, unlimited
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, simulate_agent
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from harness_lab.adapters import Child
    from harness_lab.policies import Status

NOW = Time(0)


class TooMany(Exception):
    """The loop's limit."""


class ByHand(LoopAdapter):
    """A loop of turns that begins anew for each child."""

    name = "by-hand"
    breaks: type[Exception] = TooMany

    def __init__(self, *, calls: int = 3) -> None:
        self.calls = calls

    def start(self, model: Callable[[], Awaitable[Any]]) -> Coroutine[Any, Any, Any]:
        return _turns(self.calls, model, self.breaks)

    def over(self, error: BaseException) -> bool:
        return isinstance(error, TooMany)

    def shown(self) -> str:
        return repr(self.calls)

    def child(self, child: Child) -> ByHand:
        return type(self)(calls=self.calls)


async def _turns(most: int, model: Callable[[], Awaitable[Any]], breaks: type[Exception]) -> None:
    for _ in range(most):
        if await model() == "done":
            return
    raise breaks(f"{most} turns are enough")


class Breaks(ByHand):
    """A loop with an error of its own."""

    name = "breaks"
    breaks = ZeroDivisionError


class Run:
    """One node that is asked by hand."""

    def __init__(self, adapter: type[LoopAdapter] = ByHand, **limits: Any) -> None:
        self.policy: Any = policy(adapter, **limits).start()
        self.node = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
        self.asked = 0

    def ask(self, *, attempt: int = 0) -> Any:
        self.asked += 1
        return self.policy.admit(StepAsk(self.node, self.asked, attempt, amounts(calls=1)), NOW)

    def call(self, status: Status = "completed", *, attempt: int = 0) -> Any:
        answer = self.ask(attempt=attempt)
        if isinstance(answer, Grant):
            self.policy.settle(answer.ticket, Use(amounts(calls=1), status), NOW)
        return answer


def test_a_loop_lets_through_what_it_lets_through() -> None:
    run = Run(calls=3)
    answers = [run.call() for _ in range(5)]
    assert [isinstance(answer, Grant) for answer in answers] == [True, True, True, False, False]
    assert isinstance(answers[3], Refusal)
    assert (answers[3].code, answers[3].shortfalls[0].detail) == (Code.STEPS_EXHAUSTED, "3 turns are enough")


def test_a_limit_of_nothing_lets_nothing_through() -> None:
    assert isinstance(Run(calls=0).call(), Refusal)


def test_a_failed_call_that_is_tried_again_is_one_turn() -> None:
    run = Run(calls=2)
    statuses: list[tuple[Status, int]] = [("failed", 0), ("failed", 1), ("completed", 2), ("completed", 0)]
    assert all(isinstance(run.call(status, attempt=attempt), Grant) for status, attempt in statuses)
    assert isinstance(run.call(), Refusal)


def test_a_failed_call_that_is_not_ends_the_loop() -> None:
    run = Run(calls=3)
    run.call("failed")
    assert "a failed call ended the run" in str(run.call())
    assert isinstance(run.call(), Refusal)


def test_a_call_that_never_left_is_asked_again_in_its_turn() -> None:
    run = Run(calls=1)
    run.policy.settle(run.ask().ticket, Use(amounts(calls=0), "unsent"), NOW)
    assert isinstance(run.call(), Grant)
    assert isinstance(run.call(), Refusal)


def test_two_calls_at_once_cannot_be_asked() -> None:
    run = Run()
    run.ask()
    with pytest.raises(NotApplicable, match="makes one call at a time"):
        run.ask()


def test_an_error_of_the_loop_is_no_refusal() -> None:
    run = Run(Breaks, calls=1)
    run.call()
    with pytest.raises(ZeroDivisionError, match="1 turns are enough"):
        run.call()


def test_a_run_that_is_ended_or_forgotten_leaves_nothing_behind() -> None:
    ended, forgotten = Run(), Run()
    ended.call()
    forgotten.call()
    ended.policy.close(ended.node, Use(amounts(calls=1)), COMPLETED, NOW)
    del forgotten
    gc.collect()  # a coroutine that is thrown away while it waits would be told


def _world(*policies: Any) -> Experiment:
    calls = Distribution.empirical([1, 2, 3, 5])
    one = AgentProfile(model="m", calls=calls, startup_tokens=Distribution.constant(10), failure_rate=0.2)
    root = AgentProfile(
        model="m", calls=calls, startup_tokens=Distribution.constant(10), spawns=(Spawn(agent="one", count=2),)
    )
    model = ModelProfile(output_tokens=Distribution.constant(5), latency_s=Distribution.constant(1))
    work = Workload(agents={"root": root, "one": one}, root="root")
    return Experiment(workload=work, provider=MockProvider(models={"m": model}), policies=policies, runs=40)


def test_in_a_simulation_it_decides_as_a_counter_of_each_node_does() -> None:
    theirs, ours = policy(ByHand, calls=3, name="theirs"), iteration_budget(3, name="ours")
    nodes = _world(theirs, ours).run(backend="serial").settlements.nodes
    one, two = (nodes[nodes["policy"] == name].reset_index(drop=True) for name in ("theirs", "ours"))
    assert (one["outcome"] == "exhausted").sum() > 10
    for column in ("calls", "outcome", "duration_ns", "failed_calls"):
        if column in nodes:
            assert one[column].tolist() == two[column].tolist()


def _observed(adapter: type[LoopAdapter], wants: int, *, error_rate: float = 0.0) -> Any:
    model = ModelProfile(
        output_tokens=Distribution.constant(5), latency_s=Distribution.constant(1), error_rate=error_rate
    )
    agent = loop_agent(adapter, wants=lambda _seat: wants, calls=3)
    provider = MockProvider(models={"m": model})
    return simulate_agent(agent, provider=provider, policies=[unlimited()], runs=5).settlements.nodes


@pytest.mark.parametrize(("wants", "calls", "outcome"), [(2, 2, "completed"), (3, 3, "completed"), (4, 3, "exhausted")])
def test_run_whole_a_loop_ends_as_it_ends(wants: int, calls: int, outcome: str) -> None:
    nodes = _observed(ByHand, wants)
    assert set(nodes["calls"]) == {calls}
    assert set(nodes["outcome"]) == {outcome}
    assert set(nodes["stopped_by"].dropna()) == ({"steps-exhausted"} if outcome == "exhausted" else set())


def test_run_whole_a_loop_fails_with_a_failed_call() -> None:
    assert set(_observed(ByHand, 2, error_rate=1.0)["outcome"]) == {"failed"}


def test_run_whole_an_error_of_the_loop_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        _observed(Breaks, 4)


def test_only_what_owns_a_loop_is_run_whole() -> None:
    with pytest.raises(InputError, match=r"^adapter: expected one that owns its loop, got 'check-then-add'"):
        loop_agent("check-then-add", wants=lambda _seat: 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^limits of by-hand"):
        loop_agent(ByHand, wants=lambda _seat: 1, tokens=3)


def test_both_engines_ask_it_alike() -> None:
    world = _world(policy(ByHand, calls=3))
    digests = {world.run(backend="serial", engine=engine).digest() for engine in ("kernel", "asyncio")}  # type: ignore[arg-type]
    assert len(digests) == 1
