"""What holds in every simulated world: same luck for all, nothing leaks, and the results depend on nothing else."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS
from harness_lab.policies import (
    AtLimit,
    PolicySpec,
    TreeLimitsSpec,
    compose,
    reservation_pool,
    shared_ledger,
    unlimited,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Workload
from harness_lab.simulate.engine import ENGINES
from harness_lab.stats.distributions import Distribution

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
Experiments = st.SearchStrategy[Experiment]
PRICES = PriceTable({"m": (Price.usd_per_million(input=1, output=2),)})
SIZE = ["input_fresh", "cache_read", "cache_write", "output", "cost_nusd", "billed_nusd", "duration_ns"]


def nodes_of(one: Experiment, **options: Any) -> pd.DataFrame:
    return one.run(backend="serial", **options).settlements.nodes


def test_the_results_do_not_depend_on_workers_or_on_the_size_of_a_block(busy: Experiment) -> None:
    digests = {busy.run(backend="serial").digest()}
    digests |= {busy.run(backend="serial", block=block).digest() for block in (1, 7)}
    digests |= {busy.run(backend="loky", workers=workers, block=9).digest() for workers in (1, 2)}
    assert len(digests) == 1


def test_the_decisions_do_not_depend_on_workers(busy: Experiment) -> None:
    one = busy.run(backend="serial", decisions=True)
    two = busy.run(backend="loky", workers=2, block=9, decisions=True)
    assert all(one.same_decisions(two, name).same for name in one.policies)


def test_writing_decisions_and_calls_down_changes_nothing(busy: Experiment) -> None:
    alone = busy.with_policies(busy.policies[2])
    assert alone.run(backend="serial", decisions=True, calls=True).digest() == alone.run(backend="serial").digest()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_alone_is_the_same_as_among_others(busy: Experiment, engine: Any) -> None:
    everything = nodes_of(busy)
    some = nodes_of(busy, only=[3, 17], engine=engine)
    expected = everything[everything["run"].isin(["3", "17"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, expected)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(busy: Experiment) -> None:
    again = Experiment(
        workload=busy.workload, provider=busy.provider, policies=busy.policies, runs=busy.runs, seed=busy.seed
    )
    other = Experiment(
        workload=busy.workload, provider=busy.provider, policies=busy.policies, runs=busy.runs, seed=busy.seed + 1
    )
    assert again.run(backend="serial").digest() == busy.run(backend="serial").digest()
    assert again.digest() == busy.digest()
    assert other.run(backend="serial").digest() != busy.run(backend="serial").digest()


def check_untouched(nodes: pd.DataFrame) -> int:
    """Compare runs that no limit touched with the same runs under no limit; return how many there were."""
    nodes = nodes.sort_values(["policy", "run", "node"], kind="stable")  # who waits for no time ends a little later
    free = nodes[nodes["policy"] == "unlimited"].drop(columns="policy").reset_index(drop=True)
    touched = (nodes["cause"] == "limit").fillna(value=False) | (nodes["wait_ns"] > 0).fillna(value=False)
    untouched = 0
    for name in nodes["policy"].unique():
        mine = nodes[nodes["policy"] == name]
        runs = sorted(set(mine["run"]) - set(mine.loc[touched[mine.index], "run"]))
        untouched += len(runs)
        pd.testing.assert_frame_equal(
            mine[mine["run"].isin(runs)].drop(columns="policy").reset_index(drop=True),
            free[free["run"].isin(runs)].reset_index(drop=True),
        )
    return untouched


def test_runs_that_no_limit_touches_are_identical_under_all_policies_in_every_column(busy: Experiment) -> None:
    assert busy.runs < check_untouched(nodes_of(busy)) < 4 * busy.runs


@settings(RELAXED, max_examples=15)
@given(data=st.data())
def test_runs_that_no_limit_touches_are_identical_in_random_worlds(
    data: st.DataObject, experiments: Experiments
) -> None:
    check_untouched(nodes_of(data.draw(experiments)))


def check_same_luck(one: Experiment) -> None:
    """Compare every call that was made under a policy with the same call under none."""
    calls = [
        one.with_policies(spec).run(backend="serial", calls=True).settlements.calls
        for spec in (*one.policies, unlimited())
    ]
    free = calls[-1]
    for mine in calls[:-1]:
        both = mine.merge(free, on=["run", "node", "call", "attempt"], suffixes=("", "_free"))
        ended = both[(both["status"] != "abandoned") & (both["status_free"] != "abandoned")]
        for column in ("status", "input_total", *SIZE):
            assert ended[column].equals(ended[f"{column}_free"].rename(column)), column


def test_a_policy_that_kills_a_child_moves_no_other_nodes_draws(busy: Experiment) -> None:
    check_same_luck(busy)


@settings(RELAXED, max_examples=15)
@given(data=st.data())
def test_no_policy_moves_a_draw_in_random_worlds(data: st.DataObject, experiments: Experiments) -> None:
    check_same_luck(data.draw(experiments))


@settings(RELAXED, max_examples=80)
@given(data=st.data())
def test_after_every_run_nothing_is_held_and_nobody_waits(
    data: st.DataObject, experiments: Experiments, kept: Any
) -> None:
    one = data.draw(experiments)
    world, spec = one.world(), kept(one.policies[0])
    for engine in ENGINES:
        rows, _ = world.block(spec, range(one.runs), engine=engine, keep_calls=False, keep_decisions=False)
        assert all(row[6] is not None for row in rows.nodes)
    for policy in spec.started:
        assert not policy.open  # every ticket was closed; a second time would have been an error
        assert policy.tick(10**18) is None
        assert list(policy.outbox()) == []
        for module in policy.modules:
            assert getattr(module, "running", 0) == 0
            if hasattr(module, "pool"):
                assert module.pool.held() == (0,) * len(CHANNELS)


@settings(RELAXED, max_examples=40)
@given(
    data=st.data(), limit=st.integers(1, 3), wait=st.sampled_from([None, 0, 3, 50]), timeout=st.sampled_from([None, 4])
)
def test_never_more_children_run_than_the_limit_allows(
    data: st.DataObject, limit: int, wait: Any, timeout: Any, experiments: Experiments
) -> None:
    module = TreeLimitsSpec(
        max_concurrent=limit, timeout_s=timeout, concurrency="tree" if wait is None else "parent", max_calls=30
    )
    spec = PolicySpec(name="tree", modules=(module,), max_wait_s=wait)
    nodes = nodes_of(data.draw(experiments).with_policies(spec))
    ran = nodes[(nodes["depth"] > 0) & (nodes["outcome"] != "denied")]
    for _, family in ran.groupby(["run"] if wait is None else ["run", "parent"]):
        assert most_at_once(family) <= limit


def most_at_once(nodes: pd.DataFrame) -> int:
    """Return how many of the nodes ran at one instant, at most; who ends there has ended."""
    begins = (nodes["start_ns"] + nodes["wait_ns"]).tolist()
    ends = (nodes["start_ns"] + nodes["duration_ns"]).tolist()
    spans = [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    return max(accumulate(change for _, change in changes), default=0)


def solo(prices: PriceTable, unreported_rate: float, *policies: PolicySpec) -> pd.DataFrame:
    """Return the rows of one agent that makes three calls of 50 tokens in and one out."""
    one = Distribution.constant(1)
    agent = AgentProfile(model="m", calls=Distribution.constant(3), startup_tokens=Distribution.constant(50))
    model = ModelProfile(output_tokens=one, latency_s=one, unreported_rate=unreported_rate)
    return nodes_of(
        Experiment(
            workload=Workload(agents={"solo": agent}, root="solo"),
            provider=MockProvider(models={"m": model}, prices=prices),
            policies=policies,
            runs=1,
        )
    )


def test_an_unreported_cost_under_a_cap_stops_the_tree_with_its_reason() -> None:
    capped = shared_ledger(99, 1_000.0), reservation_pool(cost_usd=1_000.0)
    nodes = solo(PRICES, 1.0, *capped, unlimited())
    assert nodes["outcome"].tolist() == ["exhausted", "exhausted", "completed"]
    assert nodes["stopped_by"].tolist()[:2] == ["spend-unknown"] * 2
    assert nodes["calls"].tolist() == [1, 1, 3]
    assert nodes[["cost_nusd", "input_total"]].isna().all(axis=None)
    assert (nodes["billed_nusd"] > 0).all()  # the truth, which the enforcement does not see


def test_an_unknown_figure_is_missing_and_a_known_one_beside_it_stays() -> None:
    node = solo(PriceTable(), 0.0, unlimited()).iloc[0]
    assert (node["input_total"], node["output"], node["usage_known"]) == (153, 3, True)
    assert node[["cost_nusd", "billed_nusd", "cost_source"]].isna().all()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"runs": 0}, "runs"),
        ({"runs": -1}, "runs"),
        ({"runs": 1.5}, "runs"),
        ({"seed": -1}, "seed"),
        ({"seed": float("nan")}, "seed"),
        ({"policies": ()}, "policies"),
        ({"policies": (unlimited(), unlimited())}, "policies"),
    ],
    ids=str,
)
def test_a_bad_experiment_is_refused_by_name(busy: Experiment, changes: dict[str, Any], name: str) -> None:
    values = {"workload": busy.workload, "provider": busy.provider, "policies": busy.policies}
    with pytest.raises(InputError, match=rf"^{name}: expected"):
        Experiment(**(values | changes))


@pytest.mark.parametrize(
    "options", [{"engine": "abacus"}, {"backend": "pigeons"}, {"only": [40]}, {"only": [-1]}, {"workers": -1}], ids=str
)
def test_a_bad_way_to_run_is_refused(busy: Experiment, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        busy.run(**({"backend": "serial"} | options))


def test_call_rows_name_their_policy(busy: Experiment) -> None:
    kept = busy.run(backend="serial", calls=True).settlements
    assert kept.calls["attempt"].max() > 0
    called = kept.calls.groupby("policy").size()
    assert called.to_dict() == kept.nodes.groupby("policy")["attempts"].sum().to_dict()


def test_call_rows_name_the_kind_of_their_step(busy: Experiment) -> None:
    limited = compose(shared_ledger(5), name="wraps up", at_limit=AtLimit(then="wrap-up"))
    kept = busy.with_policies(limited).run(backend="serial", calls=True).settlements
    assert set(kept.calls["kind"]) == {"model", "wrap-up"}
