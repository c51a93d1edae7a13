"""Agents with habits: they retry with jitter, think, compact, ask again after a refusal, and react to a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness_lab import draws
from harness_lab.agents import Call, Children, Reply, Rest
from harness_lab.agents.ports import Throttled
from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.policies import End, compose, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.policies.protocol import COMPLETED
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Reaction, Replay, Retry, Spawn, Workload
from harness_lab.simulate.fast.family import why_not
from harness_lab.simulate.lively_agent import LivelyAgent
from harness_lab.simulate.workload import Agent
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

CONSTANT = Distribution.constant
FAILED = End(Outcome.FAILED, None, Cause.MODEL)
DENIED = End(Outcome.DENIED, Code.BUDGET_EXHAUSTED, Cause.LIMIT)


def a_profile(**changes: Any) -> AgentProfile:
    values: dict[str, Any] = {"model": "m", "calls": CONSTANT(3), "startup_tokens": CONSTANT(1_000)}
    return AgentProfile(**(values | changes))


def moves(profile: AgentProfile, *, replies: Any = None, ends: Any = None, ask: Any = None, key: int = 5) -> list[Any]:
    """Return the moves of a brain: replies by attempt (completed where none is given), ends of batches in order."""
    agents = Workload(agents={"a": profile, "kid": a_profile(), "b": a_profile()}, root="a").compile()
    brain, made, told, batches = agents["a"].born(key, ask or amounts())(), [], None, iter(ends or ())
    try:
        while True:
            move = brain.send(told)
            made.append(move)
            told = None
            if isinstance(move, Call):
                told = replies(len(made)) if replies else Reply("completed", move.input_total, 0, 0, 50, 7, 7)
            elif isinstance(move, Children):
                told = [next(batches, COMPLETED) for _ in move.children]
    except StopIteration as finished:
        made.append(finished.value)
    return made


def failing(_n: int) -> Reply:
    return Reply("failed", 0, 0, 0, 0, 0, 0)


def test_a_plain_profile_is_played_by_the_plain_agent_and_makes_the_same_moves_as_a_lively_one() -> None:
    plain = a_profile(tool_s=Distribution.of("expon", scale=3), spawns=(Spawn(agent="kid", count=2, after=(0,)),))
    lively = replace(plain, retry=Retry())
    agents = Workload(agents={"a": plain, "b": lively, "kid": a_profile()}, root="a").compile()
    assert (type(agents["a"]), type(agents["b"])) == (Agent, LivelyAgent)
    shown = [[_shown(move) for move in moves(profile)] for profile in (plain, lively)]
    assert shown[0] == shown[1]


def _shown(move: Any) -> Any:
    if isinstance(move, Call):
        return (move.call, move.attempt, move.input_total, move.resent, move.key)
    return [(c.call, c.slot, c.attempt) for c in move.children] if isinstance(move, Children) else move


def test_pauses_grow_by_their_factor_to_their_cap() -> None:
    made = moves(a_profile(retry=Retry(layers=(5,), base_s=1, factor=3, cap_s=10)), replies=failing)
    assert [move.ns // NS_PER_S for move in made if isinstance(move, Rest)] == [1, 3, 9, 10]
    assert made[-1] == End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)


def test_jitter_lies_between_its_ends_and_differs_from_node_to_node() -> None:
    for jitter, low in (("full", 0.0), ("equal", 4.0)):
        retry = Retry(layers=(2,), base_s=8, jitter=jitter)  # type: ignore[arg-type]
        pauses = [moves(a_profile(retry=retry), replies=failing, key=draws.run_key(1, k))[1].ns for k in range(200)]
        assert low * NS_PER_S <= min(pauses) <= (low + 0.5) * NS_PER_S
        assert 7.5 * NS_PER_S <= max(pauses) <= 8 * NS_PER_S
        assert len(set(pauses)) == 200


def test_a_retry_time_is_kept_and_the_jitter_comes_on_top() -> None:
    limited = lambda _n: Throttled(20 * NS_PER_S)  # noqa: E731
    for jitter, low, high in (("none", 20, 20), ("full", 20, 21), ("equal", 20.5, 21)):
        retry = Retry(layers=(2,), base_s=1, jitter=jitter)  # type: ignore[arg-type]
        pause = moves(a_profile(retry=retry), replies=limited)[1].ns / NS_PER_S
        assert low <= pause <= high


def test_nested_layers_multiply_and_a_cap_on_the_agent_stops_them() -> None:
    for cap, wanted in ((None, 36), (5, 5)):
        retry = Retry(layers=(6, 2, 3), base_s=0, max_attempts=cap)
        made = [move for move in moves(a_profile(retry=retry), replies=failing) if isinstance(move, Call)]
        assert len(made) == wanted
        assert len({(call.key, call.attempt) for call in made}) == wanted


def test_people_think_as_often_as_they_are_asked() -> None:
    profile = a_profile(calls=CONSTANT(400), think_s=CONSTANT(60), think_chance=0.25, tool_s=CONSTANT(1))
    pauses = [move.ns // NS_PER_S for move in moves(profile) if isinstance(move, Rest)]
    assert set(pauses) == {1, 61}
    assert pauses.count(61) == pytest.approx(100, abs=30)


def test_a_context_above_its_limit_is_compacted_by_one_more_call() -> None:
    profile = a_profile(
        calls=CONSTANT(4), growth_tokens=CONSTANT(500), context_limit_tokens=2_000, compact_to_tokens=300
    )
    made = [(c.kind, c.input_total, c.resent) for c in moves(profile) if isinstance(c, Call)]
    assert made == [
        ("model", 1_000, 0),
        ("model", 1_550, 1_000),
        ("compaction", 2_100, 1_550),
        ("model", 1_300, 1_000),
        ("model", 1_850, 1_300),
    ]


def test_a_child_that_failed_is_started_again_as_often_as_its_rule_says() -> None:
    profile = a_profile(spawns=(Spawn(agent="kid", count=2, after=(0,), max_attempts=3),))
    batches = [m.children for m in moves(profile, ends=[FAILED, COMPLETED, FAILED, FAILED]) if isinstance(m, Children)]
    assert [[(c.slot, c.attempt) for c in batch] for batch in batches] == [[(0, 0), (1, 0)], [(0, 1)], [(0, 2)]]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ({"on_refusal": "give-up"}, [("kid", 800)]),
        ({"on_refusal": "shrink", "tries": 2}, [("kid", 800), ("kid", 400), ("kid", 200)]),
        ({"on_refusal": "raise", "tries": 1}, [("kid", 800), ("kid", 1_600)]),
        ({"on_refusal": "other-path", "other": "b", "tries": 3}, [("kid", 800), ("b", 800)]),
    ],
)
def test_after_a_refusal_a_parent_does_what_its_rule_says(rule: dict[str, Any], asked: list[Any]) -> None:
    profile = a_profile(spawns=(Spawn(agent="kid", after=(0,), budget=amounts(tokens=800), **rule),))
    made = [m.children[0] for m in moves(profile, ends=[DENIED] * 9) if isinstance(m, Children)]
    assert [(child.agent, child.budget[2]) for child in made] == asked


def test_an_agent_that_winds_down_makes_one_last_call_and_starts_nobody() -> None:
    spawns = (Spawn(agent="kid"),)
    profile = a_profile(calls=CONSTANT(9), reaction=Reaction(kind="wind-down", at=0.5), spawns=spawns)
    made = moves(profile, ask=amounts(tokens=6_000))
    assert sum(isinstance(move, Call) for move in made) == 4  # 1,050 + 1,100 + 1,150 >= 3,000, and one more
    assert sum(isinstance(move, Children) for move in made) == 2
    assert made[-1] == COMPLETED
    assert sum(isinstance(move, Call) for move in moves(profile)) == 9  # nothing told: oblivious


def test_an_agent_that_spends_to_fill_goes_on_until_the_told_share() -> None:
    profile = a_profile(reaction=Reaction(kind="spend-to-fill", at=1.0, told=amounts(calls=7)))
    assert sum(isinstance(move, Call) for move in moves(profile)) == 7
    assert sum(isinstance(move, Call) for move in moves(a_profile())) == 3


def an_experiment(profile: AgentProfile, *policies: Any, runs: int = 40) -> Experiment:
    model = ModelProfile(output_tokens=CONSTANT(50), latency_s=CONSTANT(1), error_rate=0.3)
    kid = a_profile(failure_rate=0.4)
    workload = Workload(agents={"a": profile, "kid": kid, "b": a_profile()}, root="a")
    return Experiment(workload=workload, provider=MockProvider(models={"m": model}), policies=policies, runs=runs)


def test_lively_agents_are_the_same_on_both_runtimes() -> None:
    profile = a_profile(
        retry=Retry(layers=(2, 2), jitter="full"),
        think_s=Distribution.of("expon", scale=20),
        context_limit_tokens=1_500,
        compact_to_tokens=100,
        spawns=(Spawn(agent="kid", count=2, max_attempts=2, on_refusal="shrink", budget=amounts(tokens=9_000)),),
        reaction=Reaction(kind="wind-down", told=amounts(tokens=20_000)),
    )
    experiment = an_experiment(
        profile, unlimited(), compose(tree_limits(max_concurrent=1), reservation_pool(tokens=30_000))
    )
    kernel, asyncio = (experiment.run(engine=engine, backend="serial") for engine in ("kernel", "asyncio"))  # type: ignore[arg-type]
    assert kernel.digest() == asyncio.digest()
    paths = kernel.settlements.nodes["path"].dropna().str
    assert paths.endswith(".1").any()


def test_success_follows_the_share_of_its_calls_that_an_agent_made() -> None:
    profile = a_profile(calls=CONSTANT(4), delivery=((0.5, 0.0), (1.0, 0.9)))
    experiment = an_experiment(profile, unlimited(), reservation_pool(calls=3, name="three"), runs=600)
    nodes = experiment.run(backend="serial").settlements.nodes
    good = nodes.groupby("policy")["delivered"].mean()
    ends = nodes[nodes["policy"] == "unlimited"]["outcome"].eq("completed").mean()
    assert good["unlimited"] == pytest.approx(0.9 * ends, abs=0.05)
    assert 0.3 < good["three"] / good["unlimited"] < 0.7
    both = nodes.pivot(index="run", columns="policy", values="delivered")
    assert not (both["three"] & ~both["unlimited"]).any()  # the same luck: less done never delivers more


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: Retry(layers=()), "layers"),
        (lambda: Retry(layers=(99, 99)), "layers"),
        (lambda: Retry(base_s=-1), "base_s"),
        (lambda: Retry(factor=0.5), "factor"),
        (lambda: Retry(jitter="some"), "jitter"),  # type: ignore[arg-type]
        (lambda: Retry(max_attempts=0), "max_attempts"),
        (lambda: Reaction(kind="panic"), "kind of reaction"),  # type: ignore[arg-type]
        (lambda: Reaction(kind="wind-down", at=0), "at"),
        (lambda: Reaction(kind="wind-down", told=(1,)), "told"),
        (lambda: Spawn(agent="a", on_refusal="cry"), "on_refusal"),  # type: ignore[arg-type]
        (lambda: Spawn(agent="a", on_refusal="other-path"), "other"),
        (lambda: Spawn(agent="a", factor=1.0), "factor"),
        (lambda: a_profile(delivery=((1.0, 0.5), (0.5, 0.1))), "delivery"),
        (lambda: a_profile(context_limit_tokens=0), "context_limit_tokens"),
        (lambda: a_profile(think_chance=2), "think_chance"),
    ],
)
def test_bad_habits_are_refused_by_name(build: Any, what: str) -> None:
    with pytest.raises(InputError, match=rf"^{what}: expected"):
        build()


def test_results_say_that_agents_are_oblivious_and_show_one_run_that_winds_down() -> None:
    profile = a_profile(calls=CONSTANT(9))
    experiment = an_experiment(profile, unlimited(), reservation_pool(calls=6, name="six"))
    result = experiment.run(backend="serial")
    said = result.summary().splitlines()[-1]
    assert said.startswith("assumes oblivious agents")
    assert "run 0 under six: exhausted (budget-exhausted) after " in said
    assert "with agents that wind down at 80%: completed after " in said
    assert result.beside is not None
    one = result.beside()
    assert one is not None
    assert one.winding_down["calls"] <= one.oblivious["calls"] == 6
    reacting = an_experiment(replace(profile, reaction=Reaction(kind="wind-down")), unlimited()).run(backend="serial")
    assert "oblivious" not in reacting.summary()


def test_a_replay_shows_one_run_that_winds_down() -> None:
    recorded = an_experiment(a_profile(calls=CONSTANT(9)), unlimited()).run(calls=True, backend="serial").settlements
    replayed = Replay.of(recorded, (unlimited(), shared_ledger(6))).run()
    assert "with agents that wind down at 80%: completed after 6 calls" in replayed.summary()
    assert Replay.of(recorded, (unlimited(),)).run().beside is None


def test_a_plain_agent_that_delivers_is_in_the_family_of_the_fast_engine_and_one_with_habits_is_not() -> None:
    plain = an_experiment(a_profile(delivery=((0.5, 0.0), (1.0, 0.9))), unlimited())
    assert why_not(plain.workload, plain.provider, unlimited()) is None
    lively = an_experiment(a_profile(retry=Retry()), unlimited())
    assert "retry" in str(why_not(lively.workload, lively.provider, unlimited()))


@pytest.mark.slow
def test_deliveries_are_the_same_on_the_fast_engine() -> None:
    experiment = an_experiment(a_profile(delivery=((0.5, 0.0), (1.0, 0.9))), unlimited(), reservation_pool(calls=2))
    kernel, fast = (experiment.run(engine=engine, backend="serial") for engine in ("kernel", "fast"))  # type: ignore[arg-type]
    assert kernel.digest() == fast.digest()
    assert kernel.settlements.nodes["delivered"].any()
