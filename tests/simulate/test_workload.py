"""Workloads: what agents do, and that nothing a policy says changes what they draw."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from harness_lab import draws
from harness_lab.agents import Call, Children, Reply, Rest
from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Outcome
from harness_lab.policies import COMPLETED, End
from harness_lab.simulate import AgentProfile, Spawn, Workload
from harness_lab.simulate.workload import MAX_CHILDREN, MAX_RULES, Agent
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

CONSTANT = Distribution.constant
KEY = draws.run_key(3, 0)


def an_agent(**changes: Any) -> AgentProfile:
    values = {"model": "m", "calls": CONSTANT(3), "startup_tokens": CONSTANT(1_000)}
    return AgentProfile(**(values | changes))


@cache
def compiled(profile: AgentProfile) -> Agent:
    return Workload(agents={"a": profile, "kid": an_agent()}, root="a").compile()["a"]


def moves(profile: AgentProfile, *, fail: int = 0, key: int = KEY) -> tuple[list[Any], End]:
    """Return the moves of a brain whose first attempts fail, and its end."""
    brain = compiled(profile).brain(key)
    made, told = [], None
    try:
        while True:
            made.append(brain.send(told))
            told = _told(made[-1], fail)
    except StopIteration as finished:
        return made, finished.value


def _told(move: Any, fail: int) -> Any:
    if not isinstance(move, Call):
        return None
    failed = move.attempt < fail
    return Reply("failed" if failed else "completed", move.input_total, 0, 0, 0 if failed else 50, 0, 0)


def test_the_context_grows_with_every_answer_and_is_sent_again() -> None:
    made, end = moves(an_agent(growth_tokens=CONSTANT(200), shared_tokens=300))
    assert end is COMPLETED
    assert [(call.input_total, call.resent) for call in made] == [(1_000, 300), (1_250, 1_000), (1_500, 1_250)]


def test_tools_take_time_between_calls_and_not_after_the_last() -> None:
    made, _ = moves(an_agent(tool_s=CONSTANT(2)))
    assert [type(move) for move in made] == [Call, Rest, Call, Rest, Call]
    assert made[1] == Rest(2_000_000_000)


def test_an_agent_makes_at_least_one_call() -> None:
    made, _ = moves(an_agent(calls=CONSTANT(0)))
    assert len(made) == 1


def test_a_failed_attempt_is_made_again_after_a_pause_that_doubles() -> None:
    made, end = moves(an_agent(calls=CONSTANT(1), backoff_s=1.5, max_attempts=3), fail=2)
    assert end is COMPLETED
    assert made[1::2] == [Rest(1_500_000_000), Rest(3_000_000_000)]
    assert [(call.call, call.attempt) for call in made[::2]] == [(0, 0), (0, 1), (0, 2)]


def test_an_agent_that_runs_out_of_attempts_fails_for_want_of_infrastructure() -> None:
    made, end = moves(an_agent(max_attempts=2), fail=2)
    assert end == End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
    assert len(made) == 3


def test_an_agent_may_fail_of_its_own_at_any_of_its_calls() -> None:
    ends = [moves(an_agent(failure_rate=0.5), key=draws.run_key(3, run)) for run in range(400)]
    failed = [len(made) for made, end in ends if end == End(Outcome.FAILED, None, Cause.MODEL)]
    assert len(failed) == pytest.approx(200, abs=40)
    assert all(failed.count(calls) == pytest.approx(len(failed) / 3, abs=35) for calls in (1, 2, 3))


def test_children_are_named_by_call_and_place_and_keep_their_names_when_a_rule_is_not_due() -> None:
    ask = amounts(tokens=500)
    rules = (
        Spawn(agent="kid", count=2, after=(0,), budget=ask),
        Spawn(agent="kid", count=CONSTANT(3)),
        Spawn(agent="kid", count=1, after=(0, 2)),
    )
    made, _ = moves(an_agent(spawns=rules))
    batches = [move.children for move in made if isinstance(move, Children)]
    assert [[(c.call, c.slot) for c in batch] for batch in batches] == [
        [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
        [(1, 2), (1, 3), (1, 4)],
        [(2, 2), (2, 3), (2, 4), (2, 5)],
    ]
    assert [child.budget for child in batches[0]][:3] == [ask, ask, amounts()]


def test_a_child_that_is_due_by_chance_is_due_as_often_as_it_says() -> None:
    profile = an_agent(calls=CONSTANT(1), spawns=(Spawn(agent="kid", chance=0.25),))
    due = sum(len(moves(profile, key=draws.run_key(5, run))[0]) == 2 for run in range(1_000))
    assert due == pytest.approx(250, abs=55)


def test_the_same_key_makes_the_same_moves() -> None:
    profile = an_agent(
        calls=Distribution.of("uniform", loc=1, scale=9), growth_tokens=Distribution.of("expon", scale=400)
    )
    one, two = (moves(profile)[0] for _ in range(2))
    assert [call.input_total for call in one] == [call.input_total for call in two]


def test_more_children_or_rules_than_names_have_room_for_are_refused() -> None:
    many = tuple(Spawn(agent="kid", count=MAX_CHILDREN // 2 + 1) for _ in range(2))
    with pytest.raises(InputError, match=r"^spawns of a: expected at most 200 children after a call, got 202"):
        moves(an_agent(spawns=many))
    with pytest.raises(InputError, match=r"^spawns: expected at most 32 rules, got 33"):
        an_agent(spawns=tuple(Spawn(agent="kid", count=0) for _ in range(MAX_RULES + 1)))


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: an_agent(max_attempts=0), "max_attempts"),
        (lambda: an_agent(max_attempts=33), "max_attempts"),
        (lambda: an_agent(backoff_s=-1), "backoff_s"),
        (lambda: an_agent(backoff_s=float("nan")), "backoff_s"),
        (lambda: an_agent(failure_rate=1.5), "failure_rate"),
        (lambda: an_agent(failure_rate=float("nan")), "failure_rate"),
        (lambda: an_agent(shared_tokens=-1), "shared_tokens"),
        (lambda: Spawn(agent="kid", count=-1), "count of children"),
        (lambda: Spawn(agent="kid", chance=-0.1), "chance"),
        (lambda: Spawn(agent="kid", after=(-1,)), "after"),
        (lambda: Spawn(agent="kid", after=(1.5,)), "after"),  # type: ignore[arg-type]
        (lambda: Spawn(agent="kid", after=5), "after"),  # type: ignore[arg-type]
        (lambda: Spawn(agent="kid", budget=(1, 2)), "budget"),
        (lambda: Workload(agents={"a": an_agent()}, root="b"), "agents"),
        (lambda: Workload(agents={"a": an_agent(spawns=(Spawn(agent="kid"),))}, root="a"), "agents"),
    ],
)
def test_a_bad_workload_is_refused_by_name(build: Any, name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected"):
        build()
