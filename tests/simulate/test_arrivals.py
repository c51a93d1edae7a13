"""Runs that arrive: their process, the pool and the provider that they share, and what stays the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness_lab import draws
from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec, call_holds, compose, period_budget, reservation_pool, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile, RateLimits
from harness_lab.simulate import AgentProfile, Arrivals, Experiment, Spawn, Workload
from harness_lab.stats.distributions import Distribution

CONSTANT = Distribution.constant
DAY, HOUR = 86_400, 3_600


def times(**changes: Any) -> np.ndarray:
    """Return the seconds at which runs arrive in one period."""
    arriving = Arrivals(**changes).compile()
    return np.array(arriving.times(draws.run_key(4, 0))) / 1e9


def an_experiment(arrivals: Arrivals, *policies: PolicySpec, runs: int = 4, **profile: Any) -> Experiment:
    lead = AgentProfile(
        model="m", calls=CONSTANT(3), startup_tokens=CONSTANT(1_000), spawns=(Spawn(agent="kid", after=(0,)),)
    )
    kid = AgentProfile(model="m", calls=CONSTANT(1), startup_tokens=CONSTANT(500))
    model = ModelProfile(
        output_tokens=Distribution.of("uniform", loc=50, scale=100),
        latency_s=CONSTANT(5),
        max_output_tokens=200,
        **profile,
    )
    prices = PriceTable({"m": (Price.usd_per_million(input=1, output=10),)})
    workload = Workload(agents={"lead": lead, "kid": kid}, root="lead", arrivals=arrivals)
    return Experiment(
        workload=workload, provider=MockProvider(models={"m": model}, prices=prices), policies=policies, runs=runs
    )


def test_as_many_runs_arrive_as_the_rate_says_and_their_gaps_are_exponential() -> None:
    came = times(period_s=100 * DAY, per_day=48)
    assert len(came) == pytest.approx(4_800, abs=4 * 4_800**0.5)
    gaps = np.diff(came)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.06)
    assert (np.diff(came) >= 0).all()


def test_weekends_hours_and_growth_shape_the_rate() -> None:
    came = times(period_s=28 * DAY, per_day=200, weekdays=(1, 1, 1, 1, 1, 0, 0), growth_per_week=0.5)
    day = (came // DAY).astype(int)
    assert not np.isin(day % 7, (5, 6)).any()
    weeks = np.bincount(day // 7, minlength=4)
    assert weeks[3] / weeks[0] == pytest.approx(1.5**3, rel=0.2)
    office = times(period_s=10 * DAY, per_day=100, hours=(0,) * 9 + (1,) * 8 + (0,) * 7)
    assert set((office // HOUR % 24).astype(int)) == set(range(9, 17))


def test_the_weekday_of_the_start_counts() -> None:
    came = times(period_s=2 * DAY, per_day=100, weekdays=(0, 0, 0, 0, 0, 1, 0), start="2026-01-09T00:00")
    assert ((came // DAY) == 1).all()


def test_a_renewal_process_has_its_own_gaps_and_recorded_times_are_kept() -> None:
    assert np.diff(times(period_s=1_000, gap_s=CONSTANT(100))).tolist() == pytest.approx([100] * 8, abs=1e-6)
    assert times(period_s=100, at_s=(5.0, 1.0, 200.0)).tolist() == [1.0, 5.0]


def test_one_pool_for_all_is_used_up_by_all_and_one_each_by_nobody() -> None:
    arrivals = Arrivals(period_s=HOUR, gap_s=CONSTANT(300))
    pool = reservation_pool(tokens=15_000)
    for shared, wanted in ((True, {"completed", "exhausted"}), (False, {"completed"})):
        result = an_experiment(replace(arrivals, shared=shared), pool).run(backend="serial")
        roots = result.settlements.nodes[result.settlements.nodes["parent"].isna()]
        assert set(roots["outcome"]) == wanted
        assert roots["session"].nunique() == 4
        assert roots.groupby("session").size().tolist() == [11] * 4


def test_one_provider_throttles_runs_that_arrive_together_and_not_runs_apart() -> None:
    limits = RateLimits(requests_per_minute=15, burst_s=4)
    together, apart = (
        an_experiment(Arrivals(period_s=DAY, at_s=at), unlimited(), limits=limits, runs=2).run(backend="serial")
        for at in ((0.0, 0.0, 0.0), (0.0, 9_000.0, 18_000.0))
    )
    more = [(nodes["attempts"] - nodes["calls"]).sum() for nodes in (r.settlements.nodes for r in (together, apart))]
    assert more[0] > 0
    assert more[1] == 0


def test_a_budget_of_a_period_is_shared_by_its_users_and_its_window_turns() -> None:
    arrivals = Arrivals(period_s=3 * DAY, gap_s=CONSTANT(2 * HOUR), users=2)
    budget = compose(period_budget(cost_usd=0.03, by="user", every="day"), name="daily")
    nodes = an_experiment(arrivals, budget, unlimited(), runs=3).run(backend="serial").settlements.nodes
    roots = nodes[nodes["parent"].isna() & (nodes["policy"] == "daily")]
    ended = roots["outcome"].eq("completed").groupby([roots["session"], roots["start_ns"] // (DAY * 10**9)]).mean()
    assert ((ended > 0) & (ended < 1)).all()
    spent = nodes[nodes["policy"] == "daily"].groupby(["session", "user", nodes["start_ns"] // (DAY * 10**9)])
    assert (spent["cost_nusd"].sum() <= 30_000_000).all()


def test_the_same_runs_arrive_under_every_policy_engine_worker_and_alone() -> None:
    arrivals = Arrivals(period_s=HOUR, per_day=24 * 10, users=3)
    experiment = an_experiment(arrivals, unlimited(), call_holds(cost_usd=0.05), runs=4)
    whole = experiment.run(backend="serial")
    for other in (experiment.run(engine="asyncio", backend="serial"), experiment.run(backend="loky", workers=2)):
        assert other.digest() == whole.digest()
    alone = experiment.run(only=[2], backend="serial").settlements.nodes
    nodes = whole.settlements.nodes
    assert alone.equals(nodes[nodes["session"] == "2"].reset_index(drop=True))
    starts = nodes[nodes["parent"].isna()].pivot(index="run", columns="policy", values="start_ns")
    assert (starts.nunique(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"period_s": 0}, "period_s"),
        ({}, "arrivals"),
        ({"per_day": 5, "at_s": (1.0,)}, "arrivals"),
        ({"per_day": -1}, "per_day"),
        ({"per_day": 1, "weekdays": (1.0,)}, "weekdays"),
        ({"per_day": 1, "hours": (0.0,) * 24}, "hours"),
        ({"per_day": 1, "growth_per_week": -1}, "growth_per_week"),
        ({"per_day": 1, "users": 0}, "users"),
        ({"per_day": 1, "start": "Monday"}, "start"),
        ({"at_s": (-1.0,)}, "at_s"),
    ],
)
def test_bad_arrivals_are_refused_by_name(change: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=rf"^{what}: expected"):
        Arrivals(**({"period_s": 10.0} | change))


def test_too_many_arrivals_are_refused_when_they_are_drawn() -> None:
    with pytest.raises(InputError, match=r"^arrivals: expected at most 50,000 in a period"):
        times(period_s=DAY, per_day=1e6)
