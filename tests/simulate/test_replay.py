"""Recorded runs played again: the same under no limit, cut where the policy says, marked where no record can say."""

from __future__ import annotations

import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.policies import compose, period_budget, reservation_pool, shared_ledger, tree_limits, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.settlements import Settlements
from harness_lab.simulate import AgentProfile, Arrivals, Experiment, Replay, Spawn, Workload
from harness_lab.simulate.player import CHILD_CHANGED, ENDED_EARLY, WAS_DENIED
from harness_lab.simulate.recording import EVENLY, ONE_CALL, SPLIT
from harness_lab.simulate.replay import OVERLAPS
from harness_lab.simulate.worlds import EPOCH_NS
from harness_lab.stats import Distribution

SAME = ["outcome", "stopped_by", "cause", "calls", "attempts", "starts", "input_fresh", "cache_read", "cache_write",
        "output", "cost_nusd", "billed_nusd", "start_ns", "duration_ns", "wait_ns"]  # fmt: skip
PRICES = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})


@pytest.fixture(scope="module")
def recorded() -> Settlements:
    lead = AgentProfile(
        model="m",
        calls=Distribution.of("lognorm", s=0.4, scale=6),
        startup_tokens=Distribution.of("lognorm", s=0.1, scale=4000),
        growth_tokens=Distribution.constant(300),
        tool_s=Distribution.of("expon", scale=4),
        failure_rate=0.1,
        spawns=(Spawn(agent="child", count=2, after=(1, 3), chance=0.5),),
    )
    child = AgentProfile(model="m", calls=Distribution.constant(2), startup_tokens=Distribution.constant(900))
    model = ModelProfile(
        output_tokens=Distribution.of("lognorm", s=0.7, scale=300),
        latency_s=Distribution.of("gamma", a=4, scale=1),
        cache_share=0.8,
        error_rate=0.05,
    )
    world = Workload(agents={"lead": lead, "child": child}, root="lead")
    provider = MockProvider(models={"m": model}, prices=PRICES)
    experiment = Experiment(workload=world, provider=provider, policies=(unlimited(),), runs=60, seed=5)
    return experiment.run(calls=True, backend="serial").settlements


def by_node(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_index(["run", "node"]).sort_index()[SAME]


@pytest.mark.parametrize("engine", ["kernel", "asyncio"])
def test_without_a_limit_every_node_is_played_as_it_was_recorded(recorded: Settlements, engine: str) -> None:
    again = Replay.of(recorded, (unlimited(),)).run(engine=engine)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(by_node(again.settlements.nodes), by_node(recorded.nodes))
    assert again.marks.empty
    assert "oblivious" in again.summary()


def test_a_limit_cuts_after_as_many_calls_as_it_allows_and_the_rest_is_saved(recorded: Settlements) -> None:
    outcomes = Replay.of(recorded, (shared_ledger(5),)).run().outcomes()
    cut = outcomes[outcomes["cut"]]
    assert 0 < len(cut) < len(outcomes)
    assert cut["calls_made"].isin([5, 6]).all()  # two children ask at one instant before either is charged
    assert (cut["saved_nusd"] > 0).all()
    assert (outcomes.loc[outcomes["stopped"] == 0, "saved_nusd"] == 0).all()
    assert (outcomes["cost_nusd"] + outcomes["saved_nusd"] == outcomes["recorded_nusd"]).all()


def test_a_child_that_is_refused_marks_the_run_whose_parent_would_have_known(recorded: Settlements) -> None:
    result = Replay.of(recorded, (compose(tree_limits(max_calls=1), name="one child"),)).run()
    outcomes = result.outcomes()
    assert (outcomes["refused"] > 0).any()
    assert (outcomes["marked"] == (outcomes["refused"] > 0)).all()
    assert set(result.marks["why"]) == {CHILD_CHANGED}


def test_a_child_that_was_denied_and_is_granted_is_not_invented(recorded: Settlements) -> None:
    denied = Replay.of(recorded, (compose(tree_limits(max_calls=1), name="one"),)).run().settlements
    again = Replay.of(denied, (unlimited(),)).run()
    assert set(again.marks["why"]) >= {WAS_DENIED}
    assert (again.settlements.nodes["outcome"] == "unknown").sum() == (denied.nodes["outcome"] == "denied").sum()


def test_a_run_that_a_limit_had_stopped_is_marked_at_its_end(recorded: Settlements) -> None:
    stopped = Replay.of(recorded, (shared_ledger(5),)).run(calls=True)
    table = Settlements.from_columns(stopped.settlements.nodes.assign(policy=None), stopped.settlements.calls)
    again = Replay.of(table, (unlimited(),)).run()
    exhausted = set(table.nodes.loc[table.nodes["outcome"] == "exhausted", "run"])
    assert set(again.marks.loc[again.marks["why"] == ENDED_EARLY, "run"]) == exhausted


def test_without_call_rows_totals_are_spread_and_said_to_be() -> None:
    row = {"run": ["a"], "node": "0", "outcome": "completed", "calls": 4, "input_total": 4_003, "output": 41}
    result = Replay.of(Settlements.from_columns(row), (unlimited(),)).run()
    node = result.settlements.nodes.iloc[0]
    assert (node["calls"], node["input_total"], node["output"]) == (4, 4_003, 41)
    assert set(result.marks["why"]) == {EVENLY, SPLIT}


def test_a_node_of_unknown_calls_is_one_call_and_unknown_usage_stays_unknown() -> None:
    rows = {"run": ["a", "b"], "node": "0", "outcome": "completed", "input_total": [9, None], "output": [1, None],
            "calls": [None, 2]}  # fmt: skip
    result = Replay.of(Settlements.from_columns(rows), (unlimited(),)).run()
    assert result.marks.loc[result.marks["run"] == "a", "why"].tolist() == [ONE_CALL, SPLIT]
    assert result.settlements.nodes["input_total"].isna().tolist() == [False, True]
    assert result.outcomes()["tokens_saved"].isna().tolist() == [False, True]


def test_a_recorded_cost_above_a_cap_is_cut_by_a_pool_of_money(recorded: Settlements) -> None:
    result = Replay.of(recorded, (reservation_pool(cost_usd=0.05),), prices=PRICES).run(decisions=True)
    nodes = result.settlements.nodes
    spent = nodes.groupby("run")["cost_nusd"].sum()
    assert (nodes["outcome"] == "exhausted").any()
    assert (
        spent.max()
        < Replay.of(recorded, (unlimited(),)).run().settlements.nodes.groupby("run")["cost_nusd"].sum().max()
    )
    assert result.decisions is not None
    assert result.decisions["answer"].str.startswith("budget-exhausted").any()


def test_what_cannot_be_replayed_is_refused_in_one_line(recorded: Settlements) -> None:
    with pytest.raises(InputError, match=r"^runs: expected some of the 60 recorded runs, got \['nine'\]"):
        Replay.of(recorded, (unlimited(),), runs=["nine"])
    with pytest.raises(InputError, match=r"^prices: expected prices to reprice by"):
        Replay.of(recorded, (unlimited(),), reprice=True)
    with pytest.raises(InputError, match=r"^policies: expected at least one, with different names"):
        Replay.of(recorded, ())


def a_day(starts_h: list[float]) -> Settlements:
    """Runs of one user that cost 40 cents each."""
    rows = {"run": [f"r{i}" for i in range(len(starts_h))], "node": "0", "agent": "a", "model": "m", "calls": 4}
    start = [EPOCH_NS + int(hour * 3_600) * 10**9 for hour in starts_h]
    return Settlements.from_columns(
        rows | {"outcome": "completed", "input_total": 4_000, "input_fresh": 4_000, "cache_read": 0, "cache_write": 0,
                "output": 40, "cost_nusd": 400_000_000, "cost_source": "recorded", "start_ns": start,
                "duration_ns": 3_600 * 10**9, "user": "ann"}
    )  # fmt: skip


def test_runs_are_played_in_order_under_a_budget_of_a_day_and_its_window_turns() -> None:
    budget = compose(period_budget(cost_usd=0.95, by="user", every="day"), name="daily")
    replayed = Replay.of(a_day([8, 2, 5, 30, 4.5]), (budget,)).run()
    outcomes = replayed.outcomes().set_index("run")
    assert outcomes["cut"].to_dict() == {"r1": False, "r4": False, "r2": True, "r0": True, "r3": False}
    assert set(replayed.marks.loc[replayed.marks["why"] == OVERLAPS, "run"]) == {"r2"}


def test_recorded_starts_become_arrivals() -> None:
    arrivals = Arrivals.recorded(a_day([8, 2, 5]))
    assert arrivals.at_s == (0.0, 3 * 3_600.0, 6 * 3_600.0)
    assert arrivals.start == "2026-01-05T02:00:00+00:00"
