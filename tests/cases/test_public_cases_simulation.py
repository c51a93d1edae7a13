"""Real problems of other projects' users with retries, replications, limits that bind and dry runs, as small scenarios.

Ids are those of the collection of cases.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from harness_lab.analyze import limit_report
from harness_lab.errors import InputError
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import SpawnAsk, StepAsk, Use, call_holds, reservation_pool, shared_ledger, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile, RateLimits
from harness_lab.settlements import Settlements
from harness_lab.simulate import AgentProfile, Arrivals, Experiment, Replay, Retry, Workload
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

CONSTANT = Distribution.constant
SECOND = 10**9


def an_experiment(agent: dict[str, Any], model: dict[str, Any], *policies: Any, **rest: Any) -> Experiment:
    """One kind of agent and one model; what is not named is one call of a thousand tokens, answered at once."""
    profile = AgentProfile(**({"model": "m", "calls": CONSTANT(1), "startup_tokens": CONSTANT(1_000)} | agent))
    answers = ModelProfile(**({"output_tokens": CONSTANT(100), "latency_s": CONSTANT(0)} | model))
    prices = rest.pop("prices", PriceTable({"m": (Price.usd_per_million(input=3, output=15),)}))
    workload = Workload(agents={"a": profile}, root="a", arrivals=rest.pop("arrivals", None))
    provider = MockProvider(models={"m": answers}, prices=prices)
    return Experiment(workload=workload, provider=provider, policies=policies, **({"runs": 1} | rest))


def test_a39_every_attempt_with_usage_is_charged_once_and_calls_and_attempts_are_counted_apart() -> None:
    calls = pd.DataFrame(
        {"run": "r", "node": "0", "call": 0, "attempt": [0, 1, 2], "status": ["failed", "unsent", "completed"],
         "model": "m", "input_fresh": [2_000, None, 2_000], "cache_read": 0, "cache_write": 0,
         "input_total": [2_000, None, 2_000], "output": [0, None, 500]}
    )  # fmt: skip
    nodes = {"run": ["r"], "node": "0", "outcome": "completed", "model": "m"}
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    result = Replay.of(
        Settlements.from_columns(nodes, calls), (unlimited(), reservation_pool(cost_usd=1)), prices=prices
    ).run()
    for node in result.settlements.nodes.to_dict("records"):
        assert (node["cost_nusd"], node["calls"], node["attempts"]) == (19_500_000, 1, 3)
        assert (node["output"], node["input_fresh"]) == (500, 4_000)


def test_a40_a_refusal_by_the_budget_is_final_and_layers_of_retries_do_not_multiply_unseen() -> None:
    always_429 = {"limits": RateLimits(requests_per_minute=1, burst_s=60, retry_after_s=0), "latency_s": CONSTANT(0)}
    for cap, attempts in ((None, 1 + 36), (5, 5)):
        retry = Retry(layers=(6, 2, 3), base_s=0, max_attempts=cap)
        experiment = an_experiment({"calls": CONSTANT(2), "retry": retry}, always_429, unlimited())
        node = experiment.run(backend="serial").settlements.nodes.iloc[0]
        assert (node["attempts"], node["calls"], node["outcome"]) == (attempts, 1, "failed")
    refused = an_experiment({"retry": Retry(layers=(6, 2, 3))}, {}, shared_ledger(0)).run(backend="serial")
    node = refused.settlements.nodes.iloc[0]
    assert (node["attempts"], node["duration_ns"], node["stopped_by"]) == (0, 0, "steps-exhausted")


def storm(jitter: str, seed: int = 3) -> pd.DataFrame:
    """Ten agents at one provider of one request a second: the attempts, in order."""
    retry = Retry(layers=(5,), base_s=1, factor=2, cap_s=30, jitter=jitter)  # type: ignore[arg-type]
    limits = RateLimits(requests_per_minute=60, burst_s=1, retry_after_s=2)
    together = Arrivals(period_s=60, at_s=(0.0,) * 10)
    experiment = an_experiment({"retry": retry}, {"limits": limits}, unlimited(), arrivals=together, seed=seed)
    calls = experiment.run(calls=True, backend="serial").settlements.calls
    assert calls is not None
    return calls.sort_values(["start_ns", "run"]).reset_index(drop=True)


def test_a41_back_off_is_honoured_in_virtual_time_and_a_storm_is_bounded() -> None:
    calm, burst = storm("full"), storm("none")
    for made in (calm, burst):
        assert len(made) <= 50
        waited = made.sort_values(["run", "attempt"]).groupby("run")["start_ns"].diff().dropna()
        assert (waited >= 2 * SECOND).all()
    assert storm("full").equals(calm)
    assert not storm("full", seed=4)["start_ns"].equals(calm["start_ns"])
    later = [made.loc[made["attempt"] == 1, "start_ns"] for made in (burst, calm)]
    assert len(set(later[0])) == 1
    assert len(set(later[1])) == len(later[1]) == 9


def test_a61_replications_have_streams_of_their_own_that_one_seed_repeats() -> None:
    agent = {"calls": Distribution.of("lognorm", s=0.6, scale=8), "growth_tokens": Distribution.of("expon", scale=400)}
    ten, again, twenty = (an_experiment(agent, {}, unlimited(), runs=runs, seed=42) for runs in (10, 10, 20))
    first = ten.run(backend="serial").settlements.nodes
    assert first["input_total"].nunique() == 10
    assert again.run(backend="serial").digest() == ten.run(backend="serial").digest()
    assert twenty.run(backend="serial").settlements.nodes.head(10).equals(first)
    assert ten.run(backend="loky", workers=4).settlements.nodes.equals(first)


def test_a62_the_report_ranks_limits_by_how_often_they_bound_and_the_dollar_limit_never_was_near() -> None:
    agent = {"calls": CONSTANT(40), "growth_tokens": CONSTANT(550)}
    prices = PriceTable({"m": (Price.usd_per_million(input=0.03, output=0.6),)})
    model = {"output_tokens": CONSTANT(50), "max_output_tokens": 4_000}
    limit = call_holds(tokens=500_000, cost_usd=1.0)  # a limit that is checked before and charged after lets call 40 go
    experiment = an_experiment(agent, model, unlimited(), limit, prices=prices, runs=5)
    result = experiment.run(decisions=True, backend="serial")
    free, cut = (part for _, part in result.settlements.nodes.groupby("policy", sort=False))
    assert (free["input_total"] == 508_000).all()
    assert free["cost_nusd"].iloc[0] == pytest.approx(0.0164e9, rel=0.01)
    assert (cut["outcome"] == "exhausted").all()
    assert cut["calls"].between(35, 39).all()
    assert (cut["cost_nusd"] < 0.02e9).all()
    assert result.decisions is not None
    stopped = result.decisions.loc[result.decisions["answer"] != "granted", "answer"]
    assert stopped.str.contains(r"\(tokens\)").all()
    assert not stopped.str.contains(r"\(cost\)").any()
    report = limit_report(cut).to_frame()
    ended = report[report["figure"] == "ended"].sort_values("value", ascending=False)
    assert ended[["limit", "value"]].to_numpy().tolist() == [["budget-exhausted", 1.0]]


def test_a64_a_dry_run_gives_the_decision_that_enforcement_gives_and_changes_nothing() -> None:
    policy = call_holds(cost_usd=1.0).start("run")
    node = policy.spawn(SpawnAsk(None, (), amounts()), 0).ticket  # type: ignore[union-attr,arg-type]
    first = policy.admit(_step(node, 0, 0.80), 0)  # type: ignore[arg-type]
    policy.settle(first.ticket, Use(amounts(calls=1, input=1, tokens=1, fresh=1, cost_usd=0.80)), 0)  # type: ignore[union-attr,arg-type]
    for _ in range(2):
        assert policy.would(_step(node, 1, 0.10), 0) is None  # type: ignore[arg-type]
        no = policy.would(_step(node, 2, 0.30), 0)  # type: ignore[arg-type]
        assert isinstance(no, Refusal)
        assert (no.shortfalls[0].free, no.shortfalls[0].asked) == (200_000_000, 300_000_000)
        with pytest.raises(InputError, match="finite"):
            _step(node, 3, float("nan"))
    enforced = [policy.admit(_step(node, call, usd), 0) for call, usd in ((1, 0.10), (2, 0.30))]  # type: ignore[arg-type]
    assert [isinstance(answer, Refusal) for answer in enforced] == [False, True]
    assert enforced[1].code is Code.COST_CAP_WOULD_EXCEED  # type: ignore[union-attr]


def _step(node: Any, call: int, usd: float) -> StepAsk:
    return StepAsk(node, call, 0, amounts(calls=1, cost_usd=usd))
